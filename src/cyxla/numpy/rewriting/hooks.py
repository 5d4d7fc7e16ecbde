"""`Hooks`: functions that rewritten code calls for its branches, loops, calls, and objects from outside."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from types import BuiltinMethodType, FunctionType, MethodDescriptorType, MethodType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.errors import OpError, TraceError, UnimplementedError
from cyxla.numpy.rewriting.known_branch import KnownBranch
from cyxla.numpy.rewriting.known_conditions import is_static, needs_value
from cyxla.numpy.rewriting.loops import iterables
from cyxla.numpy.rewriting.loops.unrolling import count_call
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound, Unbound
from cyxla.numpy.rewriting.python_functions import assertions, identity
from cyxla.numpy.rewriting.python_functions.choices import condition, truth
from cyxla.numpy.rewriting.python_functions.classes import GETTERS, SUBSTITUTES_IN_SCOPE, getter_by_name, visible_class
from cyxla.numpy.rewriting.python_functions.impure import (
    refuse_changing_default,
    refuse_contents,
    refuse_keeping,
    refuse_method,
)
from cyxla.numpy.rewriting.python_functions.lists_of_numbers import indexed
from cyxla.numpy.rewriting.python_functions.memoised import is_memoised, memoised
from cyxla.numpy.rewriting.python_functions.new_objects import recording
from cyxla.numpy.rewriting.python_functions.table import SUBSTITUTES
from cyxla.numpy.rewriting.python_functions.texts import METHODS, formatted, joined, percent, with_known_texts
from cyxla.numpy.rewriting.syntax.jumps import VALUE
from cyxla.numpy.rewriting.syntax.scopes import (
    has_changing_fields,
    is_generic,
    is_of_package,
    is_user_function,
    makes_context,
)
from cyxla.numpy.state.scope import Scope, outside_values
from cyxla.numpy.substitutes.patched_numpy import NDARRAY
from cyxla.numpy.tracing.arrays.number_table import NumberTable
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList, is_any_number
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks as tracing_hooks
from cyxla.numpy.tracing.trace import current, depth, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of, is_number, lacks_attribute, missing_attribute
from cyxla.numpy.tracing.user_program.random_state import shuffle_of
from cyxla.numpy.tracing.user_program.texts import TracedText
from cyxla.numpy.tracing.user_program.user_frames import mend_of_library, refused_by_library, user_line_of

if TYPE_CHECKING:
    from cyxla.numpy.rewriting.branches import TracedBranch
    from cyxla.numpy.rewriting.loops.drivers import Loop
    from cyxla.numpy.rewriting.loops.for_loops import ForLoop
    from cyxla.numpy.rewriting.loops.while_loops import WhileLoop

_np: Any = np  # its functions dispatch to this package


class Hooks:
    """Hooks of one rewritten function.

    Parameters
    ----------
    scope : Scope
        Names of the function, and objects from outside as it sees them.
    rewrite : callable
        Function from a function of the user to the one to call in its place.
    package : str
        Name of the package that the function belongs to.
    """

    errors = Exception
    slice = slice

    def __init__(self, scope: Scope, rewrite: Callable[[Any], Any], package: str) -> None:
        self._scope, self._rewrite, self._package = scope, rewrite, package
        self.read_name, self.write_name, self.delete_name = scope.read_name, scope.write_name, scope.delete_name
        self.write_attr, self.delete_attr = scope.write_attr, scope.delete_attr
        self.write_item, self.delete_item = scope.write_item, scope.delete_item

    def read_attr(self, obj: Any, attr: str) -> Any:
        """Return ``obj.attr``; a method is a rewritten one, since it may be passed on."""
        if attr == "__class__" and is_traced(obj):
            return visible_class(obj)
        if attr == "__hash__" and obj is NDARRAY:
            return np.ndarray.__hash__
        value = self._scope.read_attr(obj, attr)
        if isinstance(value, MethodType) and is_user_function(value.__func__, self._package):
            return _in_place_of(
                value, MethodType(self._rewrite(value.__func__), self._scope.read_attr(value, "__self__"))
            )
        return value

    def owner(self, obj: Any, attr: str) -> Any:
        """Return an object of which a method, or a function that it holds as an attribute, is about to be called."""
        if not isinstance(obj, TracedArray):
            return self._scope.owner(obj, attr)
        if lacks_attribute(obj, attr):
            raise missing_attribute(obj, attr)
        return obj

    # -- variables

    @staticmethod
    def unbound(name: str) -> Unbound:
        """Return the value of a variable that has none."""
        return Unbound(name)

    @staticmethod
    def bound(value: Any) -> Any:
        """Return the value of a variable; raise, or make the runs fail, where it has none."""
        if isinstance(value, Unbound):
            value.fail()
        if isinstance(value, PossiblyUnbound):
            value.require_bound()
        return value

    @staticmethod
    def returned(flag: Any, value: Any) -> Any:
        """Return the result of a function, of which one path may end without a `return`."""
        if is_traced(flag) and value is not None:
            raise TraceError(
                "by a traced condition, the function returns a value or nothing", where=user_line(),
                hint="return a value on each path",
            )  # fmt: skip
        if isinstance(value, Unbound) and value.name != VALUE:
            value.fail()
        return None if isinstance(value, Unbound) else value

    # -- statements

    @staticmethod
    def branch(test: Any, names: Sequence[str]) -> KnownBranch | TracedBranch:
        """Begin an `if`."""
        settled = _settled(test)
        if not is_traced(settled):
            return KnownBranch(bool(settled))
        from cyxla.numpy.rewriting.branches import TracedBranch

        return TracedBranch(truth(settled), names)

    @staticmethod
    def held(value: Any, may_end_early: bool = False) -> Any:
        """Return a value that is iterated over; see `iterables.held`."""
        return iterables.held(value, may_end_early)

    @staticmethod
    def loop(iterable: Any, is_held: bool, *facts: Sequence[str]) -> ForLoop:
        """Begin a `for`, over a value that something else may hold."""
        from cyxla.numpy.rewriting.loops.for_loops import ForLoop
        from cyxla.numpy.rewriting.loops.plans import Variables

        return ForLoop(iterable, Variables.of(*facts), is_held=is_held)

    @staticmethod
    def while_loop(*facts: Sequence[str]) -> WhileLoop:
        """Begin a `while`."""
        from cyxla.numpy.rewriting.loops.plans import Variables
        from cyxla.numpy.rewriting.loops.while_loops import WhileLoop

        return WhileLoop(Variables.of(*facts))

    @staticmethod
    def fails(test: Any, message: Callable[[], Any]) -> bool:
        """Return True if an assertion fails; runs fail in which a traced one does."""
        test = condition(test)
        if not is_traced(test):
            return not test
        text = message()
        if isinstance(text, TracedText):
            require_current().program.catches = True  # NumPy makes the message
        arguments = () if text is None else (str(text),)
        failed = value_of(_np.logical_not(truth(test)))
        zero = require_current().constant(0, np.dtype(np.int64))
        require_current().fail_if(failed, zero, lambda _: AssertionError(*arguments))
        return False

    @staticmethod
    def depth() -> int:
        """Return the number of traces that are under way."""
        return depth()

    @staticmethod
    def handle(before: int) -> None:
        """Begin the handler of an exception, whose text becomes NumPy's.

        One that was raised inside a branch or loop of the program cannot be handled.

        Raises
        ------
        TraceError
            The exception left a branch on a traced condition.
        """
        if depth() > before:
            raise TraceError(
                "an exception that leaves a branch on a traced condition cannot be handled", where=user_line()
            )
        error = sys.exc_info()[1]
        _record_refusal(error)
        if isinstance(error, OpError) and not isinstance(error, (TraceError, UnimplementedError)):
            error.where = error.hint = ""

    def append(self, loops: Sequence[Loop], is_always: bool, values: Any, value: Any) -> None:
        """Call ``values.append(value)`` in the bodies of loops that do not use the list otherwise.

        `loops` are from the outermost on; `is_always` tells whether each iteration of the innermost appends one value.
        """
        if not isinstance(values, StackedList):
            self.call(values.append)(value)
            return
        recording = [k for k, loop in enumerate(loops) if loop.recording is not None]
        if not recording:
            values.append(value)
        elif is_always and recording[0] == len(loops) - 1:
            loops[-1].append(values, value)
        else:
            bounds = [loops[k].bound for k in recording]
            times = None if None in bounds else prod(bounds)  # type: ignore[arg-type]
            loops[recording[0]].append_some(values, value, times)
            for k in recording[1:]:
                loops[k].append_inside(values, loops[recording[0]])

    @staticmethod
    def new_list(values: list[Any]) -> list[Any]:
        """Return a new list to which loops append."""
        return StackedList.of(values) if type(values) is list else values

    @staticmethod
    def addend(value: Any) -> Any:
        """Return `b` of ``a += b``: if its class has an addition of its own, Python makes a new list."""
        if isinstance(value, StackedList) and not value.is_sized:
            return list(value)
        return value

    # -- expressions

    @staticmethod
    def choose(test: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
        """Return the value of a conditional expression."""
        return _chosen(_settled(test), first, second)

    @staticmethod
    def all_of(first: Any, *others: Callable[[], Any]) -> Any:
        """Return the value of operands joined by `and`."""
        return _joined(first, others, stops_at=False)

    @staticmethod
    def any_of(first: Any, *others: Callable[[], Any]) -> Any:
        """Return the value of operands joined by `or`."""
        return _joined(first, others, stops_at=True)

    @staticmethod
    def not_(value: Any) -> Any:
        """Return ``not value``."""
        value = condition(value)
        return truth(_np.logical_not(truth(value))) if is_traced(value) else not value

    @staticmethod
    def is_(one: Any, other: Any) -> Any:
        """Return ``one is other``; see `identity.is_same`."""
        return identity.is_same(one, other)

    are_equal = staticmethod(identity.are_equal)

    @staticmethod
    def matched(value: Any) -> Any:
        """Return the subject of a match statement, all of whose numbers have to be known.

        Raises
        ------
        TraceError
            A value is traced; the numbers among the arguments that determine it become static.
        """
        if isinstance(value, (list, tuple)):
            for part in value:
                Hooks.matched(part)
        elif isinstance(value, dict):
            Hooks.matched(list(value.values()))
        elif is_traced(value):
            if class_of(value) is np.ndarray:
                raise TraceError("the patterns of a match statement are compared with a traced array")
            needs_value(value)
        return value

    @staticmethod
    def contains(value: Any, values: Any) -> Any:
        """Return ``value in values``."""
        if isinstance(values, SizedArray):
            return truth(_np.any(values == value))
        if is_traced(values) and not isinstance(values, (list, tuple)):
            if is_number(values):
                kind = class_of(values)
                module = "numpy." if issubclass(kind, np.generic) else ""
                raise TypeError(f"argument of type '{module}{kind.__name__}' is not iterable")
            return truth(_np.any(values == value))
        numbers = values.as_numbers() if isinstance(values, StackedList) and is_any_number(value) else None
        if numbers is not None:
            return truth(_np.any(numbers == value))
        if not is_traced(value) or not isinstance(values, (list, tuple, range)):
            return _contains_known(value, values)
        found: Any = False
        for other in values:
            found = _np.logical_or(found, value == other)
        return truth(found) if is_traced(found) else bool(found)

    @staticmethod
    def lacks(value: Any, values: Any) -> Any:
        """Return ``value not in values``."""
        return Hooks.not_(Hooks.contains(value, values))

    indexed = staticmethod(indexed)

    def read_item(self, value: Any, key: Any) -> Any:
        """Return ``value[key]`` for an object that may be from outside."""
        return self._scope.read_item(indexed(value), key)

    formatted, joined, percent = staticmethod(formatted), staticmethod(joined), staticmethod(percent)

    @staticmethod
    def comprehension(iterable: Any, element: Callable[..., Any], count: int | None = None) -> list[Any]:
        """Return the list of the elements for all values, each unpacked into a number of arguments if it is given."""
        function = element if count is None else _unpacking(element, count)
        source = iterables.source_of(iterable) if current() is not None else None
        if source is None or iterables.is_short(source):
            return [function(item) for item in iterable]
        from cyxla.numpy.rewriting.loops.comprehensions import comprehension

        return comprehension(iterable, source, function)

    @staticmethod
    def rows(iterable: Any, element: Callable[..., Any], count: int | None = None) -> list[Any]:
        """Return the list of `comprehension` as a table whose elements loops write; known numbers stay known."""
        program = None if current() is None else require_current().program
        keeps_known = program is None or program.keeps_known
        try:
            if program is not None:
                program.keeps_known = True
            values = Hooks.comprehension(iterable, element, count)
        finally:
            if program is not None:
                program.keeps_known = keeps_known
        return NumberTable.of(values)  # type: ignore[no-any-return]

    @staticmethod
    def quantified(stops_at: bool, iterable: Any, element: Callable[..., Any], count: int | None = None) -> Any:
        """Return `any` (`stops_at` True) or `all` of the elements for all values; see `comprehension`."""
        from cyxla.numpy.rewriting.loops.comprehensions import quantified

        function = element if count is None else _unpacking(element, count)
        return quantified(stops_at, iterable, function, partial(_joined, stops_at=stops_at))

    @staticmethod
    def filtered(
        iterable: Any, test: Callable[..., Any], element: Callable[..., Any], count: int | None = None
    ) -> list[Any]:
        """Return the list of the elements for all values that pass a test; see `comprehension`."""
        from cyxla.numpy.rewriting.loops.comprehensions import filtered

        functions = (test, element) if count is None else (_unpacking(test, count), _unpacking(element, count))
        return filtered(iterable, *functions)

    @staticmethod
    def flattened(lists: list[Any]) -> list[Any]:
        """Return the list that a comprehension with several `for` makes of the lists of its inner ones."""
        from cyxla.numpy.rewriting.loops.comprehensions import flattened

        return flattened(lists)

    # -- calls

    def _generic_function(self, function: FunctionType) -> Callable[..., Any]:
        """Return what calls the implementation of a `functools.singledispatch`, or method, for the class of a value."""
        closed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        cells = {name: cell.cell_contents for name, cell in closed}
        dispatch = cells["dispatch"] if "dispatch" in cells else cells["self"].dispatcher.dispatch

        def dispatched(*args: Any, **kwargs: Any) -> Any:
            if not args:
                return function(**kwargs)  # raises its error
            found = dispatch(class_of(args[0]))
            if "obj" in cells:
                found = found.__get__(cells["obj"], cells["cls"])
            return self.call(found)(*args, **kwargs)

        return dispatched

    def call(self, function: Any) -> Any:
        """Return the function to call in the place of one: rewritten, or for traced numbers."""
        try:
            substitute = SUBSTITUTES.get(function)
        except TypeError:  # not hashable
            return function
        substitute = substitute or self._getter(function)
        if substitute is not None:
            return substitute
        refuse_method(function)
        refuse_changing_default(function)
        refuse_contents(function)
        in_scope = SUBSTITUTES_IN_SCOPE.get(function)
        if in_scope is not None:
            return in_scope(self._scope)
        if (assertion := assertions.substitute_of(function)) is not None:
            return assertion
        if is_memoised(function):
            return memoised(function)
        if (method := refuse_keeping(function) or self._method_of_c(function)) is not None:
            return method
        if isinstance(function, partial):
            read = self._scope.read_attr
            parts = read(function, "args"), read(function, "keywords")
            return partial(self.call(read(function, "func")), *parts[0], **parts[1])
        return self._python_function(function)

    def _getter(self, function: Any) -> Callable[..., Any] | None:
        """Return the function to call in the place of one that reads attributes by name; None for others."""
        if any(function is kind for kind in GETTERS):
            return lambda *args, **kwargs: self.call(function(*args, **kwargs))
        return getter_by_name(function, self.read_attr, self.call) if isinstance(function, GETTERS) else None

    def _method_of_c(self, function: Any) -> Any:
        """Return the function to call in the place of a bound method of C; None for others."""
        if isinstance(function, MethodType):
            return shuffle_of(function)
        if isinstance(function, MethodWrapperType) and isinstance(function.__self__, property):
            return self._method_of_property(function)
        if isinstance(function, MethodWrapperType):
            of_object = self.call(getattr(function.__objclass__, function.__name__))
            return partial(of_object, function.__self__)
        if isinstance(function, BuiltinMethodType):
            if isinstance(function.__self__, _CONTAINERS):
                return self._scope.method(function.__self__, function.__name__)
            if isinstance(function.__self__, str) and function.__name__ in METHODS:
                return METHODS[function.__name__](function.__self__)
            if not isinstance(function.__self__, (ModuleType, type)):
                return with_known_texts(function)
        if isinstance(function, MethodDescriptorType) and function.__objclass__ is str:
            return with_known_texts(function)
        return None

    def _method_of_property(self, method: MethodWrapperType) -> Any:
        """Return the function of the user to call in the place of a property's ``__get__``, ``__set__`` or the like."""
        part = getattr(method.__self__, _PARTS_OF_PROPERTIES.get(method.__name__, ""), None)
        if part is None:
            return method
        of_object = self.call(part)
        if method.__name__ != "__get__":
            return of_object
        return lambda obj, owner=None: method.__self__ if obj is None else of_object(obj)

    def _python_function(self, function: Any) -> Any:
        """Return the function to call in the place of one that is not of C."""
        if is_generic(function):
            return self._generic_function(function)
        if isinstance(function, MethodType) and makes_context(function.__func__):
            return MethodType(self.call(function.__func__), self._scope.read_attr(function, "__self__"))
        if makes_context(function):
            return contextmanager(self._rewrite(function.__wrapped__))
        if isinstance(function, MethodType) and is_user_function(function.__func__, self._package):
            count_call(current())
            return MethodType(self._rewrite(function.__func__), self._scope.read_attr(function, "__self__"))
        if is_user_function(function, self._package):
            count_call(current())
            return self._rewrite(function)
        if getattr(function, "__module__", None) and function.__module__.startswith("scipy."):
            tracing_hooks.give_plain_numpy()  # the program may have imported SciPy only now
        if (made := recording(function, is_of_package(self._package))) is not None:
            return made
        tracing_hooks.adopt_class(function if isinstance(function, type) else type(function))
        if isinstance(function, type) and has_changing_fields(function):
            return partial(self._rewrite(function.__new__), function)
        return function

    def applied(self, function: Any) -> Any:
        """Return the function that `map` and the like call in the place of one; `filter` may have none."""
        return function if function is None else self.call(function)

    def function(self, function: Any) -> Any:
        """Return the value to pass to a function in the place of one: a function is rewritten."""
        return _in_place_of(function, self._passed_function(function))

    def _passed_function(self, function: Any) -> Any:
        if isinstance(function, MethodType) and is_user_function(function.__func__, self._package):
            return MethodType(self._rewrite(function.__func__), self._scope.read_attr(function, "__self__"))
        if isinstance(function, _CALLED):
            return self.call(function)
        return self._rewrite(function) if is_user_function(function, self._package) else function


