"""Donated arguments, whose buffers are reused for results.

An option lists the donated parameters by number or name; True donates those of the module's own tables
``input_output_alias`` and ``buffer_donor``. The first of these tables also assigns the buffer of a donated array to a
result.
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
    """Raise `InvalidArgumentError` unless `donate` is a bool, or a tuple or list of numbers and names."""
    if isinstance(donate, bool):
        return
    if not isinstance(donate, (tuple, list)):
        hint = "give a tuple of parameter numbers or names, or True for the module's own table"
        raise InvalidArgumentError(f"donate is {donate!r}", hint=hint)
    for key in donate:
        if isinstance(key, bool) or not (isinstance(key, str) or hasattr(key, "__index__")):
            raise InvalidArgumentError(f"donate: {key!r} is neither the number nor the name of a parameter")


def resolve_donation(options: CompileOptions, module: HloModule) -> CompileOptions:
    """Return options that list donated parameters by number, since names are not part of a fingerprint.

    Raises
    ------
    InvalidArgumentError
        A parameter does not exist, or is listed twice.
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
    """Return the donated arrays, with the results that take their buffers.

    Parameters
    ----------
    module : HloModule
        Program to compile.
    donate : bool or tuple of int
        Donated parameters, as returned by `resolve_donation`.

    Returns
    -------
    dict of int to (int or None)
        Number of the result array that takes the buffer of each donated array, or None for any result of the same
        size. Arrays are numbered over all parameters and over the whole result.
    """
    if donate is False or donate == ():
        return {}
    number = 0
    numbers: dict[tuple[int, tuple[int, ...]], int] = {}
    for k, parameter in enumerate(module.parameters):
        for index in _arrays(parameter.shape):
            numbers[k, index] = number
            number += 1
    results = {index: n for n, index in enumerate(_arrays(module.entry.root.shape))}
    aliases = {(a.parameter, a.parameter_index): results.get(a.output_index) for a in module.config.input_output_alias}
    if donate is True:
        leaves = {*aliases, *((d.parameter, d.parameter_index) for d in module.config.buffer_donor)}
        return {n: aliases.get(position) for position, n in numbers.items() if position in leaves}
    return {n: aliases.get(position) for position, n in numbers.items() if position[0] in donate}


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
        choices = f"parameters are 0 to {len(names) - 1}" if names else "the program takes none"
        raise InvalidArgumentError(f"there is no parameter {key} to donate", hint=choices)
    return number


def _arrays(shape: Shape, index: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the shape indices of the arrays of a shape, without tokens."""
    if shape.is_tuple:
        for k, element in enumerate(shape.elements):
            yield from _arrays(element, (*index, k))
    elif shape.is_array:
        yield index
