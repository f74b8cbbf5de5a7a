// The profile function and opcode traces for `snarkline ghosts`, Python 3.11: a profile function tells of returns, and
// a trace of single instructions, on from a return to the caller's next instruction, tells when the caller goes on.
#include "ghost_events.h"

#if PY_VERSION_HEX < 0x030c0000

namespace snarkline {

namespace {

constexpr int trace_limit = 10'000;  // instructions for which an exception is followed

struct ThreadTrace {
  int depth = 0;   // of Python frames, counted from where listening began
  int follow = 0;  // instructions for which the trace stays on: an exception is on its way
};
thread_local ThreadTrace own;

void trace_opcodes(PyFrameObject* frame, bool on) {
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(frame), "f_trace_opcodes", on ? Py_True : Py_False) < 0)
    PyErr_Clear();
}

int on_trace(PyObject*, PyFrameObject* frame, int what, PyObject*) {
  if (what != PyTrace_OPCODE) return 0;
  PyObject* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
  const auto offset = static_cast<std::size_t>(PyFrame_GetLasti(frame));
  GhostAccount* account = ghost_account(code);
  Py_DECREF(code);
  ghost_instruction(account, offset, own.depth, __builtin_frame_address(0));
  const bool clears = offset / 2 < account->places.size() && account->places[offset / 2] == place_clears;
  if (clears) own.follow = own.follow > 5 ? 5 : own.follow;
  if (own.follow-- > 0) return 0;
  own.follow = 0;
  trace_opcodes(frame, false);
  PyEval_SetTrace(nullptr, nullptr);
  return 0;
}

bool is_yield(PyFrameObject* frame, PyObject* code) {
  static const int yield_value = [] {
    PyObject* opcodes = PyImport_ImportModule("opcode");
    PyObject* map = opcodes ? PyObject_GetAttrString(opcodes, "opmap") : nullptr;
    PyObject* op = map ? PyDict_GetItemString(map, "YIELD_VALUE") : nullptr;
    const int number = op ? static_cast<int>(PyLong_AsLong(op)) : -1;
    Py_XDECREF(map);
    Py_XDECREF(opcodes);
    return number;
  }();
  constexpr int suspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  if (!(reinterpret_cast<PyCodeObject*>(code)->co_flags & suspends)) return false;
  PyObject* text = PyCode_GetCode(reinterpret_cast<PyCodeObject*>(code));
  const int at = PyFrame_GetLasti(frame);
  const bool yields = text && at >= 0 && at < PyBytes_GET_SIZE(text) &&
                      static_cast<unsigned char>(PyBytes_AS_STRING(text)[at]) == yield_value;
  Py_XDECREF(text);
  return yields;
}

int on_profile(PyObject*, PyFrameObject* frame, int what, PyObject* value) {
  if (what == PyTrace_CALL) own.depth++;
  if (what != PyTrace_RETURN) return 0;
  const int depth = own.depth--;
  PyObject* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
  if (!value || !is_yield(frame, code)) {
    ghost_thread().returned(ghost_account(code), depth, __builtin_frame_address(0), ghost_state());
    own.follow = value ? 0 : trace_limit;
    if (PyFrameObject* caller = PyFrame_GetBack(frame)) {
      trace_opcodes(caller, true);
      Py_DECREF(caller);
      PyEval_SetTrace(on_trace, nullptr);
    }
  }
  Py_DECREF(code);
  return 0;
}

PyObject* attach(PyObject*, PyObject*) {
  own = {};
  PyEval_SetProfile(on_profile, nullptr);
  Py_RETURN_NONE;
}

PyObject* detach(PyObject*, PyObject*) {
  PyEval_SetTrace(nullptr, nullptr);
  PyEval_SetProfile(nullptr, nullptr);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"ghosts_attach", attach, METH_NOARGS, nullptr},
                           {"ghosts_detach", detach, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_ghost_listeners(PyObject* module) { PyModule_AddFunctions(module, functions); }

}  // namespace snarkline

#endif
