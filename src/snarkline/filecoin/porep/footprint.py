"""What proving a sector holds in resident memory at least, before its parameters are read."""

from __future__ import annotations

from snarkline.curves.curve import BLS12_381
from snarkline.formats.bellperson import ParameterSizes
from snarkline.groth16.footprint import Sizes
from snarkline.r1cs.structured import StructuredR1CS

HEAP_BYTES = 64 << 20
"""What the allocator keeps of loading parameters, of attaching the circuit and of a first proof, about."""
WIRE_BYTES = 4
"""Of a number of a wire."""


def least_bytes(circuit: StructuredR1CS, parameters: ParameterSizes, threads: int) -> int:
    """The peak of loading parameters and proving partitions in the smallest slices, beyond what a process holds that
    has compiled the circuit. The parameters' points are decoded to memory, and stay there."""
    n_bits, n_wides, _ = circuit.native.sizes
    element = 8 * BLS12_381.fr_limbs
    n_gathered = parameters.n_a + parameters.n_b
    key = parameters.n_bytes + WIRE_BYTES * n_gathered
    witness = n_bits * 8 + element * (n_wides + circuit.n_public + 1 + len(circuit.given))
    sizes = Sizes(BLS12_381, parameters.n_wires, parameters.domain_size, threads, packed=True, n_gathered=n_gathered)
    return key + witness + sizes.least_bytes() + HEAP_BYTES
