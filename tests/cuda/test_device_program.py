"""Witness programs on an emulated device, against the host's."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulation import EmulatedDevice
from handmade_templates import Recorder, Row, system
from test_device_structured import domain_of
from test_structured import inputs
from test_structured_native import instances, sha256_chain
from test_structured_prover import make_key, merkle

import snarkline.backend.cuda.program
from snarkline.backend.cpu import CpuBackend
from snarkline.backend.cuda import CudaBackend
from snarkline.backend.cuda.program import DeviceProgram, device_runs
from snarkline.circuit.gadgets.merkle import merkle_tree, poseidon_pair
from snarkline.circuit.system import ConstraintSystem
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.vector import FrVector
from snarkline.errors import BudgetError, DeviceWarning, FormatError, UnsatisfiedError
from snarkline.groth16.prover import Prover
from snarkline.memory import Arena
from snarkline.r1cs.check import first_violation
from snarkline.r1cs.program import Op
from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.structured_form import SystemForm
from snarkline.r1cs.structured_matrices import StructuredMatrices
from snarkline.r1cs.structured_witness import GivenValues, StructuredWitness


def steps(curve: Curve, seed: int) -> Recorder:
    """Three bit ports and two element ports; every instruction over elements, their combinations of all kinds."""
    rng, r = random.Random(seed), Recorder(curve, [True] * 3 + [False] * 2)
    fresh: set[int] = set()
    large = (curve.r - 1, 1 << 253, curve.r >> 1, rng.randrange(curve.r), (1 << 200) - (1 << 70))

    def combination() -> Row:
        columns = [column for column in range(len(r.bits)) if column not in fresh]
        chosen = rng.sample(columns, min(len(columns), rng.choice([0, 1, 1, 2, 3, 5, 40])))
        kinds = ([1, -1], [1, -1, 2, -4, 3], [1 << rng.randrange(250)], large)
        return {column: rng.choice(rng.choice(kinds)) for column in chosen}

    for step in range(40):
        op = rng.choice([Op.SOLVE, Op.SOLVE, Op.LINEAR, Op.INVERSE, Op.IS_ZERO, Op.BITS, Op.DIVIDE])
        fresh = set()
        if op is Op.SOLVE:
            a, c = combination(), combination()
            b = a if step % 3 == 0 else combination()
            d = r.aux(bit=False)
            r.enforce(a, b, c | {d: rng.choice([1, -1, 7, *large])})
            r.emit(op, d, len(r.rows) - 1)
        elif op is Op.BITS:
            row, n = r.combination(combination()), rng.choice([1, 5, 70, 256])
            d = [r.aux(bit=True) for _ in range(n)]
            r.emit(op, n, row, *d)
        else:
            rows = [r.combination(combination()) for _ in range(2 if op is Op.DIVIDE else 1)]
            r.emit(op, r.aux(bit=op is Op.IS_ZERO), *rows)
    return r


def of_steps(curve: Curve, seed: int, count: int, *, table: bool = False) -> StructuredR1CS:
    """Given bits and elements; `count` instances over them; `count` over those, in reverse order by a table."""
    one, other = steps(curve, seed).template("one"), steps(curve, seed + 100).template("other")
    n = count + 3
    bits = [i for i, bit in enumerate(one.bits[one.first_aux :]) if bit][-1:] or [0]
    elements = [i for i, bit in enumerate(one.bits[one.first_aux :]) if not bit]
    start = 1 + 2 * n
    base = [1, 2, start + bits[0] if bits else 3, 1 + n, start + elements[-1]]
    stride = [1, 1, one.n_aux, 1, one.n_aux]
    rows = [[b + i * k for b, k in zip(base, stride, strict=True)] for i in reversed(range(count))]
    runs = [
        (inputs(curve, n, n), 1, [], []),
        (one, count, [1, 2, 3, 1 + n, 2 + n], [1, 1, 1, 1, 1]),
        (other, count, rows if table else base, None if table else stride),
    ]
    return system(curve, 0, runs, list(range(1, 1 + 2 * n)), [True] * n + [False] * n)


def tree(curve: Curve, leaves: int) -> StructuredR1CS:
    cs = ConstraintSystem(curve)
    cs.output(merkle_tree(cs, poseidon_pair, cs.batch([cs.alloc() for _ in range(leaves)])))
    return cs.finish()


def given_for(s: StructuredR1CS, seed: int, every_bit: int | None = None) -> GivenValues:
    rng = random.Random(seed)
    edges = (0, 1, s.curve.r - 1, 1 << 128, rng.randrange(s.curve.r))
    bit = (lambda: rng.randrange(2)) if every_bit is None else (lambda: every_bit)
    values = [bit() if is_bit else rng.choice(edges) for is_bit in s.bits.tolist()]
    return GivenValues(s, FrVector.from_ints(s.curve, values))


def run_on(device: CudaBackend, given: GivenValues) -> StructuredWitness:
    w = device.run_program(given, threads=1, arena=Arena())
    assert w is not None
    return w


def check(device: CudaBackend, cpu: CpuBackend, given: GivenValues) -> None:
    """All wires, a, b, c and the public values are those of the host's program, and so is what the check finds."""
    expected, ours = given.run(threads=1), run_on(device, given)
    assert device._device.owns(ours.bits) and np.array_equal(ours.publics, expected.publics)
    domain = domain_of(given.system)
    mine, theirs = device.evaluate_structured(ours, domain), cpu.evaluate_structured(expected, domain)
    for x, y in zip(mine, theirs, strict=True):
        assert np.array_equal(device._on_host(x).limbs, y.limbs)
    assert device.rows_hold(*mine[1:]) is (first_violation(given.system, expected, threads=1) is None)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device takes runs of any length, and is full with a few warps."""
    monkeypatch.setattr(snarkline.backend.cuda.program, "FEW", 0)
    monkeypatch.setattr(snarkline.backend.cuda.program, "BUSY", 128)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 33, 65])
def test_every_step(emulated: CudaBackend, cpu: CpuBackend, seed: int, count: int) -> None:
    s = of_steps(list(CURVES.values())[seed % 2], seed, count)
    assert device_runs(s) == range(1, 3)
    check(emulated, cpu, given_for(s, seed))


def test_wiring_by_a_table(emulated: CudaBackend, cpu: CpuBackend) -> None:
    check(emulated, cpu, given_for(of_steps(BN254, 4, 35, table=True), 1))


def powers(curve: Curve, count: int) -> StructuredR1CS:
    """Long sums of elements that are given, and powers of them, some of which are steps of a fifth power."""
    n = 66
    r = Recorder(curve, [False] * n)

    def product(a: Row, b: Row, rest: Row, sign: int = 1) -> int:
        d = r.aux(bit=False)
        r.emit(Op.SOLVE, d, r.enforce(a, b, rest | {d: sign}))
        return d

    for k, size in enumerate([1, 2, 3, 31, 32, 33, 63, 64, 65, 66]):
        x: Row = {1 + i: 1 if k % 2 else (-1) ** i for i in range(size)} | {0: k}
        second = product(x, x, {})
        fourth = product({second: 1}, {second: 1}, {})
        product(*((x, {fourth: 1}) if k % 3 else ({fourth: 1}, x)), {})
        for rest, sign, odd in (({1: 1}, 1, 1), ({}, -1, 1), ({}, 1, 2)):  # almost
            second = product(x, x, rest, sign)
            fourth = product({second: 1}, {second: odd}, {})
            product({fourth: 1}, {2: 1}, {})
    runs = [(inputs(curve, 0, n + count), 1, [], []), (r.template("powers"), count, range(1, 1 + n), [1] * n)]
    return system(curve, 0, runs, list(range(1, 1 + n + count)), [False] * (n + count))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("value", [None, 0, -1])
@pytest.mark.parametrize("count", [3, 35])
def test_long_sums_and_fifth_powers(
    emulated: CudaBackend, cpu: CpuBackend, curve: Curve, value: int | None, count: int
) -> None:
    """Of r - 1 everywhere as well: the largest sums. Instances with 32 threads each, and with fewer."""
    s = powers(curve, count)
    form = SystemForm.of(s, 1)
    assert (form.steps[:, 0] == 7).sum() == 10 and len(form.steps) == 10 + 9 * 10
    given = (
        given_for(s, 1)
        if value is None
        else GivenValues(s, FrVector.from_ints(curve, [value % curve.r] * len(s.given)))
    )
    check(emulated, cpu, given)


@pytest.mark.parametrize("lanes", [1, 2, 8, 32])
def test_threads_of_an_instance(
    emulated: CudaBackend, cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.program, "BUSY", 70 * lanes)
    check(emulated, cpu, given_for(of_steps(BN254, 3, 70), lanes))
    assert emulated._device.driver.kernels().count("run_steps") == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 63, 64, 65, 511, 512, 513])
@pytest.mark.parametrize("edge", [None, 0, 1])
def test_code_over_bits(emulated: CudaBackend, cpu: CpuBackend, count: int, edge: int | None) -> None:
    """Batches of 64 and of 512 instances, whole and not; random bits, and all of them 0 or 1."""
    s = instances(BN254, count, count, bits_only=True)
    assert device_runs(s) is not None
    check(emulated, cpu, given_for(s, count, edge))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [1, 33, 65])
def test_bits_and_elements_in_one_program(emulated: CudaBackend, cpu: CpuBackend, seed: int, count: int) -> None:
    s = instances(list(CURVES.values())[seed % 2], seed, count)
    assert device_runs(s) is not None
    check(emulated, cpu, given_for(s, seed))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_poseidon_trees(emulated: CudaBackend, cpu: CpuBackend, curve: Curve) -> None:
    s = tree(curve, 8)
    assert device_runs(s) == range(1, len(s.runs))
    check(emulated, cpu, given_for(s, 1))


def test_what_stays_on_the_host(emulated: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snarkline.backend.cuda.program, "FEW", 1)
    for s in (merkle(BN254), sha256_chain(2)):  # chains, and nothing behind them
        assert device_runs(s) is None
        assert emulated.run_program(given_for(s, 0), threads=1, arena=Arena()) is None
    monkeypatch.setattr(snarkline.backend.cuda.program, "FEW", 4)
    assert device_runs(tree(BN254, 8)) is None
    assert device_runs(tree(BN254, 16)) == range(1, 6)
    monkeypatch.setattr(snarkline.backend.cuda.program, "MOST_RUNS", 4)
    assert device_runs(tree(BN254, 16)) is None


def test_runs_behind_chains_and_given_wires(emulated: CudaBackend, cpu: CpuBackend) -> None:
    """The host has these and all before them, the device what is behind."""
    r = Recorder(BN254, [True, True])
    r.xor(2, 5)
    step = r.template("step")
    runs = [
        (inputs(BN254, 40, 0), 1, [], []),  # wires 1 to 40
        (step, 20, [1, 2], [2, 2]),  # 41 to 60
        (inputs(BN254, 2, 0), 1, [], []),  # 61 and 62
        (step, 19, [41, 42], [1, 1]),  # 63 to 81
        (step, 18, [63, 41], [1, 1]),
    ]
    given = [*range(1, 41), 61, 62]
    s = system(BN254, 0, runs, given, [True] * len(given))
    assert device_runs(s) == range(3, 5)
    check(emulated, cpu, given_for(s, 1))
    runs[3] = (step, 19, [41, 62], [1, 1])  # an instance reads what the one before has made
    s = system(BN254, 0, runs, given, [True] * len(given))
    assert device_runs(s) == range(4, 5)
    check(emulated, cpu, given_for(s, 2))


def test_code_with_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of 5 words of 32 bits has 192 of them at a time, and there is one register more."""
    s = sums(BN254, 70, [(32, 5, 32)])
    monkeypatch.setattr(snarkline.backend.cuda.program, "MAX_REGISTERS", 193)
    assert device_runs(s) == range(1, 2)
    monkeypatch.setattr(snarkline.backend.cuda.program, "MAX_REGISTERS", 192)
    assert device_runs(s) is None


