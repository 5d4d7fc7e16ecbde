"""Plugin libraries of kernels and ops, shared libraries or Python modules.

``include/cyxla/kernel_plugin.h`` is the interface of shared libraries. A stamp in the file, read before any of its code
runs, holds the version of the interface and the required processor features.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import util
from pathlib import Path
from threading import get_ident
from typing import Any

from cyxla import config
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.plugins import VERSIONS
from cyxla.core.framework.registration_batch import LOADING, batch, directly
from cyxla.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from cyxla.forking import new_lock

_LOG = logging.getLogger("cyxla.plugins")
PATTERN = "libcyxlakernel*.so"
UNSAFE = "REALLY_LOAD_UNSAFE_PACKAGES"
_STAMP = re.compile(rb"cyxla-kernel-plugin abi=(\d+) machine=(\w+) features=([\w.,]*);")
_loaded: dict[Path, OpLibrary] = {}
_being_loaded: dict[Path, Any] = {}  # one lock for each library, so that none waits for another


@dataclass(frozen=True)
class OpLibrary:
    """Contents of a loaded library.

    Attributes
    ----------
    path : Path
        File of the library.
    ops : tuple of OpDef
        Ops that the library declares.
    kernels : int
        Number of kernels that the library registers.
    """

    path: Path
    ops: tuple[OpDef, ...]
    kernels: int


# Compatibility checks


@lru_cache(maxsize=1)
def cpu_features() -> frozenset[str]:
    """Return the features of the processor as named in ``/proc/cpuinfo``; empty if there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def why_unsafe(path: Path) -> str:
    """Return the reason against loading a library, or "" if there is none; no code of it runs.

    Raises
    ------
    NotFoundError
        The file does not exist.
    """
    try:
        stamp = _STAMP.search(path.read_bytes())
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from None
    if stamp is None:
        return "it has no version stamp: it was not built with cyxla/kernel_plugin.h"
    abi, machine, features = int(stamp[1]), stamp[2].decode(), stamp[3].decode()
    if abi not in VERSIONS:
        return f"it was built for version {abi} of the interface; supported are {' and '.join(map(str, VERSIONS))}"
    if machine != platform.machine():
        return f"it was built for {machine}, this is {platform.machine()}"
    missing_features = [name for name in features.split(",") if name and name not in cpu_features()]
    return f"it needs {', '.join(missing_features)}, which this processor does not support" if missing_features else ""


# Loading


def load_op_library(
    path: str | os.PathLike[str], *, ops: OpRegistry | None = None, kernels: KernelRegistry | None = None
) -> OpLibrary:
    """Load a library of ops and kernels: a shared library built with ``cyxla/kernel_plugin.h``, or a Python file.

    Its ops, kernels and gradients are registered atomically: all of them or, if one is invalid, none; until then they
    are visible to this thread only. Registrations of other threads are not affected. A library is loaded only once.

    Parameters
    ----------
    path : path
        File of the library.
    ops, kernels : registries, optional
        Registries to add to; the global ones by default. A Python file chooses its registries itself.

    Returns
    -------
    OpLibrary
        Contents of the library.

    Raises
    ------
    NotFoundError
        The file does not exist.
    FailedPreconditionError
        The stamp of the library does not match this cyxla or this processor; the variable
        ``CYXLA_REALLY_LOAD_UNSAFE_PACKAGES=1`` overrides the check.
    OpError
        A declaration is invalid.
    """
    file = Path(path).resolve()
    target = (OpRegistry.global_() if ops is None else ops), (KernelRegistry.global_() if kernels is None else kernels)
    with _being_loaded.setdefault(file, new_lock()):
        if file in _loaded and ops is None and kernels is None:
            return _loaded[file]
        if not file.is_file():
            raise NotFoundError(f"{path} is not a file", hint="build the library first")
        load = _load_python if file.suffix == ".py" else _load_checked
        _fill(*target)
        with batch() as brought:
            load(file, *target)
            declared = [data.op_def for data in (brought.staged(target[0]) or {}).values()]
            count = len(brought.staged(target[1]) or ())
        library = OpLibrary(file, tuple(declared), count)
        if ops is None and kernels is None:
            _loaded[file] = library
        return library


