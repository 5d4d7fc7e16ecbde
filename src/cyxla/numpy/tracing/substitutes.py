"""NumPy's functions that dispatch on nothing, such as ``np.zeros`` and ``np.asarray``, while a function is traced.

NumPy offers no protocol for them: ``np.asarray(x)`` wants values of `x`, and what ``np.zeros(3)`` gives could not take
a traced value. So for as long as any function is being traced, these attributes of the module `numpy` are substitutes
that do what they are there for only in the thread that traces; for all others they call NumPy's own.
docs/adr/0007-substitutes-while-tracing.md weighs the other ways.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from operator import attrgetter
from types import CodeType
from typing import Any

import ml_dtypes  # noqa: F401  its import adds to ufuncs that it takes from the module numpy, which must be NumPy's own
import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.registry import NUMPY_OWN, meaning_of
from cyxla.numpy.tracing.concatenators import Concatenator
from cyxla.numpy.tracing.known_array import KnownArray
from cyxla.numpy.tracing.listed import ListedUfunc
from cyxla.numpy.tracing.trace import current, place
from cyxla.numpy.tracing.traced_array import TracedArray, is_traced, require_sizes
from cyxla.numpy.tracing.walking import ndenumerate, nditer

_TAKING = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "asarray_chkfinite")
_MAKING = (
    "zeros", "ones", "empty", "full", "eye", "identity", "arange", "linspace", "logspace", "geomspace", "tri",
    "zeros_like", "ones_like", "empty_like", "full_like", "copy", "indices", "fromfunction", "diag", "tile", "repeat",
)  # fmt: skip
_ASKING_ARRAYS = (
    "sum", "prod", "mean", "std", "var", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin", "ptp",
    "median", "quantile", "percentile", "average", "cumsum", "cumprod", "diff", "sort", "argsort", "lexsort", "dot",
    "inner", "outer", "vdot", "transpose", "reshape", "ravel", "nansum", "nanmean", "nanmax", "nanmin", "convolve",
    "correlate", "interp", "polyval", "trapezoid",
    *(f"linalg.{name}" for name in (
        "cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_norm", "matrix_power",
        "matrix_rank", "norm", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "trace", "vector_norm",
    )),
)  # fmt: skip
_LISTED = 3  # arguments that may be lists of traced arrays
_LIBRARIES = ("cyxla", "numpy", "scipy", "ml_dtypes")
_SIZED = ("zeros", "ones", "empty", "full")  # whose first argument is sizes
_full: Any = np.full
_lock = threading.Lock()
_active = 0
_loaded: frozenset[str] = frozenset()  # modules when the substitutes were put in place
_originals: dict[str, Any] = {name: getattr(np, name) for name in (*_TAKING, *_MAKING)}


def _of_user(original: Callable[..., Any]) -> bool:
    """Whether the call of a substitute stands in a program, not in a library that knows nothing of known arrays.

    Compiled modules have no frames: what calls for them is some line of the program, which names another function.
    """
    frame = sys._getframe(2)
    if frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        return False
    loaded, name = _callee(frame.f_code, frame.f_lasti)
    if not loaded:
        return original.__name__ in frame.f_code.co_names
    if not loaded.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")):
        return bool(name == original.__name__)
    found = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
    return bool(getattr(found, "__wrapped__", found) is original)


@lru_cache(maxsize=4096)
def _callee(code: CodeType, offset: int) -> tuple[str, Any]:
    """How what is called at a place of a program was loaded, and its name; empty if the place does not tell."""
    steps = [i for i in dis.get_instructions(code) if i.offset <= offset]
    if not steps or "CALL" not in steps[-1].opname or steps[-1].positions is None:
        return "", None
    start, end = _span(steps[-1])
    if None in (*start, *end):
        return "", None
    before = [i for i in steps[:-1] if i.opname.startswith("LOAD") and _span(i)[0] == start and _span(i)[1] < end]
    found = max(before, key=lambda i: _span(i)[1], default=None)
    return (found.opname, found.argval) if found is not None else ("", None)


def _span(step: dis.Instruction) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    where = step.positions
    if where is None or where.lineno is None:
        return (None, None), (-1, -1)
    return (where.lineno, where.col_offset), (where.end_lineno, where.end_col_offset)


def _owned(result: Any, arguments: tuple[Any, ...], *, copies: bool = False) -> Any:
    """A new array of NumPy's as one that may be written traced values.

    One that shares memory with the arguments stays what it is, or is copied.
    """
    if type(result) is not np.ndarray or result.dtype.hasobject or result.dtype.kind in "SUMm":
        return result
    for a in arguments:
        if isinstance(a, np.ndarray) and np.may_share_memory(a, result):
            return KnownArray(result.copy()) if copies else result
    return KnownArray(result)


def _without_like(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords, but ``like=`` a traced array: that is what all arrays here are like."""
    if not isinstance(kwargs.get("like"), TracedArray):
        return kwargs
    return {k: v for k, v in kwargs.items() if k != "like"}


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(*args, **kwargs)
        kwargs = _without_like(kwargs)
        given = args[0] if args else kwargs.get("a", kwargs.get("object"))
        if is_traced(given):
            return meaning_of(original)(*args, **kwargs)
        if not _of_user(original):
            return original(*args, **kwargs)  # a known array gives its values
        if isinstance(given, TracedArray):
            return meaning_of(original)(*args, **kwargs)
        return _owned(original(*args, **kwargs), args[:1], copies=True)  # of what is from outside, which stays as it is

    return substitute


