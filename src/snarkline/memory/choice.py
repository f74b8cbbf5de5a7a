"""Members of enumerations that callers may give as values."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from snarkline.errors import InputError

Member = TypeVar("Member", bound=Enum)


def chosen(kind: type[Member], value: object, what: str) -> Member:
    """The member of `kind`, or the one of that value. Raises InputError with the choices for `what`."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise InputError(f"{what}: expected one of {choices}, found {value!r}") from None
