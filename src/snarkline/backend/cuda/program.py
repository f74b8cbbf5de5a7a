"""Witness programs on the device: runs of independent instances whose steps are over field elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_form import Records, SystemForm
from snarkline.r1cs.structured_witness import StructuredWitness

FEW = 64
"""Runs of at most so many instances do not take a program to the device; behind larger ones they go with them."""
MOST_RUNS = 64
"""More runs than these follow one another on a device for too long: the host makes small ones side by side."""
BUSY = 1 << 16
"""Threads that a device has room for: up to so many, several share an instance."""
LANES = 32
THREADS = 128

RUN = np.dtype(
    [(name, "<u8") for name in ["count", "first_wire", "bits", "wides", "table"]]
    + [
        (name, "<u4")
        for name in [
            "words", "n_aux", "n_bits", "n_wides", "first_column", "n_ports", "first_port", "first_wiring", "has_table",
            "n_steps", "first_step", "unused",
        ]
    ]
)  # fmt: skip
"""`Run` of csrc/device/program.cu."""


def device_runs(system: StructuredR1CS) -> range | None:
    """The runs whose programs a device takes: from the first of more than FEW independent instances on, to the last.
    None where that is none of them, or more than MOST_RUNS; or where a later one is a chain, or has instructions over
    bits, or wires that are given: then the host runs all."""
    form = SystemForm.of(system)
    templates = form.templates[form.runs["template"].astype(np.int64)]
    many = (form.runs["count"] > FEW) & (form.runs["chain"] == 0) & (templates["n_steps"] > 0)
    if not many.any():
        return None
    runs = range(int(many.argmax()), len(form.runs))
    late = int(system.given.max(initial=0)) >= int(form.runs["first_wire"][runs.start])
    others = form.runs["chain"].astype(np.bool_) | templates["has_bit_code"].astype(np.bool_)
    return None if late or len(runs) > MOST_RUNS or others[runs.start :].any() else runs


@dataclass(frozen=True)
class DeviceProgram:
    """The programs of the last runs of a system on the device."""

    runs: range
    counts: tuple[int, ...]
    bits: int
    wides: int
    arguments: tuple[object, ...]
    """Those of `run_program` behind the values."""

    @classmethod
    def upload(cls, device: Device, system: StructuredR1CS, runs: range) -> DeviceProgram:
        form = SystemForm.of(system)
        records, wiring, tables = _wiring(system, form, runs)
        arrays = [
            np.concatenate([form.columns, form.ports]), wiring, tables, form.steps, form.slots, form.combinations,
            form.digits, form.terms, np.concatenate([_powers(system.curve), form.coefficients]),
        ]  # fmt: skip
        there: list[Array] = [device.upload(array) for array in arrays]
        n_bits, n_wides, _ = system.native.sizes
        counts = tuple(int(count) for count in form.runs["count"])
        arguments = (device.upload(records.view(np.uint64)), *there, system.n_public)
        return cls(runs, counts, n_bits, n_wides, arguments)

    def run(self, device: Device, first: StructuredWitness) -> StructuredWitness:
        """The witness whose first runs, all but these, `first` has the values of."""
        publics = device.upload(first.publics)
        bits, wides = device.zeros(self.bits, "u8"), device.empty((self.wides, first.curve.fr_limbs), "u8")
        for target, source in ((bits, first.bits), (wides, first.wides)):
            if len(source):
                device.copy(target[: len(source)], device.upload(source))
        module = Module("program", first.curve.name)
        for number in self.runs:
            count = self.counts[number]
            lanes = LANES
            while lanes > 1 and lanes * count > BUSY:
                lanes //= 2
            threads = min(THREADS, LANES * blocks(lanes * count, LANES))
            grid = blocks(lanes * count, threads)
            device.launch(module, "run_program", grid, threads, number, lanes, publics, bits, wides, *self.arguments)
        return replace(first, publics=device.download(publics), bits=bits, wides=wides)


def _wiring(
    system: StructuredR1CS, form: SystemForm, runs: range
) -> tuple[Records, npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """All runs as the kernel takes them; pairs (base, stride) and the tables of the ports of those in `runs`."""
    templates = form.templates[form.runs["template"].astype(np.int64)]
    records = np.zeros(len(form.runs), RUN)
    for name in ("count", "first_wire", "bits", "wides", "words"):
        records[name] = form.runs[name]
    for name in ("n_aux", "n_bits", "n_wides", "first_column", "n_ports", "n_steps", "first_step"):
        records[name] = templates[name]
    records["first_port"] = len(form.columns) + templates["first_port"]
    wiring, tables = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.uint32)]
    for number in runs:
        run = system.runs[number]
        records["first_wiring"][number] = sum(map(len, wiring))
        records["table"][number] = sum(map(len, tables))
        wiring.append(np.stack([run.base, run.stride], axis=1))
        if run.table is not None:
            records["has_table"][number] = 1
            tables.append(run.table.reshape(-1))
    return records, np.concatenate(wiring), np.concatenate(tables)


@cache
def _powers(curve: Curve) -> Limbs:
    """2^0 ... 2^255."""
    return FrVector.from_ints(curve, [pow(2, k, curve.r) for k in range(256)], Form.MONTGOMERY).limbs
