// Warps.
#pragma once

#include "access.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 warp_size = 32;
constexpr u32 all_lanes = ~0u;

SNL_DEVICE u32 lane_id() { return threadIdx.x % warp_size; }
SNL_DEVICE u32 lanes_below() { return (1u << lane_id()) - 1; }

}  // namespace
}  // namespace SNL_ISA
}  // namespace snarkline
