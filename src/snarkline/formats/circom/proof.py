"""Proofs and their public inputs: proof.json and public.json of snarkjs, and calldata for its Solidity verifiers."""

from __future__ import annotations

from collections.abc import Sequence

from snarkline.curves.curve import BN254, Curve, Group
from snarkline.errors import MismatchError
from snarkline.formats.circom.strict_json import PROOF, PUBLIC, WRITTEN_NAMES, Source, dump, parse, point_to_json
from snarkline.groth16.keys import Proof


def proof_to_json(proof: Proof) -> str:
    """The text of proof.json."""
    return dump(
        {
            "pi_a": point_to_json(proof.a),
            "pi_b": point_to_json(proof.b),
            "pi_c": point_to_json(proof.c),
            "protocol": "groth16",
            "curve": WRITTEN_NAMES[proof.curve.name],
        }
    )


def public_to_json(public: Sequence[int]) -> str:
    """The text of public.json."""
    return dump([str(value) for value in public])


def public_from_json(source: Source, curve: Curve) -> tuple[int, ...]:
    """Public inputs, each below r, from the text of a public.json (or the file, for a path object)."""
    return tuple(item.decimal(curve.r, "the modulus r") for item in parse(source, PUBLIC).items())


def proof_from_json(source: Source, public: Source | Sequence[int] = (), *, curve: Curve | None = None) -> Proof:
    """A proof from the text of a proof.json, and its public inputs from that of a public.json or as integers.

    A path object stands for the file. `curve` is what the proof must belong to, and is needed for a proof that does
    not name its curve (rapidsnark's). Points must be of order r and not infinity. Raises OSError and FormatError.
    """
    document = parse(source, PROOF)
    document.get("protocol").text("groth16")
    if curve is None or "curve" in document.value:
        node = document.get("curve")
        found = node.curve()
        if curve is not None and found is not curve:
            node.fail(f"'{WRITTEN_NAMES[curve.name]}'")
        curve = found
    a = document.get("pi_a").point(curve, Group.G1)
    b = document.get("pi_b").point(curve, Group.G2)
    c = document.get("pi_c").point(curve, Group.G1)
    if isinstance(public, Sequence) and not isinstance(public, (str, bytes)):
        values = tuple(public)
        if not all(isinstance(v, int) and 0 <= v < curve.r for v in values):
            raise MismatchError(f"public inputs are integers in [0, r) of {curve.name}")
    else:
        values = public_from_json(public, curve)
    return Proof(curve, a, b, c, values)


def proof_to_calldata(proof: Proof) -> str:
    """The arguments of `verifyProof`, laid out as `snarkjs zkey export soliditycalldata` does. BN254 only."""
    if proof.curve is not BN254:
        raise MismatchError(f"calldata is for Ethereum's BN254 precompiles; this proof is on {proof.curve.name}")
    a, b, c = proof.a.coordinates(), proof.b.coordinates(), proof.c.coordinates()
    g2 = f"[{_words(b[1::-1])}],[{_words(b[:1:-1])}]"  # imaginary part first, as EIP-197 has it
    return f"[{_words(a)}],[{g2}],[{_words(c)}],[{_words(proof.public, ',')}]"


def _words(values: Sequence[int], separator: str = ", ") -> str:
    return separator.join(f'"0x{value:064x}"' for value in values)
