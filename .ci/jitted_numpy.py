"""A plugin of pytest: what a test calls of NumPy is called through `cyxla.jit` as well, and compared.

`numpy_suite.py` starts it, and says in the environment variable NUMPY_SUITE, as JSON, what it is to do:

mode        "strict": the test gets what `cyxla.jit` gave, so that its own assertions judge; "plain": NumPy's result, by
            way of the same wrappers, which tells failures of cyxla from those of the wrappers.
platform    of `cyxla.jit`
calls       of each test that go through `cyxla.jit`; the others are NumPy's alone
seconds     that a test may take
texts       whether errors must have NumPy's messages, too, beside its classes
results     a file that gets a line of JSON before each test and one after it
only        names of tests to run; all if None

Only test modules get the wrappers, in the place of the module `numpy` and of functions taken from it. So a call that
NumPy makes inside is not seen, and operators and methods of arrays are not either. Functions that make arrays of
whatever is given, by which tests write down their data, and questions about memory are left out.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import cyxla
from cyxla.errors import DTypeError, TraceError, UnimplementedError
from cyxla.numpy.tracing.registry import full_name, rows

SETTINGS = json.loads(os.environ["NUMPY_SUITE"])
NUMBERS = (bool, int, float, complex)
LETTERS = "?bBhHiIlLqQefdFD"  # of the types that a program computes with
WRITTEN = {"copyto": "dst", "put": "a", "place": "arr", "putmask": "a", "fill_diagonal": "a", "put_along_axis": "arr"}
LEFT_OUT = {
    "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "fft.fftfreq",
    "fft.rfftfreq", "may_share_memory", "require",
}  # fmt: skip
# of which a list is more than an array
TAKING_LISTS = {"block", "concatenate", "diff", "histogramdd", "place", "put", "putmask"}
UNDEFINED = {
    "argsort",
    "empty_like",
    "partition",
    "argpartition",
    "linalg.svd",
    "linalg.eig",
    "linalg.eigh",
    "linalg.qr",
}
REFUSALS = (TraceError, UnimplementedError, DTypeError)  # which say that cyxla does not do it
CLOSE = {np.dtype("e"): 1e-2, np.dtype("f"): 1e-4, np.dtype("F"): 1e-4}  # relative; 1e-9 for wider types
OUT = "out"


class NotOursError(Exception):
    """A call with arguments that no program can take."""


class Slot(NamedTuple):
    """The place of an array among the arguments, by its number."""

    number: int


class State:
    """What is so for the test under way."""

    def __init__(self) -> None:
        self.left = 0
        self.counts: Counter[str] = Counter()
        self.notes: list[dict[str, str]] = []

    def begin(self) -> None:
        """Start a test."""
        self.left = SETTINGS["calls"] if SETTINGS["mode"] == "strict" else 0
        self.counts, self.notes = Counter(), []

    def note(self, kind: str, call: Prepared, detail: object = "") -> None:
        """Count a call, and say more of those that differ."""
        self.counts[kind] += 1
        if kind not in ("same", "close", "refused", "other arguments"):
            self.notes.append({"kind": kind, "call": call.text(), "detail": str(detail)[:300]})


STATE = State()


# -- which arguments are arrays


class Probe:
    """Tells whether NumPy takes a parameter for an array: then it asks the argument what the function means."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> str:
        return "asked"


