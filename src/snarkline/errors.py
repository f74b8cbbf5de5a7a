"""The exception tree. Each error carries its facts as attributes and prints them in one sentence."""

from __future__ import annotations

import os

MIB = 1 << 20


def printable(text: str) -> str:
    """The text with an escape in place of each character that a terminal would act on; names in files are anybody's."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class SnarklineError(Exception):
    """Base of every error that the package raises on purpose."""


class InputError(SnarklineError, ValueError):
    """Input that cannot be used. The command line exits with 2."""


class FormatError(InputError):
    """A file, or bytes, that do not hold what their format says.

    Attributes: `path` (str or None for bytes in memory), `where` (offset, index or field name), `expected`, `found`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        where: str,
        expected: object,
        found: object,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.where = where
        self.expected = expected
        self.found = found
        name = self.path if self.path is not None else "input"
        super().__init__(printable(f"{name}: {where}: expected {expected}, found {found}"))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.where, self.expected, self.found)


class MismatchError(InputError):
    """Two inputs that do not belong together (curve, sizes, public inputs)."""


class UnsatisfiedError(InputError):
    """A witness that does not satisfy the circuit.

    Attributes: `constraint` (index, or None when only the self-check found it), `detail`.
    """

    def __init__(self, constraint: int | None, detail: str) -> None:
        self.constraint = constraint
        self.detail = detail
        if constraint is None:
            super().__init__(printable(f"the witness does not satisfy the circuit; {detail}"))
        else:
            super().__init__(printable(f"the witness does not satisfy constraint {constraint}: {detail}"))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.constraint, self.detail)


class CircuitError(InputError):
    """A circuit written in Python that cannot be recorded or compiled.

    Attributes: `gadget` (path of the gadget, empty at the top), `detail`, `line` (file and line of the circuit's
    source, empty where none led to the error).
    """

    def __init__(self, gadget: str, detail: str, line: str = "") -> None:
        self.gadget = gadget
        self.detail = detail
        self.line = line
        super().__init__(self._text())

    def at(self, line: str) -> None:
        """Names the line, unless one is named."""
        self.line = self.line or line
        self.args = (self._text(),)

    def _text(self) -> str:
        where = f"{self.line}: " if self.line else ""
        return printable(f"{self.gadget or 'circuit'}: {where}{self.detail}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.gadget, self.detail, self.line)


class BudgetError(SnarklineError):
    """Memory that was asked for and cannot be had within the budget.

    Attributes: `asked_bytes`, `budget_bytes`, `cause` (what holds the memory).
    """

    def __init__(self, asked_bytes: int, budget_bytes: int, cause: str) -> None:
        self.asked_bytes = asked_bytes
        self.budget_bytes = budget_bytes
        self.cause = cause
        mebibytes = f"{-(-asked_bytes * 10 // MIB) / 10:,.1f} MiB in {budget_bytes * 10 // MIB / 10:,.1f} MiB"
        super().__init__(
            f"{asked_bytes} bytes were asked for within a budget of {budget_bytes} bytes ({mebibytes}): {cause}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.asked_bytes, self.budget_bytes, self.cause)


class RegistrationError(SnarklineError):
    """Memory that could not be registered with a device or locked. It stays usable without.

    Attributes: `n_bytes`, `cause`.
    """

    def __init__(self, n_bytes: int, cause: str) -> None:
        self.n_bytes = n_bytes
        self.cause = cause
        super().__init__(f"a mapping of {n_bytes} bytes could not be registered: {cause}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.n_bytes, self.cause)


class DeviceError(SnarklineError):
    """A GPU that is not there, cannot be used, or failed."""


class NoDeviceError(DeviceError, InputError):
    """No GPU that can be used: what was asked for cannot be had, no device failed."""


class NoDriverError(NoDeviceError):
    """No driver for a GPU: the machine is not meant to have one."""


class MissingLibraryError(NoDeviceError):
    """The library that drives a GPU is not installed."""


class InternalError(SnarklineError):
    """A result that failed its own check. Nothing was handed out."""


class CircuitWarning(UserWarning):
    """A circuit that can be compiled and proved, but hardly means what was meant."""


class SecurityWarning(UserWarning):
    """A key that can be used but must not be trusted."""


class DeviceWarning(UserWarning):
    """A GPU that is not used, or not any more: the work goes on without it."""
