"""Transforms on the device: how they are cut into passes, and the tables that each pass reads (csrc/device/ntt.cu)."""

from __future__ import annotations

from dataclasses import dataclass

from snarkline.backend.base import Domain
from snarkline.backend.cuda.device import NULL, Array, Device, blocks
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector

LOG_SINGLE = 11
"""Up to 2^11 elements are transformed by one block."""
LOG_ROWS = 10
"""The most rows of the last pass, whose tile may be one column. The others have at most 2^9, which by 4 columns are
72 KiB of shared memory: what every supported GPU has."""
LOG_MIN_COLUMNS = 2
"""Columns of a tile: 4 elements are 128 contiguous bytes."""
LOG_MIN_TILE = 10
"""The fewest elements of a tile, so that a block has work for four warps."""
LOG_TILE = 10
"""Elements of a tile of the last pass; a block has an eighth as many threads."""


def pass_sizes(log_n: int) -> list[int]:
    """The logarithms of the rows of each pass, for log_n of 3 or more.

    Of three passes, the first two have 2^6 or 2^9 rows, so that all their steps are of radix 8.
    """
    if log_n <= LOG_SINGLE:
        return [log_n]
    if log_n < 2 * LOG_ROWS:
        return [log_n // 2, (log_n + 1) // 2]
    first, second = next(pair for pair in ((6, 6), (9, 6), (9, 9)) if log_n - sum(pair) <= LOG_ROWS)
    return [first, second, log_n - first - second]


def reverse_bits(i: int, bits: int) -> int:
    return int(format(i, f"0{bits}b")[::-1], 2) if bits else 0


@dataclass(frozen=True)
class Pass:
    """One pass: sizes as logarithms and its tables on the device (NULL: no factors there)."""

    log_length: int
    log_rows: int
    log_columns: int
    between: Array
    steps: Array
    rows_in: Array
    rows_out: Array

    @property
    def shared_bytes(self) -> int:
        elements = 1 << (self.log_rows + self.log_columns)
        return (elements + elements // 8) * 32


@dataclass(frozen=True)
class Transform:
    """A forward transform takes natural order to bit-reversed order, a reversed one the other way round.

    Forward: out[rev(k)] = first * out_ratio^k * sum_i in[i] * in_ratio^i * root^(i k). Reversed transforms use no
    ratios and first = 1.
    """

    log_n: int
    reversed: bool
    passes: tuple[Pass, ...]


@dataclass(frozen=True)
class Options:
    """Which transform: the names are those of `Transform`."""

    reversed_order: bool = False
    first: int = 1
    in_ratio: int = 1
    out_ratio: int = 1


PLAIN = Options()


class TransformBuilder:
    """Makes the tables of the transforms of one curve."""

    def __init__(self, device: Device, curve: Curve) -> None:
        self._device, self._curve = device, curve
        self._module = Module("ntt", curve.name)

    def build(self, log_n: int, root: int, options: Options = PLAIN) -> Transform:
        """Tables for 2^log_n elements, log_n of 3 or more; `root` has that order."""
        r, in_ratio = self._curve.r, options.in_ratio
        sizes = pass_sizes(log_n)
        passes = []
        log_length, done = log_n, 0  # `done`: output digits that earlier passes have made
        for number, log_rows in enumerate(sizes):
            last = number == len(sizes) - 1
            length_root = pow(root, 1 << (log_n - log_length), r)
            log_all_columns = log_length - log_rows
            row_ratio = pow(options.out_ratio, 1 << done, r)
            scale = options.first if number == 0 else 1
            between = rows_in = rows_out = NULL
            if not last:
                column_ratio = in_ratio if number == 0 else 1
                between = self._factors(log_length, log_rows, scale, length_root, row_ratio, column_ratio)
            elif row_ratio != 1 or scale != 1:
                exponents = [reverse_bits(j, log_rows) for j in range(1 << log_rows)]
                powers = self._powers(row_ratio, 1 << log_rows, scale)
                rows_out = self._upload([powers[e] for e in exponents])
            if number == 0 and in_ratio != 1:
                rows_in = self._upload(self._powers(pow(in_ratio, 1 << log_all_columns, r), 1 << log_rows))
            steps = self._step_factors(log_rows, pow(length_root, 1 << log_all_columns, r))
            # The last pass packs several transforms into a tile, the others take columns of 128 contiguous bytes.
            log_columns = (
                min(max(LOG_TILE - log_rows, 0), log_n - log_rows)
                if last
                else max(LOG_MIN_COLUMNS, LOG_MIN_TILE - log_rows)
            )
            passes.append(Pass(log_length, log_rows, log_columns, between, steps, rows_in, rows_out))
            log_length, done = log_all_columns, done + log_rows
        return Transform(log_n, options.reversed_order, tuple(passes))

    def _powers(self, ratio: int, n: int, first: int = 1) -> list[int]:
        powers, r = [first], self._curve.r
        for _ in range(n - 1):
            powers.append(powers[-1] * ratio % r)
        return powers

    def _upload(self, values: list[int]) -> Array:
        return self._device.upload(FrVector.from_ints(self._curve, values, Form.MONTGOMERY).limbs)

    def _step_factors(self, log_rows: int, root: int) -> Array:
        """The first three powers of the root of order 8; then for each step but the last root^(i * rev(s))."""
        r = self._curve.r
        values = self._powers(pow(root, 1 << (log_rows - 3), r), 4)[1:]
        for log_length in range(log_rows, 3, -3):
            length_root = pow(root, 1 << (log_rows - log_length), r)
            powers = self._powers(length_root, 1 << log_length)
            columns = 1 << (log_length - 3)
            values += [powers[i * reverse_bits(s, 3)] for s in range(8) for i in range(columns)]
        return self._upload(values)

    def _factors(
        self, log_length: int, log_rows: int, first: int, root: int, row_ratio: int, column_ratio: int
    ) -> Array:
        table = self._device.empty((1 << log_length, self._curve.fr_limbs), "u8")
        squares = [NULL if x == 1 else self._upload(self._squares(x)) for x in (row_ratio, column_ratio)]
        self._device.launch(
            self._module, "ntt_factors", blocks(1 << log_length, 256), 256,
            table, self._upload([first]), self._upload(self._squares(root)), *squares, log_length, log_rows,
        )  # fmt: skip
        return table

    def _squares(self, x: int) -> list[int]:
        squares = [x]
        for _ in range(63):
            squares.append(squares[-1] * squares[-1] % self._curve.r)
        return squares


class Transforms:
    """Transforms with their tables, made when they are first asked for and kept."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._made: dict[tuple[object, ...], Transform] = {}

    def get(self, domain: Domain, root: int, options: Options) -> Transform:
        """See `Transform`. The domain, of 2^3 elements or more, says curve and size."""
        key = (domain.curve.name, domain.log_size, root, options)
        if key not in self._made:
            self._made[key] = TransformBuilder(self._device, domain.curve).build(domain.log_size, root, options)
        return self._made[key]

    def clear(self) -> None:
        self._made.clear()


def run_transform(device: Device, module: Module, transform: Transform, data: Array) -> None:
    """Transform `data`, of 2^log_n elements, in place."""
    passes = transform.passes
    order = reversed(list(enumerate(passes))) if transform.reversed else enumerate(passes)
    for number, p in order:
        log_tile = p.log_rows + p.log_columns
        grid, block = 1 << (transform.log_n - log_tile), 1 << (log_tile - 3)
        sizes = (p.log_length, p.log_rows, p.log_columns)
        if number == len(passes) - 1:
            if transform.reversed:
                arguments: tuple[Array, ...] = (data, p.steps, *sizes[1:])
                kernel = "ntt_reversed_last"
            else:
                arguments = (data, p.steps, p.rows_in, p.rows_out, *sizes[1:])
                kernel = "ntt_forward_last"
        elif transform.reversed:
            arguments, kernel = (data, p.between, p.steps, *sizes), "ntt_reversed"
        else:
            arguments, kernel = (data, p.between, p.steps, p.rows_in, *sizes), "ntt_forward"
        device.launch(module, kernel, grid, block, *arguments, shared=p.shared_bytes)


def reverse_order(device: Device, module: Module, data: Array, log_n: int) -> None:
    device.launch(module, "reverse_order", blocks(1 << log_n, 256), 256, data, log_n)
