#include "emulation.h"

#include <ucontext.h>

#include <cstdlib>
#include <vector>

namespace emulation {

Grid grid;
char* dynamic_shared;

enum class State { Ready, AtBlockBarrier, AtWarpBarrier, Done };

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  dim3 thread{};
  unsigned index = 0, mask = 0;
  State state = State::Done;
};

struct Warp {
  std::uint64_t values[2][32];
  unsigned arrived = 0, turn[32] = {};
};

constexpr unsigned max_arguments = 20;
using Kernel = void (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                        std::uint64_t, std::uint64_t);

namespace {

constexpr std::size_t stack_bytes = 256 << 10;
std::vector<Fiber*> fibers;
std::vector<Warp> warps;
Fiber* current;
ucontext_t scheduler;
Kernel kernel;
std::uint64_t arguments[max_arguments];

void switch_out(State state) {
  current->state = state;
  swapcontext(&current->context, &scheduler);
}

void entry() {
  const auto* a = arguments;
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
         a[17], a[18], a[19]);
  switch_out(State::Done);
}

void prepare(unsigned n) {
  while (fibers.size() < n) {
    fibers.push_back(new Fiber);
    fibers.back()->stack.resize(stack_bytes);
  }
  warps.assign((n + 31) / 32, Warp{});
  for (unsigned i = 0; i < n; i++) {
    Fiber& f = *fibers[i];
    f.index = i;
    f.thread = dim3{i, 0, 0};
    f.state = State::Ready;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = nullptr;
    makecontext(&f.context, entry, 0);
  }
}

void run_block(unsigned n) {
  prepare(n);
  for (;;) {
    bool ran = false, alive = false;
    for (unsigned i = 0; i < n; i++) {
      Fiber& f = *fibers[i];
      if (f.state == State::Ready) {
        current = &f;
        grid.thread = f.thread;
        ran = true;
        swapcontext(&scheduler, &f.context);
      }
      alive |= f.state != State::Done;
    }
    if (!alive) return;
    if (ran) continue;
    // Nobody can run: everybody alive must be at the barrier of the block.
    for (unsigned i = 0; i < n; i++) {
      if (fibers[i]->state == State::AtWarpBarrier) std::abort();
      if (fibers[i]->state == State::AtBlockBarrier) fibers[i]->state = State::Ready;
    }
  }
}

}  // namespace

unsigned lane() { return current->index % 32; }

void block_barrier() { switch_out(State::AtBlockBarrier); }

const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t value) {
  Warp& warp = warps[current->index / 32];
  const unsigned me = lane(), turn = warp.turn[me]++ & 1;
  const unsigned first = current->index - me;
  warp.values[turn][me] = value;
  current->mask = mask;
  warp.arrived |= 1u << me;
  if ((warp.arrived & mask) == mask) {
    warp.arrived &= ~mask;
    for (unsigned i = 0; i < 32; i++) {
      if (((mask >> i) & 1) && i != me) fibers[first + i]->state = State::Ready;
    }
  } else {
    switch_out(State::AtWarpBarrier);
  }
  return warp.values[turn];
}

}  // namespace emulation

extern "C" void emulate_launch(void* function, const std::uint64_t* args, unsigned n_args, const unsigned* shape,
                               std::size_t shared_bytes) {
  using namespace emulation;
  kernel = reinterpret_cast<Kernel>(function);
  for (unsigned i = 0; i < max_arguments; i++) arguments[i] = i < n_args ? args[i] : 0;
  std::vector<char> shared(shared_bytes + 64, char(0xa5));
  dynamic_shared =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(shared.data()) + 63) & ~std::uintptr_t{63});
  grid.grid_size = dim3{shape[0], shape[1], 1};
  grid.block_size = dim3{shape[2], 1, 1};
  for (unsigned y = 0; y < shape[1]; y++) {
    for (unsigned x = 0; x < shape[0]; x++) {
      grid.block = dim3{x, y, 0};
      run_block(shape[2]);
    }
  }
}
