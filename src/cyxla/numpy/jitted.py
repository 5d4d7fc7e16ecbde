"""`cyxla.jit`: functions written with NumPy, traced once for each signature, compiled, and called from then on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from inspect import signature
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, TraceError
from cyxla.numpy import methods as _methods
from cyxla.numpy.arguments import Adapter, adapter_of
from cyxla.numpy.containers import Tree, flatten, paths
from cyxla.numpy.promotion import WEAK_DTYPES, Kind, dtype_of
from cyxla.numpy.trace import Program, Trace, current, tracing
from cyxla.numpy.traced_array import TracedArray, as_traced, value_of
from cyxla.types import Shape, from_numpy
from cyxla.xla.client import compile_program
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.service import Executable

_ = _methods  # gives TracedArray its operators


@dataclass(frozen=True)
class Spec:
    """What is known of an argument while tracing.

    Attributes
    ----------
    shape : tuple of int
        Sizes.
    kind : dtype or type
        Element type, or the class of a Python number.
    adapter : Adapter, optional
        Makes the array of the argument, which is none.
    """

    shape: tuple[int, ...]
    kind: Kind
    adapter: Adapter | None = None

    @property
    def aval(self) -> Shape:
        """In HLO's terms."""
        return Shape.array(from_numpy(dtype_of(self.kind)), self.shape)


@dataclass
class Lowered:
    """A traced function.

    Attributes
    ----------
    module : HloModule
        Takes the arrays among the arguments; returns a tuple of the arrays of the result, then the failure if any.
    program : Program
        What a run checks.
    tree : Tree
        The container that the function returns.
    fails : bool
        Whether the last result is a failure.
    """

    module: HloModule
    program: Program
    tree: Tree
    fails: bool


def lower(
    function: Callable[..., Any], leaves: Sequence[Any], tree: Tree, names: Sequence[str], bounds: str
) -> Lowered:
    """Trace a function.

    Parameters
    ----------
    function : callable
        Written with NumPy.
    leaves : sequence
        A `Spec` for each array among the arguments; anything else is handed to the function as it is.
    tree : Tree
        Builds ``(args, kwargs)`` from the leaves.
    names : sequence of str
        What to call the leaves in errors.
    bounds : str
        What indices out of range do.
    """
    trace = Trace(getattr(function, "__name__", "function").strip("<>") or "function")
    trace.program.bounds = bounds
    with tracing(trace):
        given = [_argument(trace, leaf, name) for leaf, name in zip(leaves, names, strict=True)]
        args, kwargs = tree.build(given)
        results, result_tree = flatten(function(*args, **kwargs))
        values = [
            value_of(_result(r, p))
            for r, p in zip(results, paths(result_tree.build(range(result_tree.count)), "result"), strict=True)
        ]
        failure = trace.failure()
        root = xla.tuple_(trace.builder, [*values, *([failure] if failure is not None else [])])
    return Lowered(trace.build(root).module(), trace.program, result_tree, failure is not None)


def _argument(trace: Trace, leaf: Any, name: str) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    weak = leaf.kind if isinstance(leaf.kind, type) else None
    made = TracedArray(trace.parameter(leaf.aval, name), weak, origin=f"argument {name}")
    return made if leaf.adapter is None else leaf.adapter.stand_in(made)


def _result(value: Any, path: str) -> TracedArray:
    try:
        return as_traced(value)
    except InvalidArgumentError as error:
        raise TraceError(f"{path} is a {type(value).__name__}, not an array: {error.message}") from None


@dataclass
class Entry:
    """What is compiled for one signature."""

    lowered: Lowered
    executable: Executable

    def __call__(self, arrays: Sequence[Any], out: Any = None) -> Any:
        """Run on the arrays among the arguments."""
        results = self.executable(*arrays)
        if self.lowered.fails:
            check(results[-1], self.lowered.program)
            results = results[:-1]
        return self.lowered.tree.build([r[()] if r.ndim == 0 else r for r in results])


def check(status: np.ndarray[Any, Any], program: Program) -> None:
    """Raise what a run found, if it found anything."""
    code = int(status[0])
    if code:
        raise program.sites[code - 1].make(int(status[1]))


class Jitted:
    """A function that is traced and compiled once for each signature of its arguments; see `cyxla.jit`."""

    def __init__(
        self, function: Callable[..., Any], *, static: Sequence[int | str] = (), donate: Sequence[int | str] = (),
        platform: str = "cpu", bounds: str = "raise", **options: Any,
    ) -> None:  # fmt: skip
        self.function = function
        self.platform = platform
        self.bounds = bounds
        self.static = (static,) if isinstance(static, (int, str)) else tuple(static)
        self.options = options
        self._entries: dict[Any, Entry] = {}
        self._lock = threading.RLock()
        update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        from functools import partial

        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Run on arrays; inside another traced function, become a part of it."""
        if current() is not None:
            return self.function(*args, **kwargs)
        leaves, tree = flatten((args, kwargs))
        specs = [spec_of(leaf) for leaf in leaves]
        entry = self._entry(specs, tree)
        return entry([_array(leaf, s) for leaf, s in zip(leaves, specs, strict=True) if isinstance(s, Spec)], out)

    def _entry(self, specs: Sequence[Any], tree: Tree) -> Entry:
        key = (tree, tuple(specs))
        found = self._entries.get(key)
        if found is None:
            with self._lock:
                found = self._entries.get(key) or self._compile(specs, tree)
                self._entries[key] = found
        return found

    def _compile(self, specs: Sequence[Any], tree: Tree) -> Entry:
        lowered = lower(self.function, specs, tree, self._leaf_names(specs, tree), self.bounds)
        return Entry(lowered, compile_program(lowered.module, platform=self.platform, **self.options))

    def _leaf_names(self, specs: Sequence[Any], tree: Tree) -> list[str]:
        args, kwargs = tree.build(range(tree.count))  # numbers are no containers
        try:
            names = list(signature(self.function).parameters)
        except (TypeError, ValueError):
            names = []
        names += [f"args{k}" for k in range(len(names), len(args))]
        parts = [p for name, a in zip(names, args, strict=False) for p in paths(a, name)]
        return parts + [p for name, a in kwargs.items() for p in paths(a, name)]


def spec_of(value: Any) -> Any:
    """The `Spec` of an argument; what is no array or number stands for itself."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Spec(value.shape, value.dtype)
    if type(value) in WEAK_DTYPES:
        return Spec((), type(value) if type(value) is not bool else np.dtype(bool))
    adapter = adapter_of(value)
    return value if adapter is None else Spec(adapter.shape, adapter.dtype, adapter)


def _array(value: Any, spec: Spec) -> Any:
    return value if spec.adapter is None else spec.adapter.array_of(value)


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function written with NumPy."""
    return (lambda f: Jitted(f, **options)) if fn is None else Jitted(fn, **options)
