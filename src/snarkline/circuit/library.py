"""The templates that were recorded: each gadget once for every pattern of its inputs."""

from __future__ import annotations

from typing import Any

from snarkline.circuit.builder import Gadget
from snarkline.circuit.recording import Pattern, Recording, record
from snarkline.circuit.store import TemplateStore
from snarkline.curves.curve import Curve


class Library:
    """Recordings over one curve, kept as long as the library lives, and in a store beyond that if there is one."""

    def __init__(self, curve: Curve, store: TemplateStore | None = None) -> None:
        self.curve = curve
        self._store = store
        self._recordings: dict[tuple[Gadget[Any], Pattern], Recording] = {}

    def get(self, gadget: Gadget[Any], pattern: Pattern) -> Recording:
        """The recording of a gadget for a pattern, made if it is not there. Raises CircuitError."""
        recording = self._recordings.get((gadget, pattern))
        if recording is None:
            recording = self._recordings[gadget, pattern] = self._load(gadget, pattern)
        return recording

    def _load(self, gadget: Gadget[Any], pattern: Pattern) -> Recording:
        if self._store is None:
            return record(self.curve, gadget, pattern)
        recording = self._store.load(self.curve, gadget, pattern)
        if recording is None:
            recording = record(self.curve, gadget, pattern)
            self._store.save(self.curve, gadget, pattern, recording)
        return recording
