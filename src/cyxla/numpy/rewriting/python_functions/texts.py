"""Python's functions of texts for traced values: `str`, `print`, f-strings and formats."""

from __future__ import annotations

import builtins
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from string import Formatter
from typing import Any, NoReturn

from cyxla.errors import TraceError
from cyxla.numpy.custom_calls.printing import print_pieces
from cyxla.numpy.rewriting.python_functions.impure import refuse
from cyxla.numpy.rewriting.python_functions.new_objects import is_created
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.tracing.arrays.number_table import NumberTable
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.containers import flatten
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.texts import Field, TracedText, pieces_of

_ABSENT = object()
_CONVERSIONS = {-1: "", ord("s"): "!s", ord("r"): "!r", ord("a"): "!a"}
_FUNCTIONS: dict[str, Any] = {"": format, "!s": str, "!r": repr, "!a": ascii}
_PERCENT = re.compile(r"%(?:%|([-+ #0]*)(\d*)(?:\.(\d+))?([diufFeEgGsr]))")


def _traced_leaves(value: Any) -> list[Any]:
    """Return the traced values in an object."""
    if isinstance(value, (str, bytes)):
        return []
    leaves = [value] if isinstance(value, SizedArray) else flatten(value)[0]
    return [v for v in leaves if isinstance(v, SizedArray) or (isinstance(v, TracedArray) and v.known is None)]


def _field(value: Any, conversion: str, spec: str) -> str:
    """Return the text of a value."""
    value = _without_mirrors(value)
    if isinstance(value, TracedText) and conversion in ("", "!s") and not spec:
        return value
    leaves = _traced_leaves(value)
    if is_created(value) and _has_address(type(value), conversion):
        refuse(f"the text of a new {type(value).__name__}", "give its class a __repr__")
    if not leaves:
        return format(_FUNCTIONS[conversion](value), spec) if conversion else format(value, spec)
    return TracedText([Field(value, conversion, spec, _refusal(leaves[0]))])


def _without_mirrors(value: Any) -> Any:
    """Return lists and dicts in place of the mirrors of those from outside."""
    if isinstance(value, (StackedList, NumberTable)):
        raise TraceError("the text of a list of numbers is made, which is an array here", where=user_line())
    if isinstance(value, (list, tuple)) and (type(value) in (list, tuple) or isinstance(value, MirrorList)):
        parts = [_without_mirrors(v) for v in value]
        is_same = not isinstance(value, MirrorList) and all(p is v for p, v in zip(parts, value, strict=True))
        return value if is_same else parts if isinstance(value, list) else tuple(parts)
    if type(value) is dict or isinstance(value, MirrorDict):
        made = {k: _without_mirrors(v) for k, v in value.items()}
        is_same = type(value) is dict and all(made[k] is v for k, v in value.items())
        return value if is_same else made
    return value


def _has_address(kind: Any, conversion: str) -> bool:
    """Return True if the text of an object of a class tells its address in memory."""
    is_repr = conversion in ("!r", "!a") or kind.__str__ is object.__str__
    return is_repr and kind.__repr__ is object.__repr__


def _refusal(value: Any) -> Callable[..., NoReturn]:
    """Return a function that raises the error of needing a text, which names the line that made it."""
    where = user_line()

    def refuse() -> NoReturn:
        error: TraceError = value.refused_text(where)
        require_current().program.raised.append(error)
        raise error

    return refuse


def formatted(value: Any, conversion: int, spec: str) -> str:
    """Return the text of a field of an f-string."""
    if isinstance(spec, TracedText):
        spec.refuse()
    return _field(value, _CONVERSIONS[conversion], spec)


def joined(*texts: str) -> str:
    """Return the text of an f-string."""
    if not any(isinstance(t, TracedText) for t in texts):
        return "".join(texts)
    return TracedText([piece for text in texts for piece in pieces_of(text)])


def percent(text: Any, values: Any) -> Any:
    """Return ``text % values``."""
    values = _without_mirrors(values)
    if not isinstance(text, str) or not _traced_leaves(values):
        return text % values
    if isinstance(values, dict):
        _traced_leaves(values)[0].refuse_text()
    given, made, end = iter(values if isinstance(values, tuple) else (values,)), [], 0
    for found in _PERCENT.finditer(text):
        made.append(text[end : found.start()])
        end = found.end()
        made.append("%" if found[0] == "%%" else _percent_field(found, _next_value(given)))
    if "%" in text[end:] or any("%" in m for m in made[::2]):
        _traced_leaves(values)[0].refuse_text()
    if next(given, _ABSENT) is not _ABSENT:
        raise TypeError("not all arguments converted during string formatting")
    return joined(*made, text[end:])


