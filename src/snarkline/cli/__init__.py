"""The command line. Exit codes: 0 fine, 1 a proof does not verify, 2 bad input, 3 internal."""

from snarkline.cli.entry import main

__all__ = ["main"]
