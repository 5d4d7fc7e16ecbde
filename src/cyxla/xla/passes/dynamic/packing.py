"""Shapes and values of bounded arrays.

A bounded array is a padded array of its bounds, and an s32 scalar for each dynamic dimension. As one value, for
parameters, results and the states of loops, both are packed into a tuple: ``f32[<=6,4]`` becomes ``(f32[6,4], s32[])``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Instruction

SIZE: Final = Shape.array(ElementType.S32)


@dataclass(frozen=True)
class Bounded:
    """A bounded array.

    Attributes
    ----------
    padded : Instruction
        Array of the bounds; elements beyond the sizes are arbitrary.
    sizes : mapping of int to Instruction
        Present sizes of the dynamic dimensions.
    written : frozenset of int
        Dimensions beyond whose size elements are zeros, or were written by updates; see `hlo.growth`.
    """

    padded: Instruction
    sizes: Mapping[int, Instruction]
    written: frozenset[int] = frozenset()


Value: TypeAlias = "Instruction | Bounded | tuple[Value, ...]"


def dynamic_dims(shape: Shape) -> tuple[int, ...]:
    """Return the dynamic dimensions of an array."""
    return tuple(d for d, is_dynamic in enumerate(shape.dynamic) if is_dynamic)


def packed_shape(shape: Shape) -> Shape:
    """Return the shape with each bounded array as a tuple of its padded array and its sizes."""
    if not shape.is_dynamic:
        return shape
    if shape.is_tuple:
        return Shape.tuple([packed_shape(e) for e in shape.elements])
    return Shape.tuple([shape.static, *[SIZE] * sum(shape.dynamic)])
