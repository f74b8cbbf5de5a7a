"""Inverses of many elements of Fp on the device (csrc/device/inverse.cu)."""

from __future__ import annotations

from snarkline.backend.cuda.device import Array, Device, blocks
from snarkline.backend.cuda.module import Module

TOP = 2048
"""As many values are inverted by one block."""


def scratch_elements(n: int) -> int:
    """Elements of scratch memory that `invert_planes` needs for n values."""
    total = 0
    while n > TOP:
        groups = _groups(n)
        total += n + groups
        n = groups
    return total + 3 * TOP


def invert_planes(device: Device, module: Module, values: Array, n: int, limbs: int, scratch: Array) -> None:
    """Invert n non-zero elements of `limbs` words in place; flat arrays of uint64, in planes."""
    assert values.size == n * limbs and scratch.size >= scratch_elements(n) * limbs
    levels: list[tuple[Array, int, int, Array, Array]] = []
    used = 0
    while n > TOP:
        groups = _groups(n)
        prefixes = scratch[used : used + n * limbs]
        products = scratch[used + n * limbs : used + (n + groups) * limbs]
        used += (n + groups) * limbs
        device.launch(module, "inverse_up", blocks(groups, 128), 128, values, n, groups, prefixes, products)
        levels.append((values, n, groups, prefixes, products))
        values, n = products, groups
    device.launch(module, "inverse_top", 1, 512, values, n, scratch[used:])
    for values, n, groups, prefixes, products in reversed(levels):
        device.launch(module, "inverse_down", blocks(groups, 128), 128, values, n, groups, prefixes, products)


def _groups(n: int) -> int:
    return -(-n // (16 if n >= 16 * TOP else 8))
