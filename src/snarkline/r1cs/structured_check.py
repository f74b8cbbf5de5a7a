"""The invariants of structured constraint systems."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from snarkline.errors import FormatError, MismatchError
from snarkline.r1cs.structured import Run, StructuredR1CS, Wires
from snarkline.r1cs.template import Template

MAX_WIRES = MAX_ROWS = 1 << 32
BLOCK_PORTS = 1 << 18
"""Ports that are looked at together."""


def check_system(system: StructuredR1CS) -> None:
    """Raises FormatError or MismatchError naming the template, the run and the row or port."""
    if not 0 <= system.n_outputs <= system.n_public < system.n_wires <= MAX_WIRES:
        raise MismatchError(
            f"{system.n_wires} wires, {system.n_public} of them public, {system.n_outputs} of these outputs"
        )
    ordered = np.sort(system.given)
    if len(system.bits) != len(system.given) or (ordered[1:] == ordered[:-1]).any():
        raise MismatchError("given wires are distinct, and each is said to be a bit or not")
    if len(system.given) and not 1 <= system.given.min() <= system.given.max() < system.n_wires:
        raise MismatchError(f"given wires are from 1 to {system.n_wires - 1}")
    _System(system).check()


class _System:
    """What is known of the wires while runs are checked in order."""

    def __init__(self, system: StructuredR1CS) -> None:
        self.system = system
        self.public_known = np.zeros(system.n_public + 1, np.bool_)
        self.public_bits = np.zeros(system.n_public + 1, np.bool_)
        public = system.given <= system.n_public
        self.public_known[system.given[public]] = True
        self.public_bits[system.given[public]] = system.bits[public]
        self.first_wires = np.array([run.first_wire for run in system.runs], np.int64)
        self.order = np.argsort(system.given, kind="stable")
        self.given = system.given[self.order]
        self.checked: set[tuple[int, frozenset[int], bool]] = set()
        self.written: dict[int, npt.NDArray[np.bool_]] = {}

    def check(self) -> None:
        row, wire = 0, self.system.n_public + 1
        for number, run in enumerate(self.system.runs):
            name = f"run {number}"
            if not 0 <= run.template < len(self.system.templates):
                raise FormatError(None, name, f"a template below {len(self.system.templates)}", run.template)
            template = self.system.template_of(run)
            name += f" ({template.name})"
            if run.count < 1 or (run.first_row, run.first_wire) != (row, wire):
                raise FormatError(
                    None, name, f"instances from row {row} and wire {wire}", (run.count, run.first_row, run.first_wire)
                )
            # Bounded before anything goes through the instances.
            rows, wires = row + run.count * template.n_rows, wire + run.count * template.n_aux
            if run.count > MAX_ROWS or rows > MAX_ROWS or wires > self.system.n_wires:
                limits = f"at most {MAX_ROWS} instances and rows and {self.system.n_wires} wires"
                raise FormatError(None, name, limits, f"{run.count} instances up to row {rows} and wire {wires}")
            self._check_template(name, run, template)
            self._check_ports(name, number, run, template)
            row, wire = rows, wires
        if wire != self.system.n_wires:
            raise MismatchError(f"the runs have wires up to {wire - 1}, the system has {self.system.n_wires}")
        if not self.public_known[1:].all():
            raise MismatchError(f"nobody gives or computes public wire {1 + int(self.public_known[1:].argmin())}")

    def _check_template(self, name: str, run: Run, template: Template) -> None:
        stop = run.first_wire + run.count * template.n_aux
        low, high = np.searchsorted(self.given, [run.first_wire, stop])
        inside = self.order[low:high]
        if len(inside) and run.count != 1:
            raise FormatError(None, name, "given wires in runs of one instance only", f"{run.count} instances")
        columns = self.system.given[inside].astype(np.int64) - run.first_wire + template.first_aux
        if (template.bits[columns] != self.system.bits[inside]).any():
            raise FormatError(
                None, name, "given wires that are bits in the template where they are given as bits", "others"
            )
        key = (run.template, frozenset(columns.tolist()), run.count == 1)
        if key not in self.checked:
            template.check(self.system.curve, key[1], writes_ports=key[2])
            self.checked.add(key)

    def _check_ports(self, name: str, number: int, run: Run, template: Template) -> None:
        n = template.n_ports
        if run.table is None:
            if run.base.shape != (n,) or run.stride.shape != (n,):
                raise FormatError(None, name, f"base and stride of {n} ports", (run.base.shape, run.stride.shape))
        elif run.table.shape != (run.count, n) or run.table.dtype != np.uint32:
            raise FormatError(None, name, f"a table of {run.count} by {n} uint32", run.table.shape)
        if n == 0:
            return
        step = max(1, BLOCK_PORTS // n)
        written = self._written_ports(run.template) if run.count == 1 else np.zeros(n, np.bool_)
        for start in range(0, run.count, step):
            self._check_wires(name, run, template, start, run.ports(start, min(start + step, run.count)), written)
        for port in np.flatnonzero(written):
            wire = int(run.ports(0, 1)[0, port])
            if wire > self.system.n_public:
                raise FormatError(None, f"{name}, port {port}", "a public wire, since the program writes it", wire)
            if self.public_known[wire]:
                raise FormatError(None, f"{name}, port {port}", "a wire that nobody else gives or computes", wire)
            self.public_known[wire] = True
            self.public_bits[wire] = template.bits[1 + port]

    def _written_ports(self, number: int) -> npt.NDArray[np.bool_]:
        """Which ports the program of a template writes."""
        if number in self.written:
            return self.written[number]
        template = self.system.templates[number]
        written = self.written[number] = np.zeros(template.n_ports, np.bool_)
        for instruction in template.program.instructions():
            for target in instruction.targets:
                if target < template.first_aux:
                    written[target - 1] = True
        return written

    def _check_wires(
        self, name: str, run: Run, template: Template, start: int, wires: Wires, written: npt.NDArray[np.bool_]
    ) -> None:
        """The ports of instances from `start` on: distinct, known before, and bits where the template takes them so."""
        known = run.first_wire + template.n_aux * np.arange(start, start + len(wires))[:, None]
        bad = (wires < 1) | (wires >= known)
        if bad.any():
            i, port = (int(x) for x in np.argwhere(bad)[0])
            raise FormatError(
                None,
                f"{name}, instance {start + i}, port {port}",
                f"a wire from 1 to {known[i, 0] - 1}",
                wires[i, port],
            )
        if run.table is not None or start == 0 or len(set(run.stride.tolist())) > 1:
            ordered = np.sort(wires, axis=1)
            same = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
            if same.any():
                raise FormatError(None, f"{name}, instance {start + int(same.argmax())}", "distinct ports", "one twice")
        public = wires <= self.system.n_public
        unknown = public & ~self.public_known[np.where(public, wires, 0)] & ~written
        not_bit = template.bits[1 : template.first_aux] & ~written & ~self._are_bits(wires)
        for failed, expected in ((unknown, "a public wire with a value"), (not_bit, "a wire that is a bit")):
            if failed.any():
                i, port = (int(x) for x in np.argwhere(failed)[0])
                raise FormatError(
                    None, f"{name}, instance {start + i}, port {port}", expected, f"wire {wires[i, port]}"
                )

    def _are_bits(self, wires: Wires) -> npt.NDArray[np.bool_]:
        """Whether wires of runs that have been checked are known to be bits."""
        n_aux, first_bits, bits = self._aux_bits
        public = wires <= self.system.n_public
        run = np.where(public, 0, np.searchsorted(self.first_wires, wires, side="right") - 1)
        aux = np.where(public, 0, wires - self.first_wires[run]) % n_aux[run]
        return np.where(public, self.public_bits[np.where(public, wires, 0)], bits[first_bits[run] + aux])

    @cached_property
    def _aux_bits(self) -> tuple[Wires, Wires, npt.NDArray[np.bool_]]:
        """For each run its aux wires an instance and where their bits begin; the bits of all templates."""
        templates = self.system.templates
        starts = np.cumsum([0, *(max(1, template.n_aux) for template in templates)])
        bits = np.zeros(starts[-1], np.bool_)
        for start, template in zip(starts.tolist(), templates, strict=False):
            own = template.bits[template.first_aux : template.n_columns]
            bits[start : start + len(own)] = own
        number = np.clip([run.template for run in self.system.runs], 0, len(templates) - 1)
        return np.maximum(1, np.array([template.n_aux for template in templates]))[number], starts[number], bits
