"""Environment of kernels: files, clock and threads of the process.

Kernels access files through `OpKernelConstruction.env` and `OpKernelContext.env` alone. Every method checks the path
against the permission of the graph, and raises errors of the class that TensorFlow has for the system's error number.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from cyxla.core.framework.environment.file_access import UNLIMITED, FileAccess
from cyxla.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

_NUMBERS: dict[type[OpError], str] = {
    AbortedError: "EDEADLK ESTALE",
    AlreadyExistsError: "EEXIST EADDRNOTAVAIL EALREADY",
    CancelledError: "ECANCELED",
    DeadlineExceededError: "ETIMEDOUT ETIME",
    FailedPreconditionError: "ENOTEMPTY EISDIR ENOTDIR EADDRINUSE EBADF EBUSY ECHILD EISCONN ENOTBLK ENOTCONN EPIPE "
    "ESHUTDOWN ETXTBSY",
    InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG EDESTADDRREQ EDOM EFAULT EILSEQ ENOPROTOOPT ENOSTR ENOTSOCK "
    "ENOTTY EPROTOTYPE ESPIPE",
    NotFoundError: "ENODEV ENOENT ENXIO ESRCH",
    OutOfRangeError: "EFBIG EOVERFLOW ERANGE",
    PermissionDeniedError: "EPERM EACCES EROFS",
    ResourceExhaustedError: "ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENODATA ENOMEM ENOSR EUSERS",
    UnavailableError: "EAGAIN ECONNREFUSED ECONNABORTED ECONNRESET EINTR EHOSTDOWN EHOSTUNREACH ENETDOWN ENETRESET "
    "ENETUNREACH ENOLCK ENOLINK ENONET",
    UnimplementedError: "ENOSYS ENOTSUP EAFNOSUPPORT EPFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT EXDEV",
}
_CLASSES = {getattr(errno, name): cls for cls, names in _NUMBERS.items() for name in names.split()}


def io_error(path: str, error: OSError) -> OpError:
    """Return the error of a file in the class that TensorFlow has for the system's error number."""
    return _CLASSES.get(error.errno or 0, UnknownError)(f"{path}; {error.strerror or error}")


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    try:
        yield
    except OpError:  # some are OSErrors, too
        raise
    except OSError as error:
        raise io_error(path, error) from error


