"""Random numbers of NumPy's global state in traced functions: runs call NumPy for them, in the order of the program."""

# ruff: noqa: NPY002 - the functions of the global state are what this is for
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from operator import index
from typing import Any, Final

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.numpy.custom_calls.registration import ArraySpec, CustomCall, custom_call
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import PlainRunError, Trace, plain_run, require_current, resumed, user_line
from cyxla.numpy.tracing.user_program.random_state import SAMPLES
from cyxla.types import ElementType, from_numpy
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.typed_attributes import read_attributes

MOST_SMALL_DRAWS: Final = 16  # calls of NumPy for a few numbers each, which cost more than the numbers
_SMALL: Final = 64  # numbers
_NOT_DRAWN: Final = ("bytes", "get_state", "set_state")  # whose results are no arrays
_TARGET: Final = "numpy.random"
_REMEMBER: Final = "remember"
_state_before: list[Any] = []  # of the run that began last


def restore_state() -> None:
    """Give NumPy's global generator the state that it had before the run that has failed."""
    if _state_before:
        np.random.set_state(_state_before.pop())


def forget_state(module: HloModule) -> None:
    """Remove what makes runs remember the state of the generator, of a program that cannot fail."""
    for ins in list(module.entry.instructions):
        is_call = ins.opcode == "custom-call" and ins.attrs["custom_call_target"] == _TARGET
        if is_call and read_attributes(ins.extras.get("backend_config"))["function"] == _REMEMBER:
            for other in module.entry.instructions:
                other.control_predecessors = tuple([p for p in other.control_predecessors if p is not ins])
            module.entry.remove(ins)


