"""Donated arguments: their memory becomes that of results.

An option says which parameters are donated: some by number or name, or with True those of the module's own tables,
``input_output_alias`` and ``buffer_donor``. Where the first of these tables names a donated array, it also says which
result takes its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cyxla import config
from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.types import Shape
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.options import CompileOptions


def check(donate: Any) -> None:
    """Raise `InvalidArgumentError` unless it is True, False, or a tuple or list of numbers and names."""
    if isinstance(donate, bool):
        return
    if not isinstance(donate, (tuple, list)):
        hint = "give a tuple of parameter numbers or names, or True for the module's own table"
        raise InvalidArgumentError(f"donate is {donate!r}", hint=hint)
    for key in donate:
        if isinstance(key, bool) or not (isinstance(key, str) or hasattr(key, "__index__")):
            raise InvalidArgumentError(f"donate: {key!r} is neither the number nor the name of a parameter")


def settled(options: CompileOptions, module: HloModule) -> CompileOptions:
    """Give options in which parameters are donated by number; names mean nothing to a fingerprint.

    Raises
    ------
    InvalidArgumentError
        There is no such parameter, or it is there twice.
    """
    if isinstance(options.donate, bool):
        return options
    names = [p.name for p in module.parameters]
    numbers: set[int] = set()
    for key in options.donate:
        number = _number(key, names)
        if number in numbers:
            raise InvalidArgumentError(f"parameter {number} ({names[number]}) is donated twice")
        numbers.add(number)
    return replace(options, donate=tuple(sorted(numbers)))


def donated(module: HloModule, donate: tuple[int | str, ...] | bool) -> dict[int, int | None]:
    """Find the donated arrays, and the results that take their memory.

    Parameters
    ----------
    module : HloModule
        The program.
    donate : bool or tuple of int
        As `settled` leaves it.

    Returns
    -------
    dict of int to (int or None)
        By number of the array among those of all parameters: that of the array among those of the result, or None
        for any of its size.
    """
    if donate is False or donate == ():
        return {}
    number = 0
    places: dict[tuple[int, tuple[int, ...]], int] = {}
    for k, parameter in enumerate(module.parameters):
        for index in _arrays(parameter.shape):
            places[k, index] = number
            number += 1
    results = {index: n for n, index in enumerate(_arrays(module.entry.root.shape))}
    aliases = {(a.parameter, a.parameter_index): results.get(a.output_index) for a in module.config.input_output_alias}
    if donate is True:
        named = {*aliases, *((d.parameter, d.parameter_index) for d in module.config.buffer_donor)}
        return {n: aliases.get(place) for place, n in places.items() if place in named}
    return {n: aliases.get(place) for place, n in places.items() if place[0] in donate}


def _number(key: int | str, names: list[str]) -> int:
    if isinstance(key, str):
        name = key.removeprefix("%")
        if name not in names:
            raise InvalidArgumentError(
                f"there is no parameter {key!r} to donate", hint=config.nearest(name, dict.fromkeys(names))
            )
        return names.index(name)
    number = key.__index__()
    if not 0 <= number < len(names):
        have = f"parameters are 0 to {len(names) - 1}" if names else "the program takes none"
        raise InvalidArgumentError(f"there is no parameter {key} to donate", hint=have)
    return number


def _arrays(shape: Shape, index: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where the arrays of a shape stand in it; tokens are none."""
    if shape.is_tuple:
        for k, element in enumerate(shape.elements):
            yield from _arrays(element, (*index, k))
    elif shape.is_array:
        yield index
