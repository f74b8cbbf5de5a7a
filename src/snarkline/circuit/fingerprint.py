"""What a gadget's recording depends on, as a digest: its source, and all that it refers to."""

from __future__ import annotations

import hashlib
import inspect
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from snarkline.circuit.builder import Gadget

PLAIN = (int, float, str, bytes, type(None), type(Ellipsis))


class UnknownSourceError(Exception):
    """A gadget refers to something whose content cannot be told."""


def fingerprint(gadget: Gadget[Any]) -> str:
    """The digest of a gadget: its source text, that of the functions and classes that it refers to, and constants.

    What belongs to this package counts as one text. Raises UnknownSourceError for gadgets without a source text, or
    that refer to objects other than functions, classes, modules and constants.
    """
    digest = hashlib.sha256(package_digest())
    _Walk(digest).add(gadget)
    return digest.hexdigest()


@cache
def package_digest() -> bytes:
    """The digest of the sources that recordings are made by."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted([*root.rglob("*.py"), *(root.parent / "r1cs").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.digest()


class _Walk:
    """Goes through everything that is reachable from a function, each thing once."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest
        self._seen: set[int] = set()

    def add(self, value: object) -> None:
        if isinstance(value, PLAIN):
            self._tell(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self._tell("again", getattr(value, "__qualname__", ""))
            return
        self._seen.add(id(value))
        if isinstance(value, Gadget):
            self.add(value.function)
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, types.ModuleType):
            self._add_module(value)
        elif isinstance(value, types.BuiltinFunctionType):
            self._tell("builtin", value.__qualname__)
        elif isinstance(value, np.ndarray):
            self._tell("array", f"{value.dtype} {value.shape}", value.tobytes().hex())
        elif isinstance(value, tuple | list | range):
            self._tell(type(value).__name__, str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, dict):
            self.add([*value.keys(), *value.values()])
        else:
            raise UnknownSourceError(f"an object of type {type(value).__name__}")

    def _add_function(self, function: types.FunctionType) -> None:
        self._tell("function", function.__module__ or "", function.__qualname__)
        if _is_ours(function.__module__):
            return
        self._tell(_source(function))
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                self._tell(name)
                self.add(function.__globals__[name])

    def _add_class(self, class_: type) -> None:
        self._tell("class", class_.__module__, class_.__qualname__)
        if _is_ours(class_.__module__) or class_.__module__ in sys.stdlib_module_names:
            return
        self._tell(_source(class_))
        for value in vars(class_).values():
            if isinstance(value, types.FunctionType):
                self.add(value)

    def _add_module(self, module: types.ModuleType) -> None:
        self._tell("module", module.__name__, str(getattr(module, "__version__", "")))
        file = getattr(module, "__file__", None)
        if file is not None and not _is_ours(module.__name__):
            self._tell(hashlib.sha256(Path(file).read_bytes()).hexdigest())

    def _tell(self, *texts: str) -> None:
        for text in texts:
            self._digest.update(f"{len(text)}:{text}".encode())


def _is_ours(module: str | None) -> bool:
    return module is not None and (module == "snarkline" or module.startswith("snarkline."))


def _source(thing: types.FunctionType | type) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        raise UnknownSourceError(f"{thing.__qualname__} has no source text") from None


def _names(code: types.CodeType) -> set[str]:
    """The global names that a function and the functions within it use; attributes are among them."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names
