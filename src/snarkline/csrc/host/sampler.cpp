#include "sampler.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "span.h"

namespace snarkline {

namespace {

constexpr std::size_t max_threads = 256;        // looked at in one round
constexpr std::size_t max_samples = 4'000'000;  // 128 MB

// The open files of one thread's folder in /proc.
class ThreadFiles {
 public:
  explicit ThreadFiles(std::int32_t thread) : thread_(thread) {
    const char* names[] = {"syscall", "io"};
    for (int i = 0; i < 2; i++) {
      char path[64];
      std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, names[i]);
      files_[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
  }
  ~ThreadFiles() {
    for (const int file : files_)
      if (file >= 0) close(file);
  }
  ThreadFiles(const ThreadFiles&) = delete;
  ThreadFiles& operator=(const ThreadFiles&) = delete;

  // False when the thread has ended.
  bool read(WaitSample& sample) const {
    char text[256];
    if (!read_file(0, text, sizeof text)) return false;
    sample.thread = thread_;
    sample.call = text[0] == 'r' ? call_running : static_cast<std::int32_t>(std::strtol(text, nullptr, 10));
    if (sample.call == -1 && text[0] == '-') sample.call = call_none;
    sample.io_bytes = -1;
    if (read_file(1, text, sizeof text)) {
      const char* written = std::strstr(text, "wchar: ");
      sample.io_bytes = std::atoll(text + 7) + (written ? std::atoll(written + 7) : 0);  // "rchar: N\nwchar: M"
    }
    sample.ns = monotonic_ns();
    return true;
  }

 private:
  bool read_file(int i, char* text, std::size_t size) const {
    const ssize_t n = files_[i] < 0 ? -1 : pread(files_[i], text, size - 1, 0);
    if (n <= 0) return false;
    text[n] = 0;
    return true;
  }

  std::int32_t thread_;
  int files_[2];
};

class Sampler {
 public:
  void start(std::int64_t period_ns) {
    std::lock_guard guard(control_);
    if (users_++) return;
    static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    (void)registered;
    stop_ = false;
    thread_ = std::thread([this, period_ns] { run(std::chrono::nanoseconds(period_ns)); });
    pthread_setname_np(thread_.native_handle(), "snl-sampler");
  }

  void stop() {
    std::lock_guard guard(control_);
    if (users_ == 0 || --users_) return;
    {
      std::lock_guard stopping(lock_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  std::vector<WaitSample> since(std::int64_t ns) {
    std::lock_guard guard(lock_);
    std::vector<WaitSample> found;
    for (const auto& sample : samples_)
      if (sample.ns >= ns) found.push_back(sample);
    return found;
  }

  void forget() {
    std::lock_guard guard(lock_);
    samples_.clear();
  }

 private:
  void run(std::chrono::nanoseconds period) {
    std::map<std::int32_t, ThreadFiles> files;
    std::unique_lock guard(lock_);
    while (!wake_.wait_for(guard, period, [this] { return stop_; })) {
      guard.unlock();
      std::vector<WaitSample> round = look(files);
      counters_sample(monotonic_ns(), resident_bytes());
      guard.lock();
      if (samples_.size() < max_samples) samples_.insert(samples_.end(), round.begin(), round.end());
    }
  }

  static std::vector<WaitSample> look(std::map<std::int32_t, ThreadFiles>& files) {
    for (const std::int32_t thread : span_threads())
      if (files.size() < max_threads) files.try_emplace(thread, thread);
    std::vector<WaitSample> round;
    for (auto it = files.begin(); it != files.end();) {
      WaitSample sample{};
      const bool alive = it->second.read(sample);
      if (alive) round.push_back(sample);
      it = alive ? std::next(it) : files.erase(it);
    }
    return round;
  }

  static void after_fork_in_child();

  std::mutex control_;  // of users_ and thread_
  std::mutex lock_;     // of samples_ and stop_
  std::condition_variable wake_;
  std::vector<WaitSample> samples_;
  std::thread thread_;
  int users_ = 0;
  bool stop_ = false;
};

// Replaced, never destroyed: the thread may outlive main, and a forked child has none.
Sampler* current = new Sampler;

void Sampler::after_fork_in_child() { current = new Sampler; }

}  // namespace

void sampler_start(std::int64_t period_ns) { current->start(period_ns); }
void sampler_stop() { current->stop(); }
std::vector<WaitSample> wait_samples(std::int64_t since_ns) { return current->since(since_ns); }
void wait_samples_forget() { current->forget(); }

}  // namespace snarkline
