"""What gadgets and circuits are written against: a recorder of wires, constraints and calls in terms of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from snarkline.circuit import logic
from snarkline.circuit.batch import Batch
from snarkline.circuit.recorder import FALSE, ONE, TRUE, Recorder
from snarkline.circuit.values import Bit, Bits, Num, Operand, Wired, combination
from snarkline.errors import CircuitError


class Builder(Recorder):
    """A recorder that takes and gives values.

    Within a gadget, calls of other gadgets are recorded in place; `ConstraintSystem` makes templates of them.
    """

    # --- values ---------------------------------------------------------------------------------

    def alloc(self) -> Num:
        """A private number, given with the inputs."""
        return Num(self, {self.new_given(): 1})

    def alloc_bit(self) -> Bit:
        """A private bit, given with the inputs, and the constraint that it is one."""
        column = self.new_given(bit=True)
        logic.constrain_bit(self, column)
        return Bit(self, 2 * column)

    def alloc_bits(self, n: int) -> Bits:
        """`n` private bits, each followed by its constraint."""
        return Bits.of([self.alloc_bit() for _ in range(n)]) if n else Bits(self, [])

    def constant(self, value: int) -> Num:
        """A number that does not vary, taken modulo r."""
        return Num(self, {ONE: value % self.r})

    def bit(self, value: bool | int) -> Bit:
        """A bit that does not vary."""
        return Bit(self, TRUE if value else FALSE)

    def name_wire(self, value: Num | Bit, name: str) -> None:
        """Names the wire that a number or a bit is, for .sym files and messages: one that was allocated here."""
        column = value.column if isinstance(value, Num) else value.literal >> 1
        if value.cs is not self or column is None or not self.is_own(column):
            raise self.error(f"only a wire that was allocated here can be named; {name!r} is none")
        self.name_column(column, name)

    # --- constraints ----------------------------------------------------------------------------

    def enforce(self, a: Operand, b: Operand, c: Operand) -> None:
        """The constraint a * b = c."""
        self.row(combination(self, a), combination(self, b), combination(self, c), "enforce(a, b, c): a * b is not c")

    def equal(self, a: Any, b: Any) -> None:
        """a = b: numbers, bits, or arrays and sequences of them, item by item. One constraint a number or bit."""
        if isinstance(a, Bits | list | tuple) or isinstance(b, Bits | list | tuple):
            if not (hasattr(a, "__len__") and hasattr(b, "__len__") and len(a) == len(b)):
                raise self.error("equal takes two arrays of the same length, or two single values")
            for one, other in zip(a, b, strict=True):
                self.equal(one, other)
            return
        difference = (Num(self, combination(self, a)) - Num(self, combination(self, b))).terms
        if Num(self, difference).constant == 0:
            return
        if Num(self, difference).constant is not None:
            raise self.error("two constants that differ are required to be equal")
        self.row(difference, {ONE: 1}, {}, "two values that must be equal differ")

    # --- gadgets --------------------------------------------------------------------------------

    def call(self, gadget: Gadget[Returned], *inputs: Any) -> Returned:
        """What a gadget returns for the inputs."""
        with self.scope(self.checked(gadget).name):
            return gadget(self, *inputs)

    def map(self, gadget: Gadget[Any], *inputs: Any) -> Batch:
        """What a gadget returns for each value of batches, which have one length; other inputs are the same in all."""
        count = self.common_length(inputs)
        return Batch.of(self, [self.call(gadget, *items(inputs, i)) for i in range(count)])

    def scan(self, gadget: Gadget[Any], carry: Any, *inputs: Any, count: int | None = None) -> Any:
        """A chain: the gadget takes what it returned for the value before, and a value of each batch.

        `gadget(cs, carry, *values)` returns the next carry; the result is the last one. `count` says how often where
        no input is a batch.
        """
        for i in range(self.common_length(inputs, count)):
            carry = self.call(gadget, carry, *items(inputs, i))
        return carry

    def batch(self, values: Sequence[Any]) -> Batch:
        """Values of one shape as a batch."""
        return Batch.of(self, values)

    def require_own(self, *values: Any) -> None:
        """Raises CircuitError for a wire of another system, also within lists and tuples.

        Gadgets that read the wires of their inputs need it: a column means another wire in another system.
        """
        for value in values:
            if isinstance(value, list | tuple):
                self.require_own(*value)
            elif isinstance(value, Wired) and value.cs is not self:
                raise self.error("a wire of another constraint system, or of another gadget, is used here")

    def checked(self, gadget: Gadget[Returned]) -> Gadget[Returned]:
        """The gadget. Raises CircuitError for another thing."""
        if not isinstance(gadget, Gadget):
            name = getattr(gadget, "__name__", "")
            what = f"{name}, which is a function without it" if name else f"a value of type {type(gadget).__name__}"
            raise self.error(f"call, map and scan take functions with @gadget; found {what}")
        return gadget

    def common_length(self, inputs: Sequence[Any], count: int | None = None) -> int:
        """The length of the batches among the inputs; `count` where there is none."""
        lengths = {len(value) for value in inputs if isinstance(value, Batch)} | (
            {count} if count is not None else set()
        )
        if len(lengths) != 1:
            found = " and ".join(map(str, sorted(lengths))) or "no batch"
            raise self.error(f"batches of one length are needed among the inputs; found {found}")
        (length,) = lengths
        if length < 1:
            raise self.error("a batch has at least one value; found none")
        return length


def items(inputs: Sequence[Any], i: int) -> list[Any]:
    """The inputs of instance i."""
    return [value[i] if isinstance(value, Batch) else value for value in inputs]


Returned = TypeVar("Returned", covariant=True)


MAX_DEPTH = 128
"""Gadgets that are called in one another, at most."""


class Gadget(Generic[Returned]):
    """A function `f(cs, *inputs)` that can be recorded as a template. Called directly, it is recorded in place.

    `name` is what profiles and messages call it.
    """

    def __init__(self, function: Callable[..., Returned]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, cs: Builder, *inputs: Any) -> Returned:
        if not isinstance(cs, Builder):
            raise CircuitError(self.name, f"its first argument is the circuit's cs; found a {type(cs).__name__}")
        cs.require_own(inputs)
        # Counted here: the interpreter's own limit can be set so high that the stack ends before it.
        if cs.depth >= MAX_DEPTH:
            raise RecursionError
        cs.depth += 1
        try:
            return self.function(cs, *inputs)
        finally:
            cs.depth -= 1

    def __repr__(self) -> str:
        return f"<gadget {self.name}>"
