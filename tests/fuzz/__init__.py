"""Fuzzing every parser: `python -m tests.fuzz --help`. `corpus` holds inputs that once reached something."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "formats"))  # raw_files and mutate, which the tests there use too