def _in_place_of(function: Any, made: Any) -> Any:
    """Return what is passed in the place of a function; results have the function."""
    if made is not function and (outside := outside_values()) is not None:
        _, original = outside.originals.get(id(function), (None, function))
        outside.originals[id(made)] = made, original
    return made


def _record_refusal(error: BaseException | None) -> None:
    """Make an error that the plain function would not raise count, although the function catches it."""
    trace = current()
    if trace is None or error is None:
        return
    chain = (error, error.__cause__, error.__context__)
    own = next((e for e in chain if isinstance(e, (TraceError, UnimplementedError))), None)
    library = "" if own is not None else refused_by_library(error)
    if library:
        own = TraceError(
            f"{library} calls compiled code, which refuses traced arrays", where=user_line_of(error),
            hint=mend_of_library(library),
        )  # fmt: skip
    if own is not None and own not in trace.program.raised:
        trace.program.raised.append(own)


_PARTS_OF_PROPERTIES = {"__get__": "fget", "__set__": "fset", "__delete__": "fdel"}
_CALLED = (*GETTERS, partial, MethodWrapperType)
_CONTAINERS = (list, dict, set, deque)


def _unpacking(element: Callable[..., Any], count: int) -> Callable[[Any], Any]:
    """Return a function of a value for one of its parts."""

    def of_value(value: Any) -> Any:
        parts = tuple(value)
        if len(parts) != count:
            few = f"not enough values to unpack (expected {count}, got {len(parts)})"
            raise ValueError(few if len(parts) < count else f"too many values to unpack (expected {count})")
        return element(*parts)

    return of_value


def _settled(test: Any) -> Any:
    """Return a condition; those that integers of the call decide become known."""
    test = condition(test)
    if is_traced(test) and isinstance(test, TracedArray) and is_static(test):
        needs_value(test)
    return test


def _chosen(test: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    if not is_traced(test):
        return first() if test else second()
    from cyxla.numpy.rewriting.branches import choose

    return choose(test, first, second)


def _joined(first: Any, others: Sequence[Callable[[], Any]], stops_at: bool) -> Any:
    value = first
    for k, other in enumerate(others):
        settled = _settled(value)
        if not is_traced(settled):
            if bool(settled) is stops_at:
                return value
            value = other()
            continue
        rest = others[k:]

        def remaining(rest: Sequence[Callable[[], Any]] = rest) -> Any:
            return _joined(rest[0](), rest[1:], stops_at)

        def kept(value: Any = value) -> Any:
            return value

        return _chosen(settled, kept, remaining) if stops_at else _chosen(settled, remaining, kept)
    _settled(value)
    return value


def _contains_known(value: Any, values: Any) -> Any:
    if isinstance(value, TracedText) and isinstance(values, str):
        value.refuse()
    return value in values
