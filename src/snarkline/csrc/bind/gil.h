// Guards for leaving and entering the interpreter's lock.
//
// When the interpreter ends, CPython before 3.14 makes a daemon thread that asks for the GIL exit (pthread_exit), which
// unwinds the C++ frames above it and ends in std::terminate at the first one that may not throw. From 3.14 on such a
// thread sleeps until the process is gone; these guards do the same in every version.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

#include <cxxabi.h>

namespace snarkline {

template <class Ask>
auto or_sleep(const Ask& ask) noexcept {
  try {
    return ask();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    or_sleep([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

class WithGil {
 public:
  WithGil() : state_(or_sleep([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace snarkline
