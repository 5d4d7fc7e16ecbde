"""Disk cache of shared objects, and of whole modules with their manifest and constants.

An entry is one file: the image of a shared object first, so that the file itself can be loaded, then further parts,
then the key and a table of the parts with their checksums, then a trailer with the checksum of the table. A damaged
entry is a miss and is removed. Files appear by rename, so a reader sees all of an entry or nothing; writers of one key
wait for each other, but only to save work. A failure of the cache costs time, never a call.

The cache holds code that this process will run. So a directory that others may write is refused, and a file that
belongs to another user or that others may write counts as damaged, even if somebody swaps the directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import mmap
import os
import stat
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cyxla import config
from cyxla.hashing import blake2b
from cyxla.include_dir import get_include
from cyxla.xla.service.background import submit

if TYPE_CHECKING:
    import logging

FORMAT = "v2"  # subdirectory; one for each version of the file format
MAGIC = b"cyxla\x00\x01\n"
TRAILER = struct.Struct("<8sQQ32s")  # magic, length of the file, length of the table, digest of the table
ALIGN = 64  # bytes; alignment of every part, so that arrays in the mapped file are aligned to vectors
MAX_BYTES = 1 << 30  # default limit of the total size
TOUCH_EVERY = 3600.0  # seconds between two updates of the time at which an entry was used
SWEEP_EVERY = 64  # MiB (each entry rounded up) written between two checks of the total size
LOCK_TIMEOUT = 60.0  # seconds to wait for another process
SUFFIX = ".so"
TEMPORARY = ".tmp"
STALE_AFTER = 3600.0  # seconds after which the writer of an unfinished file must have died


def _logger() -> logging.Logger:
    import logging

    return logging.getLogger(__name__)


def digest(*parts: str | bytes) -> str:
    """Hash parts, each with its length, to hexadecimal digits that are the same in every process."""
    state = blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(struct.pack("<Q", len(data)))
        state.update(data)
    return state.hexdigest()


@functools.cache
def code_fingerprint() -> str:
    """Return a digest of the sources that turn programs into C, so that an edited emitter misses its old output."""
    root = Path(__file__).resolve().parents[3]
    folders = [root / "types", root / "xla", root / "_native", Path(get_include()) / "cyxla"]
    return digest(*sorted(identity for folder in folders for identity in _identities(os.fspath(folder))))


def _identities(directory: str) -> Iterator[str]:
    """Yield path, size and time of every source file of a tree, by one system call each, since every process asks."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".h", ".so")):
                info = entry.stat()
                yield f"{entry.path} {info.st_size} {info.st_mtime_ns}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _identities(entry.path)


def default_directory() -> Path:
    """Return CYXLA_CACHE_DIR, else the user's cache directory."""
    if directory := config.get("CACHE_DIR"):
        return Path(directory)
    default = os.path.expanduser("~/.cache/cyxla")
    if sys.platform == "linux" and "XDG_CACHE_HOME" not in os.environ and os.path.isabs(default):
        return Path(default)  # as platformdirs would answer, whose import takes milliseconds
    import platformdirs

    return Path(platformdirs.user_cache_dir("cyxla"))


def open_cache() -> DiskCache | None:
    """Return the cache of this process, or None when CYXLA_CACHE=0 or its directory cannot be trusted or made."""
    return _open(default_directory(), config.get("CACHE_BYTES")) if config.get("CACHE") else None


@functools.cache
def _open(directory: Path, limit: int) -> DiskCache | None:
    try:
        return DiskCache(directory, limit)
    except OSError as error:
        _logger().warning("no disk cache: %s", error)
        return None


class Entry(NamedTuple):
    """A verified entry.

    Attributes
    ----------
    path : Path
        File of the entry, which begins with the shared object.
    parts : list of memoryview
        Shared object and further parts, in the mapped file.
    """

    path: Path
    parts: list[memoryview]

    def image(self) -> bytes:
        """Return a copy of the shared object."""
        return bytes(self.parts[0])


class Module(NamedTuple):
    """A compiled module from the cache.

    Attributes
    ----------
    manifest : dict
        Manifest that `put_module` was given, after a round trip through JSON.
    path : Path
        File of the shared object.
    constants : list of memoryview
        Read-only bytes in the mapped file, 64-byte aligned.
    """

    manifest: dict[str, Any]
    path: Path
    constants: list[memoryview]


