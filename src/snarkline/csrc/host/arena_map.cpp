#include "arena_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace snarkline {

namespace {

constexpr std::size_t kTouchPiece = std::size_t{4} << 20;

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
    unmap_pages(mapping);
    errno = cause;
    return mapping;
  }
  // Either call fails where the kernel was built without transparent huge pages; then there is nothing to choose.
  if (bytes >= kHugePage) madvise(mapping.data, bytes, pages == Pages::small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  return mapping;
}

void unmap_pages(Mapping& mapping) noexcept {
  if (mapping.data) munmap(mapping.data, mapping.bytes);
  if (mapping.fd >= 0) close(mapping.fd);
  mapping = Mapping{};
}

void touch_pages(const Exec& exec, const Mapping& mapping, std::size_t bytes) {
  const std::size_t n = (bytes + kTouchPiece - 1) / kTouchPiece;
  parallel(exec, n, [&](std::size_t i) {
    const std::size_t begin = i * kTouchPiece;
    const std::size_t end = std::min(bytes, begin + kTouchPiece);
    std::byte* data = mapping.data + begin;
#ifdef MADV_POPULATE_WRITE
    const std::size_t whole = (end - begin + kSmallPage - 1) / kSmallPage * kSmallPage;
    if (madvise(data, whole, MADV_POPULATE_WRITE) == 0) return;
#endif
    for (std::size_t at = 0; at < end - begin; at += kSmallPage) {
      *static_cast<volatile std::byte*>(data + at) = std::byte{0};
    }
  });
}

void drop_pages(const Mapping& mapping, std::size_t begin, std::size_t bytes, bool lazily) noexcept {
  std::byte* data = mapping.data + begin;
  if (mapping.fd >= 0) {
    fallocate(mapping.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(bytes));
    return;
  }
#ifdef MADV_FREE
  if (lazily && madvise(data, bytes, MADV_FREE) == 0) return;
#endif
  madvise(data, bytes, MADV_DONTNEED);
}

void wipe_pages(std::byte* data, std::size_t bytes) noexcept { explicit_bzero(data, bytes); }

}  // namespace snarkline
