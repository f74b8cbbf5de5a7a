// Anonymous and memfd-backed mappings, and the calls that give their pages back. Nothing here knows a policy.
#pragma once

#include <cstddef>

#include "exec.h"

namespace snarkline {

inline constexpr std::size_t kSmallPage = std::size_t{4} << 10;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

enum class Pages { automatic, small };

// A mapping of whole pages. `fd` is the memfd behind it, -1 for anonymous memory.
struct Mapping {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int fd = -1;
};

// Maps `bytes` (a multiple of kSmallPage). From 2 MiB on, data is aligned to 2 MiB; with Pages::automatic the kernel is
// asked for huge pages, with Pages::small it is told not to use any. data is nullptr when the kernel refuses (errno).
Mapping map_pages(std::size_t bytes, Pages pages, bool shared);

// Gives everything back in one call, on the calling thread.
void unmap_pages(Mapping& mapping) noexcept;

// Writes nothing, but makes every page of [0, bytes) present, in parallel.
void touch_pages(const Exec& exec, const Mapping& mapping, std::size_t bytes);

// Gives the pages of [begin, begin + bytes) back and keeps the addresses. `lazily` lets the kernel take them when it
// needs them (MADV_FREE); where it cannot do that, or the mapping is shared, they are given back at once.
void drop_pages(const Mapping& mapping, std::size_t begin, std::size_t bytes, bool lazily) noexcept;

// Overwrites memory with zeros in a way that the compiler keeps.
void wipe_pages(std::byte* data, std::size_t bytes) noexcept;

}  // namespace snarkline