class DiskCache:
    """Entries by key in a private directory of the user.

    Parameters
    ----------
    directory : Path
        Directory of the cache, created if missing. One that others may write to is refused.
    limit : int
        Total size in bytes, above which the least recently used entries are removed.

    Raises
    ------
    OSError
        The directory cannot be used.
    """

    def __init__(self, directory: Path, limit: int = MAX_BYTES) -> None:
        self.directory = directory / FORMAT
        self.limit = limit
        directory.parent.mkdir(parents=True, exist_ok=True)
        for path in (directory, self.directory):
            path.mkdir(mode=0o700, exist_ok=True)
            _require_private(path)

    # --- entries ----------------------------------------------------------------------------------------------------

    def path(self, key: str) -> Path:
        """Return the path of the entry of a key, which need not exist."""
        return self.directory / key[:2] / (key + SUFFIX)

    def get(self, key: str) -> Entry | None:
        """Return the verified entry of a key, or None."""
        path = self.path(key)
        try:
            parts = _read(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            _logger().info("dropped a damaged cache entry: %s", error)
            _unlink(path)
            return None
        _touch(path)
        return Entry(path, parts)

    def put(self, key: str, image: bytes, parts: Sequence[bytes | memoryview] = ()) -> Path | None:
        """Store an entry; return its path, or None if it cannot be written."""
        path = self.path(key)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            written = _write(path, [image, *parts])
            self._count_written(written)
        except OSError as error:
            _logger().warning("the disk cache cannot be written: %s", error)
            return None
        return path

    def get_or_build(self, key: str, build: Callable[[], bytes]) -> Path | None:
        """Return the path of the entry of a key, built if missing; None if it was built but could not be stored."""
        entry = self.get(key)
        if entry is None:
            with self.building(key):
                entry = self.get(key)
                if entry is None:
                    return self.put(key, build())
        return entry.path

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[None]:
        """Lock a key against other processes that would build it, with a timeout, and only if file locks work here."""
        path = self.path(key).with_suffix(".lock")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            _lock(lock, LOCK_TIMEOUT)
            yield
        finally:
            _unlink(path)  # waiting processes have the file open; at worst another process builds the same entry
            os.close(lock)

    # --- modules ----------------------------------------------------------------------------------------------------

    def put_module(
        self, key: str, manifest: dict[str, Any], image: bytes, constants: Sequence[bytes | memoryview] = ()
    ) -> Path | None:
        """Store a compiled module under the key of its program."""
        return self.put(key, image, [json.dumps(manifest).encode(), *constants])

    def get_module(self, key: str) -> Module | None:
        """Return a compiled module, or None."""
        entry = self.get(key)
        if entry is None or len(entry.parts) < 2:
            return None
        try:
            manifest = json.loads(bytes(entry.parts[1]))
        except ValueError:
            _unlink(entry.path)
            return None
        return Module(manifest, entry.path, entry.parts[2:])

    def put_name(self, name: str, key: str) -> None:
        """Store an alias: a name of the entry with that key."""
        self.put(name, b"", [key.encode()])

    def get_name(self, name: str) -> str:
        """Return the key stored under a name, or "" if there is none."""
        entry = self.get(name)
        if entry is None or len(entry.parts) < 2:
            return ""
        return bytes(entry.parts[1]).decode("ascii", "replace")

    # --- housekeeping -----------------------------------------------------------------------------------------------

    def files(self) -> list[Path]:
        """List the files of all entries."""
        return sorted(self.directory.glob(f"??/*{SUFFIX}"))

    def info(self) -> dict[str, Any]:
        """Return directory, number of entries, total bytes and limit of the cache."""
        sizes = [info.st_size for _, info in _stats(self.files())]
        return {"directory": str(self.directory), "entries": len(sizes), "bytes": sum(sizes), "limit": self.limit}

    def verify(self) -> list[Path]:
        """Verify every entry; remove the damaged ones and return their paths."""
        damaged = []
        for path in self.files():
            try:
                _read(path)
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                damaged.append(path)
                _unlink(path)
        return damaged

    def clear(self) -> None:
        """Remove all entries. Programs that were loaded from them keep running."""
        import shutil

        for path in list(self.directory.iterdir()):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                _unlink(path)

    def sweep(self) -> None:
        """Remove the least recently used entries until the rest is below the limit, and files of dead writers."""
        oldest = time.time() - STALE_AFTER
        for pattern in (f".*{TEMPORARY}", f"??/.*{TEMPORARY}", "??/*.lock"):
            for path, info in _stats(list(self.directory.glob(pattern))):
                if info.st_mtime < oldest:
                    _unlink(path)
        entries = sorted(_stats(self.files()), key=lambda entry: entry[1].st_mtime)
        total = sum(info.st_size for _, info in entries)
        for path, info in entries:
            if total <= self.limit:
                break
            _unlink(path)
            total -= info.st_size

    def _count_written(self, written: int) -> None:
        """Append one byte per MiB to a counter file; sweep in the background after every SWEEP_EVERY bytes of it."""
        units = 1 + (written >> 20)
        fd = os.open(self.directory / "written", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"." * units)
            total = os.fstat(fd).st_size
            if total // SWEEP_EVERY != (total - units) // SWEEP_EVERY:
                os.ftruncate(fd, total % SWEEP_EVERY)
                submit(self.sweep)
        finally:
            os.close(fd)


class FactFile:
    """Small JSON file of facts in the cache directory; a fact that cannot be stored is determined again."""

    def __init__(self, name: str) -> None:
        cache = open_cache()
        self.path = cache.directory / name if cache else None

    def _load(self) -> dict[str, Any]:
        if self.path is None:
            return {}
        try:
            with open(_open_private(self.path), "rb") as file:
                facts = json.load(file)
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def get(self, key: str) -> object:
        """Return the fact of a key, or None."""
        return self._load().get(key)

    def put(self, key: str, value: object) -> None:
        """Store a fact under a key."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                _replace(self.path, [json.dumps({**self._load(), key: value}).encode()])


# --- files ------------------------------------------------------------------------------------------------------------


def _require_private(path: Path) -> None:
    """Raise an error if another user could put code into a directory."""
    info = path.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(f"{path} is not a directory")
    if info.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if info.st_mode & stat.S_IWOTH:
        raise PermissionError(f"{path} can be written by everybody; fix it by `chmod go-w`")
    if info.st_mode & stat.S_IWGRP:
        raise PermissionError(f"{path} can be written by its group; fix it by `chmod g-w`")


def _open_private(path: Path) -> int:
    """Open a private file of the user for reading.

    Raises
    ------
    ValueError
        The path is no regular file, belongs to another user, or others may write it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    info = os.fstat(fd)
    writable = info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or writable:
        os.close(fd)
        raise ValueError(f"{path} is not a private regular file of this user")
    return fd


def _checksum(data: bytes | memoryview) -> int:
    return zlib.crc32(data)


def _write(path: Path, parts: Sequence[bytes | memoryview]) -> int:
    """Write an entry; return its length."""
    table = []
    chunks: list[bytes | memoryview] = []
    offset = 0
    for part in parts:
        size = memoryview(part).nbytes
        table.append([offset, size, _checksum(part)])
        chunks += [part, bytes(-size % ALIGN)]
        offset += size + -size % ALIGN
    tail = json.dumps([path.stem, table]).encode()
    total = offset + len(tail) + TRAILER.size
    trailer = TRAILER.pack(MAGIC, total, len(tail), blake2b(tail, digest_size=32).digest())
    _replace(path, [*chunks, tail, trailer])
    return total


def _replace(path: Path, chunks: Sequence[bytes | memoryview]) -> None:
    """Write a file atomically, readable by its owner only."""
    temporary = path.with_name(f".{os.urandom(8).hex()}{TEMPORARY}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.writelines(chunks)
        os.replace(temporary, path)
    except BaseException:
        _unlink(temporary)
        raise


def _read(path: Path) -> list[memoryview]:
    """Map an entry and verify it.

    Raises
    ------
    ValueError
        The entry is damaged.
    """
    with open(_open_private(path), "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    size = len(mapped)
    if size < TRAILER.size:
        raise ValueError(f"{path} is too short")
    magic, total, tail_size, tail_digest = TRAILER.unpack(mapped[size - TRAILER.size :])
    if magic != MAGIC or total != size or tail_size > size - TRAILER.size:
        raise ValueError(f"{path} is incomplete")
    tail = bytes(mapped[size - TRAILER.size - tail_size : size - TRAILER.size])
    if blake2b(tail, digest_size=32).digest() != tail_digest:
        raise ValueError(f"{path} has a damaged table")
    key, table = json.loads(tail)
    if key != path.stem:
        raise ValueError(f"{path} contains the entry of {key}")
    parts = []
    for offset, length, checksum in table:
        part = mapped[offset : offset + length]
        if len(part) != length or _checksum(part) != checksum:
            raise ValueError(f"{path} has a damaged part")
        parts.append(part)
    return parts


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > TOUCH_EVERY:
            os.utime(path)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _stats(paths: Sequence[Path]) -> list[tuple[Path, os.stat_result]]:
    stats = []
    for path in paths:
        with contextlib.suppress(OSError):
            stats.append((path, path.stat()))
    return stats


def _lock(fd: int, timeout: float) -> bool:
    """Take a file lock, waiting for at most `timeout` seconds; return whether it was taken."""
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)  # seconds; flock has no timeout of its own
        except OSError:
            return False
