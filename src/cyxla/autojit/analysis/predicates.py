"""Boolean conditions as binary decision diagrams, so that equal conditions have equal numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

FALSE, TRUE = 0, 1
MAX_NODES, MAX_VARIABLES = 20_000, 400  # limits, beyond which conditions are no longer computed


class Predicates:
    """Boolean functions of named variables, as one shared reduced ordered decision diagram.

    A function is the number of its root node; equal functions have the same number. The order of the variables is the
    order in which they were first named.
    """

    def __init__(self) -> None:
        self._variables: dict[Hashable, int] = {}
        self._nodes: list[tuple[int, int, int]] = [(-1, 0, 0), (-1, 1, 1)]  # variable, if false, if true
        self._node_numbers: dict[tuple[int, int, int], int] = {}
        self._results: dict[tuple[int, int, int], int] = {}

    def variable(self, name: Hashable) -> int:
        """Return the function that is a single variable."""
        number = self._variables.setdefault(name, len(self._variables))
        return self._node(number, FALSE, TRUE)

    @property
    def is_full(self) -> bool:
        """True if the diagram has reached its limits; the caller then uses new variables instead."""
        return len(self._nodes) > MAX_NODES or len(self._variables) > MAX_VARIABLES

    def negation(self, a: int) -> int:
        """Return ``not a``."""
        return self._if_then_else(a, FALSE, TRUE)

    def conjunction(self, items: Iterable[int]) -> int:
        """Return the conjunction of the items; true if there are none."""
        result = TRUE
        for item in items:
            result = self._if_then_else(result, item, FALSE)
        return result

    def disjunction(self, items: Iterable[int]) -> int:
        """Return the disjunction of the items; false if there are none."""
        result = FALSE
        for item in items:
            result = self._if_then_else(result, TRUE, item)
        return result

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        number = self._node_numbers.get(key)
        if number is None:
            number = self._node_numbers[key] = len(self._nodes)
            self._nodes.append(key)
        return number

    def _if_then_else(self, test: int, yes: int, no: int) -> int:
        """Return ``yes if test else no``."""
        if test <= TRUE or yes == no:
            return yes if test == TRUE or yes == no else no
        if (yes, no) == (TRUE, FALSE):
            return test
        key = (test, yes, no)
        result = self._results.get(key)
        if result is None:
            variable = min(self._nodes[n][0] for n in key if n > TRUE)
            low = self._if_then_else(*(self._cofactor(n, variable, 1) for n in key))
            high = self._if_then_else(*(self._cofactor(n, variable, 2) for n in key))
            result = self._results[key] = self._node(variable, low, high)
        return result

    def _cofactor(self, number: int, variable: int, side: int) -> int:
        node = self._nodes[number]
        return node[side] if node[0] == variable else number
