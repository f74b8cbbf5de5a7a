// Copies from global to shared memory that a thread does not wait for.
#pragma once

#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

// 16 bytes to shared memory while the thread goes on. `wait_for_copies<n>`: all of its copies are there but those of
// the last n groups; a group is what was copied up to `end_group`.
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
class CopyTarget {
 public:
  SNL_DEVICE explicit CopyTarget(Pair* shared) : to_(static_cast<u32>(__cvta_generic_to_shared(shared))) {}
  SNL_DEVICE void copy(u32 index, const Pair* from) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_ + 16 * index), "l"(from) : "memory");
  }

 private:
  u32 to_;
};
SNL_DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n>
SNL_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}
#else
class CopyTarget {
 public:
  SNL_DEVICE explicit CopyTarget(Pair* shared) : to_(shared) {}
  SNL_DEVICE void copy(u32 index, const Pair* from) const { to_[index] = *from; }

 private:
  Pair* to_;
};
SNL_DEVICE void end_group() {}
template <int n>
SNL_DEVICE void wait_for_copies() {}
#endif

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
