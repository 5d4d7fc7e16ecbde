"""List comprehensions: long ones become loops of the program, which store the elements in arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.branches import TracedBranch
from cyxla.numpy.rewriting.loops.for_loops import ForLoop
from cyxla.numpy.rewriting.loops.iterables import Source, source_of, use_up
from cyxla.numpy.rewriting.loops.plans import Variables
from cyxla.numpy.rewriting.loops.recordings import INDEX
from cyxla.numpy.rewriting.loops.stacks import Stacks, with_traced_numbers
from cyxla.numpy.rewriting.loops.unrolling import MOST_UNROLLED
from cyxla.numpy.rewriting.parts.aliases import note_alias
from cyxla.numpy.rewriting.parts.parts import Part
from cyxla.numpy.rewriting.parts.python_state import PythonState
from cyxla.numpy.rewriting.python_functions.choices import condition, truth
from cyxla.numpy.rewriting.python_functions.reductions import SUBSTITUTES
from cyxla.numpy.tracing.arrays.stacked_list import RUN_TIME, Elements, StackedList, structure_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, traced
from cyxla.numpy.tracing.containers import flatten
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of

_np: Any = np  # its functions dispatch to this package
MOST_ELEMENTS = 1 << 20  # of a list whose length is known at run time
LEAST_KNOWN = 1000  # elements of known values that a loop of the program makes rather than Python
_NO_VARIABLES = Variables.of((), (), (), (), ())


def comprehension(iterable: Any, source: Source, element: Callable[[Any], Any]) -> list[Any]:
    """Return ``[element(item) for item in iterable]`` for values that are not few (see `is_short`).

    Parameters
    ----------
    iterable : iterable
        Values; a loop of the program takes them by number if there are many.
    source : Source
        The values by number.
    element : callable
        Function from a value to an element of the list.
    """
    if is_traced(source.length):
        if source.bound > MOST_ELEMENTS:
            return [element(item) for item in iterable]  # raises the reason
        return filtered(iterable, lambda item: True, element)
    use_up(iterable)
    first = element(source.element(0))
    structure = structure_of(first)
    if structure is None and not current().program.keeps_known and _may_be_traced(first, source.length):  # type: ignore[union-attr]
        first, structure = _traced_first(source, element, first)
    if structure is None:
        return [first, *[element(source.element(k)) for k in range(1, source.length)]]
    return _Loop(source, element, first, Stacks(*structure, source.length)).run()


def _may_be_traced(first: Any, count: int) -> bool:
    """Return True if a loop may make the elements: some parts of them are traced, or there are many."""
    leaves, _ = flatten(first)
    return any(map(is_traced, leaves)) or len(leaves) * count >= LEAST_KNOWN


def _traced_first(source: Source, element: Callable[[Any], Any], first: Any) -> tuple[Any, Any]:
    """Return the first element as a traced value, and its structure; None if elements of traced numbers are others.

    Elements of known values are computed one by one unless they are many. One of a traced number is recorded in a trace
    of its own, to learn its structure.
    """
    program, objects, part = require_current().program, PythonState(), Part("element")
    program.made_traced = True
    raised, made, lists = len(program.raised), None, len(program.written_lists)
    try:
        number = traced(part.parameter(INDEX), int)
        value = with_traced_numbers(element(source.element(number)))
        is_changed = objects.is_changed() or part.log.arrays or len(program.written_lists) > lists
        if not is_changed and _are_alike(first, value):
            made = value
    except Exception as error:
        if getattr(error, "ends_trace", False) or isinstance(error, (MemoryError, RecursionError)):
            raise
        del program.raised[raised:]
    finally:
        del program.written_lists[lists:]
        part.close()
        objects.restore()
    adopted = None if made is None else _adopted(first, made)
    structure = None if adopted is None else structure_of(adopted)
    return (first, None) if structure is None else (adopted, structure)


def _adopted(known: Any, made: Any) -> Any:
    """Return a known element as a traced one of the same structure as another one; None if that is not supported."""
    if not isinstance(made, StackedList) or isinstance(known, StackedList):
        return with_traced_numbers(known)
    rows = [flatten(v)[0] for v in known]
    if made.stacks is None or is_traced(rows) or any(len(r) != len(made.stacks) for r in rows):
        return None
    columns = zip(*rows, strict=True)
    stacks = [as_traced(np.array(c, s.dtype)) for c, s in zip(columns, made.stacks, strict=True)]
    return StackedList(stacks, made.elements)


def _are_alike(known: Any, made: Any) -> bool:
    """Return True if a traced element has the structure, the shapes and the classes of a known one."""
    if isinstance(made, StackedList) and made.stacks is not None and not made.is_sized:
        if not isinstance(known, list) or len(known) != made.elements.length:
            return False
        return not known or _are_alike(known[0], made.elements.build(made.stacks, 0))
    (leaves, tree), (others, other) = flatten(known), flatten(made)
    return tree == other and bool(others) and all(_is_alike(a, b) for a, b in zip(leaves, others, strict=True))


def _is_alike(known: Any, made: TracedArray) -> bool:
    is_array = isinstance(made, TracedArray) and class_of(known) is class_of(made)
    return is_array and np.shape(known) == made.shape and _dtype(known) == made.dtype


def _dtype(known: Any) -> Any:
    return known.dtype if hasattr(known, "dtype") else np.dtype(type(known))


def filtered(iterable: Any, test: Callable[[Any], Any], element: Callable[[Any], Any]) -> list[Any]:
    """Return ``[element(item) for item in iterable if test(item)]``.

    Parameters
    ----------
    iterable : iterable
        Values.
    test : callable
        Function from a value to a condition, which is traced if a loop of the program has to take the values.
    element : callable
        Function from a value to an element of the list.
    """
    iterable = _unmade(iterable)
    source = source_of(iterable) if current() is not None else None
    if source is None or not (is_traced(source.length) or (source.length and _is_traced_test(source, test))):
        return [element(item) for item in iterable if test(item)]
    values = StackedList.of([])
    driver = ForLoop(iterable, _NO_VARIABLES)
    for number in driver:
        driver.enter((), lambda: ())
        try:
            _append_if(driver, values, driver.item(number), test, element)
            driver.leave(())
        except Exception as error:
            if not driver.failed(error):
                raise
    driver.result(())
    return values


def quantified(
    stops_at: bool, iterable: Any, element: Callable[[Any], Any], joined: Callable[[Any, Sequence[Any]], Any]
) -> Any:
    """Return ``any(element(item) for item in iterable)``, or `all` if that is what stops at False.

    Parameters
    ----------
    stops_at : bool
        Truth of an element that ends the iteration.
    iterable : iterable
        Values; a loop of the program takes them by number if there are many.
    element : callable
        Function from a value to an element. One that changes anything is called under the condition that none before
        has ended the iteration.
    joined : callable
        Function of an element, and of functions that return the following ones, that joins them by `or` or `and`.

    Raises
    ------
    TraceError
        Python would stop before elements whose computation may fail, or changes anything in many iterations.
    """
    iterable = _unmade(iterable)
    source = source_of(iterable) if current() is not None else None
    function = SUBSTITUTES[any if stops_at else all]
    count = _count_of(iterable, source)
    if current() is None or count == 0:
        return function(element(item) for item in iterable)

    def element_at(number: Any) -> Any:
        return element(iterable[number] if source is None else source.element(number))

    has_traced, has_changes = _probe(element_at, 0 if count else None)
    is_long = count is None or count > MOST_UNROLLED
    if has_changes and not is_long:
        assert count is not None
        return _as_condition(joined(element_at(0), [partial(element_at, k) for k in range(1, count)]))
    if source is None or not (is_long and has_traced):
        return function(element(item) for item in iterable)
    checks = len(require_current().program.checks)
    values = comprehension(iterable, source, lambda item: _as_condition(element(item)))
    if has_changes or len(require_current().program.checks) > checks:
        raise TraceError(
            f"{'any' if stops_at else 'all'} of values whose computation may fail or changes anything, after one that "
            "may end it",
            where=user_line(), hint="use a loop with break",
        )  # fmt: skip
    numbers = values.as_numbers() if isinstance(values, StackedList) else None
    return function(values) if numbers is None else truth((_np.any if stops_at else _np.all)(numbers))


def _count_of(iterable: Any, source: Source | None) -> int | None:
    """Return the number of values; None if it is traced, and 0 if only Python can iterate over them."""
    if source is None:
        return len(iterable) if isinstance(iterable, (list, tuple)) else 0
    return None if is_traced(source.length) else int(source.length)


def _unmade(iterable: Any) -> Any:
    """Return a list that arrays stand for as one that nothing else sees, so that its elements are not made."""
    if isinstance(iterable, StackedList) and iterable.stacks is not None and not iterable.is_guarded:
        return StackedList(iterable.stacks, iterable.elements, iterable.doubts)
    return iterable


def _as_condition(value: Any) -> Any:
    tested = condition(value)
    return truth(tested) if is_traced(tested) else bool(tested)


def _is_traced_test(source: Source, test: Callable[[Any], Any]) -> bool:
    """Return True if the condition of a value is traced, and changes nothing."""
    number = None if is_traced(source.length) else 0
    return _probe(lambda k: test(source.element(k)), number) == (True, False)


def _probe(test: Callable[[Any], Any], number: int | None) -> tuple[bool, bool]:
    """Return whether a condition is traced, and whether it changes anything; neither if it cannot be traced.

    It is recorded in a trace of its own, which is dropped.

    Parameters
    ----------
    test : callable
        Function of the number of a value.
    number : int or None
        Number; None for one that is traced.
    """
    program, objects, part = require_current().program, PythonState(), Part("test")
    raised, lists = len(program.raised), len(program.written_lists)
    try:
        tested = condition(test(traced(part.parameter(INDEX), int) if number is None else number))
        has_changes = objects.is_changed() or bool(part.log.arrays) or len(program.written_lists) > lists
        return is_traced(tested), has_changes
    except Exception as error:
        if getattr(error, "ends_trace", False) or isinstance(error, (MemoryError, RecursionError)):
            raise
        del program.raised[raised:]
        return False, False
    finally:
        del program.written_lists[lists:]
        part.close()
        objects.restore()


def _append_if(
    driver: ForLoop, values: StackedList, item: Any, test: Callable[[Any], Any], element: Callable[[Any], Any]
) -> None:
    """Append the element of a value that passes a test."""
    tested = condition(test(item))
    if driver.recording is None or not is_traced(tested):
        if tested:  # raises an error if it is traced
            _append(driver, values, element(item))
        return
    branch = TracedBranch(truth(tested), ())
    branch.first(())
    try:
        _append(driver, values, element(item))
        branch.end(())
    except Exception as error:
        if not branch.failed(error):
            raise
    branch.second()
    branch.end(())
    branch.merged()


def _append(driver: ForLoop, values: StackedList, value: Any) -> None:
    if driver.recording is None:
        values.append(value)
    else:
        driver.append_some(values, value, driver.bound)


def flattened(lists: list[Any]) -> list[Any]:
    """Return the elements of the lists of a list."""
    if isinstance(lists, StackedList) and lists.stacks is not None:
        inner = lists.elements.tree.key
        if isinstance(inner, Elements) and inner.length != RUN_TIME:
            stacks = [_merged(s) for s in lists.stacks]
            return StackedList(stacks, inner._replace(length=inner.length * lists.elements.length))
    return list(chain.from_iterable(lists))


def _merged(stack: TracedArray) -> TracedArray:
    return stack.reshape((stack.shape[0] * stack.shape[1], *stack.shape[2:]))  # type: ignore[no-any-return]


class _Loop:
    """Loop that makes a list.

    Parameters
    ----------
    source : Source
        Values that the elements are made of.
    element : callable
        Function from a value to an element.
    first : object
        First element.
    stacks : Stacks
        Arrays for all elements.
    """

    def __init__(self, source: Source, element: Callable[[Any], Any], first: Any, stacks: Stacks) -> None:
        self._source, self._element, self._stacks = source, element, stacks
        self._values = [first]  # of the iterations that Python runs

    def run(self) -> list[Any]:
        """Return the list."""
        arrays = self._stacks.make()
        driver = ForLoop(range(1, self._source.length), _NO_VARIABLES)
        for number in driver:
            driver.enter((), lambda: tuple(arrays))
            try:
                self._iterate(driver, driver.item(number))
                driver.leave(())
            except Exception as error:
                if not driver.failed(error):
                    raise
        driver.result(())
        if len(self._values) == self._source.length:
            return self._values
        for k, value in enumerate(self._values):
            self._stacks.store(k, value)
        made = StackedList(self._stacks.arrays, self._stacks.elements, self._stacks.doubts())
        if driver.lists_of_elements:
            note_alias([], "an element", lists=[made, *driver.lists_of_elements])
        return made

    def _iterate(self, driver: ForLoop, number: Any) -> None:
        value = self._element(self._source.element(number))
        if driver.recording is None:
            self._values.append(value)
        else:
            driver.recording.containers.note_appended(None, value)
            self._stacks.store_own(number, with_traced_numbers(value))
