"""Inverses of many elements of Fp on the device (csrc/device/inverse.cu)."""

from __future__ import annotations

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.module import Module

TOP = 256
"""As many values are inverted by one block."""
BLOCK = 256
MIN_VALUES = 2
"""A thread takes so many values at least; more where there would be more than TOP blocks."""


def scratch_elements(n: int) -> int:
    """Elements of scratch memory that `invert_planes` needs for n values."""
    return n + (2 * BLOCK + 1) * _grid(n) if n > TOP else 0


def invert_planes(device: Device, module: Module, values: Array, n: int, limbs: int, scratch: Array) -> None:
    """Invert n non-zero elements of `limbs` words in place; flat arrays of uint64, in planes."""
    assert values.size == n * limbs and scratch.size >= scratch_elements(n) * limbs
    if n <= TOP:
        _invert_top(device, module, values, n, limbs)
        return
    grid = _grid(n)
    trees_end = n + 2 * BLOCK * grid
    prefixes, trees = scratch[: n * limbs], scratch[n * limbs : trees_end * limbs]
    products = scratch[trees_end * limbs : (trees_end + grid) * limbs]
    device.launch(module, "inverse_up", grid, BLOCK, values, n, prefixes, trees, products)
    _invert_top(device, module, products, grid, limbs)
    device.launch(module, "inverse_down", grid, BLOCK, values, n, prefixes, trees, products)


def _invert_top(device: Device, module: Module, values: Array, n: int, limbs: int) -> None:
    leaves = max(32, 1 << (n - 1).bit_length())
    device.launch(module, "inverse_top", 1, TOP, values, n, leaves, shared=2 * leaves * 8 * limbs)


def _grid(n: int) -> int:
    return min(TOP, blocks(n, MIN_VALUES * BLOCK))
