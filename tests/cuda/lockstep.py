"""Two devices that do the same: every launch runs on the GPU and in emulation, and all arrays are compared."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
from emulation import EmulatedDevice


@dataclass
class Both:
    """One array on the two devices."""

    emulated: object
    real: object

    def __len__(self):
        return len(self.emulated)

    def __getitem__(self, index):
        return Both(self.emulated[index], self.real[index])

    def reshape(self, *shape):
        return Both(self.emulated.reshape(*shape), self.real.reshape(*shape))

    @property
    def shape(self):
        return self.emulated.shape

    @property
    def size(self):
        return self.emulated.size

    @property
    def nbytes(self):
        return self.emulated.nbytes


UNORDERED = ("make_digits", "partition_digits", "sort_segments", "sort_parts")
"""Kernels that leave the order of what they write to chance: of theirs, arrays are compared as sets."""


class LockstepDevice:
    """A `Device` that raises AssertionError, with the name of the kernel, at the first launch that differs.

    The order that `find_heavy` leaves to chance is fixed for a grid of one block only.
    """

    name = "lockstep"
    multiprocessors = 2
    failure = None

    def __init__(self, real) -> None:
        self.emulated, self.real, self.clock = EmulatedDevice(), real, real.clock

    def empty(self, shape, dtype):
        poisoned = self.emulated.empty(shape, dtype)
        return Both(poisoned, self.real.upload(np.asarray(poisoned).view(np.ndarray)))

    def zeros(self, shape, dtype):
        return Both(self.emulated.zeros(shape, dtype), self.real.zeros(shape, dtype))

    def upload(self, host):
        return Both(self.emulated.upload(host), self.real.upload(host))

    def download(self, array):
        return self.real.download(array.real)

    def download_later(self, arrays):
        return self.real.download_later([array.real for array in arrays])

    def beside(self, works):
        return [work() for work in works]

    def join(self):
        pass

    def copy(self, target, source):
        self.emulated.copy(target.emulated, source.emulated)
        self.real.copy(target.real, source.real)

    def owns(self, array):
        return isinstance(array, Both)

    def launch(self, module, kernel, grid, block, *arguments, shared=0):
        mine = [a.emulated if isinstance(a, Both) else a for a in arguments]
        theirs = [a.real if isinstance(a, Both) else a for a in arguments]
        self.emulated.launch(module, kernel, grid, block, *mine, shared=shared)
        self.real.launch(module, kernel, grid, block, *theirs, shared=shared)
        for number, argument in enumerate(arguments):
            if isinstance(argument, Both):
                arrays = [self.emulated.download(argument.emulated), self.download(argument)]
                if kernel in UNORDERED:
                    self.real.copy(argument.real, self.real.upload(arrays[0]))
                    arrays = [np.sort(array, axis=None) for array in arrays]
                assert np.array_equal(*arrays), f"{module.name}: {kernel}: argument {number} differs"

    def free_bytes(self):
        return self.emulated.free_bytes()

    def synchronize(self):
        self.real.synchronize()

    def session(self):
        return contextlib.nullcontext()

    def trim(self):
        pass

    def wipe(self, until):
        pass

    def close(self):
        self.real.close()
