"""Circuits written in Python on the command line: found by FILE.py:NAME, compiled, exported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from snarkline.cli.options import Argument, Option
from snarkline.cli.output import JsonOption, QuietOption, Report, require_writable

if TYPE_CHECKING:
    from snarkline.circuit import Circuit, CompiledCircuit
    from snarkline.curves.curve import Curve
    from snarkline.r1cs.structured import StructuredR1CS
    from snarkline.r1cs.structured_witness import StructuredWitness

REFERENCE = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)")
SIZE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([0-9]{1,18})")

CurveOption = Annotated[str | None, Option("--curve", help="For a circuit in Python: bn254 (default) or bls12_381.")]
SizesOption = Annotated[
    str | None, Option("--sizes", help="For a circuit in Python: its parameters.", metavar="NAME=N,...")
]


def is_python_circuit(path: Path) -> bool:
    """Whether a path is FILE.py:NAME."""
    return REFERENCE.fullmatch(str(path)) is not None


def source_file(path: Path) -> Path:
    """The file of FILE.py:NAME; other paths as they are."""
    found = REFERENCE.fullmatch(str(path))
    return path if found is None else Path(found[1])


def compile_circuit(path: Path, curve: str | None = None, sizes: str | None = None) -> CompiledCircuit:
    """Runs FILE.py and compiles its circuit NAME; templates are kept in the user's cache folder.

    Raises OSError, FormatError where the file has no such circuit, and CircuitError.
    """
    from snarkline import span
    from snarkline.circuit import Library, TemplateStore
    from snarkline.curves.curve import BN254, CURVES
    from snarkline.errors import FormatError

    if curve is not None and curve not in CURVES:
        raise FormatError(None, "--curve", f"one of {', '.join(CURVES)}", repr(curve))
    chosen = BN254 if curve is None else CURVES[curve]
    with span("run circuit file"):
        circuit = load_circuit(path)
    library = Library(chosen, TemplateStore(template_folder()))
    with _errors_of(source_file(path), circuit.name):
        return circuit.compile(chosen, library=library, **read_sizes(sizes))


def template_folder() -> Path:
    """Where recorded templates are kept."""
    return Path.home() / ".cache" / "snarkline" / "templates"


@contextmanager
def _errors_of(file: Path, name: str) -> Iterator[None]:
    """What a circuit's own code raises becomes a CircuitError that names the line of its file."""
    import traceback

    from snarkline.errors import CircuitError, SnarklineError

    try:
        yield
    except SyntaxError as error:
        raise CircuitError(name, f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except (SnarklineError, OSError, MemoryError):
        raise
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == file.resolve()]
        where = f"{file}, line {frames[-1].lineno}" if frames else str(file)
        raise CircuitError(name, f"{where}: {type(error).__name__}: {error}") from error


