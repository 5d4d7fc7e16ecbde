"""Checks that shape rules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyxla.errors import DTypeError
from cyxla.types import UNBOUNDED, ElementType, Shape
from cyxla.xla.hlo.opcode import Site

if TYPE_CHECKING:
    from cyxla.xla.hlo.computation import Computation

PRED0 = Shape.array(ElementType.PRED)
S32_0 = Shape.array(ElementType.S32)
U32_0 = Shape.array(ElementType.U32)


def arrays(site: Site, label: str = "C1") -> None:
    """Require that every operand is an array."""
    for i, s in enumerate(site.operands):
        if not s.is_array:
            site.require(False, label, f"operand {i} is {s}, not an array")


def stated(site: Site, label: str, *, array: bool = True) -> Shape:
    """Return the declared result of an opcode whose operands do not determine it."""
    if site.declared is None:
        site.require(False, label, "the result shape must be given: the operands do not determine it")
    assert site.declared is not None
    if array and not site.declared.is_array:
        site.require(False, label, f"the result is {site.declared}, not an array")
    return site.declared


def same_dtype(site: Site, label: str, shapes: Sequence[Shape]) -> None:
    """Require that all shapes have the element type of the first."""
    for s in shapes:
        if s.dtype is not shapes[0].dtype:
            site.require(False, label, f"element types {shapes[0].dtype} and {s.dtype} differ", DTypeError)


def merged_dims(site: Site, label: str, shapes: Sequence[Shape]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return sizes and dynamic flags of shapes that must agree; an unbounded dimension agrees with any size."""
    first = shapes[0]
    if all(s.dims == first.dims and not s.is_dynamic for s in shapes):
        return first.dims, ()
    if any(s.rank != first.rank for s in shapes):
        site.require(False, label, f"ranks differ: {', '.join(str(s.rank) for s in shapes)}")
    dims, dynamic = [], []
    for axis in range(first.rank):
        size, flags = first.dims[axis], first.dynamic[axis]
        for s in shapes[1:]:
            size, flags = merged_dim(site, label, axis, (size, flags), (s.dims[axis], s.dynamic[axis]))
        dims.append(size)
        dynamic.append(flags)
    return tuple(dims), tuple(dynamic)


def merged_dim(site: Site, label: str, axis: int, a: tuple[int, bool], b: tuple[int, bool]) -> tuple[int, bool]:
    """Return size and dynamic flag of two dimensions that must agree."""
    if UNBOUNDED in (a[0], b[0]):
        return b if a[0] == UNBOUNDED else a
    if a[0] != b[0]:
        site.require(False, label, f"sizes {a[0]} and {b[0]} of dimension {axis} differ")
    return a[0], a[1] or b[1]


def agree(a: int, b: int) -> bool:
    """Return True if two sizes are equal or one of them is unbounded."""
    return a == b or UNBOUNDED in (a, b)


def in_range(site: Site, label: str, name: str, value: int, rank: int) -> None:
    """Require that a dimension number is in 0..rank - 1."""
    if not 0 <= value < rank:
        site.require(False, label, f"{name} {value} is not a dimension of rank {rank}")


def distinct(site: Site, label: str, name: str, dims: Sequence[int], rank: int) -> None:
    """Require that dimension numbers are in 0..rank - 1 and distinct."""
    for d in dims:
        in_range(site, label, name, d, rank)
    if len(set(dims)) != len(dims):
        site.require(False, label, f"{name} {list(dims)} contains a dimension twice")


def ascending(site: Site, label: str, name: str, dims: Sequence[int]) -> None:
    """Require that dimension numbers are in ascending order."""
    if list(dims) != sorted(dims):
        site.require(False, label, f"{name} {list(dims)} is not in ascending order")


def scalar(dtype: ElementType) -> Shape:
    """Return the shape of a scalar."""
    return Shape.array(dtype)


def is_integer_scalar(shape: Shape) -> bool:
    """Return True for the shape of an integer scalar."""
    return shape.is_scalar and shape.dtype.is_integer


def tuple_or_single(shapes: Sequence[Shape]) -> Shape:
    """Return the only shape, or a tuple of several."""
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def same_value(a: Shape, b: Shape) -> bool:
    """Return True if shapes agree but for layouts and dynamic flags."""
    if a is b or a.static is b.static:
        return True
    if len(a.elements) != len(b.elements) or a.dtype is not b.dtype or a.rank != b.rank:
        return False
    if a.is_tuple:
        return all(map(same_value, a.elements, b.elements))
    return all(map(agree, a.dims, b.dims))


def same_but_precision(a: ElementType, b: ElementType) -> bool:
    """Return True if element types are equal or both floating point."""
    return a is b or (a.is_float and b.is_float)


def signature(site: Site, label: str, called: Computation, parameters: Sequence[Shape], name: str) -> Shape:
    """Return the result shape of a called computation, whose parameters must be as given."""
    actual = [p.shape for p in called.parameters]
    if len(actual) != len(parameters):
        site.require(False, label, f"{name} {called.name} has {len(actual)} parameters instead of {len(parameters)}")
    for i, (actual_shape, expected_shape) in enumerate(zip(actual, parameters, strict=True)):
        if not same_value(actual_shape, expected_shape):
            site.require(
                False, label, f"parameter {i} of {name} {called.name} is {actual_shape}, but is given {expected_shape}"
            )
    return called.root.shape.logical


def scalar_function(
    site: Site, label: str, called: Computation, dtypes: Sequence[ElementType], name: str
) -> tuple[Shape, ...]:
    """Return the results of a computation on scalars of these element types; floating-point types may differ."""
    actual = [p.shape for p in called.parameters]
    if len(actual) != len(dtypes):
        site.require(False, label, f"{name} {called.name} has {len(actual)} parameters instead of {len(dtypes)}")
    for i, (actual_shape, expected_dtype) in enumerate(zip(actual, dtypes, strict=True)):
        if not actual_shape.is_scalar or not same_but_precision(actual_shape.dtype, expected_dtype):
            site.require(
                False, label, f"parameter {i} of {name} {called.name} is {actual_shape} instead of {expected_dtype}[]"
            )
    root = called.root.shape.logical
    results = root.elements if root.is_tuple else (root,)
    for r in results:
        if not r.is_scalar:
            site.require(False, label, f"{name} {called.name} returns {root} instead of scalars")
    return results
