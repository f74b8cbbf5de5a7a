// The compiled core's Python module. One file in this folder for each area.
#include <nanobind/nanobind.h>

#include "bind.h"

NB_MODULE(_core, m) {
  // Later versions of Python refuse by themselves.
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    throw nanobind::import_error("snarkline's compiled core cannot be loaded in a sub-interpreter");
  // Daemon threads that are stopped at exit, and buffers that a device may still read, keep objects alive on purpose.
  nanobind::set_leak_warnings(false);
  m.doc() = "Snarkline's compiled core. The typed face is snarkline/native/_core.pyi.";
  snarkline::bind_ghosts(m);
  snarkline::bind_trace(m);
  snarkline::bind_arena(m);
  snarkline::bind_facts(m);
  snarkline::bind_kernels(m);
  snarkline::bind_fold(m);
  snarkline::bind_decode(m);
  snarkline::bind_numpy_memory(m);
  snarkline::bind_standin(m);
  snarkline::bind_structured(m);
  snarkline::bind_synthesis(m);
}
