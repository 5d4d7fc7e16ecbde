"""``python -m cyxla.testing``: run the conformance tests with the options of pytest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "conformance"


def main(argv: Sequence[str]) -> int:
    """Run the tests, and return the exit status of pytest."""
    options = ["--import-mode=importlib", "-p", "cyxla.testing.plugin", "-p", "no:cacheprovider"]
    return int(pytest.main([str(SUITE), *options, *argv]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
