"""What users of other provers reported, by number: proofs that come out wrong without an error, and related wishes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_circuits import EDGE_CIRCUITS, development_key, witness

from snarkline import load_proving_key, load_witness, proof_to_calldata, verify_many
from snarkline.curves.curve import BLS12_381, BN254, CURVES, Curve
from snarkline.curves.point import Point
from snarkline.errors import UnsatisfiedError
from snarkline.groth16 import prove
from snarkline.groth16.prove import draw_blinding
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

LADDER = EDGE_CIRCUITS["17 constraints"]()
BLINDING = (7, 1 << 240)


def ladder_prover(curve: Curve, *, threads: int = 1, with_r1cs: bool = False) -> Prover:
    r1cs = LADDER.r1cs(curve) if with_r1cs else None
    return Prover(development_key("17 constraints", curve), r1cs=r1cs, threads=threads)


def in_threads(n: int, work: Callable[[int], None]) -> None:
    """`work(0)` to `work(n - 1)` at once; the first error goes up."""
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("n", [40, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a1_every_proof_in_a_row_verifies(curve: Curve, n: int) -> None:
    with ladder_prover(curve) as prover:
        assert all(verify(prover.key.verifying_key, prover.prove(LADDER.witness(curve))) for _ in range(n))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a2_a12_b16_proofs_with_fixed_blinding_are_the_same_bytes(curve: Curve) -> None:
    with ladder_prover(curve, threads=2) as prover:
        proofs = {prover.prove(LADDER.witness(curve), blinding_for_tests=BLINDING) for _ in range(40)}
    assert len(proofs) == 1
    assert prover.repeated == 0


def test_a10_provers_of_their_own_prove_at_once() -> None:
    curves = [BN254, BLS12_381] * 3

    def work(i: int) -> None:
        with ladder_prover(curves[i], threads=2) as prover:
            for _ in range(5):
                assert verify(prover.key.verifying_key, prover.prove(LADDER.witness(curves[i])))

    in_threads(len(curves), work)


def test_a10_b13_threads_share_two_keys_in_turn() -> None:
    with ladder_prover(BN254, threads=2) as first, ladder_prover(BLS12_381, threads=2) as second:

        def work(i: int) -> None:
            for k in range(6):
                prover = (first, second)[(i + k) % 2]
                proof = prover.prove(LADDER.witness(prover.key.curve))
                assert verify(prover.key.verifying_key, proof)

        in_threads(4, work)


def test_a11_witness_calculations_at_once(vectors: Path) -> None:
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    from snarkline.formats.circom import WitnessCalculator

    folder = vectors / "circom" / "edge" / "compare_bn128"
    calculator, key = WitnessCalculator(folder / "circuit.wasm"), load_proving_key(folder / "circuit.zkey")
    pattern = json.loads((folder / "input.json").read_text())
    given = [pattern | {"x": [str(7 * i + k) for k in range(len(pattern["x"]))]} for i in range(6)]
    alone = [calculator.witness(values).values.limbs.copy() for values in given]
    assert len({limbs.tobytes() for limbs in alone}) > 1
    with Prover(key, threads=1) as prover:

        def work(i: int) -> None:
            for _ in range(5):
                found = calculator.witness(given[i])
                assert (found.values.limbs == alone[i]).all()
                assert verify(key.verifying_key, prover.prove(found))

        in_threads(len(given), work)


def test_a13_b12_a_flipped_bit_in_an_msm_is_mended_before_the_proof_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """All faults: tests/groth16/test_faults.py."""
    commit, calls = prove.begin_commit, []

    def commit_with_a_fault(*arguments: object) -> Callable[[], prove.Sums]:
        sums = commit(*arguments)()  # type: ignore[arg-type]
        calls.append(sums)
        if len(calls) > 1:
            return lambda: sums
        assert isinstance(sums.a.x, int)
        spoilt = Point(BN254, sums.a.group, sums.a.x ^ 1, sums.a.y)
        return lambda: prove.Sums(spoilt, sums.b1, sums.b2, sums.l, sums.h)

    monkeypatch.setattr(prove, "begin_commit", commit_with_a_fault)
    with ladder_prover(BN254) as prover:
        with pytest.warns(RuntimeWarning, match="computed again"):
            proof = prover.prove(LADDER.witness(BN254))
        assert verify(prover.key.verifying_key, proof)
        assert (prover.repeated, len(calls)) == (1, 2)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a18_blinding_varies_over_the_whole_field(curve: Curve) -> None:
    """r is uniform in [0, r): the top byte takes every value that it can, in equal parts (6 sigma)."""
    draws = [value for _ in range(5_000) for value in draw_blinding(curve)]
    shift = curve.r.bit_length() - 8
    top, whole = Counter(value >> shift for value in draws), curve.r >> shift
    expected = len(draws) * 2**shift / curve.r
    assert set(range(whole)) <= set(top) <= set(range(whole + 1))
    assert max(abs(top[cell] - expected) for cell in range(whole)) < 6 * expected**0.5


@pytest.mark.parametrize("wire", [1, 2, 9, 18])
def test_a19_a_witness_that_breaks_a_row_is_refused(monkeypatch: pytest.MonkeyPatch, wire: int) -> None:
    values = list(LADDER.values)
    values[wire] += 1
    with ladder_prover(BN254) as prover, pytest.raises(UnsatisfiedError, match=r"give the \.r1cs"):
        prover.prove(witness(BN254, values))
    monkeypatch.setattr(prove, "begin", lambda *_, **__: pytest.fail("proved before the constraints were checked"))
    with ladder_prover(BN254, with_r1cs=True) as prover, pytest.raises(UnsatisfiedError, match="constraint"):
        prover.prove(witness(BN254, values))


def test_b6_many_proofs_are_verified_together() -> None:
    with ladder_prover(BN254) as prover:
        proofs = [prover.prove(LADDER.witness(BN254)) for _ in range(3)]
    vk = prover.key.verifying_key
    assert verify_many(vk, [(proof, None) for proof in proofs])
    assert not verify_many(vk, [*((proof, None) for proof in proofs[:2]), (proofs[2], [proofs[2].public[0] + 1])])


def test_b22_calldata_has_the_proof_and_the_public_inputs(vectors: Path) -> None:
    folder = vectors / "circom" / "multiplier_bn128"
    key = load_proving_key(folder / "circuit.zkey")
    with Prover(key, threads=1) as prover:
        proof = prover.prove(load_witness(folder / "circuit.wtns"))
    a, b, c, public = json.loads(f"[{proof_to_calldata(proof)}]")
    (x0, x1), (y0, y1) = b
    assert [int(v, 16) for v in (*a, x1, x0, y1, y0, *c)] == [
        *proof.a.coordinates(), *proof.b.coordinates(), *proof.c.coordinates()
    ]  # fmt: skip
    assert [int(v, 16) for v in public] == list(proof.public)


def test_b24_witness_from_a_path_from_bytes_from_an_array_and_from_a_pipe(vectors: Path, tmp_path: Path) -> None:
    folder = vectors / "circom" / "multiplier_bn128"
    path, key = folder / "circuit.wtns", load_proving_key(folder / "circuit.zkey")
    first = load_witness(path)
    sources = [path, path.read_bytes(), memoryview(path.read_bytes()), first.values.limbs]
    with Prover(key, threads=1) as prover:
        proofs = {
            prover.prove(load_witness(source, curve=BN254), blinding_for_tests=BLINDING)  # type: ignore[arg-type]
            for source in sources
        }
    assert len(proofs) == 1
    command = [sys.executable, "-m", "snarkline", "prove", folder / "circuit.zkey", "-", "-o", "-"]
    done = subprocess.run(command, input=path.read_bytes(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["protocol"] == "groth16"


@pytest.mark.parametrize("wire", [None, 3])
def test_b32_a_witness_is_checked_by_a_command(vectors: Path, tmp_path: Path, wire: int | None) -> None:
    folder = vectors / "circom" / "multiplier_bn128"
    data = bytearray((folder / "circuit.wtns").read_bytes())
    if wire is not None:
        data[len(data) - 32] ^= 1
    (tmp_path / "w.wtns").write_bytes(data)
    command = [sys.executable, "-m", "snarkline", "check", folder / "circuit.r1cs", tmp_path / "w.wtns"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if wire is None else 2)
    assert ("constraints hold" in done.stdout) if wire is None else ("does not satisfy constraint" in done.stderr)
