// The arena under many threads: buffers of all ways are taken, written, checked and dropped while others trim,
// register, drain and open and close arenas, and children are forked in the middle. Exits with 0 if every buffer held
// what was written into it, every account came out even, and the release thread unmapped 16 MiB or less at a time.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "arena.h"
#include "arena_release.h"
#include "check.h"

using namespace snarkline;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
std::atomic<std::size_t> largest_unmapped{0};

bool on_release_thread() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strcmp(name, "snl-release") == 0;
}

Block* take(const std::shared_ptr<Arena>& arena, const TakeRequest& request) {
  Block* block = nullptr;
  for (;;) {
    const Taken taken = arena->take(request, block);
    if (taken == Taken::block) return block;
    CHECK(taken == Taken::over_budget || taken == Taken::backlog);
    Arena::wait(5ms);
  }
}

struct Held {
  Block* block;
  std::size_t bytes;
  std::uint64_t mark;
};

void write_mark(const Held& held) {
  for (std::size_t i = 0; i < held.bytes; i += kSmallPage) std::memcpy(held.block->mapping.data + i, &held.mark, 8);
}

void check_mark(const Held& held) {
  for (std::size_t i = 0; i < held.bytes; i += kSmallPage) {
    CHECK(std::memcmp(held.block->mapping.data + i, &held.mark, 8) == 0);
  }
}

// Takes and drops buffers, of which it has a few at any time.
void work(const std::shared_ptr<Arena>& arena, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  std::vector<Held> held;
  const auto drop = [&] {
    const std::size_t i = random() % held.size();
    check_mark(held[i]);
    if (held[i].block->registered && random() % 2) CHECK(Arena::set_registered(*held[i].block, false));
    Arena::give(held[i].block);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int round = 0; round < rounds; round++) {
    const TakeRequest request{(1 + random() % 96) << 15, static_cast<Way>(random() % 5), random() % 4 == 0,
                              random() % 8 == 0, random() % 8 == 0};
    Block* block = take(arena, request);
    if (block->zero) CHECK(*reinterpret_cast<volatile std::uint64_t*>(block->mapping.data) == 0);
    if (!block->present && random() % 2) touch_pages(Exec{2, nullptr}, block->mapping, request.bytes);
    if (request.registered && !request.shared && !block->registered) CHECK(Arena::set_registered(*block, true));
    held.push_back({block, request.bytes, (std::uint64_t{seed} << 32) + static_cast<std::uint64_t>(round) + 1});
    write_mark(held.back());
    if (held.size() > 4) drop();
  }
  while (!held.empty()) drop();
}

// What nobody does while work goes on well.
void disturb(const std::shared_ptr<Arena>& arena, const std::atomic<bool>& stop) {
  for (unsigned round = 0; !stop; round++) {
    arena->trim(round % 3 * kMiB);
    if (Block* idle = arena->take_idle_registered()) {
      CHECK(Arena::set_registered(*idle, false));
      Arena::give(idle);
    }
    (void)arena->stats();
    (void)arena->drain(1ms);
    (void)Releaser::instance().settle_secrets(1ms);
    auto other = Arena::create({8 * kMiB, 2 * kMiB, 1ms, Pages::small});
    Block* survivor = take(other, {kMiB, Way::pool, true, false, false});
    if (round % 2) other->close();
    other.reset();
    Arena::give(survivor);
    std::this_thread::sleep_for(1ms);
  }
}

// Children go on with what they inherit. They may not do much else: threads of the parent are gone.
void fork_now_and_then(const std::shared_ptr<Arena>& arena, int times) {
  for (int i = 0; i < times; i++) {
    std::this_thread::sleep_for(10ms);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      Block* block = take(arena, {kMiB, Way::detached, true, false, false});
      write_mark({block, kMiB, 7});
      Arena::give(block);
      arena->trim(0);
      CHECK(arena->drain(20s));
      std::_Exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

void run(const ArenaOptions& options, int threads, int rounds, int forks) {
  auto arena = Arena::create(options);
  std::atomic<bool> stop{false};
  std::thread disturber([&] { disturb(arena, stop); });
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; i++) {
    workers.emplace_back([&, i] { work(arena, static_cast<unsigned>(i + 1), rounds); });
  }
  fork_now_and_then(arena, forks);
  for (auto& worker : workers) worker.join();
  stop = true;
  disturber.join();
  CHECK(arena->drain(30s));
  while (Block* idle = arena->take_idle_registered()) {
    CHECK(Arena::set_registered(*idle, false));
    Arena::give(idle);
  }
  arena->close();
  CHECK(arena->drain(30s));
  const ArenaStats stats = arena->stats();
  CHECK(stats.lent_blocks == 0 && stats.lent_bytes == 0);
  CHECK(stats.pooled_blocks == 0 && stats.pooled_bytes == 0);
  CHECK(stats.pending_blocks == 0 && stats.pending_bytes == 0);
  CHECK(stats.peak_bytes <= options.budget_bytes);
  std::printf("%llu mapped, %llu lent again, %llu MiB released, %llu MiB wiped\n",
              static_cast<unsigned long long>(stats.fresh_blocks),
              static_cast<unsigned long long>(stats.recycled_blocks),
              static_cast<unsigned long long>(stats.released_bytes / kMiB),
              static_cast<unsigned long long>(stats.wiped_bytes / kMiB));
}

}  // namespace

extern "C" int __real_munmap(void* address, std::size_t bytes);
extern "C" int __wrap_munmap(void* address, std::size_t bytes) {
  if (on_release_thread()) {
    std::size_t largest = largest_unmapped;
    while (bytes > largest && !largest_unmapped.compare_exchange_weak(largest, bytes)) {
    }
  }
  return __real_munmap(address, bytes);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const int forks = argc > 2 ? std::atoi(argv[2]) : 10;
  run({SIZE_MAX, SIZE_MAX, std::chrono::hours(1), Pages::automatic}, 8, rounds, forks);
  run({96 * kMiB, 16 * kMiB, 2ms, Pages::small}, 8, rounds, forks);
  Block* large = take(Arena::create({}), {256 * kMiB, Way::detached, false, false, false});
  const std::shared_ptr<Arena> arena = large->owner;
  touch_pages(Exec{2, nullptr}, large->mapping, 256 * kMiB);
  Arena::give(large);
  CHECK(arena->drain(30s));
  CHECK(largest_unmapped > 0 && largest_unmapped <= 16 * kMiB);
  std::puts("ok");
}
