"""The compiled programs and products against the naive interpreter and against flat matrices, byte for byte."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from handmade_templates import Recorder, Row, system
from test_structured import inputs, small

from snarkline.backend.naive_program import evaluate_naively
from snarkline.circuit.builder import Builder
from snarkline.circuit.gadgets.merkle import merkle_root, poseidon_level
from snarkline.circuit.gadgets.poseidon import poseidon
from snarkline.circuit.gadgets.poseidon_parameters import parameters_for
from snarkline.circuit.gadgets.sha256 import initial_state, sha256_compress
from snarkline.circuit.recording import gadget
from snarkline.circuit.system import ConstraintSystem
from snarkline.circuit.values import Bits, Num
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.vector import FrVector
from snarkline.errors import FormatError, MismatchError
from snarkline.native import core
from snarkline.r1cs.program import Op
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_native import compile_system
from snarkline.r1cs.structured_witness import StructuredWitness, run_program
from snarkline.r1cs.template import Template

SETS = [isa for isa in ("portable", "adx", "ifma") if isa in core.instruction_sets()]
COUNTS = [1, 2, 63, 64, 65, 255, 257]


def lengths() -> Iterator[str]:
    """The vector lengths of this processor."""
    for name in ("base", "avx2", "avx512"):
        try:
            core.StructuredSystem("bn254", 1, 0, "auto", name)
        except ValueError:
            continue
        yield name


LANES = list(lengths())


@cache
def compiled(s: StructuredR1CS, isa: str = "auto", lanes: str = "auto") -> core.StructuredSystem:
    return compile_system(s, isa, lanes)


def run_with(s: StructuredR1CS, given: list[int], isa: str = "auto", lanes: str = "auto") -> StructuredWitness:
    """`run_program` with one build of the kernels."""
    native = compiled(s, isa, lanes)
    n_bits, n_wides, _ = native.sizes
    junk = np.uint64(0xDEADBEEFDEADBEEF)  # memory comes as it is
    arrays = np.zeros((s.n_public + 1, 4), np.uint64), np.full(n_bits, junk), np.full((n_wides, 4), junk)
    values = FrVector.from_ints(s.curve, given).limbs
    assert native.give(2, *arrays, s.given, s.bits.view(np.uint8), values) == -1
    native.run(2, *arrays)
    return StructuredWitness(s, *arrays)


def products(s: StructuredR1CS, w: StructuredWitness, isa: str = "auto", lanes: str = "auto") -> np.ndarray:
    """a, b, c as one array, evaluated both ways."""
    native = compiled(s, isa, lanes)
    stored, expanded = np.zeros((3, s.n_constraints, 4), np.uint64), np.ones((3, s.n_constraints, 4), np.uint64)
    native.evaluate(2, [w.arrays], [tuple(stored)])
    codes, sums = np.zeros((3, s.n_constraints), np.uint8), np.zeros((native.sizes[2], 4), np.uint64)
    native.evaluate_codes(2, *w.arrays, codes, sums)
    native.expand_codes(2, codes, sums, *expanded)
    assert np.array_equal(stored, expanded)
    return stored


def flat_products(s: StructuredR1CS, wires: list[int]) -> np.ndarray:
    flat, executor = s.flatten().matrices, core.Executor(1)
    assert flat.c is not None
    out = np.zeros((3, s.n_constraints, 4), np.uint64)
    values = FrVector.from_ints(s.curve, wires).limbs
    for to, m in zip(out, (flat.a, flat.b, flat.c), strict=True):
        executor.spmv(s.curve.name, to, m.row_start, m.column, m.value, m.coefficients.limbs, values, "canonical")
    return out


def agree(
    s: StructuredR1CS, given: list[int], *, satisfied: bool = True, isa: str = "auto", lanes: str = "auto"
) -> None:
    """Program, expansion, products and check against the naive ones."""
    wires = evaluate_naively(s, given)
    w, native = run_with(s, given, isa, lanes), compiled(s, isa, lanes)
    expanded = np.zeros((s.n_wires, 4), np.uint64)
    native.expand(2, *w.arrays, expanded)
    assert np.array_equal(expanded, FrVector.from_ints(s.curve, wires).limbs)
    assert w.values(range(len(w))) == wires
    assert np.array_equal(products(s, w, isa, lanes), flat_products(s, wires))
    found = native.first_violation(2, *w.arrays)
    flat = s.flatten().matrices
    assert flat.c is not None
    dots = ([sum(v * wires[i] for i, v in m.row(k)) for k in range(s.n_constraints)] for m in (flat.a, flat.b, flat.c))
    bad = [k for k, (x, y, z) in enumerate(zip(*dots, strict=True)) if (x * y - z) % s.curve.r]
    assert found == (bad[0] if bad else -1)
    assert not (satisfied and bad)


def values_for(s: StructuredR1CS, rng: random.Random) -> list[int]:
    r = s.curve.r
    edges = (0, 1, r - 1, 2, (1 << 64) - 1, 1 << 128, rng.randrange(r))
    return [rng.randrange(2) if bit else rng.choice(edges) for bit in s.bits.tolist()]


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("count", COUNTS)
def test_bits_and_elements(curve: Curve, count: int) -> None:
    s = small(curve, count)
    agree(s, values_for(s, random.Random(count)))


def anything(curve: Curve, seed: int, *, bits_only: bool = False) -> Template:
    """Six bit ports and, unless `bits_only`, two element ports; every instruction, with negations and constants.

    Rows are of all kinds: few and many bits, large coefficients, mixtures. Only the constraints that are solved hold.
    """
    rng = random.Random(seed)
    r = Recorder(curve, [True] * 6 + [False] * (0 if bits_only else 2))
    large = (curve.r - 1, 1 << 253, curve.r >> 1, rng.randrange(curve.r), (1 << 200) - (1 << 70))

    def literal() -> int:
        bits = [column for column, bit in enumerate(r.bits) if bit and column not in fresh]
        return rng.choice([0, 1] + [2 * column + negated for column in bits for negated in (0, 1)])

    def combination() -> Row:
        columns = [column for column in range(len(r.bits)) if column not in fresh]
        chosen = rng.sample(columns, min(len(columns), rng.choice([0, 1, 2, 5, 40])))
        kinds = ([1, -1], [1, -1, 2, -4, 3], [1 << rng.randrange(250)], large)
        return {column: rng.choice(rng.choice(kinds)) for column in chosen}

    fresh: set[int] = set()
    for step in range(60):
        op = rng.choice(list(Op)[:6] if bits_only else list(Op))
        fresh = set()
        if op in (Op.XOR, Op.AND, Op.CH, Op.MAJ, Op.COPY):
            operands = [literal() for _ in range({Op.CH: 3, Op.MAJ: 3, Op.COPY: 1}.get(op, 2))]
            r.emit(op, r.aux(bit=True), *operands)
        elif op is Op.ADD:
            n, k, m = rng.randrange(1, 40), rng.randrange(1, 9), rng.randrange(1, 34)
            operands = [literal() for _ in range(k * m)]
            r.emit(op, n, k, m, *(r.aux(bit=True) for _ in range(n)), *operands)
        elif op is Op.BITS:
            row, n = r.combination(combination()), rng.choice([1, 7, 64, 65, 254])
            r.emit(op, n, row, *(r.aux(bit=True) for _ in range(n)))
        elif op is Op.SOLVE:
            a, b, rest = combination(), combination(), combination()
            d = r.aux(bit=False)
            r.emit(op, d, r.enforce(a, b, rest | {d: rng.choice([1, -1, 5, large[3]])}))
        else:
            rows = [r.combination(combination()) for _ in range(2 if op is Op.DIVIDE else 1)]
            r.emit(op, r.aux(bit=op is Op.IS_ZERO), *rows)
        if step % 2:
            fresh = set()
            r.enforce(combination(), combination(), combination())
    return r.template("anything")


def instances(curve: Curve, seed: int, count: int, *, bits_only: bool = False) -> StructuredR1CS:
    """`count` instances of `anything`; its bits overlap from instance to instance."""
    template = anything(curve, seed, bits_only=bits_only)
    n_bits = 2 * count + 6
    runs = [
        (inputs(curve, n_bits, count + 1), 1, [], []),
        (template, count, [1 + j for j in range(6)] + [1 + n_bits, 2 + n_bits][: template.n_ports - 6], None),
    ]
    base, stride = np.array(runs[1][2]), np.array([2] * 6 + [1] * (template.n_ports - 6))
    runs[1] = (template, count, base.tolist(), stride.tolist())
    n = n_bits + count + 1
    return system(curve, 0, runs, list(range(1, 1 + n)), [True] * n_bits + [False] * (count + 1))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 3, 66])
def test_every_instruction_and_kind_of_row(seed: int, count: int) -> None:
    s = instances(list(CURVES.values())[seed % 2], seed, count)
    agree(s, values_for(s, random.Random(seed)), satisfied=False)


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("bits_only", [False, True])
def test_every_build(isa: str, lanes: str, bits_only: bool) -> None:
    for curve in CURVES.values():
        s = instances(curve, 77 + bits_only, 70, bits_only=bits_only)
        agree(s, values_for(s, random.Random(5)), satisfied=False, isa=isa, lanes=lanes)


@pytest.mark.parametrize("count", COUNTS)
def test_bits_in_long_batches(count: int) -> None:
    s = instances(BN254, 1000 + count, count, bits_only=True)
    agree(s, values_for(s, random.Random(count)), satisfied=False)


@pytest.mark.parametrize("count", [1, 2, 65, 130])
@pytest.mark.parametrize("wide", [False, True])
def test_chains_without_native(count: int, wide: bool) -> None:
    """Each instance reads the one before: x -> x y + x, and bits (a, b) -> (b xor not c, ...)."""
    curve = BN254
    r = Recorder(curve, [True, True, *([False, False] if wide else [])])
    d = r.xor(2, 5)
    if wide:
        r.product({3: 1, d: 1}, {4: 1, 0: 1})
    template = r.template("step")
    n_aux = template.n_aux
    given = inputs(curve, count + 1, count + 1)
    first = 1 + 2 * (count + 1)
    # Instance 0 stands alone, so that the chain can be arithmetic.
    start = [1, 2, *([count + 2, count + 3] if wide else [])]
    runs = [(given, 1, [], []), (template, 1, start, [0] * len(start))]
    if count > 1:
        base = [first, 3, *([first + 1, count + 4] if wide else [])]
        runs.append((template, count - 1, base, [n_aux, 1, *([n_aux, 1] if wide else [])]))
    n = 2 * (count + 1)
    s = system(curve, 0, runs, list(range(1, 1 + n)), [True] * (count + 1) + [False] * (count + 1))
    agree(s, values_for(s, random.Random(count)))


def test_wiring_by_tables() -> None:
    """Ports from public wires, from loose wires and from several runs, backwards and across."""
    curve, rng, count = BLS12_381, random.Random(3), 67
    first = small(curve, count)
    template = first.templates[1]
    n_bits = count + 1
    bit_wires = [*range(2, 2 + n_bits), *(first.runs[1].first_wire + 3 * i for i in range(count))]
    elements = [
        1,
        *range(2 + n_bits, 2 + n_bits + count),
        *(first.runs[1].first_wire + 3 * i + 1 for i in range(count)),
    ]
    table = np.array([[*rng.sample(bit_wires, 2), rng.choice(elements)] for _ in range(count)])
    run = first.runs[1]
    runs = [
        (first.templates[0], 1, [], []),
        (template, count, run.base.tolist(), run.stride.tolist()),
        (template, count, table, None),
        (template, count, [bit_wires[-1], 2 + count, elements[-1]], [-3, -1, -3]),
    ]
    s = system(curve, 1, runs, first.given.tolist(), first.bits.tolist())
    agree(s, values_for(s, rng))


def test_outputs() -> None:
    """Public wires that programs write: an element and a bit, read again by a later run."""
    curve = BN254
    r = Recorder(curve, [False, True, True])
    r.emit(Op.LINEAR, 1, r.combination({3: 5, 0: 7}))
    r.emit(Op.COPY, 2, 7)
    r.enforce({3: 5, 0: 7}, {0: 1}, {1: 1})
    s = system(
        curve,
        2,
        [
            (inputs(curve, 1, 0), 1, [], []),
            (r.template("out"), 1, [1, 2, 3], [0, 0, 0]),
            (small(curve).templates[1], 1, [2, 3, 1], [0] * 3),
        ],
        [3],
        [True],
    )
    for bit in (0, 1):
        agree(s, [bit])
        assert run_with(s, [bit]).public(2) == (7 + 5 * bit, 1 - bit)


@gadget
def block(cs: Builder) -> Bits:
    return cs.alloc_bits(512)


@cache
def sha256_chain(count: int) -> StructuredR1CS:
    """A chain of compressions with the last state's words as outputs."""
    cs = ConstraintSystem(BLS12_381)
    for word in cs.scan(sha256_compress, initial_state(cs), cs.batch([cs.call(block) for _ in range(count)])):
        cs.output(word.num())
    return cs.finish()


