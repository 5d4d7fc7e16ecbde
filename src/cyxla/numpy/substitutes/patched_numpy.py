"""Substitution of NumPy's functions that do not dispatch, such as ``np.zeros`` and ``np.asarray``, while tracing.

NumPy offers no protocol for them: ``np.asarray(x)`` needs values of `x`, and the result of ``np.zeros(3)`` could not
store a traced value. So while any function is being traced, the modules of NumPy have a class whose attributes give
substitutes to the tracing thread; all other threads get the attributes of the module. Names that the module of the
traced function imported from NumPy are replaced by the same substitutes, which call NumPy's own functions in other
threads. See docs/adr/0007-substitutes-while-tracing.md for alternatives.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from operator import attrgetter, index
from threading import get_ident
from types import CodeType, ModuleType
from typing import Any

import ml_dtypes  # noqa: F401  its import adds to ufuncs that it takes from the module numpy, which must be NumPy's own
import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.forking import call_in_child, new_lock
from cyxla.numpy.functions import FUNCTIONS
from cyxla.numpy.substitutes.compiled_modules import give_plain_numpy
from cyxla.numpy.substitutes.concatenators import Concatenator, Grid
from cyxla.numpy.substitutes.iterators import ndenumerate, nditer
from cyxla.numpy.substitutes.joined_rows import joined_rows
from cyxla.numpy.substitutes.new_array import NdarrayClass, called_by_library
from cyxla.numpy.substitutes.proxy import CallableProxy
from cyxla.numpy.substitutes.ufuncs_of_lists import UfuncOfLists, as_array, is_traced_list
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, is_sized
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, require_sizes
from cyxla.numpy.tracing.function_calls import call_function
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS
from cyxla.numpy.tracing.results.uninitialised import initialised
from cyxla.numpy.tracing.trace import current, user_line
from cyxla.numpy.tracing.user_program.random_state import functions_of_global_state
from cyxla.numpy.tracing.user_program.user_frames import mend_of_library, refused_by_library, user_line_of

_CONVERSIONS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "asarray_chkfinite")
_CREATION = (
    "zeros", "ones", "empty", "full", "eye", "identity", "arange", "linspace", "logspace", "geomspace", "tri",
    "zeros_like", "ones_like", "empty_like", "full_like", "copy", "indices", "fromfunction", "diag", "tile", "repeat",
    "bartlett", "blackman", "hamming", "hanning", "kaiser", "tril_indices", "triu_indices", "diag_indices",
    "frombuffer",
)  # fmt: skip
_FIRST_ARGUMENT_FUNCTIONS = ("reshape",)
_SEQUENCE_FUNCTIONS = ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "linalg.multi_dot")
#: Functions of which a list among the arguments is not one array, or is refused.
_EXCLUDED = (
    "apply_along_axis", "apply_over_axes", "array_repr", "array_str", "array2string", "astype", "block",
    "broadcast_to", "can_cast", "resize", "unravel_index",
    "choose", "common_type", "copyto", "einsum", "einsum_path", "fill_diagonal", "histogramdd", "may_share_memory",
    "min_scalar_type", "piecewise", "place", "put", "put_along_axis", "putmask", "ravel_multi_index", "result_type",
    "select", "take", "sinc",  # SciPy edits the docstring of `sinc`, which a substitute has a copy of
)  # fmt: skip
_PATCHED = ("", "linalg")  # names of the modules that get substitutes, without ``numpy.``
_ARRAY_FUNCTIONS = tuple(
    name
    for names in FUNCTIONS.values()
    for name in names.split()
    if name.rpartition(".")[0] in _PATCHED
    and name not in {*_CONVERSIONS, *_CREATION, *_SEQUENCE_FUNCTIONS, *_FIRST_ARGUMENT_FUNCTIONS, "lexsort", *_EXCLUDED}
)


class _Use:
    """Use of the substitutes by a tracing thread."""

    def __init__(self, thread: int) -> None:
        self.thread = thread


_MAX_LIST_ARGUMENTS = 3  # number of leading arguments that may be lists of traced arrays
_LIBRARIES = ("cyxla", "numpy", "scipy", "ml_dtypes")
_SHAPE_FUNCTIONS = ("zeros", "ones", "empty", "full")  # functions whose first argument is a shape
_SHAPED = (*_SHAPE_FUNCTIONS, "indices")  # functions of which a tuple of sizes is no array
_ARRAY_ARGUMENTS = {"tile": 1}  # leading arguments that are arrays, where others are tuples of sizes
#: Leading arguments that are sizes.
_SIZE_ARGUMENTS = {
    "arange": 3, "tri": 2, "eye": 2, "identity": 1, "indices": 1, "bartlett": 1, "blackman": 1, "hamming": 1,
    "hanning": 1, "kaiser": 1, "tril_indices": 1, "triu_indices": 1, "diag_indices": 1, "fftfreq": 1, "rfftfreq": 1,
}  # fmt: skip
_SIZE_NAMES = ("start", "stop", "step", "N", "M", "n", "m", "dimensions")
_SPACED = ("linspace", "logspace", "geomspace")
_SIZED_FUNCTIONS = (*_SHAPE_FUNCTIONS, *_SIZE_ARGUMENTS, *_SPACED)  # functions that make arrays of traced sizes
_FREQUENCIES = ("fftfreq", "rfftfreq")
_full: Any = np.full
_fromfunction: Any = np.fromfunction
_repeat: Any = np.repeat
_lock = new_lock()
_uses: set[_Use] = set()  # traces in progress
_loaded: frozenset[str] = frozenset()  # names of modules when the substitutes were installed


def _called_by_user(original: Callable[..., Any]) -> bool:
    """Return True if a substitute is called by the user's program, not by a library unaware of known arrays.

    Compiled modules have no frames: their calls appear at a line of the program that names another function.
    """
    frame = sys._getframe(3)  # caller of a proxy, which calls a substitute
    if frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        return False
    loaded, name = _callee(frame.f_code, frame.f_lasti)
    if not loaded:
        return original.__name__ in frame.f_code.co_names
    if not loaded.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")):
        return bool(name == original.__name__)
    callee = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
    return bool(getattr(callee, "__wrapped__", callee) is original)


@lru_cache(maxsize=4096)
def _callee(code: CodeType, offset: int) -> tuple[str, Any]:
    """Return the opcode that loaded the function called at a bytecode offset, and its name; empty if unknown."""
    instructions = [i for i in dis.get_instructions(code) if i.offset <= offset]
    if not instructions or "CALL" not in instructions[-1].opname or instructions[-1].positions is None:
        return "", None
    start, end = _span(instructions[-1])
    if None in (*start, *end):
        return "", None
    candidates = [
        i for i in instructions[:-1] if i.opname.startswith("LOAD") and _span(i)[0] == start and _span(i)[1] < end
    ]
    load = max(candidates, key=lambda i: _span(i)[1], default=None)
    return (load.opname, load.argval) if load is not None else ("", None)


def _span(instruction: dis.Instruction) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    positions = instruction.positions
    if positions is None or positions.lineno is None:
        return (None, None), (-1, -1)
    return (positions.lineno, positions.col_offset), (positions.end_lineno, positions.end_col_offset)


def _to_known(result: Any, arguments: tuple[Any, ...], *, copies: bool = False) -> Any:
    """Return a new NumPy array as a known one, to which traced values can be written.

    A result that shares memory with the arguments is returned as it is, or copied.
    """
    if type(result) is tuple:
        return tuple([_to_known(part, arguments, copies=copies) for part in result])
    if type(result) is not np.ndarray or result.dtype.hasobject or result.dtype.kind in "SUMm":
        return result
    for a in arguments:
        if isinstance(a, (bytearray, memoryview)) or (isinstance(a, np.ndarray) and np.may_share_memory(a, result)):
            return KnownArray(result.copy()) if copies else result
    return KnownArray(result)


def _without_like(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Drop a ``like=`` keyword that is a traced array."""
    if not isinstance(kwargs.get("like"), TracedArray):
        return kwargs
    return {k: v for k, v in kwargs.items() if k != "like"}


