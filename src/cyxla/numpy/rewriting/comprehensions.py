"""List comprehensions: long ones become loops of the program, which store the elements in arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from cyxla.numpy.rewriting.branches import TracedBranch
from cyxla.numpy.rewriting.iterables import Source, source_of
from cyxla.numpy.rewriting.loops import MOST_UNROLLED, ForLoop
from cyxla.numpy.rewriting.plans import Variables
from cyxla.numpy.rewriting.python_functions.choices import truth
from cyxla.numpy.rewriting.python_state import PythonState
from cyxla.numpy.rewriting.stacks import Stacks, with_traced_numbers
from cyxla.numpy.tracing.classes import class_of
from cyxla.numpy.tracing.containers import flatten
from cyxla.numpy.tracing.stacked_list import RUN_TIME, Elements, StackedList, structure_of
from cyxla.numpy.tracing.trace import current, require_current
from cyxla.numpy.tracing.traced_array import TracedArray, is_traced, traced

LEAST_KNOWN = 1000  # elements of known values that a loop of the program makes rather than Python
_NO_VARIABLES = Variables.of((), (), (), (), ())


def comprehension(iterable: Any, element: Callable[[Any], Any]) -> list[Any]:
    """Return ``[element(item) for item in iterable]``.

    Parameters
    ----------
    iterable : iterable
        Values; a loop of the program takes them by number if there are many.
    element : callable
        Function from a value to an element of the list.
    """
    source = source_of(iterable) if current() is not None else None
    if source is None or is_traced(source.length) or source.length <= MOST_UNROLLED:
        return [element(item) for item in iterable]
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
    """Return the first element as a traced value, of a traced number, and its structure; None if it is another one.

    Elements of known values are computed one by one unless they are many.
    """
    objects, trace = PythonState(), require_current()
    checks, raised = len(trace.program.checks), len(trace.program.raised)
    try:
        number = traced(trace.constant(0, np.dtype(np.int64)), int)
        made = with_traced_numbers(element(source.element(number)))
        structure = None if objects.is_changed() else structure_of(made)
    except Exception as error:
        if getattr(error, "ends_trace", False) or isinstance(error, (MemoryError, RecursionError)):
            raise
        del trace.program.raised[raised:]
        made = structure = None
    objects.restore()
    trace.program.made_traced = True
    if structure is None or len(trace.program.checks) > checks or not _are_alike(first, made):
        return first, None
    return made, structure


def _are_alike(known: Any, made: Any) -> bool:
    """Return True if a traced element has the structure, the shapes and the classes of a known one."""
    if isinstance(made, StackedList) and made.stacks is not None:
        if type(known) is not list or len(known) != made.elements.length:
            return False
        return not known or _are_alike(known[0], made.elements.build(made.stacks, 0))
    (leaves, tree), (others, other) = flatten(known), flatten(made)
    if leaves and any(isinstance(v, StackedList) for v in others):
        return False
    return tree == other and all(_is_alike(a, b) for a, b in zip(leaves, others, strict=True))


def _is_alike(known: Any, made: TracedArray) -> bool:
    return class_of(known) is class_of(made) and np.shape(known) == made.shape and _dtype(known) == made.dtype


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
    source = source_of(iterable) if current() is not None else None
    if source is None or not (is_traced(source.length) or source.length):
        return [element(item) for item in iterable if test(item)]
    if not is_traced(source.length) and not is_traced(test(source.element(0))):
        kept = [item for item in iterable if test(item)]
        return comprehension(kept, element)
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


def _append_if(
    driver: ForLoop, values: StackedList, item: Any, test: Callable[[Any], Any], element: Callable[[Any], Any]
) -> None:
    """Append the element of a value that passes a test."""
    condition = test(item)
    if not is_traced(condition):
        if condition:
            _append(driver, values, element(item))
        return
    branch = TracedBranch(truth(condition), ())
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
        driver.append_some(values, value, 1)


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
        stacks.make()

    def run(self) -> list[Any]:
        """Return the list."""
        driver = ForLoop(range(1, self._source.length), _NO_VARIABLES)
        for number in driver:
            driver.enter((), lambda: tuple(self._stacks.arrays))
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
        return StackedList(self._stacks.arrays, self._stacks.elements)

    def _iterate(self, driver: ForLoop, number: Any) -> None:
        value = self._element(self._source.element(number))
        if driver.recording is None:
            self._values.append(value)
        else:
            self._stacks.store_own(number, with_traced_numbers(value))