@pytest.mark.parametrize(("count", "lanes"), [(2, "auto"), (66, "auto"), *((130, lanes) for lanes in LANES)])
def test_sha256_chains(count: int, lanes: str) -> None:
    """Blocks by the native compression function and wide, against hashlib."""
    s = sha256_chain(count)
    message = random.Random(count).randbytes(64 * count - 9)
    padded = message + b"\x80" + (8 * len(message)).to_bytes(8, "big")
    given = np.unpackbits(np.frombuffer(padded, np.uint8)).tolist()
    w = run_with(s, given, lanes=lanes)
    digest = b"".join(word.to_bytes(4, "big") for word in w.public(8))
    assert digest == hashlib.sha256(message).digest()
    assert compiled(s, "auto", lanes).first_violation(2, *w.arrays) == -1
    if count == 2:
        wires = w.values(range(len(w)))
        assert np.array_equal(products(s, w), flat_products(s, wires))


def test_sha256_native_is_the_program() -> None:
    """The same chain with the native left out: instance by instance, by the generic program."""
    cs = ConstraintSystem(BN254)
    blocks = cs.batch([cs.alloc_bits(512) for _ in range(4)])
    cs.scan(sha256_compress, initial_state(cs), blocks)
    s = cs.finish()
    plain = replace(s, templates=tuple(replace(t, native=None) for t in s.templates))
    given = values_for(s, random.Random(8))
    one, other = (np.zeros((s.n_wires, 4), np.uint64) for _ in range(2))
    compiled(s).expand(2, *run_with(s, given).arrays, one)
    compiled(plain).expand(2, *run_with(plain, given).arrays, other)
    assert np.array_equal(one, other)


