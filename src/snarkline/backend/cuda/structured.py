"""Structured systems on the device: a, b, c and the wires from packed witnesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from snarkline.backend.cuda.device import NULL, Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector, Limbs
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_form import Records, SystemForm
from snarkline.r1cs.structured_witness import StructuredWitness

LANES, GROUP = 32, 64
"""Instances of a block, and those whose field elements lie together."""
ROWS_PER_BLOCK, SUMS_PER_BLOCK = 128, 4
THREADS = 128
SUMS_AT_ONCE = 1 << 21
"""Elements that do not come from bits alone are computed first, as many at a time: 64 MiB."""

RUN = np.dtype(
    [(name, "<u8") for name in ["count", "first_out", "bits", "wides", "first_block"]]
    + [(name, "<u4") for name in ["n_items", "first_record", "words", "n_bits", "n_wides", "chunk"]]
)
"""`Run` of csrc/device/structured.cu."""

INTEGERS = range(-128, 128)


class Piece(NamedTuple):
    """Sums from number `first_sum` on, `n_sums` of them, and the blocks that make them and that read them."""

    first_sum: int
    n_sums: int
    sum_blocks: range
    row_blocks: range


@dataclass(frozen=True)
class Items:
    """What instances of all runs have, cut into blocks: rows, columns or sums."""

    n_blocks: int
    runs: Array
    run_of_block: Array

    @classmethod
    def upload(cls, device: Device, runs: Records) -> Items:
        n = _blocks(runs)
        run_of_block = np.repeat(np.arange(len(runs), dtype=np.uint32), n)
        return cls(len(run_of_block), device.upload(runs.view(np.uint64)), device.upload(run_of_block))


@dataclass(frozen=True)
class Packed:
    """A packed witness on the device, all of it or what is not there yet uploaded."""

    publics: Array
    bits: Array
    wides: Array

    @classmethod
    def upload(cls, device: Device, w: StructuredWitness) -> Packed:
        return cls(*(values if device.owns(values) else device.upload(values) for values in w.arrays))


@dataclass(frozen=True)
class DeviceSystem:
    """A structured system on the device."""

    curve: Curve
    n_rows: int
    n_public: int
    rows: Items
    columns: Items
    sums: Items
    pieces: tuple[Piece, ...]
    row_records: Array
    column_records: Array
    slots: Array
    sum_records: Array
    digits: Array
    terms: Array
    coefficients: Array
    small: Array
    zero_one: Array

    @classmethod
    def upload(cls, device: Device, system: StructuredR1CS) -> DeviceSystem:
        form = SystemForm.of(system)
        rows, columns, sums = _runs(form, "rows"), _runs(form, "columns"), _runs(form, "sums")
        return cls(
            system.curve,
            system.n_constraints,
            system.n_public,
            Items.upload(device, rows),
            Items.upload(device, columns),
            Items.upload(device, sums),
            tuple(_pieces(rows, sums)),
            *(
                device.upload(records)
                for records in (
                    form.rows, form.columns, form.slots, form.sums, form.digits, form.terms, form.coefficients,
                    _integers(system.curve, Form.MONTGOMERY), _integers(system.curve, Form.CANONICAL),
                )
            ),
        )  # fmt: skip

    @property
    def module(self) -> Module:
        return Module("structured", self.curve.name)

    def evaluate(self, device: Device, w: Packed, a: Array, b: Array, c: Array) -> None:
        """a, b, c of the rows, and behind them the public wires in a, and zeros."""
        sums = device.empty((max(1, *(piece.n_sums for piece in self.pieces)), self.curve.fr_limbs), "u8")
        for piece in self.pieces:
            if piece.sum_blocks:
                device.launch(
                    self.module, "sum_items", len(piece.sum_blocks), THREADS, sums, piece.first_sum, self.sums.runs,
                    self.sums.run_of_block, piece.sum_blocks.start, self.sum_records, self.digits, self.terms,
                    self.coefficients, w.bits, w.wides,
                )  # fmt: skip
            if piece.row_blocks:
                device.launch(
                    self.module, "store_items", len(piece.row_blocks), THREADS, a, b, c, 3, self.rows.runs,
                    self.rows.run_of_block, piece.row_blocks.start, self.row_records, self.slots, w.bits, sums,
                    piece.first_sum, self.small,
                )  # fmt: skip
        n, bound, size = self.n_rows, self.n_rows + self.n_public + 1, len(a)
        grid = min(blocks(size - n, 256), 1 << 16)
        device.launch(self.module, "pad_products", grid, 256, a, b, c, w.publics, n, bound, size)

    def expand(self, device: Device, w: Packed, unit: Array, out: Array) -> None:
        """The values of all wires, canonical. `unit` is 1 and not in Montgomery form: its products leave that form."""
        vector = Module("vector", self.curve.name)
        wides = device.empty(w.wides.shape, "u8")
        for target, source in ((out, w.publics), (wides, w.wides)):
            if n := len(source):
                device.launch(vector, "scale", min(blocks(n, 256), 1 << 20), 256, target, source, unit, n)
        if self.columns.n_blocks:
            device.launch(
                self.module, "store_items", self.columns.n_blocks, THREADS, out, NULL, NULL, 1, self.columns.runs,
                self.columns.run_of_block, 0, self.column_records, NULL, w.bits, wides, 0, self.zero_one,
            )  # fmt: skip


def _runs(form: SystemForm, items: str) -> Records:
    """The runs as the kernels take them for rows, columns or sums."""
    templates = form.templates[form.runs["template"].astype(np.int64)]
    n_items, first_record, first_out = {
        "rows": ("n_rows", "first_row", "first_row"),
        "columns": ("n_aux", "first_column", "first_wire"),
        "sums": ("n_sums", "first_sum", "first_sum"),
    }[items]
    runs = np.zeros(len(form.runs), RUN)
    for name in ("count", "bits", "words", "wides"):
        runs[name] = form.runs[name]
    for name in ("n_bits", "n_wides"):
        runs[name] = templates[name]
    if items == "rows":  # what rows call wide are the sums
        runs["wides"], runs["n_wides"] = form.runs["first_sum"], templates["n_sums"]
    runs["n_items"], runs["first_record"] = templates[n_items], templates[first_record]
    runs["first_out"] = form.runs[first_out]
    runs["chunk"] = SUMS_PER_BLOCK if items == "sums" else ROWS_PER_BLOCK
    runs["first_block"][1:] = np.cumsum(_blocks(runs))[:-1]
    return runs


def _blocks(runs: Records) -> npt.NDArray[np.int64]:
    """How many blocks each run has: 32 instances by a chunk of their items."""
    halves = -(-runs["count"].astype(np.int64) // LANES)
    return np.asarray(halves * -(-runs["n_items"].astype(np.int64) // runs["chunk"].astype(np.int64)))


def _pieces(rows: Records, sums: Records) -> Iterator[Piece]:
    """All blocks, in pieces of at most SUMS_AT_ONCE sums, or those of 64 instances of a run."""
    begin, end, first_sum, n_sums = [0, 0], [0, 0], 0, 0
    for run_rows, run_sums in zip(rows, sums, strict=True):
        each, count, done = int(run_sums["n_items"]), int(run_rows["count"]), 0
        while done < count:
            room = max(0, SUMS_AT_ONCE - n_sums) // each if each else count
            take = count - done if room >= count - done else room // GROUP * GROUP
            if take == 0:
                if n_sums:
                    yield Piece(first_sum, n_sums, range(begin[0], end[0]), range(begin[1], end[1]))
                    begin, first_sum, n_sums = list(end), first_sum + n_sums, 0
                    continue
                take = min(GROUP, count - done)
            done, n_sums = done + take, n_sums + take * each
            for k, run in enumerate((run_sums, run_rows)):
                chunks = -(-int(run["n_items"]) // int(run["chunk"]))
                end[k] = int(run["first_block"]) + -(-done // LANES) * chunks
    yield Piece(first_sum, n_sums, range(begin[0], end[0]), range(begin[1], end[1]))


@cache
def _integers(curve: Curve, form: Form) -> Limbs:
    """The field's elements that are the integers from -128 to 127."""
    return FrVector.from_ints(curve, INTEGERS, form).limbs
