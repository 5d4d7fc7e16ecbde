"""Libraries that tests build ahead of time, and comparisons of their results with those of jit, bit by bit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.aot.loader import Function
from cyxla.xla.cpu.c.target import isa_level

_numbers = count()
LEVEL = (isa_level(),)  # the level that jit compiles for here

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("g++") is None, reason="needs gcc and g++")


def shared(
    folder: Path, obj: Any, *specs: Any, name: str = "f", isa: Sequence[str] = LEVEL, **options: Any
) -> Function:
    """Build a shared library in a folder of its own, and load it."""
    directory = folder / f"library{next(_numbers)}"
    product = cyxla.aot.compile(obj, *specs, directory=directory, kind="shared", name=name, isa=isa, **options)
    return Function(product.library, name)


def flat(value: Any) -> list[np.ndarray]:
    """Return the arrays of a result from left to right."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [a for part in value for a in flat(part)]
    return [np.asarray(value)]


def assert_same_bits(actual: Sequence[np.ndarray], expected: Any) -> None:
    """Compare arrays bit by bit, signs of zeros and payloads of NaN included."""
    expected = flat(expected)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        assert a.tobytes() == e.tobytes()


def run_command(*command: Any, cwd: Path, **options: Any) -> str:
    """Run a command; return its output, which is the message if it fails."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
