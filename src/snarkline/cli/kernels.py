"""`snarkline kernels`: the compiled GPU kernels on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from snarkline.cli.output import JsonOption, QuietOption, Report
from snarkline.threads import usable_threads

app = typer.Typer(name="kernels", help="The compiled GPU kernels that are kept on disk.", no_args_is_help=True)


@app.command()
def build(
    architecture: Annotated[
        str | None, typer.Option("--arch", help="Compute capability, such as 90; the GPU's if not given.", metavar="NN")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compile all kernels that are not there yet. With --arch no GPU is needed, only NVRTC."""
    import time

    from snarkline.backend.cuda import KernelCache, default_cache_folder, modules_of, open_device
    from snarkline.backend.cuda.cupy_driver import MIN_CAPABILITY
    from snarkline.curves.curve import CURVES
    from snarkline.errors import InputError

    report = Report(as_json=as_json, quiet=quiet)
    if architecture is not None and not (architecture.isdecimal() and int(architecture) >= MIN_CAPABILITY):
        raise InputError(f"--arch: expected a compute capability from {MIN_CAPABILITY} on, found {architecture!r}")
    target = architecture if architecture is not None else open_device().architecture
    modules = [module for curve in CURVES.values() for module in modules_of(curve)]
    begin = time.perf_counter()
    built = KernelCache(default_cache_folder()).build(
        modules,
        target,
        workers=usable_threads(),
        progress=lambda done, total, name: report.line(f"{done:2} of {total}: {name}"),
    )
    wall = time.perf_counter() - begin
    report.line(f"{len(built.seconds)} of {len(modules)} modules compiled for sm_{target} in {wall:.1f} s")
    report.result({"architecture": target, "compiled": len(built.seconds), "modules": len(modules), "seconds": wall})


@app.command(name="list")
def list_(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """List what is there, with sizes."""
    from snarkline.backend.cuda import KernelCache, default_cache_folder

    report = Report(as_json=as_json, quiet=quiet)
    folder = default_cache_folder()
    entries = [(path.name, path.stat().st_size) for path in KernelCache(folder).entries()]
    for name, size in entries:
        report.line(f"{size:>10,}  {name}")
    report.line(f"{len(entries)} modules in {folder}")
    report.result({"folder": str(folder), "modules": [{"name": name, "bytes": size} for name, size in entries]})


@app.command()
def clean(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Remove all of them."""
    from snarkline.backend.cuda import KernelCache, default_cache_folder

    report = Report(as_json=as_json, quiet=quiet)
    folder = default_cache_folder()
    count = KernelCache(folder).clean()
    report.line(f"{count} modules removed from {folder}")
    report.result({"folder": str(folder), "removed": count})