@cache
def parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """The parameters of a function that can be passed by position, and whether each is an array."""
    if isinstance(function, np.ufunc):
        return dict.fromkeys([f"x{k}" for k in range(function.nin)], True) | {
            f"out{k}": False for k in range(function.nout)
        }
    found = list(inspect.signature(function).parameters.values())
    needed = {p.name: () for p in found if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    return {p.name: _is_array(function, p, needed) for p in found}


def _is_array(function: Callable[..., Any], parameter: inspect.Parameter, needed: dict[str, Any]) -> bool:
    if parameter.name == OUT or parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
        return parameter.kind is parameter.VAR_POSITIONAL
    first = next(iter(inspect.signature(function).parameters))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if parameter.kind is parameter.POSITIONAL_ONLY:
                return parameter.name == first
            answer = function(**{**needed, parameter.name: Probe()})
            return isinstance(answer, str) and answer == "asked"
    except Exception:
        return parameter.name == first


# -- a call, taken apart


class Prepared:
    """A call of NumPy's function as a function of the arrays among its arguments.

    Parameters
    ----------
    wrapper : Wrapper
        Of the function.
    args, kwargs : tuple and dict
        The call.
    eager : bool
        Whether to make arrays of all that may be. If not, sizes, axes and the like stay as they are: arrays that are no
        parameters of arrays, and Python's numbers but those of the first parameter.
    """

    def __init__(self, wrapper: Wrapper, args: tuple[Any, ...], kwargs: dict[str, Any], eager: bool) -> None:
        self.wrapper, self.eager = wrapper, eager
        self.leaves: list[Any] = []
        self.outs: list[int] = []
        self._in_place = wrapper.name == "nan_to_num" and kwargs.get("copy") is False
        known = parameters(wrapper.function)
        names = [*known, *[""] * len(args)]
        variadic = next((p for p in known if known[p] and p.startswith("args")), None)
        self.args = [self._argument(v, n if variadic is None else variadic) for v, n in zip(args, names, strict=False)]
        self.kwargs = {n: self._argument(v, n) for n, v in kwargs.items()}
        self.same: list[int | None] = []  # of each leaf of the result, which argument it is

    def _argument(self, value: Any, name: str) -> Any:
        before = len(self.leaves)
        known = parameters(self.wrapper.function)
        self._numbers = self.eager or name == next(iter(known))
        made = self._part(value, known.get(name, False))
        if name.startswith(OUT) or name == WRITTEN.get(self.wrapper.name) or (name == "x" and self._in_place):
            self.outs += range(before, len(self.leaves))
            if not all(isinstance(v, np.ndarray) and v.flags.writeable for v in self.leaves[before:]):
                raise NotOursError("an array that cannot be written")
        return made

    def _part(self, value: Any, is_array: bool) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            if value.dtype.char not in LETTERS or not value.dtype.isnative:
                raise NotOursError(f"{value.dtype}")
            return self._leaf(value) if is_array or self.eager else value
        if isinstance(value, np.generic) and value.dtype.char in LETTERS and kind.__module__ == "numpy":
            return self._leaf(value) if is_array else value
        if kind in NUMBERS:
            fits = kind is not int or abs(value) < 2**63
            return self._leaf(value) if is_array and self._numbers and fits else value
        if kind in (list, tuple):
            return self._list(value, kind, is_array)
        if isinstance(value, (np.ndarray, np.generic, Iterator, *NUMBERS)) or hasattr(value, "__array__"):
            raise NotOursError(kind.__name__)
        return value.function if isinstance(value, Wrapper) else value

    def _list(self, value: Any, kind: type, is_array: bool) -> Any:
        if not value and is_array:
            raise NotOursError("a list of nothing")
        if is_array and self._numbers and self.wrapper.name not in TAKING_LISTS and not any(map(_holds_arrays, value)):
            try:
                array = np.asarray(value)
            except Exception as error:
                raise NotOursError("a list") from error
            if array.dtype.char not in LETTERS:
                raise NotOursError(f"{array.dtype}")
            return self._leaf(array)
        return kind([self._part(v, is_array) for v in value])

    def _leaf(self, value: Any) -> Slot:
        self.leaves.append(value)
        return Slot(len(self.leaves) - 1)

    def apply(self, *leaves: Any) -> tuple[Any, list[Any], list[int | None]]:
        """Call the function; gives its result, the arrays that it writes to, and which of these each part of it is."""
        path, _, name = self.wrapper.name.rpartition(".")
        space: Any = functools.reduce(getattr, path.split("."), np) if path else np
        function = getattr(space, name)  # what stands there while a function is traced
        result = function(*_filled(self.args, leaves), **_filled(self.kwargs, leaves))
        same = [next((k for k in self.outs if leaves[k] is part), None) for part in _parts(result)]
        return result, [leaves[k] for k in self.outs], same

    def __call__(self) -> Any:
        """Make the call through `cyxla.jit`."""
        function = cyxla.jit(
            lambda *leaves: self.apply(*leaves),
            platform=SETTINGS["platform"], name="called", fallback="error",
        )  # fmt: skip
        before = [self.leaves[k].copy() for k in self.outs]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                result, written, self.same = function(*self.leaves)
            copies = {id(v): v.copy() for v in written}
            return _replaced(result, copies), [copies[id(v)] for v in written]
        finally:  # NumPy's function gets the same arrays
            for k, value in zip(self.outs, before, strict=True):
                np.copyto(self.leaves[k], value)

    def text(self) -> str:
        """The call, for people."""
        shown = [_shown(v, self.leaves) for v in self.args]
        shown += [f"{n}={_shown(v, self.leaves)}" for n, v in self.kwargs.items()]
        return f"{self.wrapper.name}({', '.join(shown)})"


def _holds_arrays(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_arrays, value))
    return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__") or not isinstance(value, NUMBERS)


def _filled(value: Any, leaves: tuple[Any, ...]) -> Any:
    if isinstance(value, Slot):
        return leaves[value.number]
    if type(value) in (list, tuple):
        return type(value)([_filled(v, leaves) for v in value])
    return {k: _filled(v, leaves) for k, v in value.items()} if type(value) is dict else value


