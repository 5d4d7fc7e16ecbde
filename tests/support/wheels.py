"""Wheels that tests build, install and run, some of them where there is NumPy alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import cyxla
from support.builds.ahead_of_time import LEVEL

_numbers = count()


def build(folder: Path, obj: Any, *specs: Any, isa: Sequence[str] = LEVEL, **options: Any) -> Path:
    """Build a wheel."""
    return cyxla.aot.compile(obj, *specs, directory=folder, kind="wheel", isa=isa, **options).library


def install(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel into a folder, and check the list of its files."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = archive.namelist()
        [record] = [n for n in names if n.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        assert [row[0] for row in rows] == names
        for name, digest, size in rows[:-1]:
            content = archive.read(name)
            assert (
                digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            )
            assert int(size) == len(content)
        assert rows[-1] == [record, "", ""]
    return folder


def module(folder: Path, obj: Any, *specs: Any, **options: Any) -> Any:
    """Build a wheel, install it, and import its package, which gets a name of its own."""
    name = options.pop("name", None) or f"wheel{next(_numbers)}"
    target = folder / name
    target.mkdir()
    install(build(folder, obj, *specs, name=name, **options), target)
    sys.path.insert(0, str(target))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(target))


def numpy_alone(folder: Path) -> Path:
    """Make a folder of packages with NumPy, and with no other one."""
    folder.mkdir(exist_ok=True)
    installed = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (installed / name).exists():
            (folder / name).symlink_to(installed / name)
    return folder


def run_alone(code: str, *folders: Path) -> str:
    """Run Python code in a process that finds the packages of these folders alone, and no compiler."""
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
