"""What `snarkline bench gpu` measures of structured circuits: from a packed witness to a, b, c and the wires on the
device. Every result is compared with the CPU's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from snarkline.backend.base import Domain
from snarkline.backend.cuda.structured import DeviceSystem, Packed
from snarkline.cli.bench.gpu_work import Bench
from snarkline.cli.bench.synthesis_run import CURVE, n_blocks, sha256_inputs
from snarkline.curves.vector import FrVector, ints_to_limbs
from snarkline.errors import InternalError
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_witness import StructuredWitness, run_program
from snarkline.threads import usable_threads


def structured_products(bench: Bench, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """SHA-256 chains of about 2^k constraints; the packed witness is in page-locked memory."""
    for log_n in sizes:
        yield _products(bench, log_n)


def _products(bench: Bench, log_n: int) -> dict[str, Any]:
    system, given = sha256_inputs(n_blocks(log_n))
    witness = run_program(system, given, threads=usable_threads())
    domain = Domain(CURVE, (system.n_constraints + system.n_public).bit_length(), 1)
    host, backend = bench.cpu, bench.backend
    theirs = host.evaluate_structured(witness, domain)
    with bench.device.staging.arena.lease(witness.bits.shape, np.uint64, registered=True) as lease:
        lease.array[...] = witness.bits
        times = _time_device(bench, replace(witness, bits=lease.array), domain, theirs)
    return {
        "log_n": log_n,
        "constraints": system.n_constraints,
        "packed_mb": witness.nbytes / 1e6,
        **times,
        "cpu_ms": 1e3 * bench.wall_seconds(lambda: host.evaluate_structured(witness, domain)),
        "cpu_upload_ms": 1e3 * bench.wall_seconds(lambda: [backend.resident(v) for v in theirs]),
        "flat_ms": 1e3 * _flat_seconds(bench, system, theirs[0], domain),
    }


def _time_device(
    bench: Bench, witness: StructuredWitness, domain: Domain, theirs: tuple[FrVector, ...]
) -> dict[str, float]:
    """On the device from the packed witness that is there, and all from the host's, copy and launches included."""
    device, backend, system = bench.device, bench.backend, witness.system
    for ours, expected in zip(backend.evaluate_structured(witness, domain), theirs, strict=True):
        if not np.array_equal(device.download(ours.limbs), expected.limbs):
            raise InternalError(f"a, b, c of {system.n_constraints} structured constraints are wrong")
    there, packed = DeviceSystem.upload(device, system), Packed.upload(device, witness)
    w, a, b, c = (device.empty(v.limbs.shape, "u8") for v in theirs)
    unit = device.upload(ints_to_limbs([1], CURVE.fr_limbs))
    return {
        "products_ms": 1e3 * bench.device_seconds(lambda: there.evaluate(device, packed, a, b, c)),
        "wires_ms": 1e3 * bench.device_seconds(lambda: there.expand(device, packed, unit, w)),
        "upload_ms": 1e3 * bench.wall_seconds(lambda: Packed.upload(device, witness)),
        "all_ms": 1e3 * bench.wall_seconds(lambda: backend.evaluate_structured(witness, domain)),
    }


def _flat_seconds(bench: Bench, system: StructuredR1CS, w: FrVector, domain: Domain) -> float:
    """The products of the matrices written out, row by row; they and the witness on the device."""
    backend, flat = bench.backend, system.flatten().matrices
    assert flat.c is not None
    w, matrices = backend.resident(w), (flat.a, flat.b, flat.c)
    return bench.device_seconds(lambda: [backend.evaluate(matrix, w, domain) for matrix in matrices])
