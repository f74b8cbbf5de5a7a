"""`snarkline setup` and `snarkline export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from snarkline.cli.circuit import CurveOption, SizesOption, compile_circuit, is_python_circuit, source_file
from snarkline.cli.options import Argument, Option
from snarkline.cli.output import JsonOption, QuietOption, Report, named, require_writable, write_text


def setup(
    r1cs: Annotated[Path, Argument(help="The circuit.", metavar="CIRCUIT.r1cs | FILE.py:NAME")],
    output: Annotated[Path, Option("--output", "-o", help="Where the proving key goes.", metavar="CIRCUIT.zkey")],
    vk: Annotated[Path | None, Option("--vk", help="Where the verifying key goes (.json).")] = None,
    curve: CurveOption = None,
    sizes: SizesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a DEVELOPMENT key: one machine knows the secret behind it, so it must never guard anything of value."""
    import time

    from snarkline import load_r1cs, save_proving_key
    from snarkline import setup as make_key
    from snarkline.formats.circom import verifying_key_to_json

    report = Report(as_json=as_json, quiet=quiet, outputs=(vk,))
    require_writable(vk, inputs=[source_file(r1cs)], files=(output,))
    started = time.perf_counter()
    with report.working("setting up a development key"):
        in_python = is_python_circuit(r1cs)
        circuit = compile_circuit(r1cs, curve, sizes).r1cs if in_python else load_r1cs(r1cs)
        key = make_key(circuit)
        save_proving_key(key, output)
        if vk is not None:
            write_text({vk: verifying_key_to_json(key.verifying_key)})
    seconds = time.perf_counter() - started
    beside = "" if vk is None else f", verifying key to {named(vk)}"
    report.line(f"development key written to {output}{beside} ({seconds:.2f} s)")
    report.result(
        {
            "key": str(output),
            "vk": None if vk is None else str(vk),
            "curve": key.curve.name,
            "domain": key.domain.size,
            "seconds": round(seconds, 6),
        }
    )


def export(
    key: Annotated[Path, Argument(help="Proving key.", metavar="KEY.zkey")],
    vk: Annotated[Path | None, Option("--vk", help="Where the verifying key goes (.json).")] = None,
    solidity: Annotated[Path | None, Option("--solidity", help="Where a Solidity verifier goes (.sol).")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Take the verifying key, or a Solidity verifier, out of a proving key."""
    from snarkline import load_proving_key
    from snarkline.errors import MismatchError
    from snarkline.formats.circom import verifier_to_solidity, verifying_key_to_json

    report = Report(as_json=as_json, quiet=quiet, outputs=(vk, solidity))
    if vk is None and solidity is None:
        raise MismatchError("nothing to export: give --vk PATH, --solidity PATH, or both")
    require_writable(vk, solidity, inputs=[key])
    verifying_key = load_proving_key(key).verifying_key
    files = {}
    if vk is not None:
        files[vk] = verifying_key_to_json(verifying_key)
    if solidity is not None:
        files[solidity] = verifier_to_solidity(verifying_key)
    write_text(files)
    for path in files:
        report.line(f"{'verifying key' if path == vk else 'Solidity verifier'} written to {named(path)}")
    report.result({"written": [str(path) for path in files]})
