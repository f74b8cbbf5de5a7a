"""The face of the compiled core."""

from . import _core as core

__all__ = ["core"]
