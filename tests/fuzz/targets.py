"""What is fuzzed: each target takes any bytes and may raise InputError, nothing else."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import lzma
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from mutate import CORPUS as FILES
from raw_files import vector

from snarkline import Timeline, setup
from snarkline.curves.curve import BLS12_381, BN254
from snarkline.errors import InputError
from snarkline.filecoin.info import read_info
from snarkline.filecoin.porep.c1 import parse_phase1, phase1_facts
from snarkline.filecoin.registry import SECTOR_SIZES
from snarkline.formats import bellperson
from snarkline.formats.circom import (
    WitnessCalculator,
    load_proving_key,
    load_r1cs,
    load_symbols,
    load_verifying_key,
    load_witness,
    proof_from_json,
    proof_to_json,
    public_from_json,
    verifying_key_to_json,
    write_witness,
)
from snarkline.formats.circom.inputs import read_inputs, value_modulo
from snarkline.formats.circom.shape import read_shape
from snarkline.groth16.layout import bellperson_layout
from snarkline.groth16.prover import Prover
from snarkline.groth16.verify import verify

HOME = Path(__file__).parent / "corpus"
VECTORS = Path(__file__).parents[1] / "vectors" / "circom"


@contextlib.contextmanager
def as_file(data: bytes, suffix: str = "") -> Iterator[Path]:
    """A path that leads to the bytes, in memory; with a suffix by a link of such a name."""
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, data)
        path = Path(f"/proc/self/fd/{descriptor}")
        if not suffix:
            yield path
            return
        with tempfile.TemporaryDirectory() as folder:
            named = Path(folder) / f"fuzz{suffix}"
            named.symlink_to(path)
            yield named
    finally:
        os.close(descriptor)


def r1cs(data: bytes) -> None:
    with as_file(data) as path:
        read_shape(path)
        load_r1cs(path)


def wtns(data: bytes) -> None:
    """What is accepted is written again as it was read, but for sections that no witness has."""
    witness = load_witness(data)
    stream = io.BytesIO()
    write_witness(witness, stream)
    assert (load_witness(stream.getvalue()).values.limbs == witness.values.limbs).all()


def zkey(data: bytes) -> None:
    """A key that is accepted proves, or says why not; a proof that leaves is valid under the key's verifying key."""
    with as_file(data) as path:
        read_info(path)
        key = load_proving_key(path)
        if key.domain.size > 1 << 12:
            return
        name = "multiplier_bn128" if key.curve is BN254 else "multiplier_bls12381"
        with Prover(key, threads=1) as prover:
            proof = prover.prove(load_witness(vector(name, "circuit.wtns")))
        assert verify(key.verifying_key, proof)


def vk(data: bytes) -> None:
    with as_file(data) as path:
        key = load_verifying_key(path)
    if data[:4] != b"zkey":
        again = json.loads(verifying_key_to_json(key))
        given = json.loads(data)
        assert [again[name] for name in ("vk_alpha_1", "IC")] == [given[name] for name in ("vk_alpha_1", "IC")]


def proof(data: bytes) -> None:
    with as_file(data) as path:
        found = proof_from_json(path)
    given, again = json.loads(data), json.loads(proof_to_json(found))
    assert all(given[name] == again[name] for name in ("pi_a", "pi_b", "pi_c"))


def public(data: bytes) -> None:
    for curve in (BN254, BLS12_381):
        with contextlib.suppress(InputError):
            values = public_from_json(data, curve)
            assert list(map(int, json.loads(data))) == list(values)


def inputs(data: bytes) -> None:
    for nodes in read_inputs(data).values():
        for node in nodes:
            assert 0 <= value_modulo(node, BN254.r) < BN254.r


def calculator(data: bytes) -> None:
    """Values for a calculator that circom made."""
    _calculator().witness(data)


def wasm(data: bytes) -> None:
    """A module is compiled and looked at. It is not run: a changed loop need not end."""
    with as_file(data) as path:
        WitnessCalculator(path)


def sym(data: bytes) -> None:
    with as_file(data) as path:
        load_symbols(path)


def info(data: bytes) -> None:
    """Of a file by its content, and by the names that say what it should be."""
    for suffix in ("", ".params", ".vk"):
        with as_file(data, suffix) as path, contextlib.suppress(InputError):
            read_info(path)
    with as_file(data) as path:
        read_info(path)


