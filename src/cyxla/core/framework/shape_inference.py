"""Shape inference: shapes of an op's outputs from partially known inputs.

A shape function takes an `InferenceContext`: it reads input shapes, attributes and sometimes values, checks the
constraints of the op, and sets the output shapes. All helpers accept unknown ranks and sizes: a size is an int or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.node_def import arg_types, name_ranges
from cyxla.core.framework.tensor_shape import MAX_RANK, SCALAR, UNKNOWN, Dim, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]
HandleData = tuple[tuple[TensorShape, DataType], ...]
ShapeLike = TensorShape | Sequence[Dim]
_LIMIT = 1 << 63
_MAX_ELEMENTS = 1 << 16  # larger values cannot be shapes, axes or sizes


def _as_shape(shape: ShapeLike) -> TensorShape:
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


class InferenceContext:
    """Argument of shape functions: facts about a node, and the inferred output shapes.

    Parameters
    ----------
    op_def : OpDef
        Declaration of the op.
    attrs : mapping of AttrValue
        Attributes of the node; missing ones take their defaults.
    input_shapes : sequence of TensorShape
        Shape of each input, possibly partially known.
    input_tensors : sequence of (ndarray or None), optional
        Values of the inputs, None if unknown; a lazy sequence may compute them on access.
    input_tensors_as_shapes : sequence of (TensorShape or None), optional
        Inputs that hold shapes, possibly partially known.
    input_handles : sequence of (tuple of (TensorShape, DataType) or None), optional
        Shapes and types of the values behind inputs that are handles.
    """

    def __init__(
        self,
        op_def: OpDef,
        attrs: Mapping[str, AttrValue],
        input_shapes: Sequence[ShapeLike],
        input_tensors: Sequence[Array | None] = (),
        input_tensors_as_shapes: Sequence[TensorShape | None] = (),
        input_handles: Sequence[HandleData | None] = (),
    ) -> None:
        self.op_def, self.attrs = op_def, attrs
        self._inputs = [_as_shape(shape) for shape in input_shapes]
        self._tensors, self._as_shapes, self._handles = input_tensors, input_tensors_as_shapes, input_handles
        self._input_ranges: dict[str, range] | None = None
        self._output_ranges: dict[str, range] | None = None
        self.num_outputs = sum(len(arg_types(arg, attrs)) for arg in op_def.output_arg)
        self._outputs = [UNKNOWN] * self.num_outputs
        self.output_handles: list[HandleData | None] = []

    # Inputs

    @property
    def num_inputs(self) -> int:
        """Number of inputs, lists flattened."""
        return len(self._inputs)

    def _range(self, name: str) -> range:
        if self._input_ranges is None:
            self._input_ranges = name_ranges(self.op_def.input_arg, self.attrs)
        return self._input_ranges[name]

    def _out_range(self, name: str) -> range:
        if self._output_ranges is None:
            self._output_ranges = name_ranges(self.op_def.output_arg, self.attrs)
        return self._output_ranges[name]

    def _index(self, i: int | str) -> int:
        return i if isinstance(i, int) else self._range(i).start

    def input(self, i: int | str) -> TensorShape:
        """Return the shape of an input."""
        return self._inputs[self._index(i)]

    def inputs(self, name: str) -> list[TensorShape]:
        """Return the shapes of the tensors of an argument."""
        return [self._inputs[i] for i in self._range(name)]

    def input_tensor(self, i: int | str) -> Array | None:
        """Return the value of an input, or None if it is unknown or huge."""
        i = self._index(i)
        value = self._tensors[i] if i < len(self._tensors) else None
        return None if value is not None and value.size > _MAX_ELEMENTS else value

    def input_handle(self, i: int | str) -> HandleData | None:
        """Return the shapes and types of the values behind a handle, or None if unknown."""
        i = self._index(i)
        return self._handles[i] if i < len(self._handles) else None

    def attr(self, name: str) -> Any:
        """Return the value of an attribute.

        Raises
        ------
        InvalidArgumentError
            The op has no such attribute.
        """
        value = self.attrs.get(name)
        if value is None:
            declared = self.op_def.find_attr(name)
            value = declared.default if declared else None
        if value is None:
            raise InvalidArgumentError(f"op {self.op_def.name} has no value for the attr {name!r}")
        return value.value

    # Outputs

    def set_output(self, i: int | str, shape: ShapeLike) -> None:
        """Set the shape of an output."""
        self._outputs[i if isinstance(i, int) else self._out_range(i).start] = _as_shape(shape)

    def set_outputs(self, name: str, shapes: Iterable[ShapeLike]) -> None:
        """Set the shapes of the tensors of an argument."""
        for i, shape in zip(self._out_range(name), shapes, strict=True):
            self._outputs[i] = _as_shape(shape)

    def output(self, i: int | str) -> TensorShape:
        """Return the shape of an output, unknown until it is set."""
        return self._outputs[i if isinstance(i, int) else self._out_range(i).start]

    def set_output_handle(self, i: int, data: HandleData | None) -> None:
        """Set the shapes and types of the values behind an output that is a handle."""
        if not self.output_handles:
            self.output_handles = [None] * self.num_outputs
        self.output_handles[i] = data

    # Making shapes

    def unknown_shape(self) -> TensorShape:
        """Return a shape of unknown rank."""
        return UNKNOWN

    def unknown_shape_of_rank(self, rank: int) -> TensorShape:
        """Return a shape of known rank and unknown sizes."""
        if rank > MAX_RANK:
            raise ShapeError(f"the rank {rank} exceeds the limit of {MAX_RANK}")
        return TensorShape([None] * rank)

    def scalar(self) -> TensorShape:
        """Return the shape of a scalar."""
        return SCALAR

    def vector(self, n: Dim) -> TensorShape:
        """Return the shape of a vector."""
        return TensorShape((n,))

    def matrix(self, m: Dim, n: Dim) -> TensorShape:
        """Return the shape of a matrix."""
        return TensorShape((m, n))

    def make_shape_from_shape_tensor(self, i: int | str) -> TensorShape:
        """Return the shape that an input holds; sizes are unknown where its value is.

        Raises
        ------
        ShapeError
            The input is not a vector, or holds a size below -1.
        """
        i = self._index(i)
        shape = self.with_rank_at_most(self.input(i), 1)
        if shape.rank == 1 and (shape[0] or 0) > MAX_RANK:
            raise ShapeError(f"{self.op_def.name}: a shape has {shape[0]} dimensions; the limit is {MAX_RANK}")
        value = self.input_tensor(i)
        if value is not None:
            return self._shape_of_value(value)
        partial = self._as_shapes[i] if i < len(self._as_shapes) else None
        if partial is not None:
            return partial
        return UNKNOWN if shape.rank != 1 or shape[0] is None else self.unknown_shape_of_rank(shape[0])

    def _shape_of_value(self, value: Array) -> TensorShape:
        if value.ndim == 0:
            if value != -1:
                raise ShapeError(
                    f"the scalar {value} is not a shape", hint="only -1 is, which denotes an unknown shape"
                )
            return UNKNOWN
        if value.ndim > 1:
            raise ShapeError(f"a shape must be a vector, but has the shape {list(value.shape)}")
        if (value < -1).any():
            raise ShapeError(f"the shape {value.tolist()} has a size below -1")
        return TensorShape(None if d < 0 else d for d in value.tolist())

    def make_dim_for_scalar_input(self, i: int | str) -> Dim:
        """Return the size that an input holds, or None if its value is unknown.

        Raises
        ------
        ShapeError
            The input is not a scalar, or is negative.
        """
        self.with_rank(self.input(i), 0)
        value = self.input_tensor(i)
        if value is None:
            return None
        if value < 0:
            raise ShapeError(f"the size given by input {i} is {value}, which is negative")
        return int(value)

    # Requirements on shapes

    def with_rank(self, shape: TensorShape, rank: int) -> TensorShape:
        """Return the shape refined to a rank; raise ShapeError if it has another."""
        if shape.dims is None:
            return self.unknown_shape_of_rank(rank)
        if len(shape.dims) != rank:
            raise ShapeError(f"{self.op_def.name}: the shape must be of rank {rank}, but {shape} has {shape.rank}")
        return shape

    def with_rank_at_least(self, shape: TensorShape, rank: int) -> TensorShape:
        """Return the shape; raise ShapeError if its rank is lower."""
        if shape.dims is not None and len(shape.dims) < rank:
            raise ShapeError(f"{self.op_def.name}: the shape must be at least of rank {rank}, but {shape} is given")
        return shape

    def with_rank_at_most(self, shape: TensorShape, rank: int) -> TensorShape:
        """Return the shape; raise ShapeError if its rank is higher."""
        if shape.dims is not None and len(shape.dims) > rank:
            raise ShapeError(f"{self.op_def.name}: the shape must be at most of rank {rank}, but {shape} is given")
        return shape

    def merge(self, a: TensorShape, b: TensorShape) -> TensorShape:
        """Merge two shapes; raise ShapeError if they are incompatible."""
        if not a.is_compatible_with(b):
            raise ShapeError(f"{self.op_def.name}: the shapes {a} and {b} must be equal")
        return a.merge_with(b)

    def merge_dim(self, a: Dim, b: Dim) -> Dim:
        """Merge two sizes; raise ShapeError if they differ."""
        if a is not None and b is not None and a != b:
            raise ShapeError(f"{self.op_def.name}: the sizes {a} and {b} must be equal")
        return b if a is None else a

    def merge_prefix(self, shape: TensorShape, prefix: TensorShape) -> tuple[TensorShape, TensorShape]:
        """Merge a shape and its prefix; return both, refined."""
        if shape.dims is None or prefix.dims is None:
            return shape, prefix
        self.with_rank_at_least(shape, len(prefix.dims))
        head = self.merge(shape[: len(prefix.dims)], prefix)
        return head + shape[len(prefix.dims) :], head

    def with_value(self, dim: Dim, value: int) -> int:
        """Return `value`; raise ShapeError if the size is known to differ."""
        if dim is not None and dim != value:
            raise ShapeError(f"{self.op_def.name}: a size must be {value}, but is {dim}")
        return value

    def broadcast(self, a: TensorShape, b: TensorShape) -> TensorShape:
        """Broadcast two shapes; raise ShapeError if they are incompatible."""
        if a.dims is None or b.dims is None:
            return UNKNOWN
        rank = max(len(a.dims), len(b.dims))
        x, y = ((1,) * (rank - len(s)) + s for s in (a.dims, b.dims))
        return TensorShape(self._broadcast_dim(d, e, a, b) for d, e in zip(x, y, strict=True))

    def _broadcast_dim(self, d: Dim, e: Dim, a: TensorShape, b: TensorShape) -> Dim:
        if d == 1 or e == 1:
            return e if d == 1 else d
        if d is not None and e is not None and d != e:
            raise ShapeError(f"{self.op_def.name}: the shapes {a} and {b} do not broadcast to one")
        return e if d is None else d

    # Parts of shapes

    def sub_shape(self, shape: TensorShape, start: int, stop: int | None = None) -> TensorShape:
        """Return the dimensions from `start` to `stop`; negative indices count from the end."""
        if shape.dims is None:
            return self._unknown_part(start, stop)
        for at in (start, stop):
            if at is not None and not -len(shape.dims) <= at <= len(shape.dims):
                raise ShapeError(f"{self.op_def.name}: dimension {at} is out of range for the shape {shape}")
        return shape[start:stop]

    def _unknown_part(self, start: int, stop: int | None) -> TensorShape:
        """Return a part of a shape of unknown rank; its rank is known if both bounds count from the same end."""
        if stop is None:
            return self.unknown_shape_of_rank(-start) if start < 0 else UNKNOWN
        return self.unknown_shape_of_rank(stop - start) if (start < 0) == (stop < 0) and start <= stop else UNKNOWN

    def concatenate(self, a: TensorShape, b: ShapeLike) -> TensorShape:
        """Concatenate the dimensions of two shapes."""
        return a + b

    def replace_dim(self, shape: TensorShape, i: int, dim: Dim) -> TensorShape:
        """Return the shape with one size replaced."""
        if shape.dims is None:
            return shape
        i = self.axis(i, shape)
        return TensorShape((*shape[:i], dim, *shape[i + 1 :]))

    def axis(self, axis: int, shape: TensorShape) -> int:
        """Return a non-negative axis of a shape of known rank; raise ShapeError if it is out of range."""
        rank = len(shape)
        if not -rank <= axis < rank:
            raise ShapeError(f"{self.op_def.name}: dimension {axis} is out of range for the shape {shape}")
        return axis % rank

    # Arithmetic of sizes

    def _check_size(self, result: int, expression: str) -> int:
        if not 0 <= result < _LIMIT:
            raise ShapeError(f"{self.op_def.name}: {expression} is {result}, which is not a valid size")
        return result

    def _arithmetic(self, sign: str, fn: Callable[[int, int], int], d: Dim, e: Dim) -> Dim:
        return None if d is None or e is None else self._check_size(fn(d, e), f"{d} {sign} {e}")

    def add(self, d: Dim, e: Dim) -> Dim:
        """Add sizes."""
        return self._arithmetic("+", int.__add__, d, e)

    def subtract(self, d: Dim, e: Dim) -> Dim:
        """Subtract sizes; raise ShapeError if the result is negative."""
        return self._arithmetic("-", int.__sub__, d, e)

    def multiply(self, d: Dim, e: Dim) -> Dim:
        """Multiply sizes; the product is known if one is zero."""
        return 0 if d == 0 or e == 0 else self._arithmetic("*", int.__mul__, d, e)

    def divide(self, d: Dim, e: Dim, evenly: bool = True) -> Dim:
        """Divide sizes; raise ShapeError if `evenly` and there is a remainder, or if the divisor is not positive."""
        if e is not None and e <= 0:
            raise ShapeError(f"{self.op_def.name}: a size cannot be divided by {e}")
        if evenly and d is not None and e is not None and d % e:
            raise ShapeError(f"{self.op_def.name}: the size {d} is not a multiple of {e}")
        return d if e == 1 else self._arithmetic("//", int.__floordiv__, d, e)

    def min(self, d: Dim, e: Dim) -> Dim:
        """Return the smaller size, known if one is zero."""
        return 0 if d == 0 or e == 0 else self._arithmetic("min", min, d, e)

    def max(self, d: Dim, e: Dim) -> Dim:
        """Return the larger size."""
        return self._arithmetic("max", max, d, e)
