"""Strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import DATA, DataType
from cyxla.core.kernels.lib.regex import compile_regex
from cyxla.core.kernels.lib.tensor_text import nested_text
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def _strings(values: list[bytes], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array.reshape(shape)


@array_kernel("StringJoin", attrs=("separator",))
def _join(inputs: list[Array], *, separator: str) -> Array:
    """Join the inputs elementwise; scalars broadcast, other shapes must be equal."""
    shapes = {x.shape for x in inputs if x.ndim}
    if len(shapes) > 1:
        raise ShapeError(f"the inputs must have one shape, or be scalars; they have {sorted(map(list, shapes))}")
    shape = shapes.pop() if shapes else ()
    rows = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in inputs]
    between = separator.encode()
    if not rows:
        return _strings([b""], ())
    return _strings([between.join(parts) for parts in zip(*rows, strict=True)], shape)


@array_kernel("StringFormat", attrs=("template", "placeholder", "summarize"))
def _format(inputs: list[Array], *, template: str, placeholder: str, summarize: int) -> Array:
    if not placeholder:
        raise InvalidArgumentError(
            "the placeholder is an empty string", hint='give the text that marks a tensor, as "{}"'
        )
    first, *rest = template.split(placeholder)
    if len(rest) != len(inputs):
        raise InvalidArgumentError(f"the template {template!r} has {len(rest)} placeholders for {len(inputs)} inputs")
    text = first + "".join(nested_text(x, summarize) + part for x, part in zip(inputs, rest, strict=True))
    return _strings([text.encode()], ())


@array_kernel("ReduceJoin", attrs=("keep_dims", "separator"))
def _reduce_join(x: Array, axes: Array, *, keep_dims: bool, separator: str) -> Array:
    """Join along axes, the first of which varies fastest; without axes return the input."""
    order = axes.reshape(-1).tolist()
    if any(not -x.ndim <= d < x.ndim for d in order):
        raise InvalidArgumentError(f"reduction_indices {order} are not all dimensions of inputs of rank {x.ndim}")
    joined_axes = [d % x.ndim for d in order]
    if len(set(joined_axes)) < len(joined_axes):
        raise InvalidArgumentError(f"reduction_indices {order} contain a dimension twice")
    if not joined_axes:
        return x
    kept_dims = [d for d in range(x.ndim) if d not in joined_axes]
    transposed = x.transpose([*kept_dims, *reversed(joined_axes)])
    rows = transposed.reshape([int(np.prod([x.shape[d] for d in kept_dims])), -1] if x.size else [0, 0])
    shape = tuple(1 if d in joined_axes else n for d, n in enumerate(x.shape) if keep_dims or d not in joined_axes)
    joined = [separator.encode().join(row) for row in rows.tolist()] if x.size else [b""] * int(np.prod(shape))
    return _strings(joined, shape)


# Numbers as text

_FLAGS = ("", " ", "+", "-", "0", "#")
_LETTERS = {"b": "s", "O": "s", "i": "d", "u": "d"}
_ATTRS = ("T", "precision", "scientific", "shortest", "width", "fill")


@array_kernel("AsString", attrs=_ATTRS, types={"T": DATA})
def _as_string(
    x: Array, *, T: DataType, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Array:
    """Format each element with a C format string."""
    kind = "f" if x.dtype.kind == "V" or T.text == "bfloat16" else x.dtype.kind
    if kind not in "fc" and (scientific or shortest or precision >= 0):
        raise InvalidArgumentError(f"scientific, shortest and precision are for floats, not {T}")
    if scientific and shortest:
        raise InvalidArgumentError("scientific and shortest exclude each other")
    if fill not in _FLAGS:
        raise InvalidArgumentError(f"fill is {fill!r}", hint="use one of ' ', '+', '-', '0' and '#', or nothing")
    letter = _LETTERS.get(kind) or ("g" if shortest else "e" if scientific else "f")
    text_format = f"%{fill if letter != 's' else fill.strip('0+#')}{width if width > -1 else ''}"
    text_format += (f".{precision}" if precision > -1 else "") + letter
    return _strings([_format_element(v, text_format, kind) for v in x.reshape(-1).tolist()], x.shape)


def _format_element(value: Any, text_format: str, kind: str) -> bytes:
    if kind == "O":
        return bytes(text_format.encode() % value)
    if kind == "b":
        value = "true" if value else "false"
    if kind == "c":
        return f"({text_format % value.real},{text_format % value.imag})".encode()
    return (text_format % value).encode()


# Regular expressions. Text is UTF-8; invalid bytes pass unchanged.


def _text(x: Any) -> str:
    return str(x.decode("utf-8", "surrogateescape")) if isinstance(x, bytes) else str(x)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@array_kernel("RegexReplace", attrs=("replace_global",))
def _regex_replace(x: Array, pattern: Array, rewrite: Array, *, replace_global: bool) -> Array:
    for name, operand in (("pattern", pattern), ("rewrite", rewrite)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    regex = compile_regex(_text(pattern[()]))
    pieces = regex.parse_rewrite(_text(rewrite[()]))
    replaced = [_bytes(regex.replace(_text(v), pieces, replace_global)) for v in x.reshape(-1).tolist()]
    return _strings(replaced, x.shape)


@array_kernel("StaticRegexFullMatch", attrs=("pattern",))
def _full_match(x: Array, *, pattern: str) -> Array:
    regex = compile_regex(_text(pattern))
    return np.array([regex.matches(_text(v)) for v in x.reshape(-1).tolist()], bool).reshape(x.shape)


@array_kernel("Fact")
def _fact() -> Array:
    return np.array(b"0! == 1", object)
