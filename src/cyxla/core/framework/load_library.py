"""Plugin libraries of kernels and ops, shared libraries or Python modules.

``include/cyxla/kernel_plugin.h`` is the interface of shared libraries. A stamp in the file, read before any of its code
runs, holds the version of the interface and the required processor features.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import util
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from cyxla import config
from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.kernel_def import Name, as_types
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.registration_batch import LOADING, batch, directly
from cyxla.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
    from_code,
)
from cyxla.forking import new_lock

_LOG = logging.getLogger("cyxla.plugins")
ABI = 1
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
    if abi != ABI:
        return f"it was built for version {abi} of the interface; this is version {ABI}"
    if machine != platform.machine():
        return f"it was built for {machine}, this is {platform.machine()}"
    missing_features = [name for name in features.split(",") if name and name not in cpu_features()]
    return f"it needs {', '.join(missing_features)}, which this processor does not support" if missing_features else ""


# Kernels in C


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    )


_ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
)
_FAIL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
_ATTR_INT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64))
_ATTR_FLOAT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_double))
_FAILED = -1


class _Call(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.POINTER(_Tensor)),
        ("num_inputs", ctypes.c_int32),
        ("num_outputs", ctypes.c_int32),
        ("allocate_output", _ALLOCATE),
        ("fail", _FAIL),
        ("attr_int", _ATTR_INT),
        ("attr_float", _ATTR_FLOAT),
        ("host", ctypes.c_void_p),
    )


class _Op(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_char_p) for name in ("name", "signature", "attrs", "doc"))


class _Kernel(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("op", "device", "types", "label")),
        ("priority", ctypes.c_int32),
        ("compute", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Call))),
    )


class _Plugin(ctypes.Structure):
    _fields_ = (
        ("abi", ctypes.c_int32),
        ("num_ops", ctypes.c_int32),
        ("num_kernels", ctypes.c_int32),
        ("ops", ctypes.POINTER(_Op)),
        ("kernels", ctypes.POINTER(_Kernel)),
    )


class _Host:
    """Host side of one kernel call: the callbacks from C."""

    def __init__(self, ctx: OpKernelContext) -> None:
        self.ctx = ctx
        self.error: Exception | None = None
        self.arrays = [self._contiguous_input(i) for i in range(ctx.num_inputs)]
        self.tensors = (_Tensor * len(self.arrays))(*(self._tensor(i, a) for i, a in enumerate(self.arrays)))
        self.call = _Call(
            self.tensors,
            len(self.arrays),
            ctx.num_outputs,
            _ALLOCATE(self.allocate),
            _FAIL(self.fail),
            _ATTR_INT(self.attr_int),
            _ATTR_FLOAT(self.attr_float),
            None,
        )

    def _contiguous_input(self, i: int) -> np.ndarray[Any, Any]:
        array = np.asarray(self.ctx.input(i), order="C")
        if array.dtype.hasobject:
            raise UnimplementedError(f"input {i} is {self.ctx.input_dtype(i)}: C kernels support numeric data only")
        return array

    def _tensor(self, i: int, array: np.ndarray[Any, Any]) -> _Tensor:
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        return _Tensor(array.ctypes.data, dims, array.ndim, int(self.ctx.input_dtype(i)))

    def _record_error(self, error: Exception) -> int:
        self.error = self.error or error
        return _FAILED

    def allocate(self, _call: int, index: int, rank: int, dims: Any) -> int | None:
        """Allocate the memory of an output."""
        try:
            if self.ctx.expected_output_dtype(index).numpy.hasobject:
                raise UnimplementedError(f"output {index} is not numeric")
            return self.ctx.allocate_output(index, dims[:rank]).ctypes.data
        except Exception as error:
            self._record_error(error)
            return None

    def fail(self, _call: int, code: int, message: bytes | None) -> int:
        """Record an error."""
        return self._record_error(from_code(code, (message or b"").decode(errors="replace")))

    def attr_int(self, _call: int, name: bytes, value: Any) -> int:
        """Store the value of an integer attribute."""
        return self._store_attr(name, int, value)

    def attr_float(self, _call: int, name: bytes, value: Any) -> int:
        """Store the value of a float attribute."""
        return self._store_attr(name, float, value)

    def _store_attr(self, name: bytes, kind: type, value: Any) -> int:
        attr_value = self.ctx.op_kernel.attrs.get(name.decode(errors="replace"))
        if not isinstance(attr_value, kind):  # bools and types are ints
            return self._record_error(InvalidArgumentError(f"there is no {kind.__name__} attribute '{name.decode()}'"))
        value[0] = attr_value
        return 0


class NativeKernel(OpKernel):
    """Kernel of a loaded library."""

    def __init__(self, construction: OpKernelConstruction, compute: Any, library: Any) -> None:
        super().__init__(construction)
        self._compute, self._library = compute, library

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the kernel without the GIL."""
        host = _Host(ctx)
        status = self._compute(ctypes.byref(host.call))
        if host.error is not None:
            raise host.error
        if status:
            raise from_code(status, f"{self.type_string}: its kernel returned the code {status}")


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", errors="replace")


def _split_text(text: bytes | None, separator: str = ";") -> list[str]:
    return [part.strip() for part in _text(text).split(separator) if part.strip()]


def _chain(row: _Kernel) -> Name:
    chain = Name(_text(row.op)).device(_text(row.device)).label(_text(row.label)).priority(row.priority)
    for part in _split_text(row.types):
        attr, _, types = part.partition("=")
        chain.type_constraint(attr.strip(), as_types([t.strip() for t in types.split(",")]))
    return chain


def _load_native(path: Path, ops: OpRegistry, kernels: KernelRegistry) -> None:
    try:
        library = ctypes.CDLL(str(path))
        entry = library.cyxla_kernel_plugin
    except (OSError, AttributeError) as error:
        raise InvalidArgumentError(f"{path} is not a kernel library: {error}") from None
    entry.restype = ctypes.POINTER(_Plugin)
    plugin = entry().contents
    for row in plugin.ops[: plugin.num_ops]:
        op(_text(row.name), _text(row.signature), *_split_text(row.attrs), doc=_text(row.doc), shape=None, registry=ops)
    for row in plugin.kernels[: plugin.num_kernels]:
        factory = partial(NativeKernel, compute=row.compute, library=library)
        kernels.register(_chain(row).build(), factory, f"{path.name}:{_text(row.op)}")


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
    _load_native(file, ops, kernels)


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
