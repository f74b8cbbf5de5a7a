"""The sums of a backend: over tables that are on the device or are streamed to it, whole or in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from snarkline.backend.base import Backend
from snarkline.backend.cuda.device import Array, Device
from snarkline.backend.cuda.msm import Msm
from snarkline.backend.cuda.pipeline import Pipeline
from snarkline.backend.cuda.plan import MIN_SLICE, MemoryPlan
from snarkline.curves.curve import Curve
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import BudgetError
from snarkline.trace import device_span

FOLDERS = 4
"""Threads that end sums on the host: a proof has at most three tables to a sum."""

End = Callable[[], list[Point]]


class Sums:
    """Multi-scalar multiplications on one device. `plan` says which tables stay there and how long pieces are; `host`
    adds the pieces up."""

    def __init__(self, device: Device, host: Backend) -> None:
        self._device, self._host = device, host
        self.plan: MemoryPlan | None = None
        self._folders = ThreadPoolExecutor(FOLDERS, "snarkline-fold")
        self._pipeline = Pipeline(device, self._folders, self._has_room, self._has_spare)
        self._runners: dict[str, Msm] = {}
        self._tables: WeakKeyDictionary[PointTable, Array] = WeakKeyDictionary()

    def runner(self, curve: Curve) -> Msm:
        if curve.name not in self._runners:
            self._runners[curve.name] = Msm(self._device, curve)
        return self._runners[curve.name]

    def begin(self, tables: Sequence[PointTable], curve: Curve, scalars: Array, form: Form) -> End:
        """The sums of scalars that are on the device over each table. The function returned waits for them."""
        runner, montgomery = self.runner(curve), form is Form.MONTGOMERY
        if not all(self._stays(table) for table in tables):
            return self._begin_streamed(runner, tables, scalars, montgomery)
        groups, points = [table.group for table in tables], [self._table(table) for table in tables]
        side_by_side = self.plan is None or self.plan.side_by_side
        ends = []
        for part in _parts(len(scalars), self._pieces(runner, tables, len(scalars))):
            pieces = [p[part] for p in points]
            begun = runner.begin(groups, pieces, scalars[part], montgomery, side_by_side=side_by_side)
            ends.append(self._pipeline.begin(begun))
        return lambda: self._totals([points for end in ends for points in end()])

    def await_all(self) -> None:
        """Waits until the device is done with all sums that were begun."""
        self._pipeline.await_all()

    def forget_begun(self) -> None:
        self._pipeline.clear()

    def forget_tables(self) -> None:
        self._tables.clear()

    def close(self) -> None:
        self._pipeline.clear()
        self._tables.clear()
        self._runners.clear()
        self._folders.shutdown()

    def _begin_streamed(self, runner: Msm, tables: Sequence[PointTable], scalars: Array, montgomery: bool) -> End:
        """Where tables are not on the device."""
        self._pipeline.drain()
        n, pieces = len(scalars), self._pieces(runner, tables, len(scalars))
        while True:
            try:
                return self._run_streamed(runner, tables, scalars, montgomery, _parts(n, pieces))
            except BudgetError:
                if n // pieces <= MIN_SLICE:
                    raise
            self._device.trim()
            pieces *= 2

    def _run_streamed(
        self, runner: Msm, tables: Sequence[PointTable], scalars: Array, montgomery: bool, parts: Sequence[slice]
    ) -> End:
        """Piece by piece: one is added up when the next is sorted, and that after it counted. The host waits for what
        the device did before."""
        resident = [self._table(table) if self._stays(table) else None for table in tables]
        away = [table.limbs for table, there in zip(tables, resident, strict=True) if there is None]
        stream = self._device.streamed([limbs[part] for part in parts for limbs in away])
        groups = [table.group for table in tables]
        sums = [
            runner.begin(groups, _points(resident, stream, part), scalars[part], montgomery, side_by_side=False)
            for part in parts
        ]
        ends: list[End] = []
        for coming in range(-1, len(sums) + 1):
            if coming + 1 < len(sums):
                sums[coming + 1].count()
            if 0 <= coming < len(sums):
                sums[coming].sort()
            if 0 < coming <= len(sums):
                sums[coming - 1].add()
            if coming > 1:
                ends.append(sums[coming - 2].window_sums().in_background(self._folders))
        next(stream, None)  # it ends
        ends.append(sums[-1].window_sums().in_background(self._folders))
        return lambda: self._totals([end() for end in ends])

    def _pieces(self, runner: Msm, tables: Sequence[PointTable], n: int) -> int:
        """In how many pieces the memory suffices that is planned for a sum, or without a plan that which is free."""
        if self.plan is not None:
            return max(1, -(-n // self.plan.slice_points))
        groups, free, pieces = [table.group for table in tables], self._device.free_bytes(), 1
        while n // pieces > MIN_SLICE and runner.bytes_needed(-(-n // pieces), groups) > free:
            pieces *= 2
        return pieces

    def _has_room(self, n_bytes: int) -> bool:
        """Whether so much may be taken beside what is in use."""
        if self.plan is None:
            return n_bytes <= self._device.free_bytes()
        return self._device.used_bytes() + n_bytes <= self.plan.peak_bytes

    def _has_spare(self) -> bool:
        return self.plan is None or self.plan.sums_at_once > 1

    def _stays(self, table: PointTable) -> bool:
        """Whether a table is, or will be, on the device from now on."""
        return self.plan is None or self.plan.keep_tables or self._device.owns(table.limbs)

    def _table(self, table: PointTable) -> Array:
        if self._device.owns(table.limbs):
            return table.limbs
        if table not in self._tables:
            with device_span(self._device.clock, "upload", bytes=table.limbs.nbytes):
                self._tables[table] = self._device.upload(table.limbs)
        return self._tables[table]

    def _totals(self, pieces: Sequence[Sequence[Point]]) -> list[Point]:
        """For each table the sum of its points in the pieces."""
        return [self._sum(points) for points in zip(*pieces, strict=True)]

    def _sum(self, points: Sequence[Point]) -> Point:
        if len(points) == 1:
            return points[0]
        curve = points[0].curve
        table = PointTable.from_points(curve, points[0].group, points)
        (point,) = self._host.msm([table], FrVector.from_ints(curve, [1] * len(points)))
        return point


def _points(resident: Sequence[Array | None], stream: Iterator[Array], part: slice) -> Iterator[Array]:
    """Of each table those of a piece: of the device's own, or the next of the stream."""
    for there in resident:
        yield next(stream) if there is None else there[part]


def _parts(n: int, pieces: int) -> list[slice]:
    step = -(-n // pieces)
    return [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]
