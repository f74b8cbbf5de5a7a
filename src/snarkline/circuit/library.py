"""The templates that were recorded: each gadget once for every pattern of its inputs."""

from __future__ import annotations

from typing import Any

from snarkline.circuit.builder import Gadget
from snarkline.circuit.gadget import Pattern, Recording, record
from snarkline.curves.curve import Curve


class Library:
    """Recordings over one curve, kept as long as the library lives."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self._recordings: dict[tuple[Gadget[Any], Pattern], Recording] = {}

    def get(self, gadget: Gadget[Any], pattern: Pattern) -> Recording:
        """The recording of a gadget for a pattern, made if it is not there. Raises CircuitError."""
        recording = self._recordings.get((gadget, pattern))
        if recording is None:
            recording = self._recordings[gadget, pattern] = record(self.curve, gadget, pattern)
        return recording
