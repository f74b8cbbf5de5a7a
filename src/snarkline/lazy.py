"""Public names that are imported when they are first used, so that importing a package costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are in the modules `homes`."""
    home_of = {name: home for home, names in homes.items() for name in names}
    namespace = vars(sys.modules[package])

    def find(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(home_of[name]), name)
        return value

    return find, lambda: sorted({*namespace, *home_of})