@dataclass(frozen=True, slots=True)
class Env:
    """Files, clock and threads, as far as a graph may use them.

    Parameters
    ----------
    access : FileAccess
        Files that are accessible.
    user : str
        Name of the op, for error messages.
    """

    access: FileAccess = UNLIMITED
    user: str = ""

    # Files

    def path(self, path: str) -> str:
        """Check a path and return it as the system takes it: without ``file://`` and superfluous separators.

        Raises
        ------
        PermissionDeniedError
            The graph was loaded from a model, and the file is outside of its folder.
        UnimplementedError
            The path has the scheme of a file system other than the local one.
        """
        return self.access.path(_local(path), self.user)

    def _entry(self, path: str) -> str:
        """Check the folder of a path and return the path of the entry itself, even if it is a symbolic link."""
        folder, name = os.path.split(_local(path))
        if not self.access.is_limited or name in ("", "..") or "\0" in name:
            return self.path(path)
        return os.path.join(self.access.path(folder or os.curdir, self.user), name)

    def file_exists(self, path: str) -> bool:
        """Return True if there is a file or folder of this name."""
        return os.path.exists(self.path(path))

    def is_directory(self, path: str) -> bool:
        """Return True if the path is that of a folder."""
        return os.path.isdir(self.path(path))

    def get_file_size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        with _errors_of(path):
            return os.stat(self.path(path)).st_size

    def read_file(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Read a file, or the part of it from `offset` on; fewer bytes than `size` only at its end."""
        if offset < 0:
            raise InvalidArgumentError(f"{path}; {os.strerror(errno.EINVAL)}")
        with _errors_of(path), open(self.path(path), "rb") as file:
            file.seek(offset)
            return file.read(size)

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file, replacing what it contains."""
        with self.new_writable_file(path) as file:
            file.append(data)

    def new_writable_file(self, path: str) -> WritableFile:
        """Create a file, or empty an existing one, to be written."""
        return self._writable_file(path, "wb")

    def new_appendable_file(self, path: str) -> WritableFile:
        """Open a file to be written at its end; create it if it does not exist."""
        return self._writable_file(path, "ab")

    def _writable_file(self, path: str, mode: str) -> WritableFile:
        with _errors_of(path):
            return WritableFile(path, open(self.path(path), mode))  # type: ignore[arg-type]

    def new_read_only_memory_region(self, path: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Map a file into memory and return its bytes."""
        checked = self.path(path)
        with _errors_of(path):
            if os.stat(checked).st_size:
                return np.memmap(checked, np.uint8, "r")
            return np.zeros(0, np.uint8)  # nothing can be mapped

    def get_children(self, path: str) -> list[str]:
        """Return the names of the entries of a folder, sorted."""
        with _errors_of(path):
            return sorted(os.listdir(self.path(path)))

    def get_matching_paths(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern with ``*``, ``?`` and ``[..]``, none of which matches ``/``, sorted."""
        return sorted(map(self._entry, glob(self.path(pattern), include_hidden=True)))

    def create_dir(self, path: str) -> None:
        """Create a folder."""
        with _errors_of(path):
            os.mkdir(self.path(path), 0o755)

    def recursively_create_dir(self, path: str) -> None:
        """Create a folder and all folders above it, unless they exist.

        Raises
        ------
        FailedPreconditionError
            One of them is a file.
        """
        checked = self.path(path)
        with _errors_of(path):
            try:
                os.makedirs(checked or os.curdir, 0o755, exist_ok=True)
            except FileExistsError:
                raise FailedPreconditionError(f"{path} is not a directory") from None

    def delete_file(self, path: str) -> None:
        """Delete a file, or a symbolic link."""
        with _errors_of(path):
            os.unlink(self._entry(path))

    def delete_dir(self, path: str) -> None:
        """Delete an empty folder."""
        with _errors_of(path):
            os.rmdir(self._entry(path))

    def delete_recursively(self, path: str) -> None:
        """Delete a file, or a folder with all that it contains; symbolic links are deleted, not followed.

        Raises
        ------
        OpError
            The first failure, after all others were deleted.
        """
        entry = self._entry(path)
        if os.path.islink(entry) or not os.path.isdir(entry):
            self.delete_file(path)
            return
        failures: list[OSError] = []
        for folder, folders, files in os.walk(entry, topdown=False, onerror=failures.append):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in (*files, *links):
                _attempt(os.unlink, os.path.join(folder, name), failures)
            _attempt(os.rmdir, folder, failures)
        if failures:
            raise io_error(str(failures[0].filename), failures[0])

    def rename_file(self, source: str, target: str) -> None:
        """Rename a file or folder; an existing target is replaced."""
        with _errors_of(source):
            os.replace(self._entry(source), self._entry(target))

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; a new one gets the permissions of the source."""
        is_new = not self.file_exists(target)
        with _errors_of(source), open(self.path(source), "rb") as file:
            with self.new_writable_file(target) as copy:
                while block := file.read(1 << 20):
                    copy.append(block)
            if is_new:
                os.chmod(self.path(target), os.fstat(file.fileno()).st_mode & 0o777)

    # Clock

    def now_nanos(self) -> int:
        """Return the nanoseconds since 1970."""
        return time.time_ns()

    def now_micros(self) -> int:
        """Return the microseconds since 1970."""
        return time.time_ns() // 1_000

    def now_seconds(self) -> int:
        """Return the seconds since 1970."""
        return time.time_ns() // 1_000_000_000

    def sleep_for_microseconds(self, micros: int) -> None:
        """Let the thread sleep."""
        time.sleep(max(micros, 0) / 1e6)

    # Threads

    def start_thread(self, name: str, function: Callable[[], object]) -> threading.Thread:
        """Run a function on a new thread, which the caller must `join`."""
        thread = threading.Thread(target=_run_quietly, args=(function,), name=name)
        thread.start()
        return thread

    def sched_closure(self, closure: Callable[[], object]) -> None:
        """Run a closure, which may block, on a thread of its own; the end of the process does not wait for it."""
        threading.Thread(target=_run_quietly, args=(closure,), name="cyxla-closure", daemon=True).start()

    def sched_closure_after(self, micros: int, closure: Callable[[], object]) -> None:
        """Run a closure after a number of microseconds, as `sched_closure` does."""
        timer = threading.Timer(max(micros, 0) / 1e6, _run_quietly, (closure,))
        timer.daemon = True
        timer.start()


class WritableFile:
    """A file that is written from its start, or from its end, on; a context manager that closes it."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.path, self._file = path, file

    def append(self, data: bytes) -> None:
        """Write bytes at the end."""
        with self._errors():
            self._file.write(data)

    def tell(self) -> int:
        """Return the position in the file."""
        with self._errors():
            return self._file.tell()

    def flush(self) -> None:
        """Pass what was written to the system."""
        with self._errors():
            self._file.flush()

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        FailedPreconditionError
            It is closed already.
        """
        with self._errors():
            self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if self._file.closed:
            raise FailedPreconditionError(f"{self.path}; {os.strerror(errno.EBADF)}")
        with _errors_of(self.path):
            yield

    def __enter__(self) -> WritableFile:
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self.close()


def _attempt(function: Callable[[str], None], path: str, failures: list[OSError]) -> None:
    try:
        function(path)
    except OSError as error:
        failures.append(error)


def _local(path: str) -> str:
    """Return a path without a scheme and superfluous separators."""
    scheme, mark, rest = path.partition("://")
    if mark and scheme[:1].isalpha() and scheme.replace(".", "").isalnum() and scheme.isascii():
        if scheme != "file":
            raise UnimplementedError(
                f"File system scheme '{scheme}' not implemented (file: '{path}')",
                hint="copy the file to a local folder",
            )
        path = "/" + rest.partition("/")[2]
    return os.path.normpath(path) if path else path


def _run_quietly(function: Callable[[], object]) -> None:
    with np.errstate(all="ignore"):
        function()
