// Anonymous and memfd-backed mappings, and the calls that give their pages back. Nothing here knows a policy.
#pragma once

#include <cstddef>

#include "exec.h"

namespace snarkline {

inline constexpr std::size_t kSmallPage = std::size_t{4} << 10;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

enum class Pages { automatic, small };

// Whole pages of memory. `fd` is the memfd behind them, -1 for anonymous memory.
struct Mapping {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int fd = -1;
};

// Maps `bytes`, a multiple of kSmallPage. From 2 MiB on, data is aligned to 2 MiB; with Pages::automatic the kernel is
// asked for huge pages, with Pages::small it is told not to use any. data is nullptr when the kernel refuses (errno).
Mapping map_pages(std::size_t bytes, Pages pages, bool shared);

// Gives everything from `begin` on back in one call, on the calling thread.
void unmap_pages(Mapping& mapping, std::size_t begin) noexcept;

// Gives [begin, begin + bytes) back. The address space's lock is held only while nothing is left there to free: the
// pages go first, which other threads' mmap and page faults do not have to wait for.
void unmap_piece(const Mapping& mapping, std::size_t begin, std::size_t bytes) noexcept;

// Makes every page of [0, bytes) present without changing it, in pieces on the threads of `exec`. Throws Interrupted.
void touch_pages(const Exec& exec, const Mapping& mapping, std::size_t bytes);

// Gives all pages of an anonymous mapping back and keeps the addresses. `lazily` lets the kernel take them when it
// needs them (MADV_FREE). True when the memory reads as zero from here on.
bool drop_pages(const Mapping& mapping, bool lazily) noexcept;

// Overwrites memory with zeros in a way that the compiler keeps.
void wipe(std::byte* data, std::size_t bytes) noexcept;

// The same from `begin` to the end of a mapping, on the threads of `exec`.
void wipe_pages(const Exec& exec, const Mapping& mapping, std::size_t begin) noexcept;

// A registered mapping must not be inherited: a device that writes to it and a child that copies it on write would
// part ways. False when the kernel refuses (errno).
bool inherit(const Mapping& mapping, bool by_children) noexcept;

// Keeps [address, address + bytes) out of swap, or no longer does. False when the kernel refuses (errno).
bool lock_pages(void* address, std::size_t bytes, bool locked) noexcept;

}  // namespace snarkline