def test_given_values_are_checked() -> None:
    s = small(BN254, 3)
    good = values_for(s, random.Random(0))
    for index, value in ((1, 2), (4, 1 << 200), (5, BN254.r), (0, (1 << 256) - 1)):
        limbs = FrVector.from_ints(BN254, good)
        limbs.limbs[index] = [value >> (64 * k) & ((1 << 64) - 1) for k in range(4)]
        with pytest.raises(FormatError, match=f"given value {index} "):
            run_program(s, limbs)
    with pytest.raises(MismatchError, match="takes 8"):
        run_program(s, FrVector.from_ints(BN254, good[1:]))
    with pytest.raises(MismatchError, match="bn254"):
        run_program(s, FrVector.from_ints(BLS12_381, good))
    assert run_program(s, FrVector.from_ints(BN254, good), threads=1).value(1) == good[0]


@pytest.mark.parametrize(("curve", "arity"), [(BN254, 1), (BN254, 2), (BN254, 5), (BLS12_381, 2), (BLS12_381, 8)])
def test_poseidon_chains(curve: Curve, arity: int) -> None:
    """state = Poseidon(state, ...): natively and then wide, against the parameters' own hash."""

    @gadget
    def step(cs: Builder, state: Num, rest: list[Num]) -> Num:
        return poseidon(cs, [state, *rest])

    count = 70
    cs = ConstraintSystem(curve)
    start = cs.alloc()
    rest = cs.batch([[cs.alloc() for _ in range(arity - 1)] for _ in range(count)])
    cs.output(cs.scan(step, start, rest) if arity > 1 else cs.scan(poseidon_of_one, start, count=count))
    s = cs.finish()
    given = values_for(s, random.Random(arity))
    state, parameters = given[0], parameters_for(curve, arity)
    for i in range(count):
        state = parameters.hash([state, *given[1 + i * (arity - 1) : 1 + (i + 1) * (arity - 1)]])
    w = run_with(s, given)
    assert w.public(1) == (state,)
    assert compiled(s).first_violation(2, *w.arrays) == -1
    plain = replace(s, templates=tuple(replace(t, native=None) for t in s.templates))
    assert run_with(plain, given).values(range(len(w))) == w.values(range(len(w)))


