// Witness programs of structured systems, code over bits: a block has 32 instances of a run, whose values of a bit are
// one word. Its warps run rows of instructions that do not wait for each other (BitRecord), with barriers between them.
#include "copies.h"
#include "instances.h"

namespace snarkline {
inline namespace SNL_ISA {
namespace {

constexpr u32 ahead = 3;       // rows that are fetched before they are taken
constexpr u32 ring_rows = 4;   // where they are: one more, which is being read
constexpr u32 max_planes = 7;  // of a count of up to 64 bits

// 32 words, one a lane, become 32 others: bit j of word i becomes bit i of word j (Warren, Hacker's Delight, section
// 7-3). What a lane does in each step is found once.
class Transposition {
 public:
  SNL_DEVICE Transposition() {
    const u32 lane = threadIdx.x % warp_size;
    u32 low = 0x0000ffff;
    SNL_UNROLL for (u32 i = 0; i < 5; i++) {
      const u32 j = 16 >> i;
      keep_[i] = lane & j ? ~low : low;
      turn_[i] = lane & j ? warp_size - j : j;
      asm volatile("" : "+r"(keep_[i]), "+r"(turn_[i]));  // or the compiler would find both again in every step
      low ^= low << (j / 2);
    }
  }
  SNL_DEVICE u32 operator()(u32 x) const {
    SNL_UNROLL for (u32 i = 0; i < 5; i++) {
      const u32 other = __shfl_xor_sync(all_lanes, x, 16 >> i);
      x = (x & keep_[i]) | (__funnelshift_l(other, other, turn_[i]) & ~keep_[i]);
    }
    return x;
  }

 private:
  u32 keep_[5], turn_[5];
};

SNL_DEVICE u32 majority(u32 a, u32 b, u32 c) { return (a & b) | (a & c) | (b & c); }

// A row as a thread has it.
struct Row {
  u32 header;
  BitRecord record;
};

// A warp's rows in order; behind the last they are empty.
class Rows {
 public:
  SNL_DEVICE Rows(const BitStream& stream, const u32* headers, const BitRecord* records, Pair* ring)
      : headers_(headers + stream.first_row),
        records_(reinterpret_cast<const Pair*>(records + stream.first_record) + threadIdx.x % warp_size),
        n_rows_(stream.n_rows),
        ring_(ring + threadIdx.x % warp_size),
        target_(ring + threadIdx.x % warp_size) {
    next_ = header_of(threadIdx.x % warp_size);
    SNL_UNROLL for (u32 i = 0; i < ahead; i++) queue_[i] = fetch();
  }
  SNL_DEVICE Row take() {
    wait_for_copies<ahead - 1>();
    const Pair x = ring_[(fetched_ - ahead) % ring_rows * warp_size];
    const u32 header = queue_[0];
    SNL_UNROLL for (u32 i = 1; i < ahead; i++) queue_[i - 1] = queue_[i];
    queue_[ahead - 1] = fetch();
    return {header,
            {static_cast<u32>(x.x), static_cast<u32>(x.x >> 32), static_cast<u32>(x.y), static_cast<u32>(x.y >> 32)}};
  }

 private:
  SNL_DEVICE u32 header_of(u32 row) const { return row < n_rows_ ? __ldg(headers_ + row) : 0; }
  SNL_DEVICE u32 fetch() {
    const u32 lane = threadIdx.x % warp_size;
    if (fetched_ % warp_size == 0) {  // 32 headers at a time, those behind them on their way
      batch_ = next_;
      next_ = header_of(fetched_ + warp_size + lane);
    }
    const u32 header = __shfl_sync(all_lanes, batch_, fetched_ % warp_size), n = header % (1 << BitHeader::op_at);
    if (lane < n) target_.copy(fetched_ % ring_rows * warp_size, records_ + at_);
    end_group();
    at_ += n;
    fetched_++;
    return header;
  }

  const u32* headers_;
  const Pair* records_;
  u32 n_rows_;
  const Pair* ring_;
  CopyTarget target_;
  u32 batch_ = 0, next_, queue_[ahead], fetched_ = 0, at_ = 0;
};

// a + b + c: the sum, which replaces a, and the carry.
SNL_DEVICE u32 add_bits(u32& a, u32 b, u32 c) {
  const u32 carry = majority(a, b, c);
  a ^= b ^ c;
  return carry;
}

// What a warp has counted, and the sum of it: a thread has a binary digit of all instances, and for the sum an
// instance. Up to 7 bits are three digits of a count.
class Adder {
 public:
  SNL_DEVICE void count(u32 (&x)[8], bool few) {
    const u32 c0 = add_bits(x[0], x[1], x[2]), c1 = add_bits(x[3], x[4], x[5]), c2 = add_bits(planes_[0], x[6], x[7]);
    u32 twice = c0;
    const u32 c3 = add_bits(planes_[0], x[0], x[3]), d0 = add_bits(twice, c1, c2);
    const u32 d1 = add_bits(planes_[1], twice, c3);
    u32 carry = add_bits(planes_[2], d0, d1);
    if (few) return;
    SNL_UNROLL for (u32 i = few_planes; i < max_planes; i++) {
      const u32 plane = planes_[i];
      planes_[i] = plane ^ carry;
      carry &= plane;
    }
  }
  // A word of digits; `high` has those of the carry, if there are any.
  SNL_DEVICE u32 sum(u32 header, bool few, u32& high) {
    const u32 lane = threadIdx.x % warp_size;
    u64 total = carry_;
    SNL_UNROLL for (u32 i = 0; i < few_planes; i++) {
      total += static_cast<u64>(transpose_(planes_[i])) << i;
      planes_[i] = 0;
    }
    if (!few) {
      SNL_UNROLL for (u32 i = few_planes; i < max_planes; i++) {
        total += static_cast<u64>(transpose_(planes_[i])) << i;
        planes_[i] = 0;
      }
    }
    const u32 carry = static_cast<u32>(total >> 32), n_carries = header >> BitHeader::carries_at & 7;
    high = 0;
    SNL_UNROLL for (u32 i = 0; i < few_planes; i++) {
      const u32 digit = __ballot_sync(all_lanes, carry >> i & 1);
      if (lane == i) high = digit;
    }
    SNL_ROLLED for (u32 i = few_planes; i < n_carries; i++) {
      const u32 digit = __ballot_sync(all_lanes, carry >> i & 1);
      if (lane == i) high = digit;
    }
    carry_ = header >> BitHeader::more_at & 1 ? carry : 0;
    return transpose_(static_cast<u32>(total));
  }

 private:
  static constexpr u32 few_planes = 3;
  const Transposition transpose_;
  u32 planes_[max_planes] = {}, carry_ = 0;
};

// The registers of a block, each as it is and negated, and the words of its instances.
struct Registers {
  u32* values;
  u32* words;
  u32 slot_bytes;  // from slot to slot

  SNL_DEVICE u32 operator()(u32 operand) const {
    return *reinterpret_cast<const u32*>(reinterpret_cast<const char*>(values) + operand);
  }
  SNL_DEVICE void keep(u32 operand, u32 value) const {
    *reinterpret_cast<u64*>(reinterpret_cast<char*>(values) + operand) = value | static_cast<u64>(~value) << 32;
  }
  SNL_DEVICE u32* word(u32 slot) const {
    return reinterpret_cast<u32*>(reinterpret_cast<char*>(words) + u64{slot} * slot_bytes);
  }
  SNL_DEVICE void set(u32 operand, u32 slot, u32 value) const {
    if (operand != 0) keep(operand, value);
    *word(slot) = value;
  }
};

SNL_DEVICE void run_row(const Row& row, const Registers& registers, Adder& adder) {
  const u32 op = row.header >> BitHeader::op_at & 7, n = row.header % (1 << BitHeader::op_at);
  const BitRecord& r = row.record;
  const bool mine = threadIdx.x % warp_size < n, few = (row.header >> BitHeader::planes_at & 7) <= 3;
  if (op == bits_sum) {
    u32 high, low = adder.sum(row.header, few, high);
    if (mine && r.slot != nothing) registers.set(r.ab & 0xffff, r.slot, low);
    if (mine && r.carry != nothing) registers.set(r.ab >> 16, r.carry, high);
  } else if (mine && op == bits_count) {
    u32 x[8];
    SNL_UNROLL for (u32 i = 0; i < 8; i++) {
      const u32 two = i < 2 ? r.ab : i < 4 ? r.cd : i < 6 ? r.slot : r.carry;
      x[i] = registers(i % 2 ? two >> 16 : two & 0xffff);
    }
    adder.count(x, few);
  } else if (mine) {
    const u32 a = registers(r.ab & 0xffff), b = registers(r.ab >> 16), c = registers(r.cd & 0xffff);
    const u32 others = op == bits_choose ? c ^ (a & (b ^ c)) : majority(a, b, c);
    registers.set(r.cd >> 16, r.slot, op == bits_xor ? a ^ b ^ c : others);
  }
}

}  // namespace

// Code over bits of the instances of a run: as many blocks as it has words of 32. Dynamic shared memory: `ring_rows`
// rows of 32 records a warp, then the registers.
SNL_KERNEL(512, 1)
run_bits(u32 number, u32 phase_number, u32* bits, const Run* runs, const PhaseRecord* phases, const BitInput* inputs,
         const BitStream* streams, const u32* headers, const BitRecord* records) {
  SNL_DYNAMIC_SHARED(Pair, shared);
  const PhaseRecord phase = phases[phase_number];
  const Instance at(runs[number], u64{blockIdx.x} * warp_size, bits, nullptr);
  const u32 warp = threadIdx.x / warp_size, n_warps = blockDim.x / warp_size;
  const Registers registers{reinterpret_cast<u32*>(shared + n_warps * ring_rows * warp_size), at.words,
                            4 * at.bit_stride};
  const BitStream stream = streams[phase.first + warp];
  Rows rows(stream, headers, records, shared + warp * ring_rows * warp_size);
  if (threadIdx.x == 0) registers.keep(0, ~0u);
  for (u32 i = threadIdx.x; i < phase.n_inputs; i += blockDim.x) {
    const BitInput input = inputs[phase.first_input + i];
    registers.keep(input.target, *registers.word(input.slot));
  }
  Row row = rows.take();
  __syncthreads();
  Adder adder;
  SNL_ROLLED for (u32 i = 0; i < stream.n_rows; i++) {
    const Row next = rows.take();
    run_row(row, registers, adder);
    SNL_ROLLED for (u32 n = row.header >> BitHeader::barriers_at; n != 0; n--) __syncthreads();
    row = next;
  }
}

// The ports of a run: a warp has one port of 32 instances.
SNL_KERNEL(128, 8)
gather_ports(u32 number, const Fr* publics, u32* bits, Fr* wides, const Run* runs, const Place* places,
             const Wiring* wiring, const u32* tables, u64 n_public) {
  const Wires wires{runs, number, places, wiring, tables, n_public};
  const Run run = runs[number];
  const u32 lane = threadIdx.x % warp_size, each = run.n_ports + 1;  // slot 0, which is true, and the ports
  const u64 warp = global_index() / warp_size, first = warp / each * warp_size;
  if (first >= run.count) return;
  const u32 port = static_cast<u32>(warp % each);
  const bool writes = first + lane < run.count;
  const u64 i = writes ? first + lane : run.count - 1;
  const Instance at(run, i, bits, wides);
  if (port == run.n_ports) {
    if (lane == 0) at.words[0] = ~0u;
    return;
  }
  const Place to = places[run.first_port + port];
  const u64 wire = wires.of_port(run, i, port);
  if (to.header & is_wide) {
    if (writes) store(at.wide(to.slot), wires.value(wire, publics, bits, wides));
    return;
  }
  const u32 values = __ballot_sync(all_lanes, wires.bit(wire, publics, bits, wides));
  if (lane == 0) at.words[u64{to.slot} * at.bit_stride] = values;
}

}  // namespace SNL_ISA
}  // namespace snarkline