def sums(curve: Curve, count: int, shapes: list[tuple[int, int, int]]) -> StructuredR1CS:
    """Sums of k words of m bits, n bits of each, and their parity; instances over consecutive bits that are given."""
    most = max(k * m for _, k, m in shapes)
    r = Recorder(curve, [True] * most)
    for n, k, m in shapes:
        d = [r.aux(bit=True) for _ in range(n)]
        r.emit(Op.ADD, n, k, m, *d, *(2 * (1 + i) + i % 3 % 2 for i in range(k * m)))
        parity = 2 * d[0]
        for bit in d[1:]:
            parity = 2 * r.xor(2 * bit + 1, parity)
    runs = [
        (inputs(curve, most + count, 0), 1, [], []),
        (r.template("sums"), count, range(1, 1 + most), [1] * most),
    ]
    return system(curve, 0, runs, list(range(1, 1 + most + count)), [True] * (most + count))


SHAPES = [
    (1, 1, 1), (3, 2, 1), (40, 1, 5), (31, 2, 32), (32, 3, 32), (33, 9, 32), (39, 64, 32), (70, 64, 33), (71, 63, 64),
    (40, 8, 64), (64, 17, 40), (100, 16, 65), (10, 33, 3),
]  # fmt: skip


@pytest.mark.parametrize("edge", [None, 0, 1])
def test_sums_of_all_shapes(emulated: CudaBackend, cpu: CpuBackend, edge: int | None) -> None:
    """More and fewer digits than a row has threads, more and fewer than the operands have, up to 64 words."""
    check(emulated, cpu, given_for(sums(BN254, 35, SHAPES), 1, edge))


