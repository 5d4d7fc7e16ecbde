"""Libraries of kernels, compiled from the sources in tests/data/plugins."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import cyxla
from cyxla.core.framework.load_library import OpLibrary, load_op_library

SOURCES = Path(__file__).parents[2] / "data" / "plugins"
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror")
COMPILERS = {
    "c": next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None),
    "c++": next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None),
}
STANDARDS = {"c": "-std=c99", "c++": "-std=c++17"}


def compiler(language: str) -> str:
    """Return the compiler of a language; skip the test if there is none."""
    found = COMPILERS[language]
    if found is None:
        pytest.skip(f"there is no compiler of {language}")
    return found


def compile_strictly(language: str, *arguments: str | Path) -> None:
    """Compile without any warning."""
    command = [compiler(language), STANDARDS[language], *STRICT, f"-I{cyxla.get_include()}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert done.stderr == ""


def build(folder: Path, *sources: str | Path, language: str = "c") -> Path:
    """Compile the sources, names of files in tests/data/plugins or paths, to a library."""
    target = folder / f"lib{Path(sources[0]).stem}.so"
    compile_strictly(language, "-shared", "-fPIC", "-O1", "-pthread", *(SOURCES / s for s in sources), "-o", target)
    return target


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="cyxla_plugins_")


@cache
def loaded(*sources: str, language: str = "c") -> OpLibrary:
    """Return a library that all tests of a process share, as the global registries do."""
    return load_op_library(build(Path(_folder().name), *sources, language=language))


def line_of(source: str, text: str) -> str:
    """Return the place of the only line of a source with a text, as errors name it."""
    lines = (SOURCES / source).read_text().splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if text in line]
    return f"{source}:{number}"
