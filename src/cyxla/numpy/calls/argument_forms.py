"""Forms in which the arguments of a function are passed to its programs: numbers, static values, lists as arrays."""

from __future__ import annotations

from typing import Any

from cyxla.forking import new_lock
from cyxla.numpy.calls.argument_binding import Binding
from cyxla.numpy.calls.number_lists import NumberLists
from cyxla.numpy.calls.recompilation import elements_of_long_lists, with_other_elements
from cyxla.numpy.calls.signatures import Call, has_long_lists, read_arguments
from cyxla.numpy.tracing.user_program.needed_values import NeededValue


class ArgumentForms:
    """Forms of the arguments of one function, as its traces have shown that it needs them.

    Attributes
    ----------
    static : frozenset of str
        Names of numbers and small arrays among the arguments whose values the function needs while it is traced.
    static_outside : frozenset of str
        Expressions of such values from outside.

    Parameters
    ----------
    package : str
        Package or module of the function, whose objects may be arguments.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self.static: frozenset[str] = frozenset()
        self.static_outside: frozenset[str] = frozenset()
        self._lists = NumberLists()
        self._lock = new_lock()

    def read(self, binding: Binding, passed: tuple[Any, ...]) -> Call:
        """Read the arguments of a call; see `read_arguments`."""
        return read_arguments(binding, passed, needed=self.static, lists=self._lists, package=self._package)

    def read_specs(self, binding: Binding, passed: tuple[Any, ...]) -> Call:
        """Read specs of arguments, among which lists are passed number by number."""
        return read_arguments(binding, passed, specs=True, needed=self.static)

    def adapt(self, call: Call, error: Exception) -> bool:
        """Pass arguments in other forms from now on, because of an error; return False if that is impossible."""
        if has_long_lists(call) or getattr(error, "shares_rows", False):
            return False
        if call.number_lists:
            self._lists.separate(call.number_lists)
            return True
        return self._make_static(call, getattr(error, "needed", None)) or self._lists.join(call.separate_lists)

    def _make_static(self, call: Call, needed: Any) -> bool:
        """Make the numbers static that determine a value which Python needs; return False if that is impossible.

        Elements of long lists do not, and if a function needs one, none of them stays static.
        """
        if not isinstance(needed, NeededValue):
            return False
        names = call.names_of(needed)
        if (needed.inputs and not names) or not (names or needed.outside - self.static_outside):
            return False
        names = with_other_elements(names, self.static, call.names_of_numbers)
        with self._lock:
            data = elements_of_long_lists(self.static | names, call.names)
            if data & names:
                self.static -= data
                return False
            self.static |= names
            self.static_outside |= needed.outside
        return True
