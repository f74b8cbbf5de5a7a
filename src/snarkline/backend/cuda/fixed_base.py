"""Multiples of one point on the device, by a table of its multiples (csrc/device/fixed_base.cu)."""

from __future__ import annotations

import numpy as np

from snarkline.backend.base import Backend
from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.inverse import invert_planes, scratch_elements
from snarkline.backend.cuda.module import Module
from snarkline.curves.point import Point, PointTable
from snarkline.curves.vector import FrVector
from snarkline.trace import device_span

SLICE = 1 << 20
"""Scalars at a time."""
TABLE_ROW, TABLE_WINDOWS = 255, 32


class FixedBase:
    """Multiplies points by vectors of scalars. `host` makes the table of a point, which is kept."""

    def __init__(self, device: Device, host: Backend) -> None:
        self._device, self._host = device, host
        self._multiples: dict[Point, Array] = {}

    def multiply(self, base: Point, limbs: Array) -> PointTable:
        """scalars[i] * base, for canonical scalars on the device."""
        device, curve, group = self._device, base.curve, base.group
        if base not in self._multiples:
            multiples = [d << (8 * w) for w in range(TABLE_WINDOWS) for d in range(1, TABLE_ROW + 1)]
            self._multiples[base] = device.upload(
                self._host.fixed_base(base, FrVector.from_ints(curve, multiples)).limbs
            )
        module, inverse = Module("fixed_base", curve.name, group.value), Module("inverse", curve.name)
        width = curve.point_limbs(group)
        out = np.empty((len(limbs), width), np.uint64)
        for begin in range(0, len(limbs), SLICE):
            part = limbs[begin : begin + SLICE]
            n, grid = len(part), blocks(len(part), 128)
            sums, points = device.empty((n, 2 * width), "u8"), device.empty((n, width), "u8")
            norms = device.empty(n * curve.fp_limbs, "u8")
            scratch = device.empty(scratch_elements(n) * curve.fp_limbs, "u8")
            with device_span(device.clock, "fixed_base", items=n):
                device.launch(module, "multiply_base", grid, 128, part, n, self._multiples[base], sums, norms)
                invert_planes(device, inverse, norms, n, curve.fp_limbs, scratch)
                device.launch(module, "make_affine", grid, 128, sums, n, norms, points)
            out[begin : begin + n] = device.download(points)
        return PointTable(curve, group, out)

    def clear(self) -> None:
        self._multiples.clear()
