"""Rounds of affine additions: their kernels, and the memory that they share (csrc/device/rounds.cu)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snarkline.backend.cuda.device import Argument, Device, blocks
from snarkline.backend.cuda.inverse import invert_planes, scratch_elements
from snarkline.backend.cuda.module import Module
from snarkline.curves.curve import Curve, Group


class RoundMemory:
    """What the rounds of one run use: prefixes, products of the denominators, scratch for their inversion, and for each
    table the denominators that a round leaves for the next."""

    def __init__(
        self, device: Device, inverse: Module, curve: Curve, additions: Sequence[int], groups: Sequence[Group]
    ) -> None:
        """`inverse`: the module of `invert_planes`. `additions`: of each round."""
        self._device, self._inverse, self._limbs = device, inverse, curve.fp_limbs
        threads = [self._threads(n) for n in additions]  # not always falling: a wave of few threads is cut finer
        self._prefixes = self._device.empty(max(1, *additions) * self._limbs, "u8")
        self._products = self._device.empty(max(1, *threads) * self._limbs, "u8")
        self._scratch = self._device.empty(max(scratch_elements(t) for t in threads) * self._limbs, "u8")
        left = (additions[0] + 1) // 2 if len(additions) > 1 else 0
        self._left = [self._device.empty(max(1, left * curve.point_limbs(group) // 2), "u8") for group in groups]

    def _threads(self, n: int) -> int:
        """Threads for n additions: 16 or 32 additions each, in whole waves of the threads that are resident, and in
        whole warps."""
        resident, per_thread = 512 * self._device.multiprocessors, 32 if n >= 1 << 25 else 16
        waves = -(-n // (resident * per_thread)) or 1
        return 32 * -(-n // (32 * max(4, -(-n // (resident * waves)))))

    def first(self, module: Module, table: int, n: int, *operands: Argument) -> None:
        """The first round, of n additions."""
        self._run(module, "first", table, n, operands, ())

    def later(self, module: Module, table: int, n: int, n_before: int, *operands: Argument) -> None:
        """A round of n additions after one of n_before; the last of the operands is for the denominators only."""
        self._run(module, "later", table, n, operands[:-1], (operands[-1], self._left[table], n_before))

    def _run(
        self, module: Module, which: str, table: int, n: int, operands: Sequence[Argument], sources: Sequence[Argument]
    ) -> None:
        if n == 0:
            return
        threads = self._threads(n)
        grid = blocks(threads, 128)
        prefixes, products = self._prefixes, self._products[: threads * self._limbs]
        launch: Callable[..., None] = self._device.launch
        launch(module, f"{which}_denominators", grid, 128, *operands, *sources, n, threads, prefixes, products)
        invert_planes(self._device, self._inverse, products, threads, self._limbs, self._scratch)
        launch(
            module, f"{which}_additions", grid, 128, *operands, n, threads, prefixes, products, self._left[table]
        )  # fmt: skip