def _fill(ops: OpRegistry, kernels: KernelRegistry) -> None:
    """Process pending registrations, which are not part of the library."""
    failure = ops.process_registrations()
    if failure is not None:
        raise failure
    kernels.load()


def _load_checked(file: Path, ops: OpRegistry, kernels: KernelRegistry) -> None:
    reason = why_unsafe(file)
    if reason and not config.get(UNSAFE):
        raise FailedPreconditionError(
            f"{file.name} is not loaded: {reason}", hint=f"rebuild it, or set CYXLA_{UNSAFE}=1"
        )
    if reason:
        _LOG.warning("%s is loaded although %s", file, reason)
    from cyxla.core.framework.plugins.library import load_native

    load_native(file, ops, kernels)


def _load_python(file: Path, _ops: OpRegistry, _kernels: KernelRegistry) -> None:
    spec = util.spec_from_file_location(f"cyxla_op_library_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InvalidArgumentError(f"{file} is not a Python module")
    spec.loader.exec_module(util.module_from_spec(spec))


ENTRY_POINTS = "cyxla.kernels"


_packages: list[str] | None = None
_asking = 0  # thread that loads the entry points


def load_packages() -> list[str]:
    """Load the libraries of `load_dynamic_kernels` and, once per process, the entry points of installed packages.

    Each entry point of the group ``cyxla.kernels`` is a function that registers ops, kernels and gradients. They are
    loaded at the first lookup that fails, because reading entry points takes longer than cyxla's own registrations.

    Returns
    -------
    list of str
        Names of the entry points that succeeded; failures are reported by warnings.
    """
    global _packages, _asking
    with LOADING, directly():
        load_dynamic_kernels()
        if _packages is None and _asking != get_ident():
            from importlib.metadata import entry_points

            _asking = get_ident()
            try:
                _packages = [point.name for point in entry_points(group=ENTRY_POINTS) if _call(point)]
            finally:
                _asking = 0
        return _packages or []


def _call(point: Any) -> bool:
    try:
        with batch():
            point.load()()
    except Exception:
        _LOG.warning("%s = %s of the group %s failed", point.name, point.value, ENTRY_POINTS, exc_info=True)
        return False
    return True


_folders: set[Path] = set()


def load_dynamic_kernels(
    folders: Sequence[str | os.PathLike[str]] | None = None,
    *,
    ops: OpRegistry | None = None,
    kernels: KernelRegistry | None = None,
) -> list[OpLibrary]:
    """Load all libraries ``libcyxlakernel*.so`` in folders, each folder once per process.

    Libraries that do not match this cyxla or this processor are skipped with a warning that names the reason.

    Parameters
    ----------
    folders : sequence of paths, optional
        Folders to search; by default those in the variable ``CYXLA_KERNEL_PATH``.
    ops, kernels : registries, optional
        Registries to add to; the global ones by default.

    Returns
    -------
    list of OpLibrary
        Libraries loaded by this call.
    """
    folder_list = config.get("KERNEL_PATH") if folders is None else folders
    libraries = []
    with LOADING:
        for folder in (Path(f).resolve() for f in folder_list):
            if folder in _folders:
                continue
            _folders.add(folder)
            libraries += [_try_load(file.resolve(), ops, kernels) for file in sorted(folder.glob(PATTERN))]
    return [library for library in libraries if library is not None]


def _try_load(file: Path, ops: OpRegistry | None, kernels: KernelRegistry | None) -> OpLibrary | None:
    lock = _being_loaded.setdefault(file, new_lock())
    if not lock.acquire(blocking=False):  # another thread is loading it, and may be waiting for this one
        return None
    try:
        return load_op_library(file, ops=ops, kernels=kernels)
    except OpError as error:
        _LOG.warning("%s", error)
        return None
    finally:
        lock.release()