def test_a_violated_row_is_found(emulated: CudaBackend, cpu: CpuBackend) -> None:
    """Rows of the random systems that are not solved do not hold; those of a tree do."""
    s = instances(BN254, 3, 5)
    w = given_for(s, 2).run(threads=1)
    vectors = emulated.evaluate_structured(w, domain_of(s))[1:]
    assert emulated.rows_hold(*vectors) is (first_violation(s, w, threads=1) is None)


def product_of(curve: Curve, count: int) -> StructuredR1CS:
    """Two given elements an instance, whose product the program computes and must be 6."""
    r = Recorder(curve, [False, False])
    d = r.product({1: 1}, {2: 1})
    r.enforce({d: 1}, {0: 1}, {0: 6})
    runs = [
        (inputs(curve, 0, 2 * count), 1, [], []),
        (r.template("product"), count, [1, 1 + count], [1, 1]),
    ]
    return system(curve, 0, runs, list(range(1, 1 + 2 * count)), [False] * (2 * count))


def difference_of(curve: Curve, count: int) -> StructuredR1CS:
    """Two given bits an instance, which must differ."""
    r = Recorder(curve, [True, True])
    d = r.xor(2, 4)
    r.enforce({d: 1}, {0: 1}, {0: 1})
    runs = [
        (inputs(curve, 2 * count, 0), 1, [], []),
        (r.template("difference"), count, [1, 1 + count], [1, 1]),
    ]
    return system(curve, 0, runs, list(range(1, 1 + 2 * count)), [True] * (2 * count))


