"""Memory that the machine, or the control group of the process, has free: asked before very large arrays are made.

The system hands out addresses without having the memory, and ends a process that uses more than there is. So what is
larger than all that is free is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyxla.errors import ResourceExhaustedError

LARGE: Final = 1 << 30  # bytes from which the system is asked: filling them takes far longer than asking
_UNLIMITED = 1 << 60  # bytes from which a limit of a group is none


def require(size: int) -> None:
    """Refuse memory that there is not.

    Parameters
    ----------
    size : int
        Number of bytes that are to be filled.

    Raises
    ------
    ResourceExhaustedError
        `size` is at least `LARGE`, and more than is free.
    """
    if size < LARGE:
        return
    have = free()
    if have is not None and size > have:
        raise ResourceExhaustedError(
            f"cannot allocate {size} bytes ({size / 2**30:.1f} GiB): {have / 2**30:.1f} GiB are free",
            hint="make smaller arrays; reduce an array in the function that makes it, so that it is never stored",
        )


def free(root: Path = Path("/")) -> int | None:
    """Count the bytes that this process may still fill, swap included; None where the system does not say."""
    machine = _numbers(root / "proc/meminfo", 1024)
    available = machine.get("MemAvailable:")
    swap = machine.get("SwapFree:", 0)
    limits = [] if available is None else [available + swap]
    return min([*limits, *_of_groups(root, swap)], default=None)


def _of_groups(root: Path, swap: int) -> Iterator[int]:
    """Free bytes of each control group that the process is in, outer ones too."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, read = root / "sys/fs/cgroup", _of_group
        elif "memory" in controllers.split(","):
            base, read = root / "sys/fs/cgroup/memory", _of_old_group
        else:
            continue
        inner = Path(path.lstrip("/"))
        for folder in (inner, *inner.parents):
            found = read(base / folder, swap)
            if found is not None:
                yield found


def _of_group(folder: Path, swap: int) -> int | None:
    limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
    if limit is None or used is None:
        return None
    caches = _numbers(folder / "memory.stat")
    kept = caches.get("inactive_file", 0) + caches.get("active_file", 0)  # given up when memory is short
    if _text(folder / "memory.swap.max").strip() == "max":
        room = swap
    else:
        room = (_number(folder / "memory.swap.max") or 0) - (_number(folder / "memory.swap.current") or 0)
    return max(limit - used + kept, 0) + max(min(room, swap), 0)


def _of_old_group(folder: Path, swap: int) -> int | None:
    """The same of the first version of control groups."""
    limit, used = _number(folder / "memory.limit_in_bytes"), _number(folder / "memory.usage_in_bytes")
    if limit is None or used is None or limit >= _UNLIMITED:
        return None
    caches = _numbers(folder / "memory.stat")
    kept = caches.get("total_inactive_file", 0) + caches.get("total_active_file", 0)
    return max(limit - used + kept, 0) + swap


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _numbers(path: Path, unit: int = 1) -> dict[str, int]:
    """The lines ``name number`` of a file."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) * unit for row in rows if len(row) > 1 and row[1].isdigit()}
