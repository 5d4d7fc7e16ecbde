"""The custom call that prints its operands: `cyxla.print` in a traced function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import Any, Final

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.xla.evaluator.custom_calls import register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.values import Value, array_of
from cyxla.xla.hlo.instruction import Instruction

PRINT: Final = "cyxla_print"
#: Arrays of a message by kind; each takes the next operand, an array of run-time size the next two.
ARRAY, SCALAR, NUMBER, SIZED = "array", "scalar", "number", "sized"
_MALFORMED = (AttributeError, KeyError, StopIteration, TypeError, ValueError)


class _Formatter(Formatter):
    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if "._" in field_name:  # a format may come from a file
            raise InvalidArgumentError(f"print: {field_name!r} is a private attribute")
        return super().get_field(field_name, args, kwargs)


def format_message(text: str, values: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return ``text.format(*values, **named)``."""
    try:
        return _Formatter().vformat(text, values, named)
    except IndexError:
        raise IndexError(f"print: the format {text!r} has more fields than the {len(values)} values") from None


@register_custom_call(PRINT)
def _print(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Print a message; the configuration is a JSON object of its format and of its values."""
    config = ins.extras.get("backend_config") or ""
    try:
        message = json.loads(config)
        arrays = iter([array_of(o) for o in operands])
        text = "".join(message["format"])
        values = [build_value(node, arrays) for node in message["values"]]
        named = {name: build_value(node, arrays) for name, node in message["named"].items()}
        end = "".join(message.get("end", "\n"))
    except _MALFORMED:
        raise InvalidArgumentError(f"custom call {PRINT}: the configuration does not describe a message") from None
    print(format_message(text, values, named), end=end)
    return ()


def build_value(node: Mapping[str, Any], arrays: Iterator[np.ndarray[Any, Any]]) -> Any:
    """Build a value of a message: a constant, an array, or a container of these."""
    ((kind, content),) = node.items()
    if kind == "constant":
        return content
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(build_value(part, arrays) for part in content)
    if kind == "dict":
        return {key: build_value(part, arrays) for key, part in content}
    array = next(arrays)
    if kind == SIZED:
        return array[(*[slice(None)] * content, slice(0, int(next(arrays))))]
    return array if kind == ARRAY else array[()] if kind == SCALAR else array.item()
