"""Witness programs on the device: runs of independent instances, over field elements and over bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_form import Records, SystemForm
from snarkline.r1cs.structured_witness import StructuredWitness

FEW = 31
"""Runs of at most so many instances do not take a program to the device; behind larger ones they go with them."""
MOST_RUNS = 64
"""More runs than these follow one another on a device for too long: the host makes small ones side by side."""
BUSY = 1 << 16
"""Threads that a device has room for: up to so many, several share an instance."""
LANES = 32
THREADS = 128
BIT_WARPS, RING_ROWS = 8, 4
"""Of a block that runs code over bits: its warps, and `ring_rows` of csrc/device/bits.cu."""
RING_BYTES = BIT_WARPS * RING_ROWS * LANES * 16
REGISTER_BYTES = 8
MAX_REGISTERS = ((72 << 10) - RING_BYTES) // REGISTER_BYTES
"""What fits into the shared memory of every supported GPU beside the rows that are fetched."""
GATHERS, PUBLISHES = 1, 2
"""What `run_steps` does before and behind the steps."""

RUN = np.dtype(
    [(name, "<u8") for name in ["count", "first_wire", "bits", "wides", "table"]]
    + [
        (name, "<u4")
        for name in [
            "words", "n_aux", "n_bits", "n_wides", "first_column", "n_ports", "first_port", "first_wiring", "has_table",
            "unused",
        ]
    ]
)  # fmt: skip
"""`Run` of csrc/device/instances.h."""


def device_runs(system: StructuredR1CS) -> range | None:
    """The runs whose programs a device takes: from one of more than FEW independent instances on, to the last.

    None of them is a chain, or has wires that are given, or code over bits with too many values to be kept at a time:
    these and all before them are the host's. None where nothing is left, or more than MOST_RUNS.
    """
    form = SystemForm.of(system)
    alone = form.runs["chain"] != 0
    given = np.searchsorted(form.runs["first_wire"], system.given[system.given > system.n_public], side="right") - 1
    alone[given] = True
    runs = _behind(form, alone)
    if runs is None or len(runs) > MOST_RUNS:
        return None
    form = SystemForm.of(system, runs.start, BIT_WARPS)
    large = [
        bool((form.phases["n_registers"][template["first_phase"] :][: template["n_phases"]] > MAX_REGISTERS).any())
        for template in form.templates
    ]
    alone |= np.array(large, np.bool_)[form.runs["template"].astype(np.int64)]
    return _behind(form, alone)


def _behind(form: SystemForm, alone: npt.NDArray[np.bool_]) -> range | None:
    """The runs from the first that is worth it on, behind all of some."""
    programs = form.templates["n_steps"][form.runs["template"].astype(np.int64)] > 0
    many = (form.runs["count"] > FEW) & programs
    first = int(np.flatnonzero(alone).max(initial=-1)) + 1
    return range(first + int(many[first:].argmax()), len(many)) if many[first:].any() else None


class Phase(NamedTuple):
    """Steps of a program, or code over bits: its number, and how many registers that takes."""

    number: int
    is_bits: bool = False
    n_registers: int = 0


NO_STEPS = Phase((1 << 32) - 1)


class DeviceRun(NamedTuple):
    """A run on the device."""

    number: int
    instances: int
    n_ports: int
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class DeviceProgram:
    """The programs of the last runs of a system on the device."""

    runs: tuple[DeviceRun, ...]
    bits: int
    wides: int
    records: Array
    phases: Array
    wiring: tuple[object, ...]
    """Places, wiring and tables."""
    steps: tuple[object, ...]
    """What `run_steps` takes besides."""
    code: tuple[object, ...]
    """What `run_bits` takes: inputs, streams, headers, records."""
    n_public: int

    @classmethod
    def upload(cls, device: Device, system: StructuredR1CS, runs: range) -> DeviceProgram:
        form = SystemForm.of(system, runs.start, BIT_WARPS)
        records, wiring, tables = _wiring(system, form, runs)
        n_bits, n_wides, _ = system.native.sizes

        def upload(*arrays: npt.NDArray[np.generic]) -> tuple[object, ...]:
            return tuple(device.upload(array) for array in arrays)

        constants = np.concatenate([_powers(system.curve), form.coefficients])
        return cls(
            tuple(_runs(form, runs)),
            n_bits,
            n_wides,
            device.upload(records.view(np.uint64)),
            device.upload(form.phases.view(np.uint32)),
            upload(np.concatenate([form.columns, form.ports]), wiring, tables),
            upload(form.steps, form.slots, form.combinations, form.digits, form.terms, constants),
            upload(form.bit_inputs, form.bit_streams, form.bit_headers, form.bit_records),
            system.n_public,
        )

    def run(self, device: Device, first: StructuredWitness) -> StructuredWitness:
        """The witness whose first runs, all but these, `first` has the values of."""
        publics = device.upload(first.publics)
        bits, wides = device.zeros(self.bits, "u8"), device.empty((self.wides, first.curve.fr_limbs), "u8")
        for target, source in ((bits, first.bits), (wides, first.wides)):
            if len(source):
                device.copy(target[: len(source)], device.upload(source))
        for run in self.runs:
            self._run(device, first.curve, run, publics, bits, wides)
        return replace(first, publics=device.download(publics), bits=bits, wides=wides)

    def _run(self, device: Device, curve: Curve, run: DeviceRun, publics: Array, bits: Array, wides: Array) -> None:
        """Ports, phase after phase, public wires. A single launch where there is but one phase of steps."""
        phases: Sequence[Phase] = run.phases
        flags = GATHERS
        if any(phase.is_bits for phase in phases):
            flags = 0
            warps = blocks(run.instances, LANES) * (run.n_ports + 1)
            device.launch(
                Module("bits", curve.name), "gather_ports", blocks(warps * LANES, THREADS), THREADS, run.number,
                publics, bits, wides, self.records, *self.wiring, self.n_public,
            )  # fmt: skip
        if not phases or (run.instances == 1 and phases[-1].is_bits):
            phases = [*phases, NO_STEPS]
        for phase in phases:
            if phase.is_bits:
                self._run_bits(device, curve, run, phase, bits)
            else:
                ends = run.instances == 1 and phase is phases[-1]
                self._run_steps(device, curve, run, phase, flags | PUBLISHES * ends, (publics, bits, wides))
            flags = 0

    def _run_bits(self, device: Device, curve: Curve, run: DeviceRun, phase: Phase, bits: Array) -> None:
        shared = RING_BYTES + REGISTER_BYTES * phase.n_registers
        device.launch(
            Module("bits", curve.name), "run_bits", blocks(run.instances, LANES), BIT_WARPS * LANES, run.number,
            phase.number, bits, self.records, self.phases, *self.code, shared=shared,
        )  # fmt: skip

    def _run_steps(
        self, device: Device, curve: Curve, run: DeviceRun, phase: Phase, flags: int, values: tuple[Array, Array, Array]
    ) -> None:
        lanes = LANES
        while lanes > 1 and lanes * run.instances > BUSY:
            lanes //= 2
        threads = min(THREADS, LANES * blocks(lanes * run.instances, LANES))
        device.launch(
            Module("program", curve.name), "run_steps", blocks(lanes * run.instances, threads), threads, run.number,
            phase.number, lanes, flags, *values, self.records, *self.wiring, self.phases, *self.steps, self.n_public,
        )  # fmt: skip


def _runs(form: SystemForm, runs: range) -> Iterator[DeviceRun]:
    registers = form.phases["n_registers"].tolist()
    phases = [Phase(i, bool(is_bits), registers[i]) for i, is_bits in enumerate(form.phases["is_bits"])]
    for number in runs:
        template = form.templates[int(form.runs["template"][number])]
        first, n = int(template["first_phase"]), int(template["n_phases"])
        count = int(form.runs["count"][number])
        yield DeviceRun(number, count, int(template["n_ports"]), tuple(phases[first : first + n]))


def _wiring(
    system: StructuredR1CS, form: SystemForm, runs: range
) -> tuple[Records, npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """All runs as the kernels take them; pairs (base, stride) and the tables of the ports of those in `runs`."""
    templates = form.templates[form.runs["template"].astype(np.int64)]
    records = np.zeros(len(form.runs), RUN)
    for name in ("count", "first_wire", "bits", "wides", "words"):
        records[name] = form.runs[name]
    for name in ("n_aux", "n_bits", "n_wides", "first_column", "n_ports"):
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
