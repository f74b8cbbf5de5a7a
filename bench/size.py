"""Lines of source by layer and language: what `make size` prints. Blank lines and comment lines are not counted."""

from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "snarkline"
LANGUAGES = {".py": "Python", ".pyi": "Python", ".h": "C++", ".cpp": "C++", ".c": "C++", ".cu": "CUDA", ".cuh": "CUDA"}


def code_lines(path: Path) -> int:
    lines = (line.strip() for line in path.read_text().splitlines())
    return sum(1 for line in lines if line and not line.startswith(("#!", "# ", "//")))


def main() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    files: Counter[tuple[str, str]] = Counter()
    for path in SOURCE.rglob("*"):
        language = LANGUAGES.get(path.suffix)
        if language is None:
            continue
        parts = path.relative_to(SOURCE).parts
        layer = "/".join(parts[:2]) if parts[0] == "csrc" else parts[0].removesuffix(".py")
        counts[layer, language] += code_lines(path)
        files[layer, language] += 1
    for (layer, language), lines in sorted(counts.items()):
        print(f"{layer:<16} {language:<8} {files[layer, language]:>4} files {lines:>7,} lines")
    totals: Counter[str] = Counter()
    for (_, language), lines in counts.items():
        totals[language] += lines
    for language, lines in sorted(totals.items()):
        print(f"{'total':<16} {language:<8} {'':>10} {lines:>7,} lines")


if __name__ == "__main__":
    main()
