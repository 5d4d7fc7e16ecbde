"""Structs of integers that parametrise kernels: one table of names for the C and for the numbers that Python passes."""

from __future__ import annotations

from collections.abc import Mapping

from cyxla.records import dataclass


@dataclass(frozen=True)
class ParameterStruct:
    """Struct whose members are all ``int64_t``.

    Attributes
    ----------
    names : tuple of str
        Names of the members, in order.
    """

    names: tuple[str, ...]

    def typedef(self, c_type: str) -> str:
        """Return the C definition of the type."""
        return f"typedef struct {{ int64_t {', '.join(self.names)}; }} {c_type};"

    def numbers(self, values: Mapping[str, int]) -> list[int]:
        """Return the values of all members, in order.

        Raises
        ------
        KeyError
            A name is no member.
        """
        return list(self.members(values).values())

    def members(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return the values of all members by name; those that are not given are 0.

        Raises
        ------
        KeyError
            A name is no member.
        """
        if unknown := values.keys() - set(self.names):
            raise KeyError(*sorted(unknown))
        return {name: values.get(name, 0) for name in self.names}

    def constant(self, c_type: str, name: str, values: Mapping[str, int]) -> str:
        """Return the C definition of a constant, which shows the members that are not 0."""
        initialisers = ", ".join(f".{member} = {value}" for member, value in self.members(values).items() if value)
        return f"static const {c_type} {name} = {{{initialisers or 0}}};"
