"""Conditions under which values are alive, as decision diagrams: equal conditions have equal numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

FALSE, TRUE = 0, 1
MOST_NODES, MOST_VARIABLES = 20_000, 400  # beyond, conditions are no longer worked out


class Predicates:
    """Boolean functions of named variables.

    A function is a number; equal functions have the same one. A diagram's nodes ask for variables in the order in
    which these were first named.
    """

    def __init__(self) -> None:
        self._variables: dict[Hashable, int] = {}
        self._nodes: list[tuple[int, int, int]] = [(-1, 0, 0), (-1, 1, 1)]  # variable, if false, if true
        self._known: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def variable(self, name: Hashable) -> int:
        """The function that is a variable."""
        number = self._variables.setdefault(name, len(self._variables))
        return self._node(number, FALSE, TRUE)

    @property
    def is_full(self) -> bool:
        """Whether diagrams have grown so large that more is not worth its while."""
        return len(self._nodes) > MOST_NODES or len(self._variables) > MOST_VARIABLES

    def negation(self, a: int) -> int:
        """Not `a`."""
        return self._choose(a, FALSE, TRUE)

    def conjunction(self, items: Iterable[int]) -> int:
        """All of the items."""
        result = TRUE
        for item in items:
            result = self._choose(result, item, FALSE)
        return result

    def disjunction(self, items: Iterable[int]) -> int:
        """Any of the items."""
        result = FALSE
        for item in items:
            result = self._choose(result, TRUE, item)
        return result

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return number

    def _choose(self, test: int, yes: int, no: int) -> int:
        """If `test` then `yes` else `no`."""
        if test <= TRUE or yes == no:
            return yes if test == TRUE or yes == no else no
        if (yes, no) == (TRUE, FALSE):
            return test
        key = (test, yes, no)
        found = self._choices.get(key)
        if found is None:
            variable = min(self._nodes[n][0] for n in key if n > TRUE)
            low = self._choose(*(self._branch(n, variable, 1) for n in key))
            high = self._choose(*(self._branch(n, variable, 2) for n in key))
            found = self._choices[key] = self._node(variable, low, high)
        return found

    def _branch(self, number: int, variable: int, side: int) -> int:
        node = self._nodes[number]
        return node[side] if node[0] == variable else number