def load_circuit(path: Path) -> Circuit:
    """The circuit of FILE.py:NAME. The file is run, with its folder among those that modules are imported from."""
    import importlib.util
    import sys

    from snarkline.circuit import Circuit
    from snarkline.errors import FormatError

    found = REFERENCE.fullmatch(str(path))
    if found is None:
        raise FormatError(path, "circuit", "FILE.py:NAME", "another path")
    file, name = Path(found[1]), found[2]
    with file.open("rb"):
        pass  # a missing file is an OSError with its name
    spec = importlib.util.spec_from_file_location(f"circuit_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.fspath(file.parent.resolve()))
    with _errors_of(file, name):
        try:
            spec.loader.exec_module(module)
        except SystemExit:
            raise FormatError(file, "circuit", "a module that defines circuits", "one that ends the program") from None
    circuits = {key: value for key, value in vars(module).items() if isinstance(value, Circuit)}
    if name not in circuits:
        expected = f"a function {name} with @circuit"
        raise FormatError(file, "circuit", expected, f"circuits {', '.join(circuits)}" if circuits else "no circuit")
    return circuits[name]


def read_sizes(text: str | None) -> dict[str, int]:
    """NAME=N,... as a dict. Raises FormatError."""
    from snarkline.errors import FormatError

    sizes: dict[str, int] = {}
    for part in text.split(",") if text else ():
        found = SIZE.fullmatch(part.strip())
        if found is None or found[1] in sizes:
            raise FormatError(None, "--sizes", "NAME=N,... with each name once", repr(part))
        sizes[found[1]] = int(found[2])
    return sizes


def read_input(path: Path) -> tuple[dict[str, Any], str]:
    """The values of inputs from a JSON file, and what messages call it; - is standard input."""
    from snarkline.cli.output import input_bytes, named
    from snarkline.formats.circom.strict_json import INPUTS, parse

    document = parse(input_bytes(path), INPUTS, integer=str)
    if not isinstance(document.value, dict):
        document.fail("an object with the circuit's inputs")
    return document.value, named(path)


def require_python_circuit(
    circuit: Path, key: Path | None, input_: Path | None, *, others: Sequence[Path | None]
) -> None:
    """Raises MismatchError unless a circuit in Python comes with its key and inputs, and nothing in their place."""
    from snarkline.errors import MismatchError

    if not is_python_circuit(circuit) or key is None or input_ is None or any(path is not None for path in others):
        raise MismatchError("a circuit in Python is proved by: FILE.py:NAME --key KEY.zkey --input INPUT.json")


def run_circuit(
    path: Path, curve: Curve, sizes: str | None, input_: Path, *, check: bool
) -> tuple[StructuredR1CS, StructuredWitness]:
    """A circuit and its witness for the values of a JSON file. Unless told not to, checks that it satisfies it."""
    compiled = compile_circuit(path, curve.name, sizes)
    values, source = read_input(input_)
    witness = compiled.assign(values, source)
    if check:
        require_satisfied(compiled, witness)
    return compiled.r1cs, witness


def require_satisfied(
    compiled: CompiledCircuit, witness: StructuredWitness, *, threads: int | None = None, show_values: bool = False
) -> None:
    """Raises UnsatisfiedError naming the gadget of the first constraint that does not hold."""
    from snarkline import span
    from snarkline.r1cs.check import first_violation

    with span("check constraints"):
        violation = first_violation(compiled.r1cs, witness, threads=threads)
    if violation is not None:
        wires = violation.wires
        values = dict(zip(wires, witness.values(wires), strict=True)) if show_values else None
        raise compiled.explain(violation, values=values)


def check_python_circuit(
    report: Report,
    path: Path,
    input_: Path,
    curve: str | None,
    sizes: str | None,
    *,
    threads: int | None,
    show_values: bool,
) -> None:
    """`snarkline check` for a circuit in Python and a JSON file of its inputs."""
    with report.working("checking"):
        compiled = compile_circuit(path, curve, sizes)
        values, source = read_input(input_)
        witness = compiled.assign(values, source, threads=threads)
        require_satisfied(compiled, witness, threads=threads, show_values=show_values)
    n_constraints = compiled.r1cs.n_constraints
    report.line(f"all {n_constraints:,} constraints hold")
    report.result({"satisfied": True, "constraint": None, "n_constraints": n_constraints})


def compile(  # the command's name
    circuit: Annotated[Path, Argument(help="The circuit.", metavar="FILE.py:NAME")],
    r1cs: Annotated[Path | None, Option("--r1cs", help="Where the constraints go (.r1cs).")] = None,
    sym: Annotated[Path | None, Option("--sym", help="Where the names of the wires go (.sym).")] = None,
    input_: Annotated[Path | None, Option("--input", help="Values of the circuit's inputs (.json).")] = None,
    wtns: Annotated[Path | None, Option("--wtns", help="Where the witness for --input goes (.wtns).")] = None,
    curve: CurveOption = None,
    sizes: SizesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compile a circuit in Python and write it, or a witness of it, for circom's tools."""
    from snarkline.errors import MismatchError
    from snarkline.formats.circom import save_r1cs, save_symbols, save_witness

    report = Report(as_json=as_json, quiet=quiet)
    if (wtns is None) != (input_ is None):
        raise MismatchError("a witness needs both --input INPUT.json and --wtns WITNESS.wtns")
    require_writable(inputs=[source_file(circuit), input_], files=(r1cs, sym, wtns))
    with report.working("compiling"):
        compiled = compile_circuit(circuit, curve, sizes)
        system = compiled.r1cs
        if r1cs is not None:
            save_r1cs(system, r1cs)
        if sym is not None:
            save_symbols(compiled.symbols(), sym)
        if wtns is not None and input_ is not None:
            values, source = read_input(input_)
            save_witness(compiled.witness(values, source), wtns)
    private = len(system.given) - sum(field.n_wires for field in compiled.schema.fields if field.public)
    report.line(
        f"{compiled.name}: {system.n_constraints:,} constraints, {system.n_wires:,} wires, {system.n_public:,} public "
        f"({system.n_outputs:,} outputs), {private:,} private inputs; "
        f"{len(system.templates):,} templates, {system.nbytes:,} bytes"
    )
    report.result(
        {
            "name": compiled.name,
            "curve": compiled.curve.name,
            "n_constraints": system.n_constraints,
            "n_wires": system.n_wires,
            "n_public": system.n_public,
            "n_outputs": system.n_outputs,
            "n_private_inputs": private,
            "n_templates": len(system.templates),
            "bytes": system.nbytes,
        }
    )
