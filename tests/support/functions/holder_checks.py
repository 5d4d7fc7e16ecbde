"""Calls of a module's function and of the compiled one: results, printed text, state and identities."""

from __future__ import annotations

import functools
import io
import re
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import zip_longest
from types import ModuleType
from typing import Any

import numpy as np

import cyxla
from cyxla.errors import FallbackWarning
from support.functions.module_checks import DifferentError, compare_arrays, compare_errors, loaded, outcome

TOLERANCES = {"f": 1e-4, "d": 1e-9}
SINGLE = dict.fromkeys(TOLERANCES, 1e-4)
#: Ends of modules: without a fallback, with one, and with an array that is a copy as documented.
COMPILED, FALLBACK, COPIED = "compiled", "fallback", "copied"
SKIPPED = ("main", "CALLS", "DTYPE")  # of a module's names
ADDRESS = re.compile(r"0x[0-9a-f]+|written_module_\d+")
NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")
#: Errors by values are raised at the end of a run, which leaves the state as it was; these come from tracing.
OF_TRACING = (TypeError, AttributeError, KeyError)
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, property, staticmethod, classmethod)


class _CopiedError(Exception):
    """An array is a copy in the compiled function alone, as documented: what follows from it is no difference."""


class Worlds:
    """Two copies of a module, the objects that were found in them, and the results of their calls.

    Parameters
    ----------
    ours : module
        The one whose function is compiled.
    theirs : module
        The one whose function is plain.
    is_single : bool
        Whether numbers may come from arrays of f4.
    """

    def __init__(self, ours: ModuleType, theirs: ModuleType, is_single: bool) -> None:
        self.ours, self.theirs = ours, theirs
        self.classes: tuple[type, ...] = ()  # that loops and branches may give Python's numbers
        self._numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})  # objects in the order in which they are found
        self._kept: list[Any] = []  # so that no other object takes an address
        self._seen: set[int] = set()
        self._results: list[tuple[Any, Any]] = []
        self._tolerances = SINGLE if is_single else TOLERANCES

    def compare(self, got: Any, want: Any, copies: Any, given: Any, where: str) -> None:
        """Compare results, arguments, the state and earlier results: values, and which objects are the same.

        Raises
        ------
        DifferentError
            They differ.
        """
        self._seen = set()
        self._results.append((got, want))
        for name in sorted({*vars(self.ours), *vars(self.theirs)} - {*SKIPPED}):
            if not name.startswith("__"):
                if hasattr(self.ours, name) != hasattr(self.theirs, name):
                    raise DifferentError(f"{where}: {name} is bound in one of the modules alone")
                self._walk(getattr(self.ours, name), getattr(self.theirs, name), f"{where}, {name}")
        self._walk(copies, given, f"{where}, arguments")
        for number, (one, other) in enumerate(self._results):
            self._walk(one, other, f"{where}, result of call {number}")

    def _walk(self, got: Any, want: Any, where: str) -> None:
        """Compare two objects and all that can be reached from them."""
        if isinstance(want, ModuleType) and want.__spec__ is not None:
            return
        if isinstance(want, type) and want.__module__ != self.theirs.__name__:
            if got is not want:
                raise DifferentError(f"{where}\nplain: {want!r}\njitted: {got!r}")
            return
        is_array = isinstance(want, np.ndarray)
        if not is_array and isinstance(want, (bool, int, float, complex, str, np.generic, type(None))):
            self._compare_numbers(got, want, where)
            return
        if type(got).__name__ != type(want).__name__:
            raise DifferentError(f"{where}\nplain: {type(want)} {want!r}\njitted: {type(got)} {got!r}")
        if not isinstance(want, (tuple, types.MethodType, types.BuiltinMethodType, range)) and self._is_known(
            got, want, where
        ):
            return
        if is_array:
            compare_arrays(got, want, where, self._tolerances)
            return
        for (name, one), (other_name, other) in zip_longest(_parts(got), _parts(want), fillvalue=("nothing", None)):
            is_object = type(other_name).__module__ == self.theirs.__name__  # a key of a dict, by its identity
            if type(name).__name__ != type(other_name).__name__ or (name != other_name and not is_object):
                raise DifferentError(f"{where}: {other_name!r} in the plain one, {name!r} in the jitted one")
            self._walk(one, other, f"{where}.{name}")

    def _is_known(self, got: Any, want: Any, where: str) -> bool:
        """Return whether two objects were found before in this walk; they must have been the same in every one."""
        ours, theirs = (numbers.get(id(o)) for numbers, o in zip(self._numbers, (got, want), strict=True))
        if ours != theirs:
            if isinstance(want, np.ndarray) and ours is None:
                raise _CopiedError(where)
            raise DifferentError(f"{where}, identity\nplain: object {theirs}, {want!r}\njitted: object {ours}, {got!r}")
        if ours is None:
            self._see_copies(got, want, where)
            ours = self._numbers[0][id(got)] = self._numbers[1][id(want)] = len(self._numbers[0])
            self._kept += [got, want]
        is_known = ours in self._seen
        self._seen.add(ours)
        return is_known

    def _see_copies(self, got: Any, want: Any, where: str) -> None:
        """Stop at a view of an array found before, where the compiled function has an array of its own."""
        if not isinstance(want, np.ndarray) or want.base is None:
            return
        for one, other in zip(self._kept[::2], self._kept[1::2], strict=True):
            is_view = isinstance(other, np.ndarray) and np.shares_memory(want, other)
            if is_view and not np.shares_memory(got, one):
                raise _CopiedError(where)

    def _compare_numbers(self, got: Any, want: Any, where: str) -> None:
        if isinstance(want, (str, type(None))):
            if type(got) is not type(want) or got != want:
                raise DifferentError(f"{where}\nplain: {want!r}\njitted: {got!r}")
            return
        if type(got) is not type(want) and not (
            type(want) in (bool, int, float) and issubclass(type(got), self.classes) and type(got) is not bool
        ):
            raise DifferentError(f"type: {where}\nplain: {type(want)} {want!r}\njitted: {type(got)} {got!r}")
        compare_arrays(got, want, where, self._tolerances)


