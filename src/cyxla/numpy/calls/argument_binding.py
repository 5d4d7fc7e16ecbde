"""Binding of call arguments: the parameter that each passed value is for, and static parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.numpy.state.scope import outside_values
from cyxla.records import dataclass

OUT = "out"


class Argument(NamedTuple):
    """Argument of the function.

    Attributes
    ----------
    name : str
        Name for messages, such as ``x`` or ``args[0]``.
    source : int or None
        Index among the values passed, keywords after the others; None for a default.
    default : object
        Default value.
    static : bool
        Whether the argument is static.
    keyword : str
        Keyword that passes it on; empty if it is passed by position.
    """

    name: str
    source: int | None
    default: Any
    static: bool
    keyword: str


@dataclass(frozen=True)
class Binding:
    """Assignment of passed values to the function's arguments.

    Attributes
    ----------
    arguments : tuple of Argument
        Arguments in the order of the function's signature.
    out : int or None
        Index of ``out=`` among the values passed; None if it is not given.
    passed : int
        Number of values passed.
    changeable : mapping of str to object
        Defaults that the function may change, by keyword: lists, dicts and arrays.
    """

    arguments: tuple[Argument, ...]
    out: int | None
    passed: int
    changeable: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keywords(self) -> tuple[str, ...]:
        """Keywords of the arguments, equal for bindings with the same meaning."""
        return tuple([a.keyword for a in self.arguments])


class StaticNames:
    """Parameters of a function that an option such as ``static=`` names.

    Parameters
    ----------
    option : str
        Name of the option.
    keys_option : sequence of int or str
        Positions and names of parameters.
    signature : inspect.Signature or None
        Signature of the function.

    Raises
    ------
    InvalidArgumentError
        There is no such parameter.
    """

    def __init__(self, option: str, keys_option: Any, signature: inspect.Signature | None) -> None:
        try:
            keys = (keys_option,) if isinstance(keys_option, (int, str)) else tuple(keys_option)
        except TypeError:
            raise InvalidArgumentError(
                f"{option}={keys_option!r} does not name arguments", hint="pass positions and names of arguments"
            ) from None
        self.parameters = list(signature.parameters.values()) if signature is not None else []
        kinds = {p.kind for p in self.parameters}
        self._positional = [p.name for p in self.parameters if p.kind in _POSITIONAL]
        self._any_position = signature is None or inspect.Parameter.VAR_POSITIONAL in kinds
        self._any_name = signature is None or inspect.Parameter.VAR_KEYWORD in kinds
        self.positions: set[int] = set()
        self.names: set[str] = set()
        for key in keys:
            self._add_key(option, key)

    def _add_key(self, option: str, key: Any) -> None:
        if isinstance(key, str):
            if key not in {p.name for p in self.parameters} and not self._any_name:
                raise InvalidArgumentError(f"{option}: there is no argument {key!r}", hint=self._hint())
            self.names.add(key)
            return
        try:
            position = key.__index__()
        except AttributeError:
            raise InvalidArgumentError(
                f"{option}: {key!r} is neither the position nor the name of an argument"
            ) from None
        if position < 0:
            position += len(self._positional)
        if 0 <= position < len(self._positional):
            self.names.add(self._positional[position])
        elif position >= 0 and self._any_position:
            self.positions.add(position)
        else:
            raise InvalidArgumentError(f"{option}: there is no argument {key}", hint=self._hint())

    def _hint(self) -> str:
        return f"arguments are {', '.join(p.name for p in self.parameters) or 'none'}"

    def has(self, name: str, position: int | None = None) -> bool:
        """Return True if a parameter, or a value passed for ``*args``, is named."""
        return name in self.names or (position is not None and position in self.positions)

    def flags(self) -> tuple[bytes, bool]:
        """Return a flag for each position, and whether all further positions are named."""
        rest = any(p.kind is inspect.Parameter.VAR_POSITIONAL and p.name in self.names for p in self.parameters)
        count = max([len(self._positional), *[p + 1 for p in self.positions]], default=0)
        named = [k < len(self._positional) and self._positional[k] in self.names for k in range(count)]
        return bytes(
            [n or k in self.positions or (rest and k >= len(self._positional)) for k, n in enumerate(named)]
        ), rest

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)


_CHANGEABLE = (list, dict, np.ndarray)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Position(NamedTuple):
    source: int


def binding_of(
    name: str, function: Callable[..., Any], signature: inspect.Signature | None, static: StaticNames, nargs: int,
    kwnames: Sequence[str],
) -> Binding:  # fmt: skip
    """Bind a call with this number of positional arguments and these keywords.

    Raises
    ------
    TypeError
        The function does not accept such a call.
    """
    takes_out = signature is not None and OUT in signature.parameters
    out = nargs + kwnames.index(OUT) if OUT in kwnames and not takes_out else None
    named = {n: _Position(nargs + k) for k, n in enumerate(kwnames) if nargs + k != out}
    tokens = [_Position(k) for k in range(nargs)]
    if signature is None:
        parts = [_argument(f"argument {k}", t, static.has("", k), "") for k, t in enumerate(tokens)]
        parts += [_argument(n, t, static.has(n), n) for n, t in named.items()]
        return Binding(tuple(parts), out, nargs + len(kwnames))
    try:
        bound = signature.bind(*tokens, **named)
    except TypeError as error:
        _raise_error_of_call(function, tokens, named)
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    made = tuple(_arguments(signature, bound.arguments, static))
    return Binding(made, out, nargs + len(kwnames), _changeable(signature, made))


def _raise_error_of_call(function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise Python's own error of a call that a function does not accept; return if another function may accept it."""
    if type(function) is not FunctionType or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return
    try:
        function(*args, **keywords)
    except TypeError as error:
        raise error.with_traceback(None) from None


def _changeable(signature: inspect.Signature, arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return the lists, dicts and arrays among the defaults that a call leaves, unless they must be static."""
    by_keyword = {n for n, p in signature.parameters.items() if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {
        a.name: a.default
        for a in arguments
        if a.source is None and not a.static and a.name in by_keyword and isinstance(a.default, _CHANGEABLE)
    }


def _arguments(signature: inspect.Signature, bound: Mapping[str, Any], static: StaticNames) -> Iterator[Argument]:
    position = 0
    for name, p in signature.parameters.items():
        value = bound[name]
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            for k, token in enumerate(value):
                yield _argument(f"{name}[{k}]", token, static.has(name, position + k), "")
        elif p.kind is inspect.Parameter.VAR_KEYWORD:
            for key, token in value.items():
                yield _argument(key, token, static.has(name) or static.has(key), key)
        else:
            yield _argument(name, value, static.has(name), "" if p.kind in _POSITIONAL else name)
            position += p.kind in _POSITIONAL


def _argument(name: str, value: Any, static: bool, keyword: str) -> Argument:
    if isinstance(value, _Position):
        return Argument(name, value.source, None, static, keyword)
    return Argument(name, None, value, static, keyword)


def default_of(argument: Argument) -> Any:
    """Return the default of an argument of an inlined function, as the outer function sees it."""
    outside = outside_values()
    if outside is None or argument.static:
        return argument.default
    return outside.default(argument.default, argument.name)