def _making(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(*args, **kwargs)
        kwargs = _without_like(kwargs)
        if original is _full and is_traced(args[1] if len(args) > 1 else kwargs.get("fill_value")):
            return meaning_of(original)(*args, **kwargs)
        if original.__name__ in _SIZED:
            require_sizes(*args[:1], kwargs.get("shape"))
        made = original(*args, **kwargs)
        return _owned(made, args) if _of_user(original) else made

    return substitute


def _looking_up(original: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy asks only the array, not its indices, what a look-up means."""

    @wraps(original)
    def substitute(a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None or not is_traced(indices):
            return original(a, indices, *args, **kwargs)
        return meaning_of(original)(a, indices, *args, **kwargs)

    return substitute


def _of_lists(original: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy asks arrays, not lists of them, what a function means."""

    @wraps(original)
    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None or not any(map(_lists_traced, args[:_LISTED])):
            return original(*args, **kwargs)
        given = [np.array(a) if _lists_traced(a) else a for a in args[:_LISTED]]
        return original(*given, *args[_LISTED:], **kwargs)

    return substitute


def _lists_traced(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and is_traced(value)


_SUBSTITUTES: dict[str, Any] = {name: _taking(_originals[name]) for name in _TAKING} | {
    name: _making(_originals[name]) for name in _MAKING
}
for _name, _make in {"take": _looking_up, "ndenumerate": ndenumerate, "nditer": nditer}.items():
    _originals[_name] = getattr(np, _name)
    _SUBSTITUTES[_name] = _make(_originals[_name])
for _name in _ASKING_ARRAYS:
    _originals[_name] = attrgetter(_name)(np)
    _SUBSTITUTES[_name] = _of_lists(_originals[_name])
for _name in ("r_", "c_"):
    _originals[_name] = getattr(np, _name)
    _SUBSTITUTES[_name] = Concatenator(_originals[_name], columns=_name == "c_")
_UFUNCS = {name: f for name, f in vars(np).items() if isinstance(f, np.ufunc)}
_listed = {f: ListedUfunc(f) for f in _UFUNCS.values()}  # some have two names
_originals.update(_UFUNCS)
_SUBSTITUTES.update((name, _listed[f]) for name, f in _UFUNCS.items())


@contextlib.contextmanager
def substituted() -> Iterator[None]:
    """Have the substitutes in place; nested and parallel uses count, the last to end takes them away."""
    global _active, _loaded
    with _lock:
        _active += 1
        if _active == 1:
            _loaded = frozenset(sys.modules)
            _put(_SUBSTITUTES)
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, TraceError):  # NumPy says only that it cannot make an element of something
            raise error.__cause__.with_traceback(error.__traceback__) from None
        raise
    finally:
        with _lock:
            _active -= 1
            if _active == 0:
                _put(_originals)
                for name in sys.modules.keys() - _loaded:  # what they took out of NumPy were the substitutes
                    _exchange(getattr(sys.modules[name], "__dict__", {}), _BY_SUBSTITUTE)


_spaces: dict[int, tuple[dict[str, Any], int]] = {}  # modules of functions that are being traced, how often
_BY_FUNCTION = {id(function): _SUBSTITUTES[name] for name, function in _originals.items()}
_BY_SUBSTITUTE = {id(_SUBSTITUTES[name]): function for name, function in _originals.items()}
NUMPY_OWN.update((_SUBSTITUTES[name], function) for name, function in _originals.items())


@contextlib.contextmanager
def substituted_in(function: Callable[..., Any]) -> Iterator[None]:
    """Have the substitutes in place of what a function's module took out of NumPy: ``from numpy import zeros``."""
    function = inspect.unwrap(function)
    if "random" in getattr(getattr(function, "__code__", None), "co_names", ()):
        import numpy.random  # noqa: F401 - NumPy imports it when it is used first, which is too late
    space = getattr(function, "__globals__", {})
    with _lock:
        count = _spaces.get(id(space), (space, 0))[1]
        _spaces[id(space)] = (space, count + 1)
        if not count:
            _exchange(space, _BY_FUNCTION)
    try:
        yield
    finally:
        with _lock:
            count = _spaces[id(space)][1] - 1
            _spaces[id(space)] = (space, count)
            if not count:
                del _spaces[id(space)]
                _exchange(space, _BY_SUBSTITUTE)


def _exchange(space: dict[str, Any], functions: dict[int, Any]) -> None:
    for name, value in list(space.items()):
        if id(value) in functions:
            space[name] = functions[id(value)]


def _put(functions: dict[str, Any]) -> None:
    for name, function in functions.items():
        space, _, attribute = name.rpartition(".")
        setattr(getattr(np, space) if space else np, attribute, function)
    if "numpy.random" in sys.modules:
        for name, function in _random_functions()[functions is _originals].items():
            setattr(np.random, name, function)


# -- random numbers out of a state that is nobody's: one draw while tracing would serve all runs


@cache
def _random_functions() -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands in ``np.random`` while something is traced, and what stands there else."""
    state = np.random.mtrand._rand
    names = [n for n in dir(np.random) if getattr(getattr(np.random, n), "__self__", None) is state]
    own = {n: getattr(np.random, n) for n in names if n not in ("get_state", "set_state", "seed")}
    own["default_rng"] = np.random.default_rng
    return {name: _drawing(function) for name, function in own.items()}, own


def _drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(*args: Any, **kwargs: Any) -> Any:
        seeded = original.__name__ == "default_rng" and (args or kwargs.get("seed")) not in ((), (None,), None)
        if current() is None or seeded or not _of_user(original):
            return original(*args, **kwargs)
        raise UnimplementedError(
            f"numpy.random.{original.__name__} while a function is traced: every run would get the same numbers",
            where=place(), hint="hand in a generator, np.random.default_rng(seed), as an argument, or use cyxla.random",
        )  # fmt: skip

    return substitute
