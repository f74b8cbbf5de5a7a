// Face of the arena: a lease is a buffer in Python's sense, and its last reference sends the block its way.
#include "../host/arena.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "../host/arena_release.h"
#include "array.h"
#include "bind.h"
#include "gil.h"
#include "lease.h"

namespace nb = nanobind;

namespace snarkline {

Way parse_way(const std::string& name) {
  if (name == "here") return Way::here;
  if (name == "empty") return Way::empty;
  if (name == "empty_lazily") return Way::empty_lazily;
  if (name == "detached") return Way::detached;
  if (name == "pool") return Way::pool;
  refuse("way", "here, empty, empty_lazily, detached or pool", name);
}

namespace {

std::chrono::nanoseconds seconds(double s) {
  constexpr double kForever = 1e9;  // small enough for arithmetic on time points
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(s, 0.0, kForever) * 1e9));
}

Block& block_of(const Lease& lease) {
  if (!lease.block()) throw nb::value_error("the lease was released");
  return *lease.block();
}

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

nb::object new_lease(Block* block, std::size_t bytes) {
  return nb::cast(new Lease(block, bytes), nb::rv_policy::take_ownership);
}

bool interrupted() {
  const WithGil gil;
  return PyErr_CheckSignals() != 0;
}

// First touch, unless the block has its pages. Ctrl-C sends the block its way.
void touch(Block* block, std::size_t bytes, unsigned threads) {
  if (!threads || block->present) return;
  try {
    const WithoutGil no_gil;
    touch_pages(Exec{threads, interrupted}, block->mapping, bytes);
    block->present = true;
  } catch (const Interrupted&) {
    Arena::give(block);
    throw nb::python_error();
  }
}

nb::object take(Arena& arena, std::size_t bytes, const std::string& way, bool secret, bool shared, bool registered,
                unsigned threads) {
  const TakeRequest request{bytes, parse_way(way), secret, shared, registered, threads};
  Block* block = nullptr;
  Taken taken;
  int cause;
  {
    const WithoutGil no_gil;
    taken = arena.take(request, block);
    cause = errno;
  }
  if (taken == Taken::over_budget) return nb::str("budget");
  if (taken == Taken::backlog) return nb::str("backlog");
  if (taken == Taken::refused) return nb::str(std::strerror(cause));
  touch(block, bytes, threads);
  return new_lease(block, bytes);
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
  d["fresh_blocks"] = s.fresh_blocks;
  d["fresh_bytes"] = s.fresh_bytes;
  d["recycled_blocks"] = s.recycled_blocks;
  d["recycled_bytes"] = s.recycled_bytes;
  d["released_bytes"] = s.released_bytes;
  d["wiped_bytes"] = s.wiped_bytes;
  d["release_s"] = static_cast<double>(s.release_ns) * 1e-9;
  d["wipe_s"] = static_cast<double>(s.wipe_ns) * 1e-9;
  return d;
}

void check(bool done) {
  if (done) return;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

void set_registered(const Lease& lease, bool registered) { check(Arena::set_registered(block_of(lease), registered)); }

nb::object take_idle_registered(Arena& arena) {
  Block* block = arena.take_idle_registered();
  return block ? new_lease(block, block->mapping.bytes) : nb::none();
}

void bind_lease(nb::module_& m) {
  nb::class_<Lease>(m, "Lease", nb::type_slots(lease_slots))
      .def("release", &Lease::release)
      .def("set_registered", set_registered, nb::arg("registered"))
      .def_prop_ro("registered", [](const Lease& lease) { return block_of(lease).registered; })
      .def_prop_ro("zero", [](const Lease& lease) { return block_of(lease).zero; })
      .def_prop_ro("fd", [](const Lease& lease) { return block_of(lease).mapping.fd; })
      .def_prop_ro("address",
                   [](const Lease& lease) { return reinterpret_cast<std::uintptr_t>(block_of(lease).mapping.data); })
      .def_prop_ro("mapped_bytes", [](const Lease& lease) { return block_of(lease).mapping.bytes; })
      .def_prop_ro("n_bytes", &Lease::bytes);
}

}  // namespace

void bind_arena(nb::module_& m) {
  bind_lease(m);
  using nogil = nb::call_guard<WithoutGil>;
  nb::class_<Arena>(m, "Arena")
      .def_static(
          "create",
          [](std::size_t budget_bytes, std::size_t backlog_bytes, double idle_s, bool huge) {
            return Arena::create(
                {budget_bytes, backlog_bytes, seconds(idle_s), huge ? Pages::automatic : Pages::small});
          },
          nb::arg("budget_bytes"), nb::arg("backlog_bytes"), nb::arg("idle_s"), nb::arg("huge"))
      .def("take", take, nb::arg("n_bytes"), nb::arg("way"), nb::arg("secret"), nb::arg("shared"),
           nb::arg("registered"), nb::arg("threads"))
      .def_static(
          "wait", [](double timeout_s) { Arena::wait(seconds(timeout_s)); }, nb::arg("timeout_s"), nogil())
      .def("trim", &Arena::trim, nb::arg("keep_bytes"), nogil())
      .def("close", &Arena::close, nogil())
      .def(
          "drain", [](Arena& arena, double timeout_s) { return arena.drain(seconds(timeout_s)); }, nb::arg("timeout_s"),
          nogil())
      .def("take_idle_registered", take_idle_registered)
      .def(
          "forget", [](Arena& arena, std::uintptr_t address) { arena.forget(reinterpret_cast<const void*>(address)); },
          nb::arg("address"), nogil())
      .def("stats", stats);
  m.def(
      "lock_pages",
      [](std::uintptr_t address, std::size_t bytes, bool locked) {
        check(lock_pages(reinterpret_cast<void*>(address), bytes, locked));
      },
      nb::arg("address"), nb::arg("n_bytes"), nb::arg("locked"));
}

}  // namespace snarkline
