"""Circuits written in Python: recorded once, as templates, before there are values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snarkline.lazy import exports

if TYPE_CHECKING:
    from snarkline.circuit.batch import Batch
    from snarkline.circuit.builder import Builder, Gadget
    from snarkline.circuit.compiling import Circuit, CompiledCircuit, circuit
    from snarkline.circuit.library import Library
    from snarkline.circuit.profiling import Profile, profile
    from snarkline.circuit.recording import gadget
    from snarkline.circuit.store import TemplateStore
    from snarkline.circuit.system import ConstraintSystem
    from snarkline.circuit.types import Array, Private, Public, Size
    from snarkline.circuit.values import Bit, Bits, Num
    from snarkline.circuit.words import UInt8, UInt32, UInt64

__all__ = [
    "Array",
    "Batch",
    "Bit",
    "Bits",
    "Builder",
    "Circuit",
    "CompiledCircuit",
    "ConstraintSystem",
    "Gadget",
    "Library",
    "Num",
    "Private",
    "Profile",
    "Public",
    "Size",
    "TemplateStore",
    "UInt8",
    "UInt32",
    "UInt64",
    "circuit",
    "gadget",
    "profile",
]

_HOMES = {
    "snarkline.circuit.batch": ("Batch",),
    "snarkline.circuit.builder": ("Builder", "Gadget"),
    "snarkline.circuit.compiling": ("Circuit", "CompiledCircuit", "circuit"),
    "snarkline.circuit.recording": ("gadget",),
    "snarkline.circuit.library": ("Library",),
    "snarkline.circuit.profiling": ("Profile", "profile"),
    "snarkline.circuit.store": ("TemplateStore",),
    "snarkline.circuit.system": ("ConstraintSystem",),
    "snarkline.circuit.types": ("Array", "Private", "Public", "Size"),
    "snarkline.circuit.values": ("Bit", "Bits", "Num"),
    "snarkline.circuit.words": ("UInt8", "UInt32", "UInt64"),
}

__getattr__, __dir__ = exports(__name__, _HOMES)
