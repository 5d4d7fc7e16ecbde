"""Python's operators on tensors, each of which adds one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError


class Operators:
    """Base class with the operators of tensors: ``-x``, ``x @ y``, ``x[1:, None]``, ``x < 3`` and so on.

    ``==`` compares identity; the op Equal compares values.
    """

    __slots__ = ()
    __array_ufunc__ = None  # makes NumPy defer `array + tensor` to the tensor

    if TYPE_CHECKING:
        name: Any
        dtype: Any
        shape: Any

    def __add__(self, other: Any) -> Any:
        return _apply("AddV2", self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply("AddV2", other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply("Sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply("Sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply("Mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply("Mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply("RealDiv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply("RealDiv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _apply("FloorDiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _apply("FloorDiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _apply("FloorMod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _apply("FloorMod", other, self)

    def __pow__(self, other: Any) -> Any:
        return _apply("Pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _apply("Pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        ranks = (self.shape.rank, getattr(getattr(other, "shape", None), "rank", np.ndim(other)))
        return _apply("MatMul" if ranks == (2, 2) else "BatchMatMulV2", self, other)

    def __lt__(self, other: Any) -> Any:
        return _apply("Less", self, other)

    def __le__(self, other: Any) -> Any:
        return _apply("LessEqual", self, other)

    def __gt__(self, other: Any) -> Any:
        return _apply("Greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _apply("GreaterEqual", self, other)

    def __neg__(self) -> Any:
        return _apply("Neg", self)

    def __abs__(self) -> Any:
        return _apply("ComplexAbs" if self.dtype.base.numpy.kind == "c" else "Abs", self)

    def __invert__(self) -> Any:
        return _apply("LogicalNot" if self.dtype.base == DataType.DT_BOOL else "Invert", self)

    def __and__(self, other: Any) -> Any:
        return _apply("LogicalAnd" if self.dtype.base == DataType.DT_BOOL else "BitwiseAnd", self, other)

    def __or__(self, other: Any) -> Any:
        return _apply("LogicalOr" if self.dtype.base == DataType.DT_BOOL else "BitwiseOr", self, other)

    def __getitem__(self, key: Any) -> Any:
        return _strided_slice(self, key if isinstance(key, tuple) else (key,))

    def __iter__(self) -> Iterator[Any]:
        size = self.shape[0] if self.shape.rank else None
        if size is None:
            raise InvalidArgumentError(
                f"{self.name} of shape {self.shape} has no known length, so it cannot be iterated over"
            )
        return iter(apply_op("Unpack", self, num=size))

    def __bool__(self) -> bool:
        raise InvalidArgumentError(f"{self.name} has no value until the graph runs", hint="use Select or If")


def _apply(op_name: str, *inputs: Any) -> Any:
    return apply_op(op_name, *inputs)


def _strided_slice(x: Any, keys: tuple[Any, ...]) -> Any:
    """Add a StridedSlice node for Python subscripts."""
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, key in enumerate(keys):
        row: tuple[Any, Any, Any] = (0, 0, 1)
        if key is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif key is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(key, slice):
            masks["begin_mask"] |= (key.start is None) << i
            masks["end_mask"] |= (key.stop is None) << i
            row = (key.start or 0, key.stop or 0, 1 if key.step is None else key.step)
            if isinstance(key.start, Operators) or isinstance(key.stop, Operators):
                row = (0 if key.start is None else key.start, 0 if key.stop is None else key.stop, row[2])
        else:
            masks["shrink_axis_mask"] |= 1 << i
            row = (key, key + 1, 1)
            if not isinstance(key, Operators) and key == -1:
                masks["end_mask"] |= 1 << i  # -1 + 1 would denote the first element
        for column, value in zip((begin, end, strides), row, strict=True):
            column.append(value)
    return apply_op("StridedSlice", x, begin, end, strides, **masks)