def timeline(data: bytes) -> None:
    """What is accepted can be reported, and gives the same values again."""
    with as_file(data) as path:
        found = Timeline.load(path)
    assert Timeline.from_json(found.to_json()).to_json() == found.to_json()
    found.report()


def params(data: bytes) -> None:
    """bellperson's parameters: what is accepted is written again to the byte."""
    with as_file(data, ".params") as path:
        key = bellperson.load_parameters(path)
        facts = read_info(path).facts
    assert (facts["wires"], facts["public inputs"]) == (key.n_wires, key.n_public)
    with tempfile.TemporaryDirectory() as folder:
        bellperson.save_parameters(key, Path(folder) / "again.params")
        assert (Path(folder) / "again.params").read_bytes() == data


def params_vk(data: bytes) -> None:
    with as_file(data, ".vk") as path:
        key = bellperson.load_verifying_key(path)
        assert read_info(path).facts["public inputs"] == key.n_public


def params_proof(data: bytes) -> None:
    assert bellperson.proof_to_bytes(bellperson.proof_from_bytes(data, [1])) == data
    with as_file(data) as path:
        assert read_info(path).facts["proofs"] == 1


def c1(data: bytes) -> None:
    """The output of Filecoin's commit phase 1."""
    with as_file(data) as path, contextlib.suppress(InputError):
        phase1_facts(path)
    output = parse_phase1(data, SECTOR_SIZES["2KiB"])
    with as_file(data) as path:
        facts = phase1_facts(path)
    assert (facts["sector size"], facts["comm_r"]) == ("2KiB", output.commitments.comm_r.hex())


CIRCOM = (r1cs, wtns, zkey, vk, proof, public, inputs, calculator, wasm, sym, info)
TARGETS: dict[str, Callable[[bytes], None]] = {
    f.__name__: f for f in (*CIRCOM, timeline, params, params_vk, params_proof, c1)
}

_FILE_OF = {
    "r1cs": "circuit.r1cs",
    "wtns": "circuit.wtns",
    "zkey": "circuit.zkey",
    "vk": "verification_key.json",
    "proof": "proof.json",
    "public": "public.json",
    "sym": "circuit.sym",
}


def seeds(target: str) -> list[bytes]:
    """Whole inputs to start from, and the kept ones."""
    kept = [path.read_bytes() for path in sorted((HOME / target).glob("*"))]
    if target == "info":
        return [*(data for _, data in FILES), *_bellperson_files().values(), *kept]
    if target == "wasm":
        return [(VECTORS / "edge" / "compare_bn128" / "circuit.wasm").read_bytes(), *kept]
    if target in ("inputs", "calculator"):
        return [(VECTORS / "edge" / "compare_bn128" / "input.json").read_bytes(), b'{"a": ["0x1f", -3]}', *kept]
    if target == "timeline":
        return [_timeline(), *kept]
    if target == "c1":
        return [lzma.decompress((VECTORS.parent / "filecoin" / "seal_2KiB" / "c1.json.xz").read_bytes()), *kept]
    if target.startswith("params"):
        return [_bellperson_files()[target], *kept]
    return [data for file, data in FILES if file == _FILE_OF[target]] + kept


def attempt(target: str, data: bytes) -> bool:
    """Whether a target accepts the bytes. Anything but an InputError goes up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[target](data)
        except InputError:
            return False
    return True


def _timeline() -> bytes:
    key = VECTORS / "multiplier_bn128" / "circuit.zkey"
    with Timeline("seed") as found:
        load_proving_key(key)
    return json.dumps(found.to_json()).encode()


@functools.cache
def _bellperson_files() -> dict[str, bytes]:
    """Parameters, verifying key and proof of a small circuit."""
    folder = VECTORS / "multiplier_bls12381"
    circuit = load_r1cs(folder / "circuit.r1cs")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore")
        key, files = setup(circuit, layout=bellperson_layout), [Path(name) / "key.params", Path(name) / "key.vk"]
        bellperson.save_parameters(key, files[0])
        bellperson.save_verifying_key(key, files[1])
        with Prover(key, r1cs=circuit, threads=1) as prover:
            made = prover.prove(load_witness(folder / "circuit.wtns"))
        contents = [file.read_bytes() for file in files]
    return {"params": contents[0], "params_vk": contents[1], "params_proof": bellperson.proof_to_bytes(made)}


@functools.cache
def _calculator() -> WitnessCalculator:
    return WitnessCalculator(VECTORS / "edge" / "compare_bn128" / "circuit.wasm")
