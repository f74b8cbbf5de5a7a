// Face of the arena: blocks are buffers in Python's sense, and a block's last reference sends it its way.
#include "../host/arena.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bind.h"

namespace nb = nanobind;

namespace snarkline {

namespace {

std::chrono::nanoseconds seconds(double s) {
  // Far beyond any wait, and small enough for arithmetic on time points.
  constexpr double kForever = 1e9;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(std::max(s, 0.0), kForever) * 1e9));
}

Way way_of(const std::string& name) {
  if (name == "here") return Way::here;
  if (name == "empty") return Way::empty;
  if (name == "empty_lazily") return Way::empty_lazily;
  if (name == "detached") return Way::detached;
  if (name == "pool") return Way::pool;
  throw nb::value_error("way must be here, empty, empty_lazily, detached or pool");
}

// What arrays hold as their base. Exports are counted by NumPy's own references to this object.
class Lease {
 public:
  Lease(Block* block, std::size_t bytes) : block_(block), bytes_(bytes) {}
  ~Lease() { release(); }
  Lease(const Lease&) = delete;

  void release() {
    if (!block_) return;
    Block* block = std::exchange(block_, nullptr);
    if (block->way == Way::pool || block->way == Way::detached) {
      Arena::give(block);
    } else {
      nb::gil_scoped_release nogil;
      Arena::give(block);
    }
  }
  Block* block() const { return block_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Block* block_;
  std::size_t bytes_;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* lease = nb::inst_ptr<Lease>(self);
  if (!lease->block()) {
    PyErr_SetString(PyExc_ValueError, "the lease was released");
    view->obj = nullptr;
    return -1;
  }
  return PyBuffer_FillInfo(view, self, lease->block()->mapping.data, static_cast<Py_ssize_t>(lease->bytes()), 0, flags);
}

PyType_Slot lease_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

nb::object take(const std::shared_ptr<Arena>& arena, std::size_t bytes, const std::string& way, bool secret,
                bool shared, unsigned threads) {
  const TakeRequest request{bytes, way_of(way), secret, shared};
  Block* block = nullptr;
  Taken taken;
  int cause;
  {
    nb::gil_scoped_release nogil;
    const std::size_t fresh = arena->stats().fresh_mappings;
    taken = arena->take(request, block);
    cause = errno;
    if (taken == Taken::block && threads && arena->stats().fresh_mappings != fresh) {
      Exec exec;
      exec.threads = threads;
      arena->touch(exec, *block, bytes);
    }
  }
  switch (taken) {
    case Taken::block:
      return nb::cast(new Lease(block, bytes), nb::rv_policy::take_ownership);
    case Taken::over_budget:
      return nb::str("budget");
    case Taken::backlog:
      return nb::str("backlog");
    default:
      PyErr_SetString(PyExc_MemoryError, std::strerror(cause));
      throw nb::python_error();
  }
}

nb::dict stats(const Arena& arena) {
  const ArenaStats s = arena.stats();
  nb::dict d;
  d["lent_bytes"] = s.lent_bytes;
  d["lent_blocks"] = s.lent_blocks;
  d["pooled_bytes"] = s.pooled_bytes;
  d["pooled_blocks"] = s.pooled_blocks;
  d["pending_bytes"] = s.pending_bytes;
  d["pending_blocks"] = s.pending_blocks;
  d["peak_bytes"] = s.peak_bytes;
  d["fresh_mappings"] = s.fresh_mappings;
  d["fresh_bytes"] = s.fresh_bytes;
  d["recycled_blocks"] = s.recycled_blocks;
  d["recycled_bytes"] = s.recycled_bytes;
  d["released_bytes"] = s.released_bytes;
  d["wiped_bytes"] = s.wiped_bytes;
  d["release_s"] = static_cast<double>(s.release_ns) * 1e-9;
  d["wipe_s"] = static_cast<double>(s.wipe_ns) * 1e-9;
  return d;
}

}  // namespace

void bind_arena(nb::module_& m) {
  nb::class_<Lease>(m, "Lease", nb::type_slots(lease_slots))
      .def("release", &Lease::release)
      .def_prop_ro("n_bytes", &Lease::bytes);
  nb::class_<Arena>(m, "Arena")
      .def_static(
          "create",
          [](std::size_t budget_bytes, std::size_t backlog_bytes, double idle_s, bool huge) {
            return Arena::create(
                {budget_bytes, backlog_bytes, seconds(idle_s), huge ? Pages::automatic : Pages::small});
          },
          nb::arg("budget_bytes"), nb::arg("backlog_bytes"), nb::arg("idle_s"), nb::arg("huge"))
      .def("take", take, nb::arg("n_bytes"), nb::arg("way"), nb::arg("secret"), nb::arg("shared"), nb::arg("threads"))
      .def(
          "wait", [](Arena& arena, double timeout_s) { arena.wait(seconds(timeout_s)); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("trim", &Arena::trim, nb::arg("keep_bytes"))
      .def("close", &Arena::close)
      .def(
          "drain", [](Arena& arena, double timeout_s) { return arena.drain(seconds(timeout_s)); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("stats", stats);
}

}  // namespace snarkline
