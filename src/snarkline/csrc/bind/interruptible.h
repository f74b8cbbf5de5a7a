// Calls into kernels without the GIL. The calling thread takes it back now and then to see whether a signal came; the
// exception that its handler raised (KeyboardInterrupt for Ctrl-C) then goes up.
#pragma once

#include "../host/exec.h"
#include "gil.h"

namespace snarkline {

template <class Work>
auto interruptible(unsigned threads, const Work& work) {
  const Exec exec{threads, [] {
                    const WithGil gil;
                    return PyErr_CheckSignals() != 0;
                  }};
  try {
    const WithoutGil no_gil;
    return work(exec);
  } catch (const Interrupted&) {
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nanobind::python_error();
  }
}

}  // namespace snarkline
