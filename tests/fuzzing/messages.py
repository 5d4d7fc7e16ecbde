"""Mutations of protobuf messages, field by field."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as F

INTEGERS = (
    0, 1, 2, -1, 3, 7, 8, 63, 64, 127, 128, 255, 256, 1000, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63),
    2**62, 2**64 - 1,
)  # fmt: skip
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-320, float("nan"), float("inf"), float("-inf"), 3.5e38,
)  # fmt: skip
STRINGS = (
    "", "x", "x:0", "^x", "y", "../../x", "/x", "a/b/c", "%n%s", "é\u2028", "f" * 2000, "x:99999999999999999999", ":",
    "^", "DT_FLOAT", "float", "T", "while", "\x01",
)  # fmt: skip
BITS = {F.TYPE_INT32: (-31, 31), F.TYPE_SINT32: (-31, 31), F.TYPE_SFIXED32: (-31, 31), F.TYPE_UINT32: (0, 32),
        F.TYPE_FIXED32: (0, 32), F.TYPE_INT64: (-63, 63), F.TYPE_SINT64: (-63, 63), F.TYPE_SFIXED64: (-63, 63),
        F.TYPE_UINT64: (0, 64), F.TYPE_FIXED64: (0, 64)}  # fmt: skip


class Message:
    """A message that is mutated: all parts of it, and the words and numbers that stand in it."""

    def __init__(self, root: Any, rng: random.Random) -> None:
        self.rng = rng
        self.parts: list[Any] = []
        self.words: list[Any] = []
        self._walk(root, 0)

    def _walk(self, message: Any, depth: int) -> None:
        self.parts.append(message)
        for field, value in message.ListFields():
            for part in _members(field, value):
                if hasattr(part, "ListFields") and depth < 60:
                    self._walk(part, depth + 1)
                elif isinstance(part, (str, bytes)):
                    self.words.append(part)

    def mutate(self) -> None:
        """Change one field of one part."""
        part = self.rng.choice(self.parts)
        held = part.ListFields()
        if held and self.rng.random() < 0.8:
            field, value = self.rng.choice(held)
        else:
            field = self.rng.choice(part.DESCRIPTOR.fields or [None])
            value = getattr(part, field.name) if field is not None else None
        if field is None:
            return
        if _is_map(field):
            self._change_map(field, value)
        elif field.is_repeated:
            self._change_list(field, value)
        elif self.rng.random() < 0.1:
            part.ClearField(field.name)
        elif field.message_type is not None:
            self._change_message(field, value)
        else:
            setattr(part, field.name, self._scalar(field, value))

    def _change_list(self, field: Any, values: Any) -> None:
        how, rng = self.rng.randrange(6), self.rng
        if not values or how == 0:
            if field.message_type is not None:
                self._change_message(field, values.add())
            else:
                values.append(self._scalar(field, None))
            return
        k, j = rng.randrange(len(values)), rng.randrange(len(values))
        if how == 1:
            del values[k]
        elif how == 2:
            del values[k:]
        elif how == 3:
            values.extend([values[k]] * rng.choice((1, 1, 2, 40)))
        elif field.message_type is None:
            values[k] = values[j] if how == 4 else self._scalar(field, values[k])
        elif k != j:
            kept = type(values[k])()
            kept.CopyFrom(values[k])
            values[k].CopyFrom(values[j])
            if how == 4:
                values[j].CopyFrom(kept)

    def _change_message(self, field: Any, message: Any) -> None:
        """Copied from another of its type; or set, though empty."""
        same = [p for p in self.parts if p.DESCRIPTOR is message.DESCRIPTOR and p is not message]
        if same:
            kept = type(message)()
            kept.CopyFrom(self.rng.choice(same))
            message.CopyFrom(kept)
        else:
            message.SetInParent()

    def _change_map(self, field: Any, values: Any) -> None:
        keys = sorted(values, key=str)
        key_field, value_field = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        key = self._scalar(key_field, None) if not keys or self.rng.random() < 0.3 else self.rng.choice(keys)
        if key in values and self.rng.random() < 0.3:
            del values[key]
        elif value_field.message_type is not None:
            self._change_message(value_field, values[key])
        else:
            values[key] = self._scalar(value_field, values.get(key))

    def _scalar(self, field: Any, old: Any) -> Any:
        rng = self.rng
        if field.type in BITS:
            low, high = BITS[field.type]
            value = rng.choice(INTEGERS) if old is None or rng.random() < 0.6 else old + rng.choice((-1, 1, old))
            return value if -(2**-low if low else 0) <= value < 2**high else rng.randrange(4)
        match field.type:
            case F.TYPE_BOOL:
                return not old
            case F.TYPE_ENUM:
                numbers = [v.number for v in field.enum_type.values]
                return rng.choice(numbers) if rng.random() < 0.9 else rng.choice((-1, 99, 2**31 - 1))
            case F.TYPE_STRING:
                return self._word(str)
            case F.TYPE_BYTES:
                return self._word(bytes)
        return rng.choice(FLOATS)

    def _word(self, type_: type) -> Any:
        word = self.rng.choice(self.words) if self.words and self.rng.random() < 0.7 else self.rng.choice(STRINGS)
        if isinstance(word, type_):
            return word
        return word.encode() if type_ is bytes else word.decode("utf-8", "replace")


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _members(field: Any, value: Any) -> list[Any]:
    if _is_map(field):
        return [value[key] for key in sorted(value, key=str)]
    return list(value) if field.is_repeated else [value]


def mutated(message: Any, rng: random.Random) -> None:
    """Change a message in one to six places."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        Message(message, rng).mutate()