def _substitute_conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        kwargs = _without_like(kwargs)
        source = args[0] if args else kwargs.get("a", kwargs.get("object"))
        if isinstance(source, StackedList) and source.is_sized:
            kwargs = {k: v for k, v in kwargs.items() if k not in ("a", "object")}
            has_dtype = (args[1] if len(args) > 1 else kwargs.get("dtype")) is not None
            return hooks.sized_function(original, (source.as_array(has_dtype=has_dtype), *args[1:]), kwargs)
        if is_sized(source) and _called_by_user(original):
            return hooks.sized_function(original, args, kwargs)
        if is_traced(source):
            return call_function(original, *args, **kwargs)
        if not _called_by_user(original):
            return original(*args, **kwargs)  # a known array gives its values
        if isinstance(source, TracedArray):
            return call_function(original, *args, **kwargs)
        # a copy: an array from outside must not change
        return _to_known(original(*args, **kwargs), args[:1], copies=True)

    return substitute


def _substitute_creation(original: Callable[..., Any]) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        kwargs = _without_like(kwargs)
        if original is _fromfunction and len(args) > 1 and is_traced(args[1]):
            args = (args[0], tuple([index(n) for n in args[1]]), *args[2:])  # names the values that are needed
        if any(map(is_traced_list, args[:_MAX_LIST_ARGUMENTS])) and original.__name__ not in _SHAPED:
            count = _ARRAY_ARGUMENTS.get(original.__name__, len(args))
            return call_function(original, *_lists_to_arrays(args[:count]), *args[count:], **kwargs)
        if original.__name__ in _SIZED_FUNCTIONS and _has_traced_size(original, args, kwargs):
            if not _called_by_user(original):  # a library needs an array of NumPy's
                require_sizes(*args, *kwargs.values())
            return hooks.sized_creation(original, args, kwargs)
        if original is _repeat:
            args, kwargs = _repeated(*args, **kwargs)
            if is_sized(args[1]):
                return hooks.sized_function(original, args, kwargs)
        if original is _full and is_traced(args[1] if len(args) > 1 else kwargs.get("fill_value")):
            return call_function(original, *args, **kwargs)
        if not _called_by_user(original):
            return original(*args, **kwargs)
        return _to_known(initialised(original, args, kwargs), args)

    return substitute


