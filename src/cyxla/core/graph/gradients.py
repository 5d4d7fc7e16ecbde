"""Gradients of graphs by reverse-mode differentiation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.gradient import Gradient, GradientRegistry
from cyxla.core.framework.types import COMPLEX, DataType
from cyxla.core.graph.algorithm import post_order, reachable_backward
from cyxla.core.graph.gradient_values import gradient_type, is_continuous, zeros_like
from cyxla.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph, Node, Tensor

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
    """Add nodes that compute the gradients of a weighted sum of tensors.

    Parameters
    ----------
    ys : Tensor or sequence of Tensor
        Tensors to differentiate.
    xs : Tensor or sequence of Tensor
        Tensors with respect to which to differentiate; the handle of a resource variable stands for its value.
    grad_ys : optional
        Weights of the same shape for each of `ys`; ones by default.
    stop_gradients : collection of Tensor
        Tensors that are treated as constants.
    unconnected : {"none", "zero"}
        Gradient of an `x` on which no `y` depends: None or zeros.
    registry : GradientRegistry, optional
        Registry of gradient functions; the global one by default.

    Returns
    -------
    list of (Tensor or None)
        Gradient for each of `xs`.

    Raises
    ------
    NotFoundError
        An op between `xs` and `ys` has no gradient.
    InvalidArgumentError
        A complex `y` has no weight, tensors belong to different graphs, or a gradient does not match its input.
    UnimplementedError
        A ``while`` loop of Enter and Exit nodes is between `xs` and `ys`; only functional loops (While) have gradients.

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
        backward = _Backward(graph, ys, xs, stop_gradients, registry or GradientRegistry.global_())
        backward.seed(ys, [None] * len(ys) if grad_ys is None else _as_list(grad_ys))
        backward.run()
        grads = [backward.gradient_of(x) for x in xs]
        if unconnected == "zero":
            grads = [zeros_like(x) if g is None else g for x, g in zip(xs, grads, strict=True)]
    return grads


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Backward:
    """The backward pass from ys to xs, which accumulates the gradient of each output of each node between."""

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
        self.xs = set(xs)
        self.sums: dict[Tensor, list[Any]] = {}
        self.between: set[Node] = set()
        self.order = self._find_between(ys)

    def _find_between(self, ys: Sequence[Tensor]) -> list[Node]:
        """Return the nodes on paths from an x to a y, users before sources."""
        needed = reachable_backward(y.node for y in ys)  # includes nodes that only loop back edges lead to
        order = post_order(needed, needed)
        count = -1
        while count < len(self.between):  # iterate, because loop back edges point backward in the order
            count = len(self.between)
            self.between.update(node for node in order if any(self._flows(t) for t in node.inputs))
        return [node for node in reversed(order) if node in self.between]

    def _flows(self, tensor: Tensor) -> bool:
        """Return True if the gradient of an input contributes to that of an x."""
        return is_continuous(tensor.dtype) and (
            tensor in self.xs or (tensor.node in self.between and tensor not in self.stop)
        )

    def seed(self, ys: Sequence[Tensor], grad_ys: Sequence[Any]) -> None:
        """Add the weights as the gradients of ys."""
        if len(ys) != len(grad_ys):
            raise InvalidArgumentError(f"{len(grad_ys)} weights were given for {len(ys)} tensors")
        for y, weight in zip(ys, grad_ys, strict=True):
            if y.dtype.base in COMPLEX and weight is None:
                raise InvalidArgumentError(f"'{y.name}' is complex: its gradient needs a weight", hint="give grad_ys")
            if is_continuous(y.dtype):  # otherwise its gradient is zero for any weight
                self._add(y, apply_op("OnesLike", y) if weight is None else self._weight(y, weight))

    def _weight(self, y: Tensor, weight: Any) -> Any:
        if getattr(weight, "graph", None) is not self.graph:
            weight = self.graph.constant(weight, gradient_type(y))
        if weight.dtype.base != gradient_type(y) or not _is_valid_weight(weight, y):
            raise InvalidArgumentError(
                f"the weight of '{y.name}' is {weight.dtype}{weight.shape}, but '{y.name}' is {y.dtype}{y.shape}"
            )
        return weight

    def _add(self, tensor: Tensor, grad: Any) -> None:
        self.sums.setdefault(tensor, []).append(grad)

    def gradient_of(self, tensor: Tensor) -> Any:
        """Return the accumulated gradient of a tensor, or None."""
        parts = self.sums.get(tensor)
        if not parts:
            return None
        if len(parts) > 1:
            parts[:] = [apply_op("AddN", parts)]
        return parts[0]

    def run(self) -> None:
        """Differentiate all nodes between xs and ys."""
        for node in self.order:
            grads = [None if t in self.stop else self.gradient_of(t) for t in node.outputs]
            if all(g is None for g in grads):
                continue
            inputs = list(node.inputs)  # differentiation adds inputs to a loop
            try:
                results = self._differentiate(node, grads)
            except OpError as error:
                error.node, error.op = error.node or node.name, error.op or node.op
                raise
            for tensor, grad in zip(inputs, results, strict=True):
                if grad is not None and self._flows(tensor):
                    self._add(tensor, _check_gradient(node, tensor, grad))

    def _differentiate(self, node: Node, grads: list[Any]) -> list[Any]:
        entry, count = self._gradient_entry(node), len(node.inputs)
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
            raise InternalError(
                f"the gradient function of {node.op} returned {len(results)} gradients for {count} inputs"
            )
        return results

    def _gradient_entry(self, node: Node) -> Gradient:
        if node.op in _LOOP_OPS:
            raise UnimplementedError(
                f"node '{node.name}' ({node.op}) is part of a while loop of version 1, which is not differentiated",
                hint="write the loop as a While node with functions",
            )
        if self.registry.find(node.op) is None and node.op in self.graph.library:
            _make_partitioned_call(node)
            return Gradient(GradientRegistry.global_().look_up(node.op).fn)
        return self.registry.look_up(node.op)


def _make_partitioned_call(node: Node) -> None:
    """Turn a node whose op is the name of a function into a call of that function."""
    attrs = {key: value for key, value in node.attrs.items() if node.op_def.find_attr(key)}
    call = {
        "Tin": AttrValue("list(type)", tuple(node.input_types)),
        "Tout": AttrValue("list(type)", tuple(node.output_types)),
        "f": AttrValue("func", NameAttrList(node.op, attrs)),
        "config": AttrValue("string", ""),
        "config_proto": AttrValue("string", ""),
        "executor_type": AttrValue("string", ""),
    }
    node.graph.update_node(node, call, op_name="StatefulPartitionedCall")


def _check_gradient(node: Node, tensor: Tensor, grad: Any) -> Any:
    """Return the gradient of an input, after a check of its type and shape."""
    dtype = tensor.dtype.base
    if dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        return grad
    if grad.dtype.base != dtype or not grad.shape.is_compatible_with(tensor.shape):
        raise InternalError(
            f"the gradient of {node.op} for its input '{tensor.name}' is {grad.dtype}{grad.shape}, "
            f"but the input is {tensor.dtype}{tensor.shape}",
            node=node.name,
            op=node.op,
        )
    return grad


def _is_valid_weight(weight: Tensor, y: Tensor) -> bool:
    """Return True if the shapes match; the shape of a handle is unrelated to that of its variable."""
    return y.dtype.base in (DataType.DT_RESOURCE, DataType.DT_VARIANT) or weight.shape.is_compatible_with(y.shape)
