"""Write the figures of the docs from the recorded results, between markers such as

    <!-- figures: provers -->
    <!-- end -->

`--check` fails if a page is not what the results say. Each recorded result names its commit and its machine.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import gpu_figures
import gpu_life_figures
import porep_figures
import release_figures
import seed_figures
import synthesis_figures
from figures import ROOT, load, machine, table

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def provers() -> str:
    """Whole-process times of all provers, and the ratio of each peer's CPU seconds to ours."""
    results = load("provers")
    rows = []
    for result in results:
        ours = result["provers"]["snarkline"]["median"]
        for name, entry in result["provers"].items():
            m = entry["median"]
            ratio = (
                "" if name == "snarkline" else f"{m['cpu_s'] / ours['cpu_s']:.2f} / {m['wall_s'] / ours['wall_s']:.2f}"
            )
            rows.append(
                [
                    result["case"] if name == "snarkline" else "",
                    name,
                    f"{m['wall_s']:.2f}",
                    f"{m['cpu_s']:.2f}",
                    f"{m['peak_mib']:.0f}",
                    "yes" if entry["verified"] else "NO",
                    ratio,
                ]
            )
            if name == "snarkline" and "resident" in result:
                m = result["resident"]["median"]
                rows.append(["", "snarkline, resident", f"{m['wall_s']:.2f}", f"{m['cpu_s']:.2f}", "", "yes", ""])
    header = ["circuit", "prover", "wall s", "CPU s", "peak MiB", "proofs verify", "its CPU / wall over ours"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def msm() -> str:
    """Sums over BLS12-381 against blst's, and products."""
    results = load("msm")
    rows = []
    for r in results:
        for key, mine in r["us_per_point"].items():
            group, log_n = key.split()
            rows.append([f"sum in {group}, 2^{log_n} points, us a point", f"{mine:.2f}", f"{r['blst'][key]:.2f}"])
            rows[-1].append(f"{r['blst'][key] / mine:.2f}")
        for isa, ns in r["product_ns"].items():
            theirs = r["blst"]["product"]
            rows.append([f"381-bit product, {isa}, ns", f"{ns:.1f}", f"{theirs:.1f}", f"{theirs / ns:.2f}"])
    header = ["one thread, CPU time", "snarkline", "blst", "its time over ours"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def profile() -> str:
    """Phases of a proof against the bound by field products."""
    results = load("profile")
    text = ""
    for r in results:
        rows = []
        for phase, p in r["phases"].items():
            bound = ["", "", ""]
            if "products" in p:
                bound = [f"{p['products'] / 1e6:.1f}", f"{p['bound_ms']:.0f}", f"{p['bound_ms'] / p['ms']:.0%}"]
            rows.append([phase, f"{p['ms']:.0f}", f"{p['ms'] / r['ms']:.1%}", *bound])
        rows.append(["proof", f"{r['ms']:.0f}", "", "", "", ""])
        header = [f"phase of {r['name']}", "CPU ms", "share", "million products", "their ms", "of the phase"]
        text += table(header, rows)
        text += f"\nA product takes {r['product_ns']['fr']} ns in Fr and {r['product_ns']['fp']} ns in Fp.\n"
    return text + machine(results) if results else "Not recorded.\n"


def caps() -> str:
    """Proofs under caps of memory."""
    results = load("caps")
    rows = []
    for r in results:
        for row in r["caps"]:
            m = row["median"]
            cap = "none" if row["cap_mib"] is None else f"{row['cap_mib']} MiB"
            peak = max(sample["peak_mib"] for sample in row["samples"])
            rows.append([r["name"], cap, f"{peak:.0f}", f"{m['wall_s']:.2f}", f"{m['cpu_s']:.2f}"])
    header = ["circuit", "--max-memory", "greatest peak MiB", "wall s", "CPU s"]
    return table(header, rows) + machine(results) if results else "Not recorded.\n"


def startup() -> str:
    """What starting costs, and how far over their floors the two bounded cases are."""
    results, rows, lines = load("startup"), [], []
    if not results:
        return "Not recorded.\n"
    for result in results:
        median = {name: entry["median"] for name, entry in result["commands"].items()}
        for name, m in median.items():
            rows.append([f"`{name}`", f"{m['wall_s'] * 1e3:.0f}", f"{m['cpu_s'] * 1e3:.0f}", f"{m['peak_mib']:.0f}"])
        over = {
            key: [
                (median[over][key] - median[floor][key]) * 1e3
                for over, floor in (
                    ("import numpy, snarkline", "import numpy"),
                    ("snarkline --help", "empty typer --help"),
                )
            ]
            for key in ("wall_s", "cpu_s")
        }
        lines.append(
            f"\n`import snarkline` over `import numpy`: {over['wall_s'][0]:.0f} ms, {over['cpu_s'][0]:.0f} of CPU "
            f"(bound 30). `--help` over an empty typer program: {over['wall_s'][1]:.0f} ms, {over['cpu_s'][1]:.0f} of "
            f"CPU (bound 60). Medians of {result['runs']} runs in turns; load average {result['load_average']}, "
            f"niceness {result['niceness']}.\n"
        )
    return table(["process", "wall ms", "CPU ms", "peak MiB"], rows) + "".join(lines) + machine(results)


SECTIONS: dict[str, Callable[[], str]] = {
    "caps": caps,
    "msm": msm,
    "profile": profile,
    "provers": provers,
    "startup": startup,
    **gpu_figures.SECTIONS,
    **gpu_life_figures.SECTIONS,
    **porep_figures.SECTIONS,
    **release_figures.SECTIONS,
    **seed_figures.SECTIONS,
    **synthesis_figures.SECTIONS,
}

PICTURES: dict[Path, Callable[[], str]] = {ROOT / "docs" / "teardown.svg": release_figures.picture}


def render(text: str) -> str:
    return BLOCK.sub(lambda match: match[1] + SECTIONS[match["name"]]() + match[3], text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    texts = {page: render(page.read_text()) for page in PAGES if page.exists()}
    texts |= {path: draw() for path, draw in PICTURES.items()}
    stale = []
    for path, text in texts.items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.write_text(text)
    for page in stale:
        print(f"{'stale' if check else 'written'}: {page}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