def _shown(value: Any, leaves: list[Any]) -> str:
    if isinstance(value, Slot):
        value = leaves[value.number]
        if isinstance(value, np.ndarray) and value.size > 12:
            return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    elif type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(_shown(v, leaves) for v in value)})"
    return " ".join(repr(value).split())[:150]


def _replaced(value: Any, others: dict[int, Any]) -> Any:
    """Replace arrays in a result by identity."""
    if isinstance(value, (list, tuple)):
        parts = [_replaced(part, others) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return others.get(id(value), value)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [part for each in value for part in _parts(each)]
    return [value]


# -- both results


def difference(ours: Any, theirs: Any, defined: bool) -> tuple[str, str]:
    """Compare a result with NumPy's: the kind of the greatest difference, and more of it."""
    if isinstance(theirs, (list, tuple)) and type(ours) is type(theirs) and len(ours) == len(theirs):
        found = [difference(o, t, defined) for o, t in zip(ours, theirs, strict=True)]
        return max(found, key=lambda d: KINDS.index(d[0]), default=("same", ""))
    if not isinstance(theirs, (np.ndarray, np.generic, *NUMBERS)):
        return ("same", "") if type(ours) is type(theirs) else ("type", f"{type(ours)} for {type(theirs)}")
    one, other = np.asarray(ours), np.asarray(theirs)
    if one.shape != other.shape:
        return "shape", f"{one.shape} for {other.shape}"
    if one.dtype != other.dtype:
        return "dtype", f"{one.dtype} for {other.dtype}"
    if defined and (found := _values(one, other)) != "same":
        return found, f"{_brief(one)} for {_brief(other)}"
    if type(ours) is not type(theirs):
        return "type", f"{type(ours).__name__} for {type(theirs).__name__}"
    if isinstance(ours, np.ndarray) and ours.strides != theirs.strides and _orders(one) != _orders(other):
        return "layout", f"{one.strides} for {other.strides}"
    return "same", ""


#: Of differences, the least first.
KINDS = ("same", "close", "layout", "type", "sign of zero", "dtype", "shape", "value")


def _orders(array: Any) -> tuple[bool, bool]:
    return array.flags.c_contiguous, array.flags.f_contiguous


def _brief(array: Any) -> str:
    return " ".join(str(array).split())[:120]


def _values(one: Any, other: Any) -> str:
    if one.tobytes() == other.tobytes() or one.size == 0:
        return "same"
    if one.dtype.kind not in "fc":
        return "same" if one.dtype.kind not in "biu" and np.array_equal(one, other) else "value"
    if np.array_equal(one, other, equal_nan=True):
        halves = (one.real, other.real), (one.imag, other.imag)
        signs = [np.signbit(a) == np.signbit(b) for a, b in halves]
        alike = all((s | np.isnan(a)).all() for s, (a, _) in zip(signs, halves, strict=True))
        return "same" if alike else "sign of zero"
    with np.errstate(all="ignore"):
        largest = np.max(np.abs(other), initial=0, where=np.isfinite(other))
        rtol = CLOSE.get(one.dtype, 1e-9)
        return "close" if np.allclose(one, other, rtol, rtol * float(largest) * 1e-2, equal_nan=True) else "value"


# -- functions as the tests see them


class Wrapper:
    """A function of NumPy in the hands of a test."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = full_name(function)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call NumPy's function, and if it is the turn the jitted one."""
        __tracebackhide__ = True
        if STATE.left <= 0:
            return self._plain(args, kwargs)
        try:
            call = Prepared(self, args, kwargs, eager=True)
        except NotOursError:
            STATE.counts["other arguments"] += 1
            return self._plain(args, kwargs)
        if not call.leaves:
            return self._plain(args, kwargs)
        STATE.left -= 1
        try:
            ours, call = self._jitted(call, args, kwargs)
        except NotOursError:
            STATE.counts["other arguments"] += 1
            return self._plain(args, kwargs)
        return self._judged(call, ours, args, kwargs)

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*map(_own, args), **{k: _own(v) for k, v in kwargs.items()})

    def _jitted(self, call: Prepared, args: Any, kwargs: Any) -> tuple[Any, Prepared]:
        """The result, or the exception; sizes and the like cannot be traced."""
        before, STATE.left = STATE.left, 0
        try:
            made = _tried(call)
            if isinstance(made, Exception):
                second = Prepared(self, args, kwargs, eager=False)
                if not second.leaves:
                    raise NotOursError("sizes alone")
                if len(second.leaves) != len(call.leaves):
                    return _tried(second), second
            return made, call
        finally:
            STATE.left = before

    def _judged(self, call: Prepared, ours: Any, args: Any, kwargs: Any) -> Any:
        try:
            theirs = self._plain(args, kwargs)
        except (FloatingPointError, Warning):  # which compiled code does not give
            raise
        except Exception as error:
            return self._raised(call, ours, error)
        if isinstance(ours, Exception):
            if isinstance(ours, REFUSALS):
                STATE.note("refused", call)
                return theirs
            STATE.note("error", call, repr(ours))
            raise ours
        made, written = ours
        defined = self.name not in UNDEFINED and not ("where" in call.kwargs and not call.outs)
        STATE.note(*_noted(difference(made, theirs, defined), call))
        for k, value in zip(call.outs, written, strict=True):
            STATE.note(*_noted(difference(value, np.array(call.leaves[k]), defined), call))
            np.copyto(call.leaves[k], value)
        return _restored(made, theirs, call)

    def _raised(self, call: Prepared, ours: Any, error: Exception) -> Any:
        if not isinstance(ours, Exception):
            STATE.note("no error", call, repr(error))
            return ours[0]
        if isinstance(ours, type(error)) or isinstance(error, type(ours)):
            STATE.note("same", call)
            raise ours if SETTINGS["texts"] else error
        if isinstance(ours, REFUSALS):
            STATE.note("refused", call)
            raise error
        STATE.note("class of error", call, f"{ours!r} for {error!r}")
        raise ours

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return repr(self.function)

    def __reduce__(self) -> Any:
        return _wrapped, (self.function,)

    def __eq__(self, other: object) -> bool:
        return self.function is _own(other)

    def __hash__(self) -> int:
        return hash(self.function)


