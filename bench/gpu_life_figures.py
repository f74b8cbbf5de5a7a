"""The figures of docs/gpu.md about what surrounds the kernels, from docs/data/gpu-life (bench/gpu_life.py) and
docs/data/gpu-devices (bench/gpu_devices.py)."""

from collections.abc import Callable
from typing import Any

from figures import load, table
from gpu_figures import CURVES

NONE = "Not recorded.\n"
KINDS = {"random": "random witness", "bits": "nine wires in ten are bits"}
Result = dict[str, Any]


def recorded(section: str) -> list[Result]:
    """The records that have the section; one that failed is its error's text."""
    return [result for result in load("gpu-life") if isinstance(result.get(section), dict)]


def source(result: Result) -> str:
    device = result.get("device") or result["devices"][0]
    return (
        f"\n{device}, driver {result['driver']}, {result['cores']} cores, {result['memory_gib']} GiB; "
        f"commit {result['commit']}, {result['date']}.\n"
    )


def auto() -> str:
    """Proofs by size on both, and from where on a GPU pays."""
    text = ""
    for result in recorded("auto"):
        cells = {tuple(name.split()): row for name, row in result["auto"].items()}
        sizes = list(dict.fromkeys(size for size, _ in cells))
        rows = [
            [f"{title}, {KINDS[kind]}", *(f"{cells[size, kind][f'{where}_ms']:.0f}" for size in sizes)]
            for kind in KINDS
            for where, title in (("cpu", "CPU"), ("cuda", "GPU"))
        ]
        text += table([f"{result['device']} and its {result['cores']} cores, ms a proof", *sizes], rows)
        open_ms = 1e3 * result["open_s"]
        resident, single = _from(sizes, cells, "ms", 0), _from(sizes, cells, "first_ms", open_ms)
        text += (
            f"\nA process that makes a single proof opens the GPU first, which takes {open_ms / 1e3:.1f} s: for it the "
            f"GPU is faster {single}. A resident prover gains {resident}; for small circuits ask for it by name.\n"
        ) + source(result)
    return text or NONE


def _from(sizes: list[str], cells: dict[Any, Result], what: str, extra_ms: float) -> str:
    """From which size on a GPU is faster, even if it takes so much more, for each kind of witness."""

    def words(kind: str) -> str:
        rows = [cells[size, kind] for size in sizes]
        good = [row[f"cuda_{what}"] + extra_ms < row[f"cpu_{what}"] for row in rows]
        first = next((i for i in range(len(sizes)) if all(good[i:])), None)
        if first is None:
            return f"at none of the sizes up to {sizes[-1]}"
        return "at every size" if first == 0 else f"from {sizes[first]} on"

    found = {words(kind): kind for kind in KINDS}
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{text} ({KINDS[kind]})" for text, kind in found.items())


def transfer() -> str:
    """Uploads by where they come from, and page-locking."""
    text = ""
    ways = {
        "pageable": "from pageable memory, by the driver",
        "staged": "through the buffers",
        "page-locked": "from page-locked memory",
    }
    for result in recorded("memory"):
        sizes = result["memory"]
        rows = [[title, *(f"{sizes[size][way]:.1f}" for size in sizes)] for way, title in ways.items()]
        text += table(["GB/s to the device", *sizes], rows)
        pinned = result.get("pinned")
        if isinstance(pinned, dict):
            lock, unlock = (pinned["4 GiB"][name] / 4 for name in ("lock_s", "unlock_s"))
            text += (
                f"\nPage-locking takes {lock:.2f} s a GiB, and its end {unlock:.2f} s; a process that ends with "
                f"{pinned['exit_gib']} GiB locked and copies from them pending is gone {pinned['exit_s']:.1f} s after "
                "its last statement.\n"
            )
        text += source(result)
    return text or NONE


def caps() -> str:
    """Proofs under caps of device memory."""
    text = ""
    for result in recorded("stream"):
        found = result["stream"]
        header = ["BLS12-381, 2^20, random witness", *(_cap(name) for name in found)]
        kept = [("tables", "keep_tables", "streamed"), ("matrices", "keep_matrices", "while multiplied")]
        rows = [
            ["ms a proof", *(f"{row['prove_ms']:.0f}" for row in found.values())],
            *(
                [name, *("resident" if row[key] else otherwise for row in found.values())]
                for name, key, otherwise in kept
            ),
            ["planned peak, MiB", *(f"{row['planned_mib']:,}" for row in found.values())],
            ["peak, MiB", *(f"{row['peak_mib']:,}" for row in found.values())],
        ]
        text += table(header, rows) + source(result)
    return text or NONE


def _cap(name: str) -> str:
    if name == "None":
        return "no cap"
    return f"{int(name) // 1024} GiB" if int(name) >= 1024 else f"{name} MiB"


def gap() -> str:
    """Wall against device time of the half of a proof that is the device's."""
    text = ""
    for result in recorded("gap"):
        rows = []
        for name, row in result["gap"].items():
            curve, size, kind = name.split()
            rows.append(
                [
                    f"{CURVES[curve]}, {size}, {kind}",
                    f"{row['wall_ms']:.1f}",
                    f"{row['device_ms']:.1f}",
                    f"{row['gap']:.1%}",
                ]
                + [f"{row[f'{part}_ms']:.1f}" for part in ("before_first", "between", "after_last")]
                + [f"{row['spans'].get('upload', 0):.1f}"]
            )
        header = ["of `start`, ms", "wall", "device", "share beyond it", "before the first span", "between spans"]
        text += table([*header, "after the last", "uploads"], rows) + source(result)
    return text or NONE


def devices() -> str:
    """Proofs a second on one GPU and on two."""
    text = ""
    for result in load("gpu-devices"):
        rows = []
        for case in dict.fromkeys(row["case"] for row in result["rows"]):
            found = [row for row in result["rows"] if row["case"] == case]
            one, two, apart = (
                max((r for r in found if (r["devices"], r["processes"]) == kind), key=_rate, default=None)
                for kind in ((1, 1), (2, 1), (2, 2))
            )
            if one is None or two is None:
                continue
            curve, size, kind = case.split(":")
            rows.append(
                [f"{CURVES[curve]}, 2^{size}, {kind}", _cell(one), _cell(two), f"{_rate(two) / _rate(one):.2f}"]
            )
            rows[-1] += ["", ""] if apart is None else [f"{_rate(apart):.1f}", f"{_rate(apart) / _rate(one):.2f}"]
        header = ["proofs a second", "one GPU (threads)", "two GPUs (threads)", "times", "two processes", "times"]
        text += table(header, rows) + source(result)
    return text or NONE


def _rate(row: Result) -> float:
    return float(row["proofs_per_s"])


def _cell(row: Result) -> str:
    return f"{row['proofs_per_s']:.1f} ({row['threads']})"


SECTIONS: dict[str, Callable[[], str]] = {
    "gpu-auto": auto,
    "gpu-transfer": transfer,
    "gpu-caps": caps,
    "gpu-time": gap,
    "gpu-devices": devices,
}
