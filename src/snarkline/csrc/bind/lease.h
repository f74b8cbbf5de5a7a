// What Python holds of a block, and how it names the ways.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <utility>

#include "../host/arena.h"
#include "gil.h"

namespace snarkline {

// Throws ValueError for an unknown name.
Way parse_way(const std::string& name);

class Lease {
 public:
  Lease(Block* block, std::size_t bytes) : block_(block), bytes_(bytes) {}
  ~Lease() { release(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // With the GIL. What takes long is done without it.
  void release() {
    Block* block = std::exchange(block_, nullptr);
    if (!block) return;
    if (block->registered || block->way == Way::pool || block->way == Way::detached) return Arena::give(block);
    const WithoutGil no_gil;
    Arena::give(block);
  }

  // nullptr after release().
  Block* block() const { return block_; }
  // The length that was asked for.
  std::size_t bytes() const { return bytes_; }

 private:
  Block* block_;
  std::size_t bytes_;
};

}  // namespace snarkline