def draw(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function of `numpy.random` that uses the global state, drawn by each run.

    Raises
    ------
    UnimplementedError
        The result is no array, or many small ones would be drawn.
    """
    name = "random_sample" if original.__name__ in SAMPLES else original.__name__
    if name in _NOT_DRAWN:
        raise _refusal(name, "its result is no array")
    if name == "seed":
        _call(name, args, kwargs, ArraySpec((), np.int64))
        return None
    if name == "shuffle":
        return _shuffle(*args, **kwargs)
    sample = _sample(name, args, kwargs)
    if not isinstance(sample, (np.ndarray, np.generic, bool, int, float)):
        raise _refusal(name, f"its result is a {type(sample).__name__}")
    result = _call(name, args, kwargs, ArraySpec(np.shape(sample), np.asarray(sample).dtype))
    return _number(result, type(sample)) if type(sample) in (bool, int, float) else result


def _number(value: TracedArray, kind: type) -> TracedArray:
    """Return a number of one of Python's classes."""
    weak = None if kind is bool else kind
    return TracedArray(convert(value_of(value), np.dtype(kind)), weak, rank0=Rank0.PYTHON)


def _shuffle(x: Any) -> None:
    if not isinstance(x, TracedArray):
        raise _refusal("shuffle", f"it changes a {type(x).__name__}")
    x[...] = _call("shuffle", (x,), {}, ArraySpec(x.shape, x.dtype))


def _refusal(name: str, reason: str) -> PlainRunError:
    return plain_run(
        f"numpy.random.{name} cannot be traced: {reason}",
        "pass a generator, np.random.default_rng(seed), as an argument, or use cyxla.random",
    )


def _sample(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a result of the same class, shape and dtype for other values; errors of known arguments are NumPy's."""
    if name == "choice" and isinstance(kwargs.get("p"), TracedArray):
        kwargs = {**kwargs, "p": None}
    call = getattr(np.random.RandomState(0), name)
    values = [*args, *kwargs.values()]
    _require_shapes(values)
    stand_ins = [_stand_in(v) for v in values]
    try:
        sample = _with_values(call, args, kwargs, stand_ins)
    except Exception as error:
        for value in values:
            if _is_integer(value):
                index(value)  # raises the error of a size that is traced
        if any(isinstance(v, TracedArray) for v in values):
            raise _refusal(name, f"with other values it raises {type(error).__name__}: {error}") from error
        raise
    for k, value in enumerate(values):
        twice = [*stand_ins[:k], 2, *stand_ins[k + 1 :]]
        if _is_integer(value) and _shape_with(call, args, kwargs, twice) not in (None, np.shape(sample)):
            index(value)  # raises the error of a size that is traced
    return sample


def _require_shapes(values: Sequence[Any]) -> None:
    """Require that the sizes of shapes among some values are known; arguments that decide them become static."""
    for value in values:
        for part in value if isinstance(value, (list, tuple)) else ():
            if _is_integer(part):
                index(part)  # raises the error of a size that is traced


def _with_values(call: Callable[..., Any], args: Any, kwargs: Any, values: Sequence[Any]) -> Any:
    named = zip(kwargs, values[len(args) :], strict=True)
    return call(*values[: len(args)], **dict(named))


def _shape_with(call: Callable[..., Any], args: Any, kwargs: Any, values: Sequence[Any]) -> tuple[int, ...] | None:
    try:
        shape: tuple[int, ...] = np.shape(_with_values(call, args, kwargs, values))
    except Exception:  # of values that do not go together
        return None
    return shape


def _is_integer(value: Any) -> bool:
    return _is_unknown(value) and not value.ndim and value.dtype.kind in "iu"


def _is_unknown(value: Any) -> bool:
    return isinstance(value, TracedArray) and value.known is None


def _stand_in(value: Any) -> Any:
    if not _is_unknown(value):
        return value
    ones = np.ones(value.shape, value.dtype)
    return ones if value.ndim else ones[()]


# ---------------------------------------------------------------------------------------------- calls in the program


def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: ArraySpec) -> TracedArray:
    """Emit a call, whose arguments that are numbers and arrays are operands."""
    _prepare(name, result.size)
    operands: list[Any] = []
    template = [_describe(name, v, operands) for v in args]
    named = {k: _describe(name, v, operands) for k, v in kwargs.items()}
    drawn: TracedArray = _numpy_random()(
        *operands, function=name, positional=" ".join(template), named=" ".join(f"{k}={v}" for k, v in named.items()),
        shape=np.array(result.shape, np.int64), result=from_numpy(result.dtype).name.lower(),
        is_traced=any(isinstance(v, TracedArray) and v.known is None for v in operands),
    )  # fmt: skip
    return drawn


def _prepare(name: str, size: int) -> None:
    """Count a draw; the first one of a program makes its runs remember the state, for those that fail."""
    program = require_current().program
    if size < _SMALL and name != "seed":
        program.small_draws += 1
        if require_current().parent is not None or program.small_draws > MOST_SMALL_DRAWS:
            raise _refusal(name, "programs call NumPy for each of many small draws, which costs more than the draws")
    if not program.draws:
        program.draws = program.catches = True  # NumPy repeats a run that fails, with the same numbers
        with resumed(_outermost()):
            _numpy_random()(
                function=_REMEMBER, positional="", named="", shape=np.zeros(0, np.int64), result="s64", is_traced=False
            )  # fmt: skip


def _outermost() -> Trace:
    trace = require_current()
    while trace.parent is not None:
        trace = trace.parent
    return trace


def _describe(name: str, value: Any, operands: list[Any]) -> str:
    """Return the text of an argument: a name for None, a bool or a dtype, ``@`` and the rank for an operand."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, (type, np.dtype)) or (isinstance(value, str) and _is_dtype(value)):
        return f"dtype:{np.dtype(value).str}"
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, (list, tuple)) and not len(value):
        return "()"
    if not isinstance(value, (TracedArray, np.ndarray, np.generic, int, float, list, tuple)):
        raise _refusal(name, f"an argument is a {type(value).__name__}")
    operands.append(value)
    return "sequence" if isinstance(value, (list, tuple)) else "operand"


def _is_dtype(value: str) -> bool:
    try:
        np.dtype(value)
    except TypeError:
        return False
    return True


_registered: list[CustomCall] = []


def _numpy_random() -> CustomCall:
    """Return the custom call, which is registered with its first use."""
    if not _registered:
        register = custom_call(_TARGET, result=_spec_of_result, vjp=_no_derivative, has_side_effect=True)
        _registered.append(register(_run))
    return _registered[0]


def _spec_of_result(*specs: Any, shape: Any, result: str, **_: Any) -> ArraySpec:
    return ArraySpec(tuple(shape), ElementType[result.upper()].numpy_dtype)


def _no_derivative(inputs: Any, results: Any, cotangents: Any, *, is_traced: bool, function: str, **_: Any) -> Any:
    if is_traced:
        raise UnimplementedError(
            f"numpy.random.{function} has no derivative with respect to its arguments", where=user_line(),
            hint="scale and shift standard numbers, as loc + scale * np.random.normal(size=n)",
        )  # fmt: skip
    return tuple([None] * len(inputs))


def _run(*operands: Any, function: str, positional: str, named: str, **_: Any) -> Any:
    """Make the call of a run."""
    if function == _REMEMBER:
        _state_before[:] = [np.random.get_state()]
        return np.int64(0)
    drawer, readers, named_readers = _call_of(function, positional, named)
    values = iter(operands)
    args = [read(values) for read in readers]
    kwargs = {key: read(values) for key, read in named_readers}
    if function == "shuffle":
        shuffled = args[0].copy()
        np.random.shuffle(shuffled)
        return shuffled
    drawn = drawer(*args, **kwargs)
    return np.int64(0) if drawn is None else drawn


_Reader = Callable[[Iterator[Any]], Any]


@lru_cache(maxsize=1024)
def _call_of(
    function: str, positional: str, named: str
) -> tuple[Callable[..., Any], list[_Reader], list[tuple[str, _Reader]]]:
    """Return a function of `numpy.random`, and the readers of its arguments, which take the operands in turn.

    Raises
    ------
    InvalidArgumentError
        There is no such function.
    """
    if function not in _functions():
        raise InvalidArgumentError(f"numpy.random has no function {function!r} that uses its global state")
    pairs = [part.split("=", 1) for part in named.split()]
    readers = [_argument(text) for text in positional.split()]
    return getattr(np.random.mtrand, function), readers, [(key, _argument(text)) for key, text in pairs]


@cache
def _functions() -> frozenset[str]:
    state = np.random.mtrand._rand
    names = [n for n in dir(np.random) if getattr(getattr(np.random, n), "__self__", None) is state]
    return frozenset([*names, "seed"]) - set(_NOT_DRAWN)


def _argument(text: str) -> _Reader:
    """Return the reader of an argument."""
    if text in _NAMED:
        return lambda values: _NAMED[text]
    if text.startswith("dtype:"):
        dtype = np.dtype(text.removeprefix("dtype:"))
        return lambda values: dtype
    return _sequence if text == "sequence" else _operand


def _sequence(values: Iterator[Any]) -> Any:
    return next(values).tolist()


def _operand(values: Iterator[Any]) -> Any:
    value = next(values)
    return value.item() if value.ndim == 0 else value


_NAMED: Final = {"None": None, "True": True, "False": False, "()": ()}
