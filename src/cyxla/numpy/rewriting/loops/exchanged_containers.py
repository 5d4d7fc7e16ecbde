"""Dicts and dataclasses that variables of a loop exchange, or that iterations change: the loop has copies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cyxla.numpy.rewriting.loops.plans import Unsuitable
from cyxla.numpy.rewriting.parts.python_state import Contents, PythonState, contents_of, has_same_contents
from cyxla.numpy.tracing.containers import kind_of


class ContainersOfLoop:
    """Dicts and dataclasses that the variables of a loop have before an iteration, for which copies stand.

    Parameters
    ----------
    given : sequence
        Values of the variables before the iteration.
    before : sequence
        Values before the loop. What is the same in `given` is no copy.
    """

    def __init__(self, given: Sequence[Any], before: Sequence[Any]) -> None:
        copies = [v for v, w in zip(given, before, strict=True) if v is not w]
        self._copies: dict[int, tuple[Any, Contents]] = {
            id(v): (v, contents_of(v)) for value in copies for v in _containers_in(value)
        }

    def check(self, given: Sequence[Any], state: Sequence[Any], objects: PythonState) -> None:
        """Check the values of the variables after the iteration.

        Raises
        ------
        Unsuitable
            A copy was changed, or a variable has what another one had, or what was there before the loop.
        """
        for value, contents in self._copies.values():
            if not has_same_contents(contents_of(value), contents):
                raise Unsuitable(f"its body changes a {type(value).__name__} that a variable of it names")
        for one, other in zip(given, state, strict=True):
            found = self._other(one, other, objects)
            if found is not None:
                raise Unsuitable(f"its body chooses which {type(found).__name__} a variable names")

    def _other(self, one: Any, other: Any, objects: PythonState) -> Any:
        """Return the container in a value that is known by other names, too, and was not in its place before."""
        kind = None if one is other else kind_of(other)
        if kind is None:
            return None
        is_known = id(other) in self._copies or objects.has(other)
        if is_known and not isinstance(other, (list, tuple)):
            return other
        parts = kind.parts(other)
        before = kind_of(one)
        places = before.parts(one) if before == kind else [None] * len(parts)
        pairs = zip(places, parts, strict=False)
        return next((found for p, q in pairs if (found := self._other(p, q, objects)) is not None), None)


def _containers_in(value: Any) -> Iterator[Any]:
    kind = kind_of(value)
    if kind is None:
        return
    if not isinstance(value, (list, tuple)):
        yield value
    for part in kind.parts(value):
        yield from _containers_in(part)
