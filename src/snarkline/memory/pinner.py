"""Mappings that a device knows by address, or that must not be swapped out."""

from __future__ import annotations

import os
import resource
from typing import Protocol

from snarkline.errors import RegistrationError
from snarkline.native import core


class Pinner(Protocol):
    """Registers memory, for instance page-locks it for a CUDA context."""

    def pin(self, address: int, n_bytes: int) -> None:
        """Any exception is a refusal."""

    def unpin(self, address: int) -> None:
        """Any exception means that the memory may still be registered. Then it is never unmapped."""

    def alive(self) -> bool:
        """False when the context that knew the memory is gone; then there is nothing left to unpin."""


class PageLocker:
    """A Pinner that keeps memory out of swap (mlock)."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def pin(self, address: int, n_bytes: int) -> None:
        try:
            core.lock_pages(address, n_bytes, True)
        except OSError as error:
            limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
            found = "no limit" if limit == resource.RLIM_INFINITY else f"{limit} bytes"
            raise OSError(error.errno, f"mlock: {error.strerror} (RLIMIT_MEMLOCK: {found})") from error
        self._sizes[address] = n_bytes

    def unpin(self, address: int) -> None:
        core.lock_pages(address, self._sizes.pop(address), False)

    def alive(self) -> bool:
        return True


class Registrations:
    """What an arena has registered. A mapping is registered once and stays so until it leaves the arena.

    While it is registered the native core pools it whatever its policy says, and neither unmaps it nor gives its pages
    back: the device would keep the old ones.
    """

    def __init__(self, arena: core.Arena, pinner: Pinner) -> None:
        self._arena = arena
        self._pinner = pinner
        self._sizes: dict[int, int] = {}
        self._process = os.getpid()

    def ensure(self, lease: core.Lease) -> None:
        """Registers the lease's mapping, unless it is. Raises RegistrationError; the lease stays usable."""
        if lease.registered:
            return
        address, n_bytes = lease.address, lease.mapped_bytes
        lease.set_registered(True)  # first of all, so that no pages are given back under the device
        try:
            self._pinner.pin(address, n_bytes)
        except Exception as error:
            lease.set_registered(False)
            raise RegistrationError(n_bytes, str(error) or type(error).__name__) from error
        self._sizes[address] = n_bytes

    def release_idle(self) -> bool:
        """Unregisters what nobody uses and gives it to the release thread; whether there was any."""
        found, refused = False, []
        while self._ours and (lease := self._arena.take_idle_registered()) is not None:
            if self._unpin(lease.address):
                found = True
                lease.set_registered(False)
            else:
                refused.append(lease)  # or it would be the next to be taken
            del lease
        return found

    def close(self) -> None:
        """Unregisters everything, also what is in use: its device context is about to go."""
        self.release_idle()
        for address in list(self._sizes) if self._ours else []:
            if self._unpin(address):
                self._arena.forget(address)

    @property
    def _ours(self) -> bool:
        # A forked child has neither the mappings nor the device's context.
        return os.getpid() == self._process

    def _unpin(self, address: int) -> bool:
        """Whether the memory is certainly not registered any more."""
        if address in self._sizes and self._pinner.alive():
            try:
                self._pinner.unpin(address)
            except Exception:
                return False
        self._sizes.pop(address, None)
        return True
