// Callbacks of sys.monitoring for `snarkline ghosts`, Python 3.12 and later. Written against the C API: they run at
// every call of the watched program.
#include "ghost_events.h"
#include "ghosts_watchdog.h"

#if PY_VERSION_HEX >= 0x030c0000

namespace snarkline {

namespace {

// Number of Python frames of this thread.
int python_depth() {
  const PyThreadState* state = PyThreadState_Get();
  return state->py_recursion_limit - state->py_recursion_remaining;
}

// (code, offset, value)
PyObject* on_return(PyObject*, PyObject* const* args, Py_ssize_t) {
  GhostThread& thread = ghost_thread();
  GhostAccount* account = ghost_account(args[0]);
  const bool guarded = ghost_watchdog_runs();
  if (guarded && thread.passes(account, ghost_state())) {
    const GhostStand stand = ghost_stand(thread);
    if (stand.caller) {
      thread.passed(account, python_depth(), stand, ghost_state());
      Py_RETURN_NONE;
    }
  }
  const bool quiet = thread.returned(account, python_depth(), __builtin_frame_address(0), ghost_state());
  return Py_NewRef(quiet && !guarded ? ghost_disable() : Py_None);
}

// (code, offset, exception); cannot be disabled
PyObject* on_unwind(PyObject*, PyObject* const* args, Py_ssize_t) {
  ghost_thread().returned(ghost_account(args[0]), python_depth(), __builtin_frame_address(0), ghost_state());
  Py_RETURN_NONE;
}

// (code, offset)
PyObject* on_instruction(PyObject*, PyObject* const* args, Py_ssize_t) {
  const auto offset = static_cast<std::size_t>(PyLong_AsLong(args[1]));
  const bool done = ghost_instruction(ghost_account(args[0]), offset, python_depth(), __builtin_frame_address(0));
  return Py_NewRef(done ? ghost_disable() : Py_None);
}

template <PyObject* (*callback)(PyObject*, PyObject* const*, Py_ssize_t)>
PyMethodDef method(const char* name) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(callback)), METH_FASTCALL, nullptr};
}

PyMethodDef callbacks[] = {method<on_return>("ghosts_on_return"),
                           method<on_unwind>("ghosts_on_unwind"),
                           method<on_instruction>("ghosts_on_instruction"),
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_ghost_listeners(PyObject* module) { PyModule_AddFunctions(module, callbacks); }

}  // namespace snarkline

#endif
