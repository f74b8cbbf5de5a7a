"""A Solidity contract that verifies the proofs of one key on Ethereum, by the BN254 precompiles of EIP-196 and 197."""

from __future__ import annotations

from string import Template

from snarkline.curves.curve import BN254
from snarkline.errors import MismatchError
from snarkline.groth16.keys import VerifyingKey

MAX_PUBLIC = 320  # beyond this the contract outgrows the 24,576 bytes that EIP-170 allows


def verifier_to_solidity(key: VerifyingKey, contract: str = "Groth16Verifier") -> str:
    """The source of a contract with `verifyProof(a, b, c, publicInputs)`, which takes what `proof_to_calldata` gives.

    The function's selector is that of snarkjs's verifier. Raises MismatchError for keys that Ethereum cannot verify:
    on another curve than BN254, or with more public inputs than a contract holds.
    """
    if key.curve is not BN254:
        raise MismatchError(f"Ethereum has precompiles for BN254; this key is on {key.curve.name}")
    if key.n_public > MAX_PUBLIC:
        raise MismatchError(f"a contract holds up to {MAX_PUBLIC} public inputs; this key has {key.n_public}")
    if not contract.isascii() or not contract.isidentifier():
        raise MismatchError(f"{contract!r} is not the name of a contract")
    n = key.n_public
    constants = {"Q": key.curve.q, "R": key.curve.r}
    constants |= dict(zip(("ALPHA_X", "ALPHA_Y"), key.alpha1.coordinates(), strict=True))
    for name, point in (("BETA", key.beta2), ("GAMMA", key.gamma2), ("DELTA", key.delta2)):
        x0, x1, y0, y1 = point.coordinates()
        constants |= {f"{name}_X1": x1, f"{name}_X0": x0, f"{name}_Y1": y1, f"{name}_Y0": y0}
    ic = [f"{x:064x}{y:064x}" for x, y in (point.coordinates() for point in key.ic)]
    return _CONTRACT.substitute(
        contract=contract,
        constants="\n".join(f"    uint256 private constant {name} = {value};" for name, value in constants.items()),
        ic="\n".join(f'        hex"{words}"' for words in ic),
        parameter=f",\n        uint256[{n}] calldata publicInputs" if n else "",
        terms=_TERMS.substitute(n=n) if n else "",
    )


_TERMS = Template("""
        for (uint256 i = 0; i < $n; i++) {
            if (publicInputs[i] >= R || !_addTerm(work, ic, i + 1, publicInputs[i])) return false;
        }
""")

_CONTRACT = Template("""// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.4 <0.9.0;

/// Verifies the Groth16 proofs (https://eprint.iacr.org/2016/260) of one circuit, over BN254.
contract $contract {
    // The base field, the scalar field, and the verifying key. Of coordinates in G2, 1 is the imaginary part.
$constants

    // The points IC, 32 bytes for x and 32 for y.
    bytes private constant IC =
$ic;

    /// True if e(a, b) = e(alpha, beta) e(X, gamma) e(c, delta), where X = IC[0] + sum of publicInputs[i] IC[i + 1].
    /// Coordinates in G2 come with the imaginary part first.
    function verifyProof(
        uint256[2] calldata a,
        uint256[2][2] calldata b,
        uint256[2] calldata c$parameter
    ) external view returns (bool ok) {
        if (a[1] >= Q) return false;
        bytes memory ic = IC;
        uint256[7] memory work;
        (work[0], work[1]) = _point(ic, 0);
$terms
        uint256[24] memory input;
        (input[0], input[1]) = (a[0], a[1] == 0 ? 0 : Q - a[1]);
        (input[2], input[3], input[4], input[5]) = (b[0][0], b[0][1], b[1][0], b[1][1]);
        (input[6], input[7]) = (ALPHA_X, ALPHA_Y);
        (input[8], input[9], input[10], input[11]) = (BETA_X1, BETA_X0, BETA_Y1, BETA_Y0);
        (input[12], input[13]) = (work[0], work[1]);
        (input[14], input[15], input[16], input[17]) = (GAMMA_X1, GAMMA_X0, GAMMA_Y1, GAMMA_Y0);
        (input[18], input[19]) = (c[0], c[1]);
        (input[20], input[21], input[22], input[23]) = (DELTA_X1, DELTA_X0, DELTA_Y1, DELTA_Y0);
        assembly ("memory-safe") {
            ok := staticcall(gas(), 8, input, 768, input, 32)
            ok := and(ok, eq(mload(input), 1))
        }
    }

    function _point(bytes memory ic, uint256 i) private pure returns (uint256 x, uint256 y) {
        assembly ("memory-safe") {
            let at := add(add(ic, 32), mul(i, 64))
            x := mload(at)
            y := mload(add(at, 32))
        }
    }

    // work[0 .. 1] += scalar * IC[i]; the rest of work holds the operands of the precompiles.
    function _addTerm(uint256[7] memory work, bytes memory ic, uint256 i, uint256 scalar)
        private
        view
        returns (bool ok)
    {
        (work[4], work[5]) = _point(ic, i);
        work[6] = scalar;
        assembly ("memory-safe") {
            ok := staticcall(gas(), 7, add(work, 128), 96, add(work, 64), 64)
            ok := and(ok, staticcall(gas(), 6, work, 128, work, 64))
        }
    }
}
""")
