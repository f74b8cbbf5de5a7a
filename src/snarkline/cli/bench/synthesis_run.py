"""One way from a circuit to a, b and c, in a process of its own: what `snarkline bench synthesis` measures.

`python -m snarkline.cli.bench.synthesis_run` reads a `SynthesisRun` and prints its row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from snarkline.circuit import ConstraintSystem
from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.merkle import merkle_tree, poseidon_pair
from snarkline.circuit.gadgets.sha256 import initial_state, sha256_compress
from snarkline.circuit.recording import gadget
from snarkline.circuit.values import Bits
from snarkline.circuit.words import UInt32
from snarkline.curves.curve import BLS12_381
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.memory import Arena
from snarkline.memory.experiment import peak_rss_bytes
from snarkline.memory.fresh import answer
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness, run_program
from snarkline.r1cs.synthesis import multiply_classes, multiply_published, synthesize_sha256_chain, to_montgomery

Row = dict[str, Any]

CURVE = BLS12_381
BLOCK_ROWS = 26_192 + 512
"""Constraints of one SHA-256 compression in a chain and of its message bits."""
NODE_ROWS = 316
"""Constraints of a Poseidon hash of two numbers over BLS12-381, about."""

CURES = {
    "classic": (False, False, False),
    "classic, add_to_lc": (True, False, False),
    "classic, recycled vectors": (False, True, False),
    "classic, prefetch": (False, False, True),
    "classic, all cures": (True, True, True),
}
PUBLISHED, CLASSES, TEMPLATES, CODES = (
    "flat CSR as published",
    "flat CSR, 1-byte classes",
    "templates",
    "templates, codes",
)
RECORDED = (PUBLISHED, CLASSES, TEMPLATES, CODES)


@dataclass(frozen=True)
class SynthesisRun:
    """`path` is one of `CURES` or `RECORDED`; `circuit` "sha256" or "poseidon", of about 2^`log_size` constraints.

    Recorded paths are timed `repeats` times, the best counts; classic ones once: their memory is fresh each time.
    """

    path: str
    circuit: str
    log_size: int
    threads: int
    repeats: int = 3


def sha256_chain(blocks: int) -> StructuredR1CS:
    """A chain of compressions over private message bits."""
    cs = ConstraintSystem(CURVE)
    cs.scan(sha256_compress, initial_state(cs), cs.batch([cs.call(_block) for _ in range(blocks)]))
    return cs.finish()


def sha256_blocks(blocks: int) -> StructuredR1CS:
    """Compressions of private message bits from the initial state, none of which waits for another."""
    cs = ConstraintSystem(CURVE)
    cs.map(_first_compression, cs.batch([cs.call(_block) for _ in range(blocks)]))
    return cs.finish()


@gadget
def _first_compression(cs: Builder, block: Bits) -> list[UInt32]:
    return sha256_compress(cs, initial_state(cs), block)


@gadget
def _block(cs: Builder) -> Bits:
    """The bits of one block. As a gadget they are a template, and not rows of their own for each block."""
    return cs.alloc_bits(512)


def poseidon_tree(leaves: int) -> StructuredR1CS:
    """The root of a Merkle tree over private leaves."""
    cs = ConstraintSystem(CURVE)
    cs.output(merkle_tree(cs, poseidon_pair, cs.batch([cs.alloc() for _ in range(leaves)])))
    return cs.finish()


def n_blocks(log_size: int) -> int:
    """Compressions of a chain of about 2^log_size constraints."""
    return max(2, round((1 << log_size) / BLOCK_ROWS))


def message_bits(blocks: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 2, 512 * blocks, np.uint8)


def sha256_inputs(blocks: int) -> tuple[StructuredR1CS, FrVector]:
    """A chain, and the values of its message bits."""
    return sha256_chain(blocks), _message(blocks)


def sha256_block_inputs(blocks: int) -> tuple[StructuredR1CS, FrVector]:
    """Compressions side by side, and the values of their message bits."""
    return sha256_blocks(blocks), _message(blocks)


def _message(blocks: int) -> FrVector:
    given = FrVector(CURVE, np.zeros((512 * blocks, CURVE.fr_limbs), np.uint64), Form.CANONICAL)
    given.limbs[:, 0] = message_bits(blocks)
    return given


def poseidon_inputs(leaves: int) -> tuple[StructuredR1CS, FrVector]:
    """A tree, and the values of its leaves."""
    return poseidon_tree(leaves), FrVector.from_ints(CURVE, (pow(7, i, CURVE.r) for i in range(leaves)))


def measure(run: SynthesisRun) -> Row:
    """One run in this process, which should be a fresh one."""
    base = _resident()
    row = _classic(run) if run.path in CURES else _recorded(run)
    row["peak_bytes"] = peak_rss_bytes() - base
    total = row["witness_s"] + row["abc_s"]
    return {
        "path": run.path,
        "circuit": run.circuit,
        "log_size": run.log_size,
        "threads": run.threads,
        **row,
        "total_s": total,
        "ns_per_constraint": total / row["n_constraints"] * 1e9,
    }


def _classic(run: SynthesisRun) -> Row:
    """As many circuits as threads: one circuit runs on one thread. Witness and a, b, c come about together."""
    share = max(1, n_blocks(run.log_size) // run.threads)
    bits = [message_bits(share)] * run.threads
    began = time.perf_counter()
    with ThreadPoolExecutor(run.threads) as pool:
        made = list(pool.map(lambda b: synthesize_sha256_chain(CURVE, b, CURES[run.path]), bits))
    synthesis_s = time.perf_counter() - began
    began = time.perf_counter()
    counts = [(len(one.a), len(one.aux) + 1, one.allocations, one.bytes_freed) for one in made]
    for one in made:
        one.close()
    rows, wires, allocations, freed = (sum(column) for column in zip(*counts, strict=True))
    return {
        "n_constraints": rows,
        "vector_bytes": 32 * (3 * rows + wires),
        "witness_s": 0.0,
        "abc_s": synthesis_s,
        "teardown_s": time.perf_counter() - began,
        "structure_bytes": 0,
        "allocations": allocations,
        "bytes_freed": freed,
    }


def _recorded(run: SynthesisRun) -> Row:
    if run.circuit == "sha256":
        began = time.perf_counter()
        system, given = sha256_inputs(n_blocks(run.log_size))
    else:
        began = time.perf_counter()
        system, given = poseidon_inputs(1 << max(1, run.log_size - NODE_ROWS.bit_length() + 1))
    system.native  # noqa: B018 (compiled here, once)
    recording_s = time.perf_counter() - began
    arena = Arena()
    witness = run_program(system, given, threads=run.threads, arena=arena)
    witness_s = _best(run, lambda: system.native.run(run.threads, *witness.arrays))
    out = arena.empty((3, system.n_constraints, 4))
    evaluate, structure = _evaluation(run, system, witness, out, arena)
    _reset_peak()
    return {
        "n_constraints": system.n_constraints,
        "vector_bytes": 32 * (3 * system.n_constraints + system.n_wires),
        "witness_s": witness_s,
        "abc_s": _best(run, evaluate),
        "recording_s": recording_s,
        "structure_bytes": structure,
        "allocations": 0,
        "bytes_freed": 0,
    }


def _evaluation(
    run: SynthesisRun, system: StructuredR1CS, witness: StructuredWitness, out: Limbs, arena: Arena
) -> tuple[Callable[[], None], int]:
    """What makes a, b and c, and the bytes of the structure that it reads."""
    if run.path == TEMPLATES:
        a, b, c = out
        return lambda: witness.products((a, b, c), threads=run.threads), system.nbytes
    if run.path == CODES:
        codes = arena.empty((3, system.n_constraints), np.uint8)
        sums = arena.empty((system.native.sizes[2], 4))
        return lambda: system.native.evaluate_codes(run.threads, *witness.arrays, codes, sums), system.nbytes
    flat = system.flatten().matrices
    assert flat.c is not None
    make = _published if run.path == PUBLISHED else _classes
    parts = [make(run, matrix, witness, to) for matrix, to in zip((flat.a, flat.b, flat.c), out, strict=True)]

    def evaluate() -> None:
        for part, _ in parts:
            part()

    return evaluate, sum(n_bytes for _, n_bytes in parts)


def _published(
    run: SynthesisRun, matrix: SparseMatrix, witness: StructuredWitness, out: Limbs
) -> tuple[Callable[[], None], int]:
    """4-byte columns, 32-byte values, a 32-byte witness in Montgomery form."""
    values = matrix.coefficients.limbs[matrix.value]
    w = to_montgomery(witness.expand().values)
    n_bytes = values.nbytes + matrix.column.nbytes + matrix.row_start.nbytes
    return lambda: multiply_published(out, matrix, values, w, run.threads), n_bytes


def _classes(
    run: SynthesisRun, matrix: SparseMatrix, witness: StructuredWitness, out: Limbs
) -> tuple[Callable[[], None], int]:
    """1-byte classes of coefficients, and a witness of bits as bytes."""
    integers = matrix.coefficients.to_ints()
    powers = {1 << k: k for k in range(253)} | {CURVE.r - 1: 253}
    kinds = np.array([powers.get(value, 254) for value in integers] or [0], np.uint8)
    kind = kinds[matrix.value]
    size = np.where(kind == 254, 2, 1)
    column, classes = np.repeat(matrix.column, size), np.repeat(np.where(kind == 254, np.uint8(253), kind), size)
    second = (np.cumsum(size) - 1)[kind == 254]
    column[second], classes[second] = matrix.value[kind == 254], 254
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])[matrix.row_start.astype(np.int64)]
    row_start = starts.astype(np.uint64)
    w = np.ascontiguousarray(witness.expand().values.limbs[:, 0].astype(np.uint8))
    canonical = FrVector.from_ints(CURVE, integers).limbs
    n_bytes = classes.nbytes + column.nbytes + row_start.nbytes + canonical.nbytes
    rows = replace(matrix, row_start=row_start, column=column)
    return lambda: multiply_classes(out, rows, classes, canonical, w, run.threads), n_bytes


def _best(run: SynthesisRun, call: Callable[[], None]) -> float:
    seconds = []
    for _ in range(run.repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _reset_peak() -> None:
    """Lets the peak of resident memory begin anew, where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


if __name__ == "__main__":
    answer(lambda fields: json.dumps(measure(SynthesisRun(**fields))))
