// Functions that return often go unwatched while a program is very busy. One of their teardowns may still be long: the
// watchdog, a native thread that needs no GIL, looks every few milliseconds whether a thread stands where such a
// function returned to, and charges the function for as long as it does.
#pragma once

#include <Python.h>

#include "../host/ghosts.h"

namespace snarkline {

// Where the calling thread stands, in the callback of a return. A null `caller` if that is C code.
GhostStand ghost_stand(GhostThread& thread);

// False before Python 3.12, and where the interpreter's frames are not laid out as expected.
bool ghost_watchdog_start();
void ghost_watchdog_stop();  // what it has found is in the accounts then
bool ghost_watchdog_runs();

}  // namespace snarkline
