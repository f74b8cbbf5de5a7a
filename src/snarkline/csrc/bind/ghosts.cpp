// Accounts of functions for `snarkline ghosts` (host/ghosts.h), by their code objects.
#include "../host/ghosts.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "../host/span.h"
#include "bind.h"
#include "ghost_events.h"
#include "ghosts_watchdog.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace snarkline {

namespace {

struct Watch {
  GhostState state;
  std::unordered_map<PyObject*, std::unique_ptr<GhostAccount>> accounts;
  PyObject* disable = Py_None;
  bool is_call[256] = {};  // opcodes that may call a Python function
  int pop_except = -1;     // opcode
  std::int64_t looked_ns = 0;
};

Watch& watch() {
  static Watch& instance = *new Watch;  // outlives the interpreter
  return instance;
}

// In co_code, inline caches are zero, and no instruction is.
std::vector<std::uint8_t> places_of(PyCodeObject* code) {
  PyObject* text = PyCode_GetCode(code);
  if (!text) {
    PyErr_Clear();
    return {};
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(text));
  std::vector<std::uint8_t> places(static_cast<std::size_t>(PyBytes_GET_SIZE(text)) / 2, place_other);
  bool after_call = false;
  int after_pop = 0;
  for (std::size_t i = 0; i < places.size(); i++) {
    const int op = bytes[2 * i];
    if (op == 0) {
      places[i] = place_cache;
    } else if (op == watch().pop_except) {
      places[i] = place_pops;
      after_pop = 4;  // `except ... as e` ends with: pop, load None, store e, delete e
    } else if (after_pop > 0) {
      places[i] = place_clears;
      after_pop--;
    } else if (after_call) {
      places[i] = 0;
    }
    if (op != 0) after_call = watch().is_call[op];
  }
  Py_DECREF(text);
  return places;
}

// How much a local keeps alive, as far as that shows from outside. An object with a destructor counts as a MiB.
std::int64_t weight(PyObject* value) {
  std::int64_t bytes = Py_TYPE(value)->tp_finalize ? 1 << 20 : 0;
  PyObject* size = PyObject_CallMethod(value, "__sizeof__", nullptr);
  if (size) bytes += PyLong_AsLongLong(size);
  Py_XDECREF(size);
  PyErr_Clear();
  return bytes;
}

std::int64_t heaviest_local(PyFrameObject* frame) {
  std::int64_t heaviest = 0;
  PyObject* locals = PyFrame_GetLocals(frame);
  PyObject* values = locals ? PyMapping_Values(locals) : nullptr;
  for (Py_ssize_t i = 0; values && i < PyList_GET_SIZE(values); i++)
    heaviest = std::max(heaviest, weight(PyList_GET_ITEM(values, i)));
  Py_XDECREF(values);
  Py_XDECREF(locals);
  PyErr_Clear();
  return heaviest;
}

// Of the functions that the handled exception passed through and keeps alive, the one with the heaviest local; the
// innermost among equals, or if the last look was a moment ago. Null if it passed through none.
GhostAccount* owner_of_exception() {
  PyObject* error = PyErr_GetHandledException();
  PyObject* trace = error ? PyException_GetTraceback(error) : nullptr;
  Py_XDECREF(error);
  const auto* entry = reinterpret_cast<PyTracebackObject*>(trace);
  PyObject* owner = nullptr;
  if (entry && entry->tb_next) {
    const bool looks = monotonic_ns() - watch().looked_ns > 1'000'000;
    std::int64_t heaviest = 0;
    for (entry = entry->tb_next; entry; entry = entry->tb_next) {
      const std::int64_t found = looks ? heaviest_local(entry->tb_frame) : 0;
      if (found < heaviest) continue;
      heaviest = found;
      Py_XSETREF(owner, reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
    }
    if (looks) watch().looked_ns = monotonic_ns();
  }
  Py_XDECREF(trace);
  GhostAccount* account = owner ? ghost_account(owner) : nullptr;
  Py_XDECREF(owner);
  return account;
}

void set_up(nb::object disable, nb::list calls, int pop_except, bool samples) {
  Watch& all = watch();
  all.disable = disable.release().ptr();
  std::fill(std::begin(all.is_call), std::end(all.is_call), false);
  for (nb::handle op : calls) all.is_call[nb::cast<int>(op) & 255] = true;
  all.pop_except = pop_except;
  all.state.samples = samples;
}

void forget() {
  for (auto& [code, account] : watch().accounts) {
    account->calls = account->torn = account->teardown_ns = account->worst_ns = account->released_bytes = 0;
  }
}

nb::list results() {
  nb::list rows;
  for (const auto& [code, account] : watch().accounts)
    if (account->teardown_ns > 0)
      rows.append(nb::make_tuple(nb::borrow(code), account->calls, account->torn, account->teardown_ns,
                                 account->worst_ns, account->released_bytes));
  return rows;
}

nb::list release_rows(std::int64_t since_ns) {
  nb::list rows;
  for (const ReleaseEvent& e : release_events(since_ns))
    rows.append(nb::make_tuple(e.begin_ns, e.end_ns, e.thread, release_kind_name(e.kind), e.bytes));
  return rows;
}

}  // namespace

GhostAccount* ghost_account(PyObject* code) {
  // Every event asks for this: a table with one place for each code object, or for the last of several.
  static struct {
    PyObject* code;
    GhostAccount* account;
  } recent[1024];
  auto& seen = recent[(reinterpret_cast<std::uintptr_t>(code) >> 5) % std::size(recent)];
  if (seen.code == code) return seen.account;
  auto& slot = watch().accounts[code];
  if (!slot) {
    slot = std::make_unique<GhostAccount>();
    auto* c = reinterpret_cast<PyCodeObject*>(Py_NewRef(code));
    slot->places = places_of(c);
    slot->trusts_c = (c->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0 ||
                     PyUnicode_CompareWithASCIIString(c->co_name, "__init__") == 0;
    slot->destructor = PyUnicode_CompareWithASCIIString(c->co_name, "__del__") == 0;
  }
  seen = {code, slot.get()};
  return slot.get();
}

GhostState& ghost_state() { return watch().state; }
PyObject* ghost_disable() { return watch().disable; }

bool ghost_instruction(GhostAccount* account, std::size_t offset, int depth, const void* stack) {
  GhostThread& thread = ghost_thread();
  const std::size_t at = offset / 2;
  if (at >= account->places.size()) return true;
  std::uint8_t& place = account->places[at];
  const bool ended = thread.goes_on(account, depth, stack, place, watch().state);
  if (place == place_pops) {
    if (GhostAccount* owner = owner_of_exception()) thread.exception_dies(owner, depth, at, watch().state);
    return false;
  }
  if (place == place_clears) {
    thread.exception_step(account, depth, at, watch().state);
    return false;
  }
  if (ended) {
    if (place < place_c_calls) place = 0;
    return false;
  }
  if (place > place_c_calls) return true;
  if (place < place_c_calls) place++;
  if (place < place_c_calls || !watch().state.busy()) return false;
  place = 0;  // for the next window
  return true;
}

void bind_ghosts(nb::module_& m) {
  m.def("ghosts_set_up", set_up, "disable"_a.none(), "calls"_a, "pop_except"_a, "samples"_a);
  m.def(
      "ghosts_next_window",
      [](nb::object restart_events) {
        // Under one hold of the GIL: a return that is watched needs its caller's instructions.
        watch().state.window++;
        watch().state.events = 0;
        restart_events();
      },
      "restart_events"_a);
  m.def("ghosts_set_slack", [](std::ptrdiff_t bytes) { watch().state.stack_slack = bytes; }, "bytes"_a);
  m.def("ghosts_last_distance", [] { return ghost_thread().last_distance(); });
  m.def("ghosts_results", results);
  m.def("ghosts_forget", forget);
  m.def("ghosts_watchdog_start", ghost_watchdog_start);
  m.def("ghosts_watchdog_stop", ghost_watchdog_stop);
  m.def("release_shim_loaded", release_shim_loaded);
  m.def("release_events", release_rows, "since_ns"_a);
  add_ghost_listeners(m.ptr());
}

}  // namespace snarkline
