"""The free memory of the machine and of the process's control groups, checked before very large allocations.

The system overcommits memory, and kills a process that uses more than there is. An allocation larger than the free
memory is therefore refused beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyxla.errors import ResourceExhaustedError

LARGE: Final = 1 << 30  # bytes; the check takes far less time than filling as many
_UNLIMITED = 1 << 60  # bytes; a control group with a limit this high has none


def require(size: int) -> None:
    """Raise if a large allocation exceeds the free memory.

    Parameters
    ----------
    size : int
        Number of bytes to be allocated and filled.

    Raises
    ------
    ResourceExhaustedError
        `size` is at least `LARGE`, and exceeds the free memory.
    """
    if size < LARGE:
        return
    available = free()
    if available is not None and size > available:
        raise ResourceExhaustedError(
            f"cannot allocate {size} bytes ({size / 2**30:.1f} GiB): only {available / 2**30:.1f} GiB are available",
            hint="make smaller arrays; reduce an array in the function that makes it, so that it is never stored",
        )


def free(root: Path = Path("/")) -> int | None:
    """Return the number of bytes, including swap, that the process can still use; None if the system does not tell."""
    machine = _numbers(root / "proc/meminfo", 1024)
    available = machine.get("MemAvailable:")
    swap = machine.get("SwapFree:", 0)
    limits = [] if available is None else [available + swap]
    return min([*limits, *_free_in_groups(root, swap)], default=None)


def _free_in_groups(root: Path, swap: int) -> Iterator[int]:
    """Yield the free bytes of each control group of the process and of its ancestors."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, read = root / "sys/fs/cgroup", _free_in_cgroup2
        elif "memory" in controllers.split(","):
            base, read = root / "sys/fs/cgroup/memory", _free_in_cgroup1
        else:
            continue
        inner = Path(path.lstrip("/"))
        for folder in (inner, *inner.parents):
            free_bytes = read(base / folder, swap)
            if free_bytes is not None:
                yield free_bytes


def _free_in_cgroup2(folder: Path, swap: int) -> int | None:
    """Return the free bytes of a control group of version 2; None if it has no limit."""
    limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
    if limit is None or used is None:
        return None
    caches = _numbers(folder / "memory.stat")
    reclaimable = caches.get("inactive_file", 0) + caches.get("active_file", 0)
    if _text(folder / "memory.swap.max").strip() == "max":
        swap_left = swap
    else:
        swap_left = (_number(folder / "memory.swap.max") or 0) - (_number(folder / "memory.swap.current") or 0)
    return max(limit - used + reclaimable, 0) + max(min(swap_left, swap), 0)


def _free_in_cgroup1(folder: Path, swap: int) -> int | None:
    """Return the free bytes of a control group of version 1; None if it has no limit."""
    limit, used = _number(folder / "memory.limit_in_bytes"), _number(folder / "memory.usage_in_bytes")
    if limit is None or used is None or limit >= _UNLIMITED:
        return None
    caches = _numbers(folder / "memory.stat")
    reclaimable = caches.get("total_inactive_file", 0) + caches.get("total_active_file", 0)
    return max(limit - used + reclaimable, 0) + swap


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _numbers(path: Path, unit: int = 1) -> dict[str, int]:
    """Return the lines ``name number`` of a file as a dict."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) * unit for row in rows if len(row) > 1 and row[1].isdigit()}
