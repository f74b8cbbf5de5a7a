"""Poseidon: circom's and neptune's values, and the counts of neptune's circuit."""

from __future__ import annotations

import pytest
from evaluation import satisfied

from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_neptune import neptune_poseidon
from snarkline.circuit.gadgets.poseidon_parameters import circom_parameters, neptune_parameters
from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.errors import CircuitError

# circomlibjs, test/poseidon.js ([1, 2] and [1, 2, 3, 4]); [1] is in the same author's poseidon-lite.
CIRCOM = {
    (1,): 18586133768512220936620570745912940619677854269274689475585506675881198879027,
    (1, 2): 7853200120776062878684798364095072458815029376092732009249414926327459813530,
    (1, 2, 3, 4): 18821383157269793795438455681495246036402687001665670618754263018637548127333,
}
# neptune, src/poseidon.rs, hash_values: inputs 0, 1, ..., arity - 1 with the tag of a Merkle tree.
NEPTUNE = {
    2: 0x396508D75E76A56B739E0FD902EFE161A6FBA9339D05A69D2E203C369A02E7FF,
    4: 0x58A54B10A9E5848A00DB3C6579229399FB6B4605BF1327EC019814FF6662075D,
    8: 0x2394611DA3A5DE5512010042116770774B682E9D9CC4AED92A9934F56D38A5E6,
    11: 0x0C0FC1B2E5227F286CA537E232EBE87A09F3DCD8CCB08FC1CEE3BBC32B693163,
}
# Constraints of neptune's circuit (src/circuit.rs, test_poseidon_hash; 11 follows from the formula that the test
# checks) and the entries of A, B, C, from a model that reproduces the published totals of Filecoin's circuits.
NEPTUNE_COUNTS = {
    2: (311, 2119, 313, 386),
    4: (377, 2573, 381, 467),
    8: (505, 3598, 513, 624),
    11: (598, 4462, 609, 738),
}


@pytest.mark.parametrize("inputs", CIRCOM)
def test_circom_values(inputs: tuple[int, ...]) -> None:
    assert circom_parameters(len(inputs)).hash(list(inputs)) == CIRCOM[inputs]
    cs = ConstraintSystem(BN254)
    cs.output(cs.call(poseidon, [cs.alloc() for _ in inputs]))
    assert satisfied(cs.finish(), inputs)[1] == CIRCOM[inputs]


@pytest.mark.parametrize("inputs", [(0, 0), (BN254.r - 1, 1 << 253)])
def test_edges_against_the_plain_permutation(inputs: tuple[int, int]) -> None:
    cs = ConstraintSystem(BN254)
    x, y = cs.alloc(), cs.alloc()
    cs.output(cs.call(poseidon, [x, y]))
    cs.output(cs.call(poseidon, [x, x]))  # one wire twice: a template of its own
    cs.output(cs.call(poseidon, [x, cs.constant(7)]))
    hash_ = circom_parameters(2).hash
    x_value, y_value = inputs
    r1cs = cs.finish()
    wires = satisfied(r1cs, inputs)
    assert wires[1:4] == [hash_([x_value, y_value]), hash_([x_value, x_value]), hash_([x_value, 7])]
    assert len({run.template for run in r1cs.runs if r1cs.template_of(run).name == "poseidon"}) == 3


@pytest.mark.parametrize("arity", NEPTUNE)
def test_neptune(arity: int) -> None:
    cs = ConstraintSystem(BLS12_381)
    numbers = [cs.alloc() for _ in range(arity)]
    cs.output(cs.call(neptune_poseidon, numbers))
    if arity <= 4:  # the plain form, as a second computation of the same hash
        cs.output(cs.call(poseidon, numbers))
    r1cs = cs.finish()
    template = next(t for t in r1cs.templates if t.name == "neptune_poseidon")
    counts = (template.n_rows, *(matrix.n_entries for matrix in (template.a, template.b, template.c)))
    assert counts == NEPTUNE_COUNTS[arity]
    assert template.n_aux == template.n_rows
    wires = satisfied(r1cs, list(range(arity)))
    assert wires[1 : 1 + r1cs.n_outputs] == [NEPTUNE[arity]] * r1cs.n_outputs


# Round numbers and constants: neptune, parameters/ and src/round_constants.rs.
@pytest.mark.parametrize(
    ("arity", "first", "last"),
    [
        (
            2,
            0x669F064BFA3AE17A23BD51861DBB4A24501EAC92A2758B36A7320A009D6ED3D8,
            0x60DFBFA5D5DD06351A917A05466E5884ED12E38EC24D5BB80BE0ABE065395E5C,
        ),
        (
            11,
            0x1F6C9576E648B5047399BFC5F38902E0D506F18E0F3AB77DE6DE096BD089BCE4,
            0x4543CA937FF30A73DB73C95CF11B2F641C744CC5D6A08D197C29EA4E2AAB6A16,
        ),
    ],
)
def test_round_constants(arity: int, first: int, last: int) -> None:
    constants = neptune_parameters(arity).constants
    assert (constants[0], constants[-1]) == (first, last)


def test_custom_tag() -> None:
    cs = ConstraintSystem(BLS12_381)
    cs.output(cs.call(neptune_poseidon, [cs.alloc(), cs.alloc()], 1 << 40))
    # Custom tag 1, inputs 1 and 2, as EmptySectorUpdate hashes.
    expected = 0x702C879BAFDB05AB3018F4FBC1D4C74854AF845CDBB6BB53E40D5F9CB5E92F3C
    assert satisfied(cs.finish(), [1, 2])[1] == expected


def test_arities_that_nobody_defined() -> None:
    cs = ConstraintSystem(BN254)
    with pytest.raises(CircuitError, match=r"poseidon takes a list of numbers, as in .*; found a Num"):
        cs.call(poseidon, cs.alloc())
    with pytest.raises(CircuitError, match=r"poseidon: no Poseidon for 17 inputs over bn254"):
        cs.call(poseidon, [cs.alloc() for _ in range(17)])