def _parts(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the names of what an object holds, and what it holds."""
    if isinstance(holder, (list, tuple)):
        yield from enumerate(holder)
    elif isinstance(holder, dict):
        yield from holder.items()
    elif isinstance(holder, types.MethodType):
        yield from (("self", holder.__self__), ("function", holder.__func__))
    elif isinstance(holder, functools.partial):
        yield from (("function", holder.func), ("args", holder.args), ("keywords", holder.keywords))
    elif isinstance(holder, property):
        yield from (("get", holder.fget), ("set", holder.fset))
    elif isinstance(holder, (staticmethod, classmethod)):
        yield "function", holder.__func__
    elif isinstance(holder, types.FunctionType):
        yield from (("name", holder.__code__.co_name), ("defaults", holder.__defaults__ or ()))
        yield "keywords", sorted((holder.__kwdefaults__ or {}).items())
        yield "cells", tuple(cell.cell_contents for cell in holder.__closure__ or ())
        yield "attributes", holder.__dict__
    else:
        yield "class", type(holder) if not isinstance(holder, type) else holder.__mro__[1:]
        yield from ((n, getattr(holder, n)) for n in getattr(type(holder), "__slots__", ()) if hasattr(holder, n))
        yield from ((n, v) for n, v in getattr(holder, "__dict__", {}).items() if not n.startswith("__"))


def _arguments(module: ModuleType, call: int) -> tuple[Any, ...]:
    """Return arguments of a call: an array of sums of quarters, and what the module says."""
    size, _, given = module.CALLS[call]
    whole = np.random.default_rng(call).integers(-8, 9, size)
    return given(whole.astype("i8") if module.DTYPE == "i8" else (whole / 4).astype(module.DTYPE))


def _changed(module: ModuleType, call: int) -> Any:
    change = module.CALLS[call][1]
    return outcome(change, ()) if change else None


def _printed(function: Any, args: Any) -> tuple[Any, str, bool]:
    """Return what a call gives, the text that it prints, and whether it was not compiled."""
    with redirect_stdout(io.StringIO()) as text, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with np.errstate(all="ignore"):
            try:
                given = function(*args)
            except Exception as error:
                given = error
    return given, text.getvalue(), any(issubclass(w.category, FallbackWarning) for w in told)


def _compare_texts(got: str, want: str, where: str) -> None:
    ours, theirs = (NUMBER.split(ADDRESS.sub("", text)) for text in (got, want))
    is_same = len(ours) == len(theirs) and all(
        a == b or (k % 2 and abs(float(a) - float(b)) <= 1e-6 * (1 + abs(float(b))))
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True))
    )
    if not is_same:
        raise DifferentError(f"{where}, printed\nplain: {want!r}\njitted: {got!r}")


def check_holders(text: str, platform: str, classes: tuple[type, ...] = (int, float)) -> str:
    """Compare the calls of a module; return `COMPILED`, `FALLBACK`, or `COPIED` if it was left early.

    Parameters
    ----------
    text : str
        Source of the module.
    platform : str
        Backend.
    classes : tuple of type
        Classes that Python's numbers may get in loops and branches.

    Raises
    ------
    DifferentError
        The plain function and the compiled one differ.
    """
    with tempfile.TemporaryDirectory(prefix="cyxla-holders-") as folder:
        ours, theirs = loaded(text, folder), loaded(text, folder)
        try:
            return _check(ours, theirs, platform, text, classes)
        finally:
            for module in (ours, theirs):
                del sys.modules[module.__name__]


def _check(ours: ModuleType, theirs: ModuleType, platform: str, text: str, classes: tuple[type, ...]) -> str:
    run, ended = cyxla.jit(ours.main, platform=platform, fallback="numpy"), COMPILED
    worlds = Worlds(ours, theirs, "f4" in text)
    body = text[text.index("def main") :].split("\n\n\n")[0]
    worlds.classes = classes if any(f"    {word} " in body for word in ("if", "for", "while")) else ()
    worlds.compare(None, None, (), (), "before")
    for call in range(len(theirs.CALLS)):
        where = f"call {call}"
        changed = _changed(ours, call), _changed(theirs, call)
        if any(isinstance(c, Exception) for c in changed):
            compare_errors(*changed, f"{where}, change")
        try:
            copies, given = _arguments(ours, call), _arguments(theirs, call)
        except Exception:  # the state no longer has what the arguments are taken from
            return ended
        want, wanted, _ = _printed(theirs.main, given)
        got, printed, has_fallen_back = _printed(run, copies)
        ended = FALLBACK if has_fallen_back else ended
        is_error = isinstance(want, Exception) or isinstance(got, Exception)
        if is_error:
            compare_errors(got, want, where)
            if not isinstance(want, OF_TRACING):
                return ended
            got = want = None
        _compare_texts(printed, wanted, where)
        try:
            worlds.compare(got, want, copies, given, where)
        except _CopiedError:
            return ended if ended == FALLBACK else COPIED
    return ended
