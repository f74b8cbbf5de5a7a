// A memory handler for NumPy (NEP 49): large arrays live in an arena, small ones with malloc.
//
// NumPy's C API is a table of pointers whose places never change (numpy/_core/code_generators/numpy_api.py), so that
// two of its entries and two structs are all that is needed of its headers. NumPy calls the handler with the GIL held.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "../host/arena.h"
#include "bind.h"
#include "lease.h"

namespace nb = nanobind;

namespace snarkline {

namespace {

// PyDataMemAllocator and PyDataMem_Handler, version 1.
struct Handler {
  char name[127];
  std::uint8_t version;
  void* context;
  void* (*malloc)(void* context, std::size_t size);
  void* (*calloc)(void* context, std::size_t n, std::size_t size);
  void* (*realloc)(void* context, void* pointer, std::size_t size);
  void (*free)(void* context, void* pointer, std::size_t size);
};
constexpr int kSetHandler = 304;
constexpr const char* kCapsule = "mem_handler";

constexpr auto kPatience = std::chrono::seconds(2);

// One handler. Arrays hold its capsule, so that it lives as long as the last of them.
class NumpyMemory {
 public:
  NumpyMemory(std::shared_ptr<Arena> arena, Way way, std::size_t threshold, unsigned threads)
      : handler_{"snarkline", 1, this, allocate, allocate_zeroed, reallocate, release},
        arena_(std::move(arena)),
        way_(way),
        threshold_(threshold),
        threads_(threads) {}

  static nb::object capsule(std::unique_ptr<NumpyMemory> memory) {
    Handler* handler = &memory->handler_;
    PyObject* capsule = PyCapsule_New(handler, kCapsule, destroy);
    if (!capsule) throw nb::python_error();
    memory.release();
    return nb::steal(capsule);
  }

 private:
  static NumpyMemory& self(void* context) { return *static_cast<NumpyMemory*>(context); }

  static void destroy(PyObject* capsule) {
    delete &self(static_cast<Handler*>(PyCapsule_GetPointer(capsule, kCapsule))->context);
  }

  static void* allocate(void* context, std::size_t size) {
    NumpyMemory& memory = self(context);
    if (size < memory.threshold_) return std::malloc(size);
    Block* block = memory.take(size);
    return block ? block->mapping.data : nullptr;
  }

  static void* allocate_zeroed(void* context, std::size_t n, std::size_t size) {
    NumpyMemory& memory = self(context);
    if (size && n > SIZE_MAX / size) return nullptr;
    if (n * size < memory.threshold_) return std::calloc(n, size);
    Block* block = memory.take(n * size);
    if (!block) return nullptr;
    if (!block->zero) std::memset(block->mapping.data, 0, n * size);
    return block->mapping.data;
  }

  static void* reallocate(void* context, void* pointer, std::size_t size) {
    NumpyMemory& memory = self(context);
    const Block* block = memory.find(pointer);
    if (!block && size < memory.threshold_) return std::realloc(pointer, size);
    const std::size_t had = block ? block->mapping.bytes : malloc_usable_size(pointer);
    if (block && size <= had && size >= had / 2) return pointer;
    void* moved = allocate(context, size);
    if (!moved) return nullptr;
    std::memcpy(moved, pointer, std::min(had, size));
    release(context, pointer, had);
    return moved;
  }

  static void release(void* context, void* pointer, std::size_t) {
    if (Block* block = self(context).remove(pointer)) {
      Arena::give(block);
    } else {
      std::free(pointer);
    }
  }

  // nullptr when the budget has no room, also after the release thread has had time to make some.
  Block* take(std::size_t bytes) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const TakeRequest request{bytes, way_, false, false, false, threads_};
    Block* block = nullptr;
    Taken taken;
    while ((taken = arena_->take(request, block)) == Taken::over_budget || taken == Taken::backlog) {
      if (!arena_->stats().pending_blocks || std::chrono::steady_clock::now() > deadline) return nullptr;
      Arena::wait(std::chrono::milliseconds(10));
    }
    if (taken == Taken::refused) return nullptr;
    try {
      if (threads_ && !block->present) touch_pages(Exec{threads_, nullptr}, block->mapping, bytes);
      block->present = true;
      std::lock_guard guard(lock_);
      blocks_[block->mapping.data] = block;
      return block;
    } catch (const std::exception&) {  // no thread or no memory to be had; the caller is C
      Arena::give(block);
      return nullptr;
    }
  }

  Block* find(void* pointer) {
    // Only whole pages come from the arena, and malloc hardly ever hands out their first byte.
    if (reinterpret_cast<std::uintptr_t>(pointer) % kSmallPage) return nullptr;
    std::lock_guard guard(lock_);
    const auto found = blocks_.find(pointer);
    return found == blocks_.end() ? nullptr : found->second;
  }

  Block* remove(void* pointer) {
    Block* block = find(pointer);
    if (!block) return nullptr;
    std::lock_guard guard(lock_);
    blocks_.erase(pointer);
    return block;
  }

  Handler handler_;
  std::shared_ptr<Arena> arena_;
  Way way_;
  std::size_t threshold_;
  unsigned threads_;
  std::mutex lock_;
  std::unordered_map<void*, Block*> blocks_;
};

nb::object handler(std::shared_ptr<Arena> arena, const std::string& way, std::size_t threshold, unsigned threads) {
  return NumpyMemory::capsule(std::make_unique<NumpyMemory>(std::move(arena), parse_way(way), threshold, threads));
}

// Makes a handler that of this context; `api` is NumPy's table. The one that was in force before.
nb::object set_handler(nb::capsule api, nb::object handler) {
  using Set = PyObject* (*)(PyObject*);
  const auto set = reinterpret_cast<Set>(static_cast<void**>(api.data(nullptr))[kSetHandler]);
  PyObject* before = set(handler.is_none() ? nullptr : handler.ptr());
  if (!before) throw nb::python_error();
  return nb::steal(before);
}

}  // namespace

void bind_numpy_memory(nb::module_& m) {
  m.def("numpy_handler", handler, nb::arg("arena"), nb::arg("way"), nb::arg("threshold_bytes"), nb::arg("threads"));
  m.def("set_numpy_handler", set_handler, nb::arg("api"), nb::arg("handler"));
}

}  // namespace snarkline