def _next_value(given: Iterator[Any]) -> Any:
    value = next(given, _ABSENT)
    if value is _ABSENT:
        raise TypeError("not enough arguments for format string")
    return value


def _percent_field(found: re.Match[str], value: Any) -> str:
    flags, width, precision, kind = found.groups()
    if not _traced_leaves(value):
        return found[0] % (value,)
    if kind in "sr" and not width and precision is None:
        return _field(value, "!s" if kind == "s" else "!r", "")
    if kind not in "fFeEgG" or "#" in flags:
        _traced_leaves(value)[0].refuse_text()
    sign, zero = "+" if "+" in flags else " " if " " in flags else "", "0" if "0" in flags else ""
    align = "<" if "-" in flags and width else ""
    return _field(value, "", f"{align}{sign}{'' if align else zero}{width}.{precision or 6}{kind}")


def _str(*args: Any, **kwargs: Any) -> str:
    return _field(args[0], "!s", "") if len(args) == 1 and not kwargs else str(*args, **kwargs)


def _format(value: Any, spec: str = "") -> str:
    return _field(value, "", spec)


def _print(*values: Any, sep: Any = None, end: Any = None, file: Any = None, flush: bool = False) -> None:
    """Print in each run."""
    if current() is None:
        builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    if file is not None and file is not sys.stdout:
        raise TraceError("print to a file cannot be traced", where=user_line(), hint="call it outside of the function")
    texts: list[str] = []
    for k, value in enumerate(values):
        texts += [" " if sep is None else sep] if k else []
        texts.append(_field(value, "!s", ""))
    print_pieces([p for t in texts for p in pieces_of(t)], "\n" if end is None else end)


def _warn(message: Any, category: Any = None, *args: Any, **kwargs: Any) -> None:
    """Warn; on one side of a branch, the plain function runs instead, and warns."""
    trace = current()
    if trace is None or trace.parent is None:
        if isinstance(message, TracedText):
            message.refuse()
        keywords = {"stacklevel": 2, **kwargs} if not args[:1] else kwargs
        warnings.warn(message, category, *args, **keywords)
        return
    raise message if isinstance(message, Warning) else (category or UserWarning)(message)


def with_known_texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of C that refuses the texts of traced values, whose characters it would read."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            for part in (value, *parts):
                if isinstance(part, TracedText):
                    part.refuse()
        return function(*args, **kwargs)

    return substitute


SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    str: _str, repr: lambda value: _field(value, "!r", ""), ascii: lambda value: _field(value, "!a", ""),
    format: _format, print: _print, warnings.warn: _warn,
    bytes: with_known_texts(bytes),
}  # fmt: skip


def _method_format(text: str) -> Callable[..., str]:
    def substitute(*args: Any, **kwargs: Any) -> str:
        if not any(map(_traced_leaves, (*args, *kwargs.values()))) and not _has_text((*args, *kwargs.values())):
            return text.format(*args, **kwargs)
        return joined(*_parts_of_format(text, args, kwargs))

    return substitute


def _has_text(values: Any) -> bool:
    return any(isinstance(v, TracedText) for v in values)


def _parts_of_format(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    formatter, made, count = Formatter(), [], 0
    for literal, name, spec, conversion in formatter.parse(text):
        made.append(literal)
        if name is None:
            continue
        if not name or name[0] in ".[":
            name, count = f"{count}{name}", count + 1
        value = formatter.get_field(name, args, kwargs)[0]
        made.append(_field(value, f"!{conversion}" if conversion else "", (spec or "").format(*args, **kwargs)))
    return made


def _method_join(text: str) -> Callable[..., str]:
    def substitute(values: Any) -> str:
        parts = list(values)
        if not _has_text(parts):
            return text.join(parts)
        spaced = [piece for part in parts for piece in (text, part)]
        return joined(*spaced[1:])

    return substitute


#: Methods of texts.
METHODS: dict[str, Callable[[str], Callable[..., str]]] = {"format": _method_format, "join": _method_join}
