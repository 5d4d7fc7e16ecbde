"""Loading of shared objects, and settings of the thread pool that they run on."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla import config
from cyxla._native import _rt
from cyxla._native.launch import Library, Program
from cyxla.xla.cpu.native import cache as store
from cyxla.xla.cpu.native.compiler_search import require
from cyxla.xla.cpu.native.toolchain import Toolchain, Unit

if TYPE_CHECKING:
    from cyxla.xla.cpu.native.build import Build

__all__ = [
    "ENTRY",
    "Library",
    "Program",
    "build_library",
    "default_threads",
    "pool_stats",
    "pool_trim",
    "set_pool_limit",
    "threads",
]

ENTRY = "cyx_main"  # name of the function that a call runs

pool_stats, pool_trim, set_pool_limit = _rt.pool_stats, _rt.pool_trim, _rt.set_pool_limit


def build_library(
    units: Sequence[Unit | str],
    *,
    toolchain: Toolchain | None = None,
    cache: store.DiskCache | None = None,
    build: Build | None = None,
) -> Library:
    """Compile C texts, or take them from the cache, and load the shared object.

    Parameters
    ----------
    units : sequence of Unit or str
        Self-contained texts; one of them holds ``CYX_LIBRARY`` and the entry.
    toolchain : Toolchain, optional
        Compiler and flags; by default those of this process.
    cache : DiskCache, optional
        Cache to look in first and to store the result in; by default none.
    build : Build, optional
        Compilation that has begun.
    """
    toolchain = toolchain or require()
    compile = build.image if build is not None else _compile_function(toolchain)
    texts = [Unit(unit) if isinstance(unit, str) else unit for unit in units]
    if cache is None:
        return Library.from_bytes(compile(texts))
    images: list[bytes] = []

    def build_image() -> bytes:
        images.append(compile(texts, cache))
        return images[0]

    path = cache.get_or_build(toolchain.key(texts), build_image)
    return load(path, images[0] if images else b"")


def _compile_function(toolchain: Toolchain) -> Callable[..., bytes]:
    from cyxla.xla.cpu.native.build import compile_units

    return partial(compile_units, toolchain)


def load(path: Path | None, image: bytes = b"") -> Library:
    """Load a library from its file, or from its image if there is no file or the system refuses to load it."""
    if path is not None:
        with contextlib.suppress(OSError):
            return Library(path)
        image = image or path.read_bytes()
    return Library.from_bytes(image)


def threads(n: int | None = None) -> int:
    """Return the number of threads that programs run on, the caller's included, after setting it to `n` if given."""
    if n is not None:
        _rt.set_threads(n)
    return _rt.threads()


def default_threads() -> int:
    """Return CYXLA_THREADS if set, else the number of CPUs that affinity and cgroup quota allow this process."""
    threads = config.get("THREADS") or config.get("NUM_THREADS")
    return threads or max(1, min(len(os.sched_getaffinity(0)), cgroup_quota()))


@cache
def cgroup_quota() -> int:
    """Return the CPUs that the control group grants, rounded up; 65,536 if there is no limit."""
    return min((math.ceil(quota) for quota in _quotas()), default=2**16)


def _quotas() -> list[float]:
    quotas = []
    for path in _cgroup_directories():
        for read in (_quota_v2, _quota_v1):
            with contextlib.suppress(OSError, ValueError):
                quotas.append(read(path))
    return [quota for quota in quotas if quota > 0]


def _cgroup_directories() -> list[Path]:
    """List the directories of this process's control group and its ancestors, for both versions of the interface."""
    directories: list[Path] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = Path("/sys/fs/cgroup", controllers) if controllers else Path("/sys/fs/cgroup")
            group = root / name.lstrip("/")
            directories += [group, *group.parents[: len(group.parts) - len(root.parts)]]
    return directories


def _quota_v2(directory: Path) -> float:
    quota, period = (directory / "cpu.max").read_text().split()
    return int(quota) / int(period)  # "max", for no limit, raises ValueError


def _quota_v1(directory: Path) -> float:
    quota = int((directory / "cpu.cfs_quota_us").read_text())
    return quota / int((directory / "cpu.cfs_period_us").read_text())


_rt.set_threads(default_threads())
_rt.set_pool_limit(config.get("POOL_BYTES"))
