"""Values of node attributes.

======== ==================================================
kind     Python value
======== ==================================================
string   `str`; bytes that are not UTF-8 become surrogates
int      `int`
float    `float`
bool     `bool`
type     `DataType`
shape    `TensorShape`
tensor   `TensorValue`
func     `NameAttrList`
list(..) `tuple` of these; an empty one may be just ``list``
======== ==================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType

KINDS = ("string", "int", "float", "bool", "type", "shape", "tensor", "func")
PLACEHOLDER = "placeholder"  # kind of a placeholder for an attribute of the enclosing function


@dataclass(frozen=True, slots=True)
class AttrValue:
    """An attribute's value with the kind it has on the wire: see the table above; ``"placeholder"`` holds a name."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """A constant: an array, and the data type that its dtype alone may not tell."""

    dtype: DataType
    array: np.ndarray[Any, Any]

    def __eq__(self, other: object) -> bool:
        """Same type, shape and bits: NaN equals itself, and the zeros differ."""
        if not isinstance(other, TensorValue):
            return NotImplemented
        a, b = self.array, other.array
        if self.dtype != other.dtype or a.shape != b.shape:
            return False
        return a.tolist() == b.tolist() if a.dtype.hasobject else a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        return hash((self.dtype, self.array.shape))


@dataclass(frozen=True)
class NameAttrList:
    """A function's name and the attributes to instantiate it with."""

    name: str
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.attrs))))
