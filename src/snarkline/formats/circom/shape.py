"""The sizes of a circuit, from the headers of its .r1cs or .zkey."""

from __future__ import annotations

import os

from snarkline.errors import FormatError
from snarkline.formats.binary import Container, describe_magic, first_bytes, open_container
from snarkline.formats.circom import r1cs, zkey
from snarkline.groth16.estimate import Shape

ROW_BYTES = 12
COEFFICIENT_BYTES = 44


def read_shape(path: str | os.PathLike[str]) -> Shape:
    """Sizes of a circuit; its constraints, or a key's points, are not read. Raises OSError and FormatError."""
    magic = first_bytes(path, 4)
    if magic == b"r1cs":
        return _of_circuit(open_container(path, "r1cs", r1cs.VERSION))
    if magic == b"zkey":
        return _of_key(open_container(path, "zkey", zkey.VERSION))
    raise FormatError(path, "offset 0 (magic)", "a circuit (r1cs) or a proving key (zkey)", describe_magic(magic))


def _of_circuit(container: Container) -> Shape:
    header = r1cs.read_header(container.cursor(1, "header"))
    n_public = header.n_outputs + header.n_public_inputs
    section = container.section(2, "constraints")
    terms = section.size - ROW_BYTES * header.n_constraints
    if terms < 0:
        expected = f"{header.n_constraints} constraints of at least {ROW_BYTES} bytes"
        raise container.size_error(section, "constraints", expected)
    log_domain = max(1, (header.n_constraints + n_public).bit_length())
    if log_domain >= header.curve.two_adicity:
        raise FormatError(
            container.path, "section 1 (header): number of constraints",
            f"rows for a domain of at most 2^{header.curve.two_adicity - 1}", header.n_constraints,
        )  # fmt: skip
    return Shape(header.curve, header.n_wires, n_public, terms // r1cs.TERM_BYTES + n_public + 1, log_domain)


def _of_key(container: Container) -> Shape:
    header = zkey.read_header(container)
    section = container.section(4, "coefficients")
    n_entries = max(0, section.size - 4) // COEFFICIENT_BYTES
    return Shape(header.curve, header.n_wires, header.n_public, n_entries, header.domain_size.bit_length() - 1)