@gadget
def poseidon_of_one(cs: Builder, state: Num) -> Num:
    return poseidon(cs, [state])


def test_natives_inside_a_template_are_left_to_the_program() -> None:
    """The hash's inputs are wires of the level, which its program must compute first."""
    cs = ConstraintSystem(BN254)
    siblings = [cs.alloc() for _ in range(5)]
    cs.output(merkle_root(cs, poseidon_level, cs.alloc(), siblings, cs.alloc_bits(5)))
    s = cs.finish()
    given = values_for(s, random.Random(2))
    agree(s, given)


def test_several_witnesses_in_one_pass() -> None:
    s = small(BN254, 70)
    witnesses = [run_with(s, values_for(s, random.Random(k))) for k in range(3)]
    out = [tuple(np.zeros((3, s.n_constraints, 4), np.uint64)) for _ in witnesses]
    StructuredWitness.products_of(witnesses, out, threads=2)
    for witness, products_ in zip(witnesses, out, strict=True):
        assert np.array_equal(np.array(products_), flat_products(s, witness.values(range(len(witness)))))
    assert not np.array_equal(np.array(out[0]), np.array(out[1]))
    with pytest.raises(MismatchError, match="one system"):
        StructuredWitness.products_of([*witnesses, run_with(small(BN254, 70), values_for(s, random.Random(0)))], out)
    StructuredWitness.products_of([], [])


def test_the_first_runs_alone() -> None:
    """Their values are those in front of a whole witness; wires of later runs are refused."""
    s = small(BN254, 70)
    given = FrVector.from_ints(BN254, values_for(s, random.Random(4)))
    whole = run_program(s, given, threads=1)
    for n_runs in (1, 2):
        first = run_program(s, given, n_runs=n_runs, threads=1)
        assert (len(first.bits), len(first.wides)) == s.native.sizes_of(n_runs)
        assert np.array_equal(first.publics, whole.publics)
        assert np.array_equal(first.bits[1:], whole.bits[1 : len(first.bits)])
        assert np.array_equal(first.wides, whole.wides[: len(first.wides)])
    assert s.native.sizes_of(-1) == s.native.sizes_of(2) == s.native.sizes[:2]
    with pytest.raises(ValueError, match="those of the runs"):
        run_program(s, given, n_runs=0, threads=1)