def _tried(call: Prepared) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _own(value: Any) -> Any:
    return value.function if isinstance(value, Wrapper) else value


def _noted(found: tuple[str, str], call: Prepared) -> tuple[str, Prepared, str]:
    return found[0], call, found[1]


def _restored(made: Any, theirs: Any, call: Prepared) -> Any:
    """The result, with the test's own arrays where it is what was handed in."""
    if not call.outs or not any(k is not None for k in call.same):
        return made
    found = iter([p if k is None else call.leaves[k] for p, k in zip(_parts(made), call.same, strict=True)])
    return type(made)([next(found) for _ in made]) if isinstance(made, tuple) else next(found)


@cache
def _wrapped(function: Callable[..., Any]) -> Wrapper:
    return Wrapper(function)


WRAPPERS = {
    id(f): _wrapped(f)
    for f in [
        *(f for f, row in rows().items() if row.name not in LEFT_OUT),
        *(f for f in vars(np).values() if isinstance(f, np.ufunc)),
    ]
}


class Module:
    """A module of NumPy in the hands of a test."""

    __slots__ = ("_module",)

    def __init__(self, module: ModuleType) -> None:
        object.__setattr__(self, "_module", module)

    def __getattr__(self, name: str) -> Any:
        return seen(getattr(self._module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, _own(value))

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)

    def __dir__(self) -> list[str]:
        return dir(self._module)


@cache
def _module(module: ModuleType) -> Module:
    return Module(module)


def seen(value: Any) -> Any:
    """What a test sees in the place of a value."""
    if isinstance(value, ModuleType):
        name = value.__name__
        ours = name.partition(".")[0] == "numpy" and "test" not in name and type(value) is ModuleType
        return _module(value) if ours else value
    return WRAPPERS.get(id(value), value)


# -- hooks


class TimedOutError(BaseException):
    """A test took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes longer."""

    def stop(number: int, frame: Any) -> None:
        raise TimedOutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Give the test modules and the parameters of tests their wrappers, and leave out what is not wanted."""
    wanted = None if SETTINGS["only"] is None else set(SETTINGS["only"])
    chosen = [item for item in items if wanted is None or item.nodeid in wanted]
    skipped = set(SETTINGS.get("done", ()))
    items[:] = [item for item in chosen if item.nodeid not in skipped]
    for module in {item.module for item in items}:
        for name, value in list(vars(module).items()):
            setattr(module, name, seen(value))
    for item in items:
        if hasattr(item, "callspec"):
            item.callspec.params.update({k: seen(v) for k, v in item.callspec.params.items()})


def _write(**line: Any) -> None:
    with open(SETTINGS["results"], "a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Say which test is under way, for whoever finds this process dead."""
    _write(begin=item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Count the calls of a test, and end it if it hangs."""
    STATE.begin()
    try:
        with limited(SETTINGS["seconds"]):
            return (yield)
    except TimedOutError as error:
        pytest.fail(f"TimedOutError: {error}", pytrace=True)
    finally:
        STATE.left = 0


def pytest_runtest_logreport(report: Any) -> None:
    """Write down how a test ended."""
    if report.when == "call" or report.outcome != "passed":
        outcome = report.outcome if not hasattr(report, "wasxfail") else "skipped"
        why = str(report.longrepr)[-1500:] if outcome == "failed" else ""
        _write(end=report.nodeid, outcome=outcome, why=why, counts=dict(STATE.counts), notes=STATE.notes)
