"""Shape functions in C."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.plugins.context import NativeContext
from cyxla.core.framework.plugins.interface import OK, Op, Shape
from cyxla.core.framework.plugins.memory import NodeMemory, shape_of
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.errors import InvalidArgumentError, OpError, ShapeError


class ShapeContext(NativeContext):
    """Context of a shape function.

    Attributes
    ----------
    read_values : bool
        True if the function has asked for the value of an input.
    """

    kind = "a shape function"

    def __init__(self, inference: InferenceContext, node: NodeMemory, data: int | None, label: str = "") -> None:
        super().__init__(node, data=data, label=label)
        self._inference, self.read_values = inference, False
        shapes = [self.memory.shape(inference.input(i).dims) for i in range(inference.num_inputs)]
        self.struct.shapes = self.memory.array_of(Shape, shapes)

    def fail(self, code: int, message: bytes | None) -> int:
        """Record an error; an invalid argument is one of shapes."""
        status = super().fail(code, message)
        if type(self.error) is InvalidArgumentError:
            self.error = _shape_error(self.error)
        return status

    def set_shape(self, index: int, rank: int, dims: Any) -> int:
        """Set the shape of an output."""
        self.output_type(index)
        self._inference.set_output(index, shape_of(rank, dims))
        return OK

    def constant_input(self, index: int, target: Any) -> int:
        """Store the value of an input; return 0 if it is unknown."""
        dtype = self.input_type(index)
        self.read_values = True
        value = self._inference.input_tensor(index)
        if value is None:
            return 0
        target[0] = self.memory.tensor(value, dtype, f"input {index}")
        return 1

    def input_as_shape(self, index: int, target: Any) -> int:
        """Store the shape that an input holds."""
        self.input_type(index)
        self.read_values = True
        target[0] = self.memory.shape(self._inference.make_shape_from_shape_tensor(index).dims)
        return OK


def _shape_error(error: OpError) -> ShapeError:
    return ShapeError(error.message, where=error.where, op=error.op, node=error.node)


class NativeShapeFunction:
    """Shape function of an op of a library.

    Parameters
    ----------
    row : Op
        Row of the op.
    library : object
        Library, which is kept alive.
    """

    def __init__(self, row: Op, library: Any) -> None:
        self._function, self._data, self._library = row.shape, row.data, library

    def __call__(self, inference: InferenceContext) -> None:
        """Infer the shapes of a node of a graph."""
        self.infer(inference, NodeMemory(inference.op_def, inference.attrs))

    def infer(self, inference: InferenceContext, node: NodeMemory) -> bool:
        """Infer the shapes of a node, and return True if the function asked for values of inputs."""
        context = ShapeContext(inference, node, self._data)
        context.call(self._function)
        return context.read_values


class KnownShapes:
    """Shapes of the outputs of a kernel for the shapes of its inputs.

    Parameters
    ----------
    function : NativeShapeFunction
        Shape function of the op.
    node : NodeMemory
        Node of the kernel.
    attrs : mapping of AttrValue
        Attributes of the node.
    """

    _MAX = 64

    def __init__(self, function: NativeShapeFunction, node: NodeMemory, attrs: Any) -> None:
        self._function, self._node, self._attrs = function, node, attrs
        self._known: dict[Any, list[TensorShape]] = {}

    def outputs(self, arrays: list[Any]) -> list[TensorShape]:
        """Return the shapes of the outputs for some inputs; raise the error of the shape function."""
        key = tuple([array.shape for array in arrays])
        found = self._known.get(key)
        if found is not None:
            return found
        inference = InferenceContext(self._node.op_def, self._attrs, key, arrays)
        read_values = self._function.infer(inference, self._node)
        shapes = [inference.output(i) for i in range(inference.num_outputs)]
        if not read_values:
            if len(self._known) >= self._MAX:
                self._known.clear()
            self._known[key] = shapes
        return shapes
