"""The operations of a proof on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from snarkline.backend.base import Backend, Domain, Workload, transposed_of_flat
from snarkline.backend.cuda.device import NULL, Argument, Array, Device, blocks
from snarkline.backend.cuda.fixed_base import FixedBase
from snarkline.backend.cuda.matrix import DeviceMatrix
from snarkline.backend.cuda.module import Module
from snarkline.backend.cuda.ntt import Options, Transforms, reverse_order, run_transform
from snarkline.backend.cuda.plan import MemoryPlan, plan_memory
from snarkline.backend.cuda.program import DeviceProgram, device_runs
from snarkline.backend.cuda.structured import DeviceSystem, Packed
from snarkline.backend.cuda.sums import Sums
from snarkline.curves.curve import Curve, Group
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector, ints_to_limbs
from snarkline.errors import BudgetError
from snarkline.memory import Arena
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness, run_program
from snarkline.trace import device_span

SMALL = 1024
"""Fewer points than these are left to the host, which is done with them before a GPU has started."""

R = TypeVar("R")
K = TypeVar("K")
T = TypeVar("T")


class CudaBackend:
    """Runs on one device. Not for use by several threads at a time.

    Key tables and matrices are uploaded at their first use and stay as long as the key does, or as the plan for
    `work` says; vectors that operations return live on the device. `host` does what is too small for a GPU.
    """

    name = "cuda"

    def __init__(self, device: Device, host: Backend, *, work: Workload | None = None) -> None:
        self._device, self.host, self._work = device, host, work
        self._pressure = 0
        self._replan_due = False
        self._closed = False
        self._sums = Sums(device, host)
        self._transforms = Transforms(device)
        self._fixed_base = FixedBase(device, host)
        self._constants: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._matrices: WeakKeyDictionary[SparseMatrix, DeviceMatrix] = WeakKeyDictionary()
        self._transposed: WeakKeyDictionary[SparseMatrix, DeviceMatrix] = WeakKeyDictionary()
        self._systems: WeakKeyDictionary[StructuredR1CS, DeviceSystem] = WeakKeyDictionary()
        self._device_runs: WeakKeyDictionary[StructuredR1CS, range | None] = WeakKeyDictionary()
        self._programs: WeakKeyDictionary[StructuredR1CS, DeviceProgram] = WeakKeyDictionary()

    # ---- sessions and memory ----

    @property
    def note(self) -> str:
        return f"on {self._device.name}"

    @property
    def plan(self) -> MemoryPlan | None:
        """What stays on the device, and in how many pieces sums are taken; None where no work was announced."""
        return self._sums.plan

    @plan.setter
    def plan(self, plan: MemoryPlan) -> None:
        self._sums.plan = plan

    @property
    def failure(self) -> str | None:
        """Why the device is not used any more."""
        return self._device.failure

    def run(self, work: Callable[[Backend], R]) -> R:
        with self.session():
            return work(self)

    @contextmanager
    def session(self) -> Iterator[None]:
        """One proof, by one thread. Afterwards what it left in the device's memory is wiped.

        The work raises BudgetError if the memory that is free does not suffice for what was announced.
        """
        self._require_open()
        with self._device.session():
            try:
                self._replan_due = True  # the first upload need not wait for it
                yield
                self._pressure = 0
            finally:
                self._sums.forget_begun()

    def shrink(self) -> bool:
        """After a BudgetError: hold less in the next session. False if that is no use."""
        self._pressure += 1
        with self._device.session():
            self._let_go()
            if self._work is None:
                return self._pressure == 1
            try:
                plan_memory(self._work, self._budget(), self._sum_bytes)
            except BudgetError:
                self._pressure = 0
                return False
        return True

    def _replan(self) -> None:
        """The plan for the memory that is free at this moment; what it does not keep is let go."""
        self._replan_due = False
        if self._work is None or self._plan_holds():
            return
        try:
            plan = plan_memory(self._work, self._budget(), self._sum_bytes)
        except BudgetError:
            self._let_go()
            plan = plan_memory(self._work, self._budget(), self._sum_bytes)
        if not plan.keep_tables:
            self._sums.forget_tables()
        if not plan.keep_matrices:
            self._matrices.clear()
            self._systems.clear()
            self._programs.clear()
        self.plan = plan

    def _plan_holds(self) -> bool:
        """Whether nothing is better than the plan that there is, and memory suffices for it."""
        plan, work = self.plan, self._work
        return plan is not None and work is not None and plan.best_for(work) and plan.peak_bytes <= self._budget()

    def _budget(self) -> int:
        """Bytes for everything; half as many for each refusal before."""
        return (self._device.free_bytes() + self._device.used_bytes()) >> self._pressure

    def _sum_bytes(self, n: int, groups: Sequence[Group]) -> int:
        assert self._work is not None
        return self._sums.runner(self._work.curve).bytes_needed(n, groups)

    def _let_go(self) -> None:
        """Everything on the device that can be made again, back to the driver."""
        self._forget()
        self._device.trim()

    def _forget(self) -> None:
        for held in (
            self._transforms, self._fixed_base, self._matrices, self._transposed, self._systems, self._programs,
        ):  # fmt: skip
            held.clear()
        self._sums.forget_tables()

    # ---- vectors ----

    def resident(self, v: FrVector) -> FrVector:
        """The vector in the device's memory. The first thing that a proof queues, so nothing else is done before."""
        self._require_open()
        if self._device.owns(v.limbs):
            return v
        limbs = self._device.empty_again(v.limbs.shape, v.limbs.dtype)
        with device_span(self._device.clock, "upload", bytes=v.limbs.nbytes):
            self._device.fill(limbs, v.limbs)
        return FrVector(v.curve, limbs, v.form)

    def select(self, v: FrVector, indices: npt.NDArray[np.uint32]) -> FrVector:
        out = self._empty(v.curve, len(indices), v.form)
        self._launch(
            v.curve, "gather", len(indices), out.limbs, self._limbs(v), self._device.upload(indices), len(indices)
        )
        return out

    def evaluate(self, matrix: SparseMatrix, w: FrVector, domain: Domain) -> FrVector:
        there = self._uploaded(self._matrices, matrix, matrix.n_entries, DeviceMatrix.upload)
        out = self._empty(w.curve, domain.size)
        factor = self._raw(w.curve, pow(2, 512, w.curve.r)) if w.form is Form.CANONICAL else NULL
        with device_span(self._device.clock, "spmv", items=matrix.n_entries):
            there.multiply(self._device, _vector(w.curve), self._limbs(w), out.limbs, factor)
        return out

    def run_program(self, given: GivenValues, *, threads: int, arena: Arena) -> StructuredWitness | None:
        device, system = self._open(), given.system
        if system not in self._device_runs:
            self._device_runs[system] = device_runs(system)
        runs = self._device_runs[system]
        if runs is None:
            return None
        first = run_program(system, given.values, n_runs=runs.start, threads=threads, arena=arena)
        there = self._programs.get(system) or DeviceProgram.upload(device, system, runs)
        if self.plan is None or self.plan.keep_matrices:
            self._programs[system] = there
        with device_span(device.clock, "witness program", items=len(runs)):
            return there.run(device, first)

    def begin_range_check(self, v: FrVector) -> Callable[[], bool]:
        device, n = self._open(), len(v)
        with device_span(device.clock, "check values", items=n):
            found, grid = device.zeros(1, "u4"), min(blocks(n, 256), 1 << 16)
            device.launch(_vector(v.curve), "find_unreduced", grid, 256, found, self._limbs(v), n)
        reading = device.download_later([found])
        return lambda: int(reading.wait()[0][0]) == 0

    def rows_hold(self, a: FrVector, b: FrVector, c: FrVector) -> bool:
        device, n = self._open(), len(a)
        violated = device.zeros(1, "u4")
        with device_span(device.clock, "check rows", items=n):
            arrays = (self._limbs(v) for v in (a, b, c))
            grid = min(blocks(n, 256), 1 << 16)
            device.launch(Module("program", a.curve.name), "check_rows", grid, 256, violated, *arrays, n)
        return int(device.download(violated)[0]) == 0

    def evaluate_structured(
        self, w: StructuredWitness, domain: Domain, *, wires: FrVector | None = None
    ) -> tuple[FrVector, FrVector, FrVector, FrVector]:
        # Written out, the wires' values would take longer to the device than to be made there from the packed ones.
        self._require_open()
        with device_span(self._device.clock, "upload", bytes=w.nbytes):
            packed = Packed.upload(self._device, w)
        device, there = self._open(), self._system(w.system)
        out = self._empty(w.curve, len(w), Form.CANONICAL)
        with device_span(device.clock, "expand", items=len(w)):
            there.expand(device, packed, self._raw(w.curve, 1), out.limbs)
        a, b, c = (self._empty(w.curve, domain.size) for _ in range(3))
        with device_span(device.clock, "evaluate rows", items=there.n_rows):
            there.evaluate(device, packed, a.limbs, b.limbs, c.limbs)
        return out, a, b, c

    def evaluate_structured_transposed(
        self, matrices: StructuredMatrices, v: FrVector
    ) -> tuple[FrVector, FrVector, FrVector]:
        return transposed_of_flat(self, matrices, v)

    def evaluate_transposed(self, matrix: SparseMatrix, v: FrVector) -> FrVector:
        if matrix not in self._transposed:
            self._transposed[matrix] = DeviceMatrix.upload_transposed(self._open(), matrix)
        out = self._empty(v.curve, matrix.n_columns, v.form)
        with device_span(self._device.clock, "spmv", items=matrix.n_entries):
            self._transposed[matrix].multiply(self._device, _vector(v.curve), self._limbs(v), out.limbs, NULL)
        return out

    def powers(self, curve: Curve, n: int, first: int, ratio: int) -> FrVector:
        out = self._empty(curve, n)
        squares = [ratio % curve.r]
        for _ in range(63):
            squares.append(squares[-1] * squares[-1] % curve.r)
        self._launch(
            curve, "powers", -(-n // 16), out.limbs, self._field(curve, first), self._field(curve, *squares), n
        )
        return out

    def add(self, a: FrVector, b: FrVector) -> FrVector:
        limbs = self._limbs(a)
        self._launch(a.curve, "add", len(a), limbs, limbs, self._limbs(b), len(a))
        return FrVector(a.curve, limbs, a.form)

    def multiply(self, a: FrVector, b: FrVector) -> FrVector:
        out = self._empty(a.curve, len(a))
        self._launch(a.curve, "multiply", len(a), out.limbs, self._limbs(a), self._limbs(b), len(a))
        return out

    def multiply_subtract(self, a: FrVector, b: FrVector, c: FrVector) -> FrVector:
        limbs = self._limbs(a)
        self._launch(a.curve, "multiply_subtract", len(a), limbs, limbs, self._limbs(b), self._limbs(c), len(a))
        return FrVector(a.curve, limbs, a.form)

    def scale(self, v: FrVector, factor: int) -> FrVector:
        limbs = self._limbs(v)
        self._launch(v.curve, "scale", len(v), limbs, limbs, self._field(v.curve, factor), len(v))
        return FrVector(v.curve, limbs, v.form)

    # ---- transforms ----

    def ntt(self, v: FrVector, domain: Domain, *, inverse: bool = False, shift: int = 1) -> FrVector:
        curve, limbs, r = v.curve, self._limbs(v), v.curve.r
        root = pow(domain.root, -1, r) if inverse else domain.root
        first = pow(domain.size, -1, r) if inverse else 1
        in_ratio, out_ratio = (1, pow(shift, -1, r)) if inverse else (shift, 1)
        if domain.log_size < 3:
            constants = (self._field(curve, x) for x in (root, in_ratio, first, out_ratio))
            with device_span(self._device.clock, "ntt", items=domain.size):
                self._device.launch(_ntt(curve), "ntt_small", 1, 32, limbs, *constants, domain.log_size)
        else:
            transform = self._transforms.get(domain, root, Options(first=first, in_ratio=in_ratio, out_ratio=out_ratio))
            with device_span(self._device.clock, "ntt", items=domain.size):
                run_transform(self._device, _ntt(curve), transform, limbs)
                reverse_order(self._device, _ntt(curve), limbs, domain.log_size)
        return FrVector(curve, limbs, v.form)

    def coset_evaluations(self, v: FrVector, domain: Domain, shift: int) -> FrVector:
        if domain.log_size < 3:
            return self.ntt(self.ntt(v, domain, inverse=True), domain, shift=shift)
        limbs, r = self._limbs(v), v.curve.r
        first = pow(domain.size, -1, r)
        there = self._transforms.get(domain, pow(domain.root, -1, r), Options(first=first, out_ratio=shift % r))
        back = self._transforms.get(domain, domain.root, Options(reversed_order=True))
        with device_span(self._device.clock, "coset_evaluations", items=domain.size):
            run_transform(self._device, _ntt(v.curve), there, limbs)
            run_transform(self._device, _ntt(v.curve), back, limbs)
        return FrVector(v.curve, limbs, v.form)

    # ---- points ----

    def msm(self, tables: Sequence[PointTable], scalars: FrVector) -> list[Point]:
        return self.begin_msm(tables, scalars)()

    def begin_msm(self, tables: Sequence[PointTable], scalars: FrVector) -> Callable[[], list[Point]]:
        self._open()
        if self.plan is not None and not self.plan.keep_matrices:
            self._transforms.clear()  # the quotient is done
        if len(scalars) < SMALL:
            return self.host.begin_msm(tables, self._on_host(scalars))
        return self._sums.begin(tables, scalars.curve, self._limbs(scalars), scalars.form)

    def await_msms(self) -> None:
        self._sums.await_all()

    def fixed_base(self, base: Point, scalars: FrVector) -> PointTable:
        device, curve = self._open(), base.curve
        if len(scalars) < SMALL:
            return self.host.fixed_base(base, self._on_host(scalars))
        limbs = self._limbs(scalars)
        if scalars.form is Form.MONTGOMERY:
            canonical = device.empty(limbs.shape, "u8")
            self._launch(curve, "scale", len(limbs), canonical, limbs, self._raw(curve, 1), len(limbs))
            limbs = canonical
        return self._fixed_base.multiply(base, limbs)

    # ---- life ----

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._forget()
            self._constants.clear()
            self._sums.close()
            self.host.close()
            self._device.close()

    def _open(self) -> Device:
        self._require_open()
        if self._replan_due:
            self._replan()
        return self._device

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError("the backend is closed")

    def _uploaded(self, held: WeakKeyDictionary[K, T], key: K, n_items: int, upload: Callable[[Device, K], T]) -> T:
        """What `held` has for the key, or else is uploaded, and kept there if the plan says so."""
        there = held.get(key)
        if there is None:
            with device_span(self._device.clock, "upload", items=n_items):
                there = upload(self._open(), key)
            if self.plan is None or self.plan.keep_matrices:
                held[key] = there
        return there

    def _system(self, system: StructuredR1CS) -> DeviceSystem:
        return self._uploaded(self._systems, system, system.n_constraints, DeviceSystem.upload)

    def _limbs(self, v: FrVector) -> Array:
        return v.limbs if self._open().owns(v.limbs) else self._device.upload(v.limbs)

    def _on_host(self, v: FrVector) -> FrVector:
        return FrVector(v.curve, self._device.download(v.limbs), v.form) if self._device.owns(v.limbs) else v

    def _empty(self, curve: Curve, n: int, form: Form = Form.MONTGOMERY) -> FrVector:
        return FrVector(curve, self._open().empty((n, curve.fr_limbs), "u8"), form)

    def _field(self, curve: Curve, *values: int) -> Array:
        """Constants in Montgomery form."""
        return self._open().upload(FrVector.from_ints(curve, values, Form.MONTGOMERY).limbs)

    def _raw(self, curve: Curve, *values: int) -> Array:
        """Constants as they are, kept: none may be secret."""
        key = (curve.name, values)
        if key not in self._constants:
            self._constants[key] = self._open().upload(ints_to_limbs(values, curve.fr_limbs))
        return self._constants[key]

    def _launch(self, curve: Curve, kernel: str, n: int, *arguments: Argument) -> None:
        with device_span(self._device.clock, kernel, items=n):
            self._device.launch(_vector(curve), kernel, min(blocks(n, 256), 1 << 20), 256, *arguments)


def _vector(curve: Curve) -> Module:
    return Module("vector", curve.name)


def _ntt(curve: Curve) -> Module:
    return Module("ntt", curve.name)
