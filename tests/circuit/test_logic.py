"""Boolean operations against Python's, for every combination of variables, negations, aliases and constants."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from evaluation import satisfied

from snarkline.circuit import logic
from snarkline.circuit.builder import Builder
from snarkline.circuit.recorder import FALSE, TRUE
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.values import Bit
from snarkline.circuit.words import Word
from snarkline.curves.curve import BN254
from snarkline.errors import CircuitError

OPERATIONS: dict[str, tuple[Callable[..., int], Callable[..., int], int]] = {
    "xor": (logic.xor, lambda a, b: a ^ b, 2),
    "and": (logic.and_, lambda a, b: a & b, 2),
    "or": (logic.or_, lambda a, b: a | b, 2),
    "ch": (logic.ch, lambda a, b, c: b if a else c, 3),
    "maj": (logic.maj, lambda a, b, c: int(a + b + c >= 2), 3),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_all_kinds_of_operands(name: str) -> None:
    operation, expected, arity = OPERATIONS[name]
    cs = ConstraintSystem(BN254)
    wires = [cs.alloc_bit().literal for _ in range(arity)]
    kinds = [TRUE, FALSE, *wires, *(wire ^ 1 for wire in wires)]
    operands = list(product(kinds, repeat=arity))
    for literals in operands:
        cs.output(Bit(cs, operation(cs, *literals)))
    r1cs = cs.finish()
    for values in product((0, 1), repeat=arity):
        of = {TRUE: 1, FALSE: 0}
        of |= dict(zip(wires, values, strict=True))
        of |= {wire ^ 1: 1 - value for wire, value in zip(wires, values, strict=True)}
        outputs = satisfied(r1cs, values)[1 : 1 + len(operands)]
        assert outputs == [expected(*(of[literal] for literal in literals)) for literals in operands]


@pytest.mark.parametrize(
    ("operands", "n_constraints"),
    # bellman's sha256_ch and sha256_maj: variables cost 1 and 2, constants make an `and` or nothing of it.
    [
        ("vvv", (1, 2)),
        ("0vv", (0, 1)),
        ("v0v", (1, 1)),
        ("vv1", (1, 1)),
        ("1vv", (1, 1)),
        ("v11", (0, 0)),
        ("011", (0, 0)),
    ],
)
def test_folding(operands: str, n_constraints: tuple[int, int]) -> None:
    found = []
    for operation in (logic.ch, logic.maj):
        cs = Builder(BN254, "", 3, frozenset({1, 2, 3}))
        operation(cs, *(2 * (i + 1) if kind == "v" else FALSE ^ int(kind) for i, kind in enumerate(operands)))
        found.append(len(cs._a))
    assert tuple(found) == n_constraints


def test_sums_that_do_not_fit_a_constraint_are_refused() -> None:
    """Above 253 places a sum would be compared modulo r, and another one would pass."""

    class Wide(Word):
        WIDTH = 256

    cs = ConstraintSystem(BN254)
    with pytest.raises(CircuitError, match="253 places"):
        Wide.constant(cs, 5).plus(Wide(cs, cs.alloc_bits(256).literals))
