"""`snarkline profile`: the constraints of a circuit by gadget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from snarkline.cli.circuit import CurveOption, SizesOption, compile_circuit, is_python_circuit, source_file
from snarkline.cli.options import Argument, Option
from snarkline.cli.output import JsonOption, QuietOption, Report, named, require_writable, write_text

if TYPE_CHECKING:
    from rich.tree import Tree

    from snarkline.circuit import Profile
    from snarkline.r1cs.matrices import R1CS


def profile(
    circuit: Annotated[Path, Argument(help="The circuit.", metavar="FILE.py:NAME | CIRCUIT.r1cs")],
    sym: Annotated[Path | None, Option("--sym", help="For a .r1cs: the names of its wires (.sym).")] = None,
    html: Annotated[Path | None, Option("--html", help="Where a page with a flame graph goes.")] = None,
    depth: Annotated[int, Option("--depth", min=1, help="Levels to show in the terminal.")] = 4,
    curve: CurveOption = None,
    sizes: SizesOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show where the constraints of a circuit come from."""
    from snarkline.circuit.profiling import to_html

    report = Report(as_json=as_json, quiet=quiet, outputs=(html,))
    require_writable(html, inputs=[source_file(circuit), sym])
    root = _profile(circuit, sym, curve, sizes)
    if html is not None:
        write_text({html: to_html(root)})
    report.show(_tree(root, depth))
    if html is not None:
        report.line(f"profile written to {named(html)}")
    report.result(root.to_dict())


def _profile(circuit: Path, sym: Path | None, curve: str | None, sizes: str | None) -> Profile:
    from snarkline.circuit.profiling import profile, profile_of_rows
    from snarkline.formats import load_r1cs
    from snarkline.formats.circom import load_symbols

    if is_python_circuit(circuit):
        compiled = compile_circuit(circuit, curve, sizes)
        return profile(compiled.r1cs, compiled.name)
    names = {} if sym is None else load_symbols(sym)
    return profile_of_rows(_paths(load_r1cs(circuit), names), circuit.stem)


def _paths(r1cs: R1CS, names: dict[int, str]) -> Iterator[tuple[str, int]]:
    """For each constraint the component that all its wires lie in, or below, and how many entries it has."""
    components = {wire: tuple(name.removeprefix("main.").split(".")[:-1]) for wire, name in names.items()}
    matrices = [matrix for matrix in (r1cs.matrices.a, r1cs.matrices.b, r1cs.matrices.c) if matrix is not None]
    starts = [matrix.row_start.tolist() for matrix in matrices]
    for k in range(r1cs.n_constraints):
        common: tuple[str, ...] | None = None
        entries = 0
        for matrix, start in zip(matrices, starts, strict=True):
            entries += start[k + 1] - start[k]
            for wire in matrix.column[start[k] : start[k + 1]].tolist():
                component = components.get(wire)
                if component is not None and wire != 0:
                    common = component if common is None else _shared(common, component)
        yield "/".join(common or ()), entries


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    if a == b:
        return a
    n = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:n]


def _tree(root: Profile, depth: int) -> Tree:
    """The tree as the terminal shows it. Paths below 0.1 % are counted together."""
    from rich.markup import escape
    from rich.tree import Tree

    total = max(1, root.constraints)

    def label(node: Profile) -> str:
        of = "instance" if node.instances == 1 else "instances"
        instances = f"  [dim]{node.instances:,} {of}[/dim]" if node.instances else ""
        return f"{node.constraints:>12,}  {100 * node.constraints / total:6.2f} %  {escape(node.name)}{instances}"

    def grow(branch: Tree, node: Profile, level: int) -> None:
        if level == depth:
            return
        small = [child for child in node.ordered() if 1000 * child.constraints < total]
        for child in node.ordered():
            if child not in small:
                grow(branch.add(label(child)), child, level + 1)
        if small:
            rest = sum(child.constraints for child in small)
            branch.add(f"{rest:>12,}  {100 * rest / total:6.2f} %  {len(small)} more")

    tree = Tree(label(root))
    grow(tree, root, 0)
    return tree