def _repeated(a: Any, repeats: Any, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of np.repeat, with a traced array if the counts are: NumPy dispatches on the array alone."""
    if (is_traced(repeats) or is_sized(repeats)) and not (is_traced(a) or is_sized(a)):
        a = as_traced(as_array(a))
    return (a, repeats, *args), kwargs


def _has_traced_size(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a size of a new array is traced."""
    name = original.__name__
    if name in _SIZE_ARGUMENTS:
        sizes = (v for n, v in kwargs.items() if n in _SIZE_NAMES)
        return any(map(is_traced, (*args[: _SIZE_ARGUMENTS[name]], *sizes)))
    if name in _SPACED:
        return is_traced(args[2] if len(args) > 2 else kwargs.get("num"))
    return is_traced(args[0] if args else kwargs.get("shape"))


def _substitute_broadcast(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a function of an array and a shape, whose sizes may be traced where the array is not."""

    def substitute(array: Any, shape: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(shape) and not isinstance(array, SizedArray):
            return hooks.sized_function(original, (as_traced(as_array(array)), shape, *args), kwargs)
        return original(array, shape, *args, **kwargs)

    return substitute


def _substitute_take(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a look-up: NumPy dispatches on the array alone, not on its indices."""

    def substitute(a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, SizedArray) or isinstance(indices, SizedArray):
            return hooks.sized_function(original, (a, indices, *args), kwargs)
        if not (is_traced(indices) or is_traced_list(a)):
            return original(a, indices, *args, **kwargs)
        return call_function(original, a, indices, *args, **kwargs)

    return substitute


def _substitute_list_arguments(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a function that NumPy dispatches on arrays, not on lists of them."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is list and any(isinstance(a, SizedArray) for a in args[0]):
            args = (tuple(args[0]), *args[1:])  # NumPy dispatches on the arrays of a tuple
        if args and isinstance(args[0], SizedArray):  # which NumPy would iterate over if it may be a list of arrays
            return hooks.sized_function(original, args, kwargs)
        if any(map(is_traced_list, args[:_MAX_LIST_ARGUMENTS])):
            args = _lists_to_arrays(args)
        return initialised(original, args, kwargs)

    return substitute


def _substitute_first_argument(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a function whose other arguments may be tuples of traced sizes."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        return original(*map(as_array, args[:1]), *args[1:], **kwargs)

    return substitute


def _substitute_sequence_arguments(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a function that NumPy dispatches on the arrays of a sequence, not on lists in it."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        is_counted = args and isinstance(args[0], (StackedList, SizedArray))
        if is_counted and (joined := joined_rows(original, *args, **kwargs)) is not None:
            return joined
        if not (args and isinstance(args[0], (list, tuple)) and any(map(is_traced_list, args[0]))):
            return original(*args, **kwargs)
        return original(list(map(as_array, args[0])), *args[1:], **kwargs)

    return substitute


def _substitute_sort_by_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    """Substitute a function of several keys, which NumPy dispatches on those of a tuple, and not of a list."""

    def substitute(keys: Any, *args: Any, **kwargs: Any) -> Any:
        return original(tuple(map(as_array, keys)) if isinstance(keys, (list, tuple)) else keys, *args, **kwargs)

    return substitute


def _lists_to_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace lists of traced arrays among the arguments by arrays."""
    return (*map(as_array, args[:_MAX_LIST_ARGUMENTS]), *args[_MAX_LIST_ARGUMENTS:])


_SUBSTITUTE_MAKERS: dict[Callable[[Any], Callable[..., Any]], tuple[str, ...]] = {
    _substitute_conversion: _CONVERSIONS, _substitute_creation: _CREATION, _substitute_take: ("take",),
    _substitute_broadcast: ("broadcast_to",),
    ndenumerate: ("ndenumerate",), nditer: ("nditer",),
    _substitute_first_argument: _FIRST_ARGUMENT_FUNCTIONS, _substitute_list_arguments: _ARRAY_FUNCTIONS,
    _substitute_sequence_arguments: _SEQUENCE_FUNCTIONS, _substitute_sort_by_keys: ("lexsort",),
}  # fmt: skip
_originals: dict[str, Any] = {name: attrgetter(name)(np) for names in _SUBSTITUTE_MAKERS.values() for name in names}
_SUBSTITUTES: dict[str, Any] = {
    name: CallableProxy(_originals[name], make(_originals[name]))
    for make, names in _SUBSTITUTE_MAKERS.items()
    for name in names
}
for _name in ("r_", "c_"):
    _originals[_name] = getattr(np, _name)
    _SUBSTITUTES[_name] = Concatenator(_originals[_name], columns=_name == "c_")
for _name in ("mgrid", "ogrid"):
    _originals[_name] = getattr(np, _name)
    _SUBSTITUTES[_name] = Grid(_originals[_name])
NDARRAY = NdarrayClass()
_originals["ndarray"], _SUBSTITUTES["ndarray"] = np.ndarray, NDARRAY
_UFUNCS = {name: f for name, f in vars(np).items() if isinstance(f, np.ufunc)}
_ufunc_proxies = {f: UfuncOfLists(f) for f in _UFUNCS.values()}  # some have two names
_originals.update(_UFUNCS)
_SUBSTITUTES.update((name, _ufunc_proxies[f]) for name, f in _UFUNCS.items())


_namespaces: dict[int, tuple[dict[str, Any], set[_Use]]] = {}  # globals of functions being traced
_BY_FUNCTION = {id(function): _SUBSTITUTES[name] for name, function in _originals.items()}
_BY_SUBSTITUTE = {id(_SUBSTITUTES[name]): function for name, function in _originals.items()}
NUMPY_ORIGINALS.update((_SUBSTITUTES[name], function) for name, function in _originals.items())


@contextlib.contextmanager
def substituted() -> Iterator[None]:
    """Install the substitutes within a context; uses are counted, and the last one to end removes them."""
    global _loaded
    use = _Use(get_ident())
    give_plain_numpy()
    with _lock:
        if not _uses:
            _loaded = frozenset(sys.modules)
            for module in _modules():
                module.__class__ = _patched_class(module)
        _uses.add(use)
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, TraceError):  # NumPy reports only that it cannot convert an element
            raise error.__cause__.with_traceback(error.__traceback__) from None
        library = refused_by_library(error)
        if library:
            raise TraceError(
                f"{library} calls compiled code, which refuses traced arrays: {str(error).partition(chr(10))[0]}",
                where=user_line_of(error),
                hint=mend_of_library(library),
            ).with_traceback(error.__traceback__) from None
        raise
    finally:
        with _lock:
            _uses.discard(use)
            if not _uses:
                _restore()


hooks.substituted, hooks.give_plain_numpy = substituted, give_plain_numpy


def _restore() -> None:
    for module in reversed(_modules()):
        module.__class__ = ModuleType
    for name in sys.modules.keys() - _loaded:  # names that they imported from NumPy are substitutes
        _replace_values(getattr(sys.modules[name], "__dict__", {}), _BY_SUBSTITUTE)


@contextlib.contextmanager
def substituted_in(function: Callable[..., Any]) -> Iterator[None]:
    """Replace the names that a function's module imported from NumPy, as by ``from numpy import zeros``."""
    function = inspect.unwrap(function)
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    for name in _LAZY_MODULES:
        if name in names:
            import_module(f"numpy.{name}")  # NumPy imports it when it is used first, which is too late
    for module in _modules():
        _patched_class(module)  # knows the functions that the module of a program may have by name
    space = getattr(function, "__globals__", {})
    use = _Use(get_ident())
    with _lock:
        uses = _namespaces.setdefault(id(space), (space, set()))[1]
        if not uses:
            _replace_values(space, _BY_FUNCTION)
        uses.add(use)
    try:
        yield
    finally:
        with _lock:
            uses.discard(use)
            if not uses:
                _replace_values(space, _BY_SUBSTITUTE)
                _namespaces.pop(id(space), None)


def _replace_values(space: dict[str, Any], functions: dict[int, Any]) -> None:
    for name, value in list(space.items()):
        if id(value) in functions:
            space[name] = functions[id(value)]


def _keep_own_uses() -> None:
    """Remove in a forked child the substitutes that only other threads of the parent used."""
    _drop_others(_uses)
    if not _uses and type(np) is not ModuleType:
        _restore()
    for number, (space, uses) in list(_namespaces.items()):
        _drop_others(uses)
        if not uses:
            _replace_values(space, _BY_SUBSTITUTE)
            del _namespaces[number]


def _drop_others(uses: set[_Use]) -> None:
    uses.intersection_update([u for u in uses if u.thread == get_ident()])


call_in_child(_keep_own_uses)


# -- modules whose attributes depend on the thread


class _Attribute:
    """Attribute of a NumPy module; the tracing thread sees its substitute."""

    def __init__(self, name: str, original: Any, substitute: Any) -> None:
        self._name, self._original, self._substitute = name, original, substitute

    def __get__(self, module: ModuleType, owner: type) -> Any:
        try:
            value = module.__dict__[self._name]
        except KeyError:
            raise AttributeError(f"module {module.__name__!r} has no attribute {self._name!r}") from None
        return self._substitute if value is self._original and current() is not None else value

    def __set__(self, module: ModuleType, value: Any) -> None:
        module.__dict__[self._name] = value

    def __delete__(self, module: ModuleType) -> None:
        del module.__dict__[self._name]


class _AttributeOfPrograms(_Attribute):
    """Attribute whose substitute only the program sees: libraries compare types with ``np.ndarray`` itself."""

    def __get__(self, module: ModuleType, owner: type) -> Any:
        return self._original if called_by_library(1) else super().__get__(module, owner)


def _modules() -> list[ModuleType]:
    # numpy itself is the first to be patched, and the last to be restored
    return [np, np.linalg, *[getattr(np, name) for name in _LAZY_MODULES if f"numpy.{name}" in sys.modules]]


@cache
def _patched_class(module: ModuleType) -> type[ModuleType]:
    """Return the class of a patched module; its contents stay visible to all other threads."""
    prefix = module.__name__.removeprefix("numpy").lstrip(".")
    if prefix in _LAZY_MODULES:
        substitutes, originals = _LAZY_MODULES[prefix]()
    else:
        names = [name for name in _originals if name.rpartition(".")[0] == prefix]
        originals = {name.rpartition(".")[2]: _originals[name] for name in names}
        substitutes = {name.rpartition(".")[2]: _SUBSTITUTES[name] for name in names}
    attributes = {
        name: (_AttributeOfPrograms if name == "ndarray" else _Attribute)(name, originals[name], substitutes[name])
        for name in originals
    }
    pickling = {"__reduce__": lambda self: (import_module, (self.__name__,))}  # picklers recognise modules by class
    return type("module", (ModuleType,), {"__module__": "builtins", **pickling, **attributes})


# -- random numbers from NumPy's global state, which runs draw


@cache
def _random_functions() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return substitutes and originals of the functions of ``np.random`` that use the global state."""
    functions = {**functions_of_global_state(), "default_rng": np.random.default_rng}
    return {name: CallableProxy(function, _draw_globally(function)) for name, function in functions.items()}, functions


@cache
def _frequency_functions() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return substitutes and originals of the functions of ``np.fft`` that do not dispatch."""
    functions = {name: getattr(np.fft, name) for name in _FREQUENCIES}
    substitutes = {name: CallableProxy(f, _substitute_creation(f)) for name, f in functions.items()}
    for name, function in functions.items():
        NUMPY_ORIGINALS[substitutes[name]] = function
        _BY_FUNCTION[id(function)], _BY_SUBSTITUTE[id(substitutes[name])] = substitutes[name], function
    return substitutes, functions


#: Functions that return substitutes and originals, by modules that NumPy imports when they are used first.
_LAZY_MODULES: dict[str, Callable[[], tuple[dict[str, Any], dict[str, Any]]]] = {
    "random": _random_functions, "fft": _frequency_functions,
}  # fmt: skip


def _draw_globally(original: Callable[..., Any]) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        seed = args[0] if args else kwargs.get("seed")
        is_generator = original.__name__ == "default_rng"
        if isinstance(seed, TracedArray) and is_generator:
            seed.__index__()  # names the value that is needed
        seeded = is_generator and (args or kwargs.get("seed")) not in ((), (None,), None)
        if seeded or not _called_by_user(original):
            return original(*args, **kwargs)
        if is_generator:
            raise UnimplementedError(
                "numpy.random.default_rng cannot be traced without a seed: every run would get the same numbers",
                where=user_line(), hint="pass a generator as an argument, or use cyxla.random",
            )  # fmt: skip
        from cyxla.numpy.custom_calls.global_random import draw

        return draw(original, args, kwargs)

    return substitute
