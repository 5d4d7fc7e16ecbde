"""Shape inference of a node when it is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN
from cyxla.core.graph.constant_value import constant_shape, constant_value

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Node, Tensor


class _Lazy(Sequence[Any]):
    """Facts about inputs, computed when a shape function asks for them."""

    __slots__ = ("_fact", "_inputs")

    def __init__(self, inputs: Sequence[Tensor | None], fact: Callable[[Tensor], Any]) -> None:
        self._inputs = inputs
        self._fact = fact

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, index: Any) -> Any:
        tensor = self._inputs[index]
        return None if tensor is None else self._fact(tensor)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self._inputs)))


def _handle(tensor: Tensor) -> Any:
    handles = tensor.node.output_handles
    return handles[tensor.index] if handles else None


def infer_node_shapes(node: Node, inputs: Sequence[Tensor | None] | None = None) -> None:
    """Set ``output_shapes`` and ``output_handles`` of a node.

    Parameters
    ----------
    node : Node
        Node whose inputs have shapes.
    inputs : optional
        Inputs to use instead of ``node.inputs``; None for an input that is not set yet, such as a loop edge of a Merge.
    """
    inputs = node.inputs if inputs is None else inputs
    count = len(node.output_types)
    function = node.registration.shape_inference_fn
    if not count or function is None:
        node.output_shapes = [UNKNOWN] * count
        if function is None:
            return
    shapes = [UNKNOWN if t is None else t.node.output_shapes[t.index] for t in inputs]
    context = InferenceContext(
        node.registration.op_def,
        node.attrs,
        shapes,
        _Lazy(inputs, constant_value),
        _Lazy(inputs, constant_shape),
        _Lazy(inputs, _handle),
    )
    function(context)
    node.output_shapes = [context.output(i) for i in range(count)]
    node.output_handles = context.output_handles
