"""Recordings on disk, so that a gadget is recorded once and not once a process.

A file is a magic, the SHA-256 of what follows, the length of a JSON header, the header, and the arrays that it lists.
Its name is the digest of all that the recording depends on: an entry that is out of date is never found, one that is
damaged is recorded again. Kept are the gadgets of this package, for which that can be told (`fingerprint`).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from snarkline.circuit.builder import Gadget
from snarkline.circuit.fingerprint import fingerprint
from snarkline.circuit.recording import Pattern, Recording
from snarkline.circuit.slots import Shape
from snarkline.curves.curve import Curve
from snarkline.curves.vector import Form, FrVector
from snarkline.errors import FormatError
from snarkline.r1cs.matrices import SparseMatrix
from snarkline.r1cs.program import Program
from snarkline.r1cs.template import Native, Template

MAGIC = b"snlt\x01\x00\x00\x00"
HEAD_BYTES = len(MAGIC) + 32 + 8
MATRICES = ("a", "b", "c", "combinations")


class TemplateStore:
    """A folder of recordings. It may be shared by processes: entries appear whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, curve: Curve, gadget: Gadget[Any], pattern: Pattern) -> Path | None:
        """Where the recording is kept; None for a gadget from elsewhere, which is not kept."""
        source = fingerprint(gadget)
        if source is None:
            return None
        key = repr((curve.name, source, pattern.shape, pattern.slots, pattern.bit_ports))
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()}.template"

    def load(self, curve: Curve, gadget: Gadget[Any], pattern: Pattern) -> Recording | None:
        """The recording, or None if it is not there or damaged; of damage a warning tells."""
        path = self.path(curve, gadget, pattern)
        if path is None or not path.is_file():
            return None
        try:
            return decode(path.read_bytes(), curve, os.fspath(path))
        except OSError:
            return None
        except FormatError as error:
            warnings.warn(f"{error}; the gadget is recorded again", UserWarning, stacklevel=2)
            return None

    def save(self, curve: Curve, gadget: Gadget[Any], pattern: Pattern, recording: Recording) -> None:
        """Keeps a recording. A folder that cannot be written to keeps nothing."""
        path = self.path(curve, gadget, pattern)
        if path is None:
            return
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(encode(recording))
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()


def encode(recording: Recording) -> bytes:
    """The bytes of a recording."""
    template = recording.template
    native = template.native
    arrays: dict[str, np.ndarray[Any, Any]] = {"bits": template.bits, "code": template.program.code}
    arrays["coefficients"] = template.a.coefficients.limbs
    for name, matrix in zip(MATRICES, _matrices(template), strict=True):
        arrays |= {f"{name}.{part}": getattr(matrix, part) for part in ("row_start", "column", "value")}
    if native is not None:
        arrays |= {"inputs": native.inputs, "outputs": native.outputs}
        if native.parameters is not None:
            arrays["parameters"] = native.parameters.limbs
    arrays["given"] = recording.given
    header = {
        "name": template.name,
        "n_ports": template.n_ports,
        "n_aux": template.n_aux,
        "paths": template.paths,
        "names": template.names,
        "broken": template.broken,
        "native": None if native is None else native.name,
        "shape": _plain(recording.shape),
        "slots": recording.outputs,
        "arrays": [(name, array.dtype.str, array.shape) for name, array in arrays.items()],
    }
    text = json.dumps(header).encode()
    payload = len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in arrays.values())
    return MAGIC + hashlib.sha256(payload).digest() + payload


def decode(data: bytes, curve: Curve, path: str | None = None) -> Recording:
    """The recording that bytes hold. Raises FormatError for bytes that are not those of `encode`."""
    if len(data) < HEAD_BYTES or data[: len(MAGIC)] != MAGIC:
        raise FormatError(path, "offset 0 (magic)", "a recorded template", "something else")
    payload = data[len(MAGIC) + 32 :]
    if hashlib.sha256(payload).digest() != data[len(MAGIC) : len(MAGIC) + 32]:
        raise FormatError(path, f"offset {len(MAGIC)} (SHA-256)", "the digest of the rest", "another")
    try:
        return _decode(payload, curve)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(path, f"offset {len(MAGIC) + 32}", "a header and its arrays", error) from None


def _decode(payload: bytes, curve: Curve) -> Recording:
    size = int.from_bytes(payload[:8], "little")
    header = json.loads(payload[8 : 8 + size])
    arrays, at = {}, 8 + size
    for name, dtype, shape in header["arrays"]:
        n_bytes = int(np.dtype(dtype).itemsize * np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(payload[at : at + n_bytes], dtype=dtype).reshape(shape)
        at += n_bytes
    return Recording(
        template=_template(curve, header, arrays),
        shape=_shape(header["shape"]),
        outputs=tuple(header["slots"]),
        given=arrays["given"],
    )


def _template(curve: Curve, header: dict[str, Any], arrays: dict[str, Any]) -> Template:
    coefficients = FrVector(curve, arrays["coefficients"], Form.MONTGOMERY)
    n_columns = 1 + header["n_ports"] + header["n_aux"]
    a, b, c, combinations = (
        SparseMatrix(n_columns, arrays[f"{m}.row_start"], arrays[f"{m}.column"], arrays[f"{m}.value"], coefficients)
        for m in MATRICES
    )
    native = None
    if header["native"] is not None:
        limbs = arrays.get("parameters")
        parameters = None if limbs is None else FrVector(curve, limbs, Form.MONTGOMERY)
        native = Native(header["native"], arrays["inputs"], arrays["outputs"], parameters)
    return Template(
        name=header["name"],
        n_ports=header["n_ports"],
        n_aux=header["n_aux"],
        a=a,
        b=b,
        c=c,
        bits=arrays["bits"],
        program=Program(arrays["code"], combinations),
        native=native,
        paths=tuple((row, name) for row, name in header["paths"]),
        names=tuple(header["names"]),
        broken=tuple((row, text) for row, text in header["broken"]),
    )


def _matrices(template: Template) -> tuple[SparseMatrix, ...]:
    return template.a, template.b, template.c, template.program.combinations


def _plain(shape: Any) -> Any:
    """A shape as JSON writes it; bytes become an object."""
    if isinstance(shape, tuple):
        return [_plain(item) for item in shape]
    return {"bytes": shape.hex()} if isinstance(shape, bytes) else shape


def _shape(plain: Any) -> Shape | Any:
    if isinstance(plain, list):
        return tuple(_shape(item) for item in plain)
    return bytes.fromhex(plain["bytes"]) if isinstance(plain, dict) else plain
