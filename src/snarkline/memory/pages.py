"""Which page sizes the system grants."""

from __future__ import annotations

import functools
import warnings
from enum import Enum
from pathlib import Path

from snarkline.memory.choice import chosen

_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class Pages(Enum):
    """AUTO: 2 MiB pages where the system grants them. SMALL: 4 KiB pages, also where it would grant larger ones."""

    AUTO = "auto"
    SMALL = "4k"

    @classmethod
    def of(cls, value: Pages | str) -> Pages:
        """The member, or the one of that value. Raises InputError."""
        return chosen(cls, value, "pages")


@functools.cache
def huge_pages_granted() -> bool:
    """Whether the kernel's switch for transparent huge pages is on; warns once if it is off."""
    try:
        granted = "[never]" not in _SWITCH.read_text()
    except OSError:
        granted = False
    if not granted:
        warnings.warn(
            f"2 MiB pages are off ({_SWITCH}): memory is touched and released some 30 times slower",
            RuntimeWarning,
            stacklevel=2,
        )
    return granted
