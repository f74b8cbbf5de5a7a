#include "arena_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>

#include "span.h"

namespace snarkline {

namespace {

constexpr std::size_t kTouchPiece = std::size_t{4} << 20;
constexpr std::size_t kWipePiece = std::size_t{4} << 20;  // 0.5 ms

// Reserves `bytes` at an address that is a multiple of `alignment`: maps more and cuts both ends off.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) {
  const std::size_t slack = alignment > kSmallPage ? alignment - kSmallPage : 0;
  void* start = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t head = (alignment - address % alignment) % alignment;
  auto* data = static_cast<std::byte*>(start) + head;
  if (head) munmap(start, head);
  if (slack > head) munmap(data + bytes, slack - head);
  return data;
}

// Puts a memfd of the same length over the reserved addresses.
bool back_with_memfd(Mapping& mapping) {
  mapping.fd = memfd_create("snarkline", MFD_CLOEXEC);
  if (mapping.fd < 0) return false;
  if (ftruncate(mapping.fd, static_cast<off_t>(mapping.bytes)) == 0 &&
      mmap(mapping.data, mapping.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mapping.fd, 0) != MAP_FAILED) {
    return true;
  }
  const int cause = errno;
  close(mapping.fd);
  mapping.fd = -1;
  errno = cause;
  return false;
}

}  // namespace

Mapping map_pages(std::size_t bytes, Pages pages, bool shared) {
  Mapping mapping;
  mapping.data = map_aligned(bytes, bytes >= kHugePage ? kHugePage : kSmallPage);
  if (!mapping.data) return mapping;
  mapping.bytes = bytes;
  if (shared && !back_with_memfd(mapping)) {
    const int cause = errno;
    unmap_pages(mapping, 0);
    errno = cause;
    return mapping;
  }
  // Either call fails where the kernel was built without transparent huge pages; then there is nothing to choose.
  if (bytes >= kHugePage) madvise(mapping.data, bytes, pages == Pages::small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  return mapping;
}

void unmap_pages(Mapping& mapping, std::size_t begin) noexcept {
  if (mapping.data && begin < mapping.bytes) munmap(mapping.data + begin, mapping.bytes - begin);
  if (mapping.fd >= 0) close(mapping.fd);
  mapping = Mapping{};
}

void unmap_piece(const Mapping& mapping, std::size_t begin, std::size_t bytes) noexcept {
  // A memfd keeps its pages until the last descriptor and mapping are gone, here or in other processes.
  if (mapping.fd < 0) madvise(mapping.data + begin, bytes, MADV_DONTNEED);
  munmap(mapping.data + begin, bytes);
}

void touch_pages(const Exec& exec, const Mapping& mapping, std::size_t bytes) {
  SNL_SPAN("arena.first_touch");
  const std::size_t n = (bytes + kTouchPiece - 1) / kTouchPiece;
  parallel(exec, n, [&](std::size_t i) {
    std::byte* begin = mapping.data + i * kTouchPiece;
    const std::size_t size = std::min(mapping.bytes - i * kTouchPiece, kTouchPiece);
#ifdef MADV_POPULATE_WRITE
    if (madvise(begin, size, MADV_POPULATE_WRITE) == 0) return;
#endif
    for (std::size_t at = 0; at < size; at += kSmallPage) {
      auto* byte = reinterpret_cast<volatile unsigned char*>(begin + at);
      *byte = *byte;
    }
  });
}

bool drop_pages(const Mapping& mapping, bool lazily) noexcept {
#ifdef MADV_FREE
  if (lazily && madvise(mapping.data, mapping.bytes, MADV_FREE) == 0) return false;
#endif
  return madvise(mapping.data, mapping.bytes, MADV_DONTNEED) == 0;
}

void wipe(std::byte* data, std::size_t bytes) noexcept { explicit_bzero(data, bytes); }

void wipe_pages(const Exec& exec, const Mapping& mapping, std::size_t begin) noexcept {
  SNL_SPAN("arena.wipe");
  const std::size_t bytes = mapping.bytes - begin, n = (bytes + kWipePiece - 1) / kWipePiece;
  try {
    parallel(exec, n, [&](std::size_t i) {
      const std::size_t at = i * kWipePiece;
      wipe(mapping.data + begin + at, std::min(bytes - at, kWipePiece));
    });
  } catch (const std::exception&) {  // no thread to be had
    wipe(mapping.data + begin, bytes);
  }
}

bool inherit(const Mapping& mapping, bool by_children) noexcept {
  return madvise(mapping.data, mapping.bytes, by_children ? MADV_DOFORK : MADV_DONTFORK) == 0;
}

bool lock_pages(void* address, std::size_t bytes, bool locked) noexcept {
  return (locked ? mlock(address, bytes) : munlock(address, bytes)) == 0;
}

}  // namespace snarkline