@pytest.mark.parametrize(
    ("s", "right", "wrong", "kernel"),
    [
        (product_of(BN254, 3), [1, 2, 3, 6, 3, 2], [1, 2, 3, 6, 4, 2], "run_steps"),
        (difference_of(BN254, 3), [1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 0, 0], "run_bits"),
    ],
)
def test_proofs(
    devices: list[EmulatedDevice], s: StructuredR1CS, right: list[int], wrong: list[int], kernel: str
) -> None:
    """From inputs they are those from a witness, on both backends; errors name the same constraint and value."""
    key = make_key(s)
    good, bad = (GivenValues(s, FrVector.from_ints(BN254, values)) for values in (right, wrong))
    proofs, messages = [], []
    for backend in ("cpu", "cuda"):
        with Prover(key, r1cs=s, backend=backend, threads=1) as prover:
            proofs.append(prover.prove(good, blinding_for_tests=(3, 5)))
            proofs.append(prover.prove(good.run(), blinding_for_tests=(3, 5)))
            with pytest.raises(UnsatisfiedError) as raised:
                prover.prove(bad)
            messages.append(str(raised.value))
    assert proofs == [proofs[0]] * 4
    assert messages[0] == messages[1] and "constraint 3" in messages[0]
    assert kernel in devices[0].driver.kernels()


def test_want_of_memory(devices: list[EmulatedDevice], monkeypatch: pytest.MonkeyPatch) -> None:
    """The host computes the witness, and the proof is the same."""
    s = product_of(BN254, 3)
    given = GivenValues(s, FrVector.from_ints(BN254, [1, 2, 3, 6, 3, 2]))
    key = make_key(s)
    with Prover(key, r1cs=s, backend="cpu", threads=1) as prover:
        expected = prover.prove(given, blinding_for_tests=(3, 5))

    def run(*_: object) -> None:
        raise BudgetError(2, 1, "a witness")

    monkeypatch.setattr(DeviceProgram, "run", run)
    with Prover(key, r1cs=s, threads=1) as prover, pytest.warns(DeviceWarning, match="on the CPU"):
        assert prover.prove(given, blinding_for_tests=(3, 5)) == expected


def test_values_that_do_not_fit(emulated: CudaBackend) -> None:
    s = of_steps(BN254, 0, 3)
    values = [2] * len(s.given)
    with pytest.raises(FormatError, match="given value 0"):
        emulated.run_program(GivenValues(s, FrVector.from_ints(BN254, values)), threads=1, arena=Arena())


def test_bounds_of_the_bytes_on_the_device(cpu: CpuBackend) -> None:
    for s in (of_steps(BLS12_381, 1, 70), tree(BN254, 8), instances(BN254, 3, 35), sums(BN254, 70, SHAPES)):
        backend = CudaBackend(EmulatedDevice(), cpu)
        before = backend._device.used_bytes()
        run_on(backend, given_for(s, 0))
        backend._system(s)
        held = backend._device.used_bytes() - before
        assert held <= StructuredMatrices(s).structure_bytes + 3 * 8192 + 42 * 512
