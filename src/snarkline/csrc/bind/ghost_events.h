// What the two ways of listening to the interpreter share (ghosts_monitoring.cpp, ghosts_profile.cpp).
#pragma once

#include <Python.h>

#include "../host/ghosts.h"

namespace snarkline {

// The account of a code object, made at its first event. The code object is kept.
GhostAccount* ghost_account(PyObject* code);
GhostState& ghost_state();
PyObject* ghost_disable();  // sys.monitoring.DISABLE, borrowed

// An instruction of `account` at `offset` is about to run. True: there is nothing to learn from it for now.
bool ghost_instruction(GhostAccount* account, std::size_t offset, int depth, const void* stack);

// Adds the functions by which `trace/ghosts.py` listens: callbacks, or attach and detach for a thread.
void add_ghost_listeners(PyObject* module);

}  // namespace snarkline
