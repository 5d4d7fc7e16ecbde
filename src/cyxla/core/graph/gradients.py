"""Gradients by walking a graph backward."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import Gradient, GradientRegistry
from cyxla.core.framework.types import COMPLEX, FLOAT8, FLOATING, DataType
from cyxla.core.graph import function_gradients
from cyxla.core.graph.algorithm import post_order, reachable_backward
from cyxla.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph, Node, Tensor

_CONTINUOUS = frozenset({*FLOATING, *COMPLEX, *FLOAT8, DataType.DT_RESOURCE, DataType.DT_VARIANT})
_LOOP_OPS = frozenset({"Enter", "Exit", "NextIteration", "LoopCond", "RefEnter", "RefExit", "RefNextIteration"})


def gradients(
    ys: Tensor | Sequence[Tensor],
    xs: Tensor | Sequence[Tensor],
    grad_ys: Any = None,
    *,
    stop_gradients: Collection[Tensor] = (),
    unconnected: str = "none",
    registry: GradientRegistry | None = None,
) -> list[Any]:
    """Add nodes that compute how the sum of some tensors changes with others.

    Parameters
    ----------
    ys : Tensor or sequence of Tensor
        What is differentiated.
    xs : Tensor or sequence of Tensor
        With respect to what; the handle of a resource variable stands for its value.
    grad_ys : optional
        A weight of its shape for each of `ys`; ones by default.
    stop_gradients : collection of Tensor
        Taken as constants.
    unconnected : {"none", "zero"}
        What stands for the gradient where no path leads from a `y` to an `x`.
    registry : GradientRegistry, optional
        Where ops' gradients are looked up; the process's own by default.

    Returns
    -------
    list of (Tensor or None)
        One gradient for each of `xs`.

    Raises
    ------
    NotFoundError
        An op between has no gradient.
    InvalidArgumentError
        A `y` of complex numbers without a weight, tensors of several graphs, or a gradient that does not fit its input.
    UnimplementedError
        A ``while`` loop of Enter and Exit nodes lies between; functional loops (While) are differentiated.

    Examples
    --------
    >>> from cyxla.core.graph.graph import Graph
    >>> graph = Graph()
    >>> with graph.as_default():
    ...     x = graph.placeholder("float", [2])
    ...     y = x * x
    >>> [dx] = gradients(y, x)
    >>> dx.shape
    TensorShape([2])
    """
    ys, xs = _as_list(ys), _as_list(xs)
    if unconnected not in ("none", "zero"):
        raise InvalidArgumentError(f"unconnected={unconnected!r} is neither 'none' nor 'zero'")
    if not xs:
        return []
    graph = xs[0].graph
    for tensor in (*ys, *xs):
        if tensor.graph is not graph:
            raise InvalidArgumentError(f"'{tensor.name}' belongs to another graph")
    with graph.as_default(), graph.name_scope("gradients"):
        walk = _Backward(graph, ys, xs, stop_gradients, registry or GradientRegistry.global_())
        walk.seed(ys, [None] * len(ys) if grad_ys is None else _as_list(grad_ys))
        walk.run()
        found = [walk.gradient_of(x) for x in xs]
        if unconnected == "zero":
            found = [function_gradients.zeros_like(x) if g is None else g for x, g in zip(xs, found, strict=True)]
    return found


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def is_continuous(dtype: DataType) -> bool:
    """Whether gradients flow through tensors of a type."""
    return dtype.base in _CONTINUOUS


class _Backward:
    """One walk from ys back to xs, gathering what flows to each output of each node between."""

    def __init__(
        self,
        graph: Graph,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        stop: Collection[Tensor],
        registry: GradientRegistry,
    ) -> None:
        self.graph = graph
        self.registry = registry
        self.stop = set(stop)
        self.wanted = set(xs)
        self.sums: dict[Tensor, list[Any]] = {}
        self.between: set[Node] = set()
        self.order = self._between(ys)

    def _between(self, ys: Sequence[Tensor]) -> list[Node]:
        """Nodes on a path from an x to a y, users before sources."""
        needed = reachable_backward(y.node for y in ys)  # what only the edges that close loops lead to included
        order = post_order(needed, needed)
        before = -1
        while before < len(self.between):  # again, because edges that close loops lead back in the order
            before = len(self.between)
            self.between.update(node for node in order if any(self._flows(t) for t in node.inputs))
        return [node for node in reversed(order) if node in self.between]

    def _flows(self, tensor: Tensor) -> bool:
        """Whether the gradient of an input leads to an x."""
        return is_continuous(tensor.dtype) and (
            tensor in self.wanted or (tensor.node in self.between and tensor not in self.stop)
        )

    def seed(self, ys: Sequence[Tensor], grad_ys: Sequence[Any]) -> None:
        """Put the weights of ys where the walk begins."""
        if len(ys) != len(grad_ys):
            raise InvalidArgumentError(f"{len(grad_ys)} weights were given for {len(ys)} tensors")
        for y, weight in zip(ys, grad_ys, strict=True):
            if y.dtype.base in COMPLEX and weight is None:
                raise InvalidArgumentError(f"'{y.name}' is complex: its gradient needs a weight", hint="give grad_ys")
            if is_continuous(y.dtype):  # else nothing flows, whatever its weight
                self._add(y, apply_op("OnesLike", y) if weight is None else self._weight(y, weight))

    def _weight(self, y: Tensor, weight: Any) -> Any:
        if getattr(weight, "graph", None) is not self.graph:
            weight = self.graph.constant(weight, function_gradients.gradient_type(y))
        if weight.dtype.base != function_gradients.gradient_type(y) or not _may_weigh(weight, y):
            raise InvalidArgumentError(
                f"the weight of '{y.name}' is {weight.dtype}{weight.shape}, but '{y.name}' is {y.dtype}{y.shape}"
            )
        return weight

    def _add(self, tensor: Tensor, grad: Any) -> None:
        self.sums.setdefault(tensor, []).append(grad)

    def gradient_of(self, tensor: Tensor) -> Any:
        """The sum of all that flows to a tensor, or None."""
        parts = self.sums.get(tensor)
        if not parts:
            return None
        if len(parts) > 1:
            parts[:] = [apply_op("AddN", parts)]
        return parts[0]

    def run(self) -> None:
        """Go backward through every node between."""
        for node in self.order:
            grads = [None if t in self.stop else self.gradient_of(t) for t in node.outputs]
            if all(g is None for g in grads):
                continue
            inputs = list(node.inputs)  # a loop gets more of them while it is differentiated
            try:
                results = self._differentiate(node, grads)
            except OpError as error:
                error.node, error.op = error.node or node.name, error.op or node.op
                raise
            for tensor, grad in zip(inputs, results, strict=True):
                if grad is not None and self._flows(tensor):
                    self._add(tensor, _fitting(node, tensor, grad))

    def _differentiate(self, node: Node, grads: list[Any]) -> list[Any]:
        entry, count = self._entry(node), len(node.inputs)
        if entry.fn is None:
            return [None] * count
        if not entry.none_grads:
            grads = [
                apply_op("ZerosLike", t) if g is None and is_continuous(t.dtype) else g
                for t, g in zip(node.outputs, grads, strict=True)
            ]
        with self.graph.name_scope(f"{node.name}_grad"), self.graph.device(node.device):
            results = entry.fn(node, *grads)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(results) != count:
            raise InternalError(f"the gradient function of {node.op} gives {len(results)} gradients for {count} inputs")
        return results

    def _entry(self, node: Node) -> Gradient:
        if node.op in _LOOP_OPS:
            raise UnimplementedError(
                f"node '{node.name}' ({node.op}) is part of a while loop of version 1, which is not differentiated",
                hint="write the loop as a While node with functions",
            )
        if self.registry.find(node.op) is None and node.op in self.graph.library:
            return Gradient(function_gradients.direct_call_gradient)
        return self.registry.look_up(node.op)


def _fitting(node: Node, tensor: Tensor, grad: Any) -> Any:
    """The gradient of an input, seen to have its type and shape."""
    want = tensor.dtype.base
    if want in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        return grad
    if grad.dtype.base != want or not grad.shape.is_compatible_with(tensor.shape):
        raise InternalError(
            f"the gradient of {node.op} for its input '{tensor.name}' is {grad.dtype}{grad.shape}, "
            f"but the input is {tensor.dtype}{tensor.shape}",
            node=node.name,
            op=node.op,
        )
    return grad


def _may_weigh(weight: Tensor, y: Tensor) -> bool:
    """Whether the shapes allow it; a handle's own shape says nothing of its variable's."""
    return y.dtype.base in (DataType.DT_RESOURCE, DataType.DT_VARIANT) or weight.shape.is_compatible_with(y.shape)
