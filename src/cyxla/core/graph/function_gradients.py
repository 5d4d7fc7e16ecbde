"""Gradients of nodes that call functions: calls, branches and loops.

The intermediate values that a gradient needs become further outputs of the call: the node in the graph then calls an
extended function. Nothing is computed twice, so that functions with random numbers or other side effects have correct
gradients too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.function import FunctionDef, FunctionLibraryDefinition
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.protos.attrs import func_to_proto
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import FunctionBody, graph_to_function, instantiate
from cyxla.core.graph.gradient_values import gradient_type, is_continuous, zeros_like
from cyxla.core.graph.gradients import gradients
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import NotFoundError, UnimplementedError
from cyxla.hashing import blake2b

_VARIANT, _RESOURCE = DataType.DT_VARIANT, DataType.DT_RESOURCE


@dataclass
class Derived:
    """A function body extended by the nodes of its gradient.

    Parameters
    ----------
    body : FunctionBody
        Body with the nodes of the function and its gradient.
    forward : set of Node
        Nodes of the function itself.
    dys : list of Tensor
        Arguments for the gradients of the differentiated results.
    dxs : list of (Tensor or None)
        Gradient of each argument.
    """

    body: FunctionBody
    forward: set[Node]
    dys: list[Tensor]
    dxs: list[Any]

    @property
    def args(self) -> list[Tensor]:
        """The arguments of the function itself."""
        return [node.outputs[0] for node in self.body.args]

    def intermediates(self) -> list[Tensor]:
        """Return the values of the function that its gradient uses, apart from arguments and constants."""
        tensors: dict[Tensor, None] = {}
        for node in self.body.graph.nodes.values():
            if node not in self.forward:
                tensors.update(dict.fromkeys(t for t in node.inputs if self._is_computed(t)))
        tensors.update(dict.fromkeys(t for t in self.dxs if t is not None and self._is_computed(t)))
        return list(tensors)

    def _is_computed(self, tensor: Tensor) -> bool:
        return tensor.node in self.forward and tensor.node.op not in ("Const", "_Arg")


def derive(
    name: NameAttrList,
    library: FunctionLibraryDefinition,
    flows: Sequence[bool],
    hints: Sequence[dict[str, AttrValue]],
) -> Derived:
    """Extend a function body by the gradient of some of its results.

    Parameters
    ----------
    name : NameAttrList
        Function to differentiate.
    library : FunctionLibraryDefinition
        Library that holds the function.
    flows : sequence of bool
        True for each result that is differentiated.
    hints : sequence of dict
        Attributes for the node of each argument, such as its shape.

    Raises
    ------
    NotFoundError
        The function is not in the library.
    """
    function = library.find(name.name)
    if function is None:
        raise NotFoundError(f"function '{name.name}' is not in the library")
    body = instantiate(function, name.attrs, library, hints)
    graph = body.graph
    forward = set(graph.nodes.values())
    ys = [y for y, flow in zip(body.results, flows, strict=True) if flow]
    with graph.as_default():
        dys = [_argument(graph, f"grad_{i}", gradient_type(y), len(body.args) + i, y.shape) for i, y in enumerate(ys)]
    dxs = gradients(ys, [node.outputs[0] for node in body.args], dys) if ys else [None] * len(body.args)
    return Derived(body, forward, dys, dxs)


def _hints(inputs: Sequence[Tensor], *, shapes: bool = True) -> list[dict[str, AttrValue]]:
    """Return attributes for the arguments of a call: shapes, and shapes and types of variables behind handles."""
    hints = []
    for tensor in inputs:
        handle = tensor.node.output_handles[tensor.index] if tensor.node.output_handles else None
        hint = {"_output_shapes": AttrValue("list(shape)", (tensor.shape,))} if shapes else {}
        if handle:
            hint["_handle_shapes"] = AttrValue("list(shape)", tuple(shape for shape, _ in handle))
            hint["_handle_dtypes"] = AttrValue("list(type)", tuple(dtype for _, dtype in handle))
        hints.append(hint)
    return hints


def _argument(graph: Graph, name: str, dtype: DataType, index: int, shape: TensorShape | None = None) -> Tensor:
    shape_attrs: dict[str, Any] = (
        {} if shape is None or dtype == _VARIANT else {"_output_shapes": AttrValue("list(shape)", (shape,))}
    )
    result: Tensor = apply_op("_Arg", T=dtype, index=index, name=name, **shape_attrs)
    return result


def _extended_function(
    derived: Derived, extra: Sequence[Tensor], suffix: str, library: FunctionLibraryDefinition
) -> str:
    """Add a function with further results to the library, and return its name."""
    body = derived.body
    effects = dict.fromkeys([*body.control_rets, *(n for n in derived.forward if n.is_stateful and _has_effect(n))])
    function = graph_to_function(
        library.unique_name(f"{body.function.name}_{suffix}"),
        derived.args,
        [*body.results, *extra],
        control_outputs=sorted(effects, key=lambda node: node.id),
        attr=body.function.attr,
    )
    return _add_function(library, function)


def _has_effect(node: Node) -> bool:
    return node.op not in ("_Arg", "_Retval", "Placeholder")


def _add_function(library: FunctionLibraryDefinition, function: FunctionDef) -> str:
    library.add(function)
    return function.name


def _backward(derived: Derived, inputs: Sequence[Tensor], outputs: Sequence[Tensor], library: Any) -> str:
    name = library.unique_name(f"__backward_{derived.body.function.name}")
    return _add_function(library, graph_to_function(name, inputs, outputs))


def _function_attr(name: str) -> AttrValue:
    return AttrValue("func", NameAttrList(name))


def symbolic_gradient(function: NameAttrList, library: FunctionLibraryDefinition) -> NameAttrList:
    """Return the gradient of a function: a function of its arguments and a gradient for each result.

    It returns a gradient for each argument. It is the function that the library registers as the gradient, or one that
    is derived from the body and added to the library at first use.

    Raises
    ------
    NotFoundError
        The function is not in the library, or an op of the body has no gradient.
    """
    registered = library.gradient_of(function.name)
    if registered:
        return NameAttrList(registered, function.attrs)
    digest = blake2b(func_to_proto(function).SerializeToString(deterministic=True), digest_size=8).hexdigest()
    name = f"{function.name}_symbolic_gradient_{digest}"
    if library.find(name) is None:
        definition = library.find(function.name)
        if definition is None:
            raise NotFoundError(f"Function '{function.name}' is not defined", hint="add it to the library of the graph")
        inputs, dxs = extend_by_gradient(instantiate(definition, function.attrs, library))
        _add_function(library, graph_to_function(name, inputs, dxs))
    return NameAttrList(name)


def extend_by_gradient(body: FunctionBody) -> tuple[list[Tensor], list[Tensor]]:
    """Extend a body by the gradient of all its results.

    Returns
    -------
    inputs, gradients : list of Tensor
        Arguments of the body and a gradient for each result; and the gradient of each argument.
    """
    args = [node.outputs[0] for node in body.args]
    weights = [body.graph.placeholder(t.dtype, t.shape, name="weight") for t in body.results]
    with body.graph.as_default():
        dxs = gradients(body.results, args, weights)
        results = [apply_op("ZerosLike", x) if dx is None else dx for x, dx in zip(args, dxs, strict=True)]
    return [*args, *weights], results


# Calls -------------------------------------------------------------------------------------------------------------
@gradient("PartitionedCall", "StatefulPartitionedCall", none_grads=True)
def call_gradient(op: Node, *grads: Any) -> list[Any]:
    """Return the gradients of a call, computed by one call of the backward function."""
    library = op.graph.library
    callee: NameAttrList = op.attr("f")
    if library.gradient_of(callee.name):
        return _registered_gradient(op, library.gradient_of(callee.name), grads)
    derived = derive(callee, library, [g is not None for g in grads], _hints(op.inputs))
    extra = derived.intermediates()
    count = len(op.outputs)
    outputs = [dx for dx in derived.dxs if dx is not None]
    if not outputs:
        return [None] * len(op.inputs)
    backward = _backward(derived, [*derived.args, *extra, *derived.dys], outputs, library)
    if extra:
        forward = _extended_function(derived, extra, "with_intermediates", library)
        types = [*op.attr("Tout"), *(t.dtype for t in extra)]
        op.graph.update_node(op, {"f": _function_attr(forward), "Tout": AttrValue("list(type)", tuple(types))})
        for tensor, intermediate in zip(op.outputs[count:], extra, strict=True):
            op.output_shapes[tensor.index] = intermediate.shape
    inputs = [*op.inputs, *op.outputs[count:], *(g for g in grads if g is not None)]
    gradients = iter(_add_call(op.op, inputs, outputs, backward))
    return [None if dx is None else next(gradients) for dx in derived.dxs]


def _add_call(op_name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], function: str) -> list[Any]:
    results: list[Any] = apply_op(op_name, list(inputs), Tout=[t.dtype for t in outputs], f=NameAttrList(function))
    return results


def _registered_gradient(op: Node, name: str, grads: Sequence[Any]) -> list[Any]:
    """Call the function that the library registers as the gradient."""
    output_grads = [apply_op("ZerosLike", t) if g is None else g for t, g in zip(op.outputs, grads, strict=True)]
    results: list[Any] = apply_op(
        op.op, [*op.inputs, *output_grads], Tout=[t.dtype for t in op.inputs], f=NameAttrList(name)
    )
    return results


# Branches ----------------------------------------------------------------------------------------------------------
@gradient("If", "StatelessIf", "Case", "StatelessCase", none_grads=True)
def branch_gradient(op: Node, *grads: Any) -> list[Any]:
    """Return the gradients of a conditional: a conditional between the gradients of its branches."""
    library = op.graph.library
    names = op.attr("branches") if op.has_attr("branches") else (op.attr("then_branch"), op.attr("else_branch"))
    has_grad = [g is not None for g in grads]
    branches = [derive(name, library, has_grad, _hints(op.inputs[1:])) for name in names]
    flows = [any(branch.dxs[i] is not None for branch in branches) for i in range(len(op.inputs) - 1)]
    if not any(flows):
        return [None] * len(op.inputs)
    extras = [branch.intermediates() for branch in branches]
    count = len(op.outputs)
    forward = [_padded_branch(branch, extras, i, library) for i, branch in enumerate(branches)]
    backward = [_backward_branch(branch, extras, i, flows, library) for i, branch in enumerate(branches)]
    flat = [t for extra in extras for t in extra]
    if flat:
        types = AttrValue("list(type)", (*op.attr("Tout"), *(t.dtype for t in flat)))
        shapes = op.attr("output_shapes")
        output_shapes = AttrValue("list(shape)", (*shapes, *(t.shape for t in flat)) if shapes else ())
        op.graph.update_node(op, {"Tout": types, "output_shapes": output_shapes, **_branch_attrs(op, forward)})
    inputs = [*op.inputs[1:], *op.outputs[count:], *(g for g in grads if g is not None)]
    types_out = [gradient_type(t) for t, flow in zip(op.inputs[1:], flows, strict=True) if flow]
    results = apply_op(op.op, op.inputs[0], inputs, Tout=types_out, **_branch_attrs(op, backward))
    gradients = iter(results)
    return [None, *(next(gradients) if flow else None for flow in flows)]


def _branch_attrs(op: Node, names: Sequence[str]) -> dict[str, Any]:
    if op.has_attr("branches"):
        return {"branches": AttrValue("list(func)", tuple(map(NameAttrList, names)))}
    return {"then_branch": _function_attr(names[0]), "else_branch": _function_attr(names[1])}


def _padded_branch(
    branch: Derived, extras: Sequence[Sequence[Tensor]], branch_index: int, library: FunctionLibraryDefinition
) -> str:
    """Add a branch that returns the intermediates of all branches: its own, and FakeParams for the others'."""
    with branch.body.graph.as_default():
        outputs = [
            t if i == branch_index else apply_op("FakeParam", dtype=t.dtype, shape=t.shape)
            for i, extra in enumerate(extras)
            for t in extra
        ]
    return _extended_function(branch, outputs, "with_intermediates", library)


def _backward_branch(
    branch: Derived,
    extras: Sequence[Sequence[Tensor]],
    branch_index: int,
    flows: Sequence[bool],
    library: FunctionLibraryDefinition,
) -> str:
    graph = branch.body.graph
    with graph.as_default():
        start = len(branch.args)
        intermediates = [
            t if i == branch_index else _argument(graph, "unused", t.dtype, start, t.shape)
            for i, extra in enumerate(extras)
            for t in extra
        ]
        outputs = [
            zeros_like(x) if dx is None else dx
            for x, dx, flow in zip(branch.args, branch.dxs, flows, strict=True)
            if flow
        ]
    return _backward(branch, [*branch.args, *intermediates, *branch.dys], outputs, library)


# Loops -------------------------------------------------------------------------------------------------------------
@gradient("While", "StatelessWhile", none_grads=True)
def while_gradient(op: Node, *grads: Any) -> list[Any]:
    """Return the gradients of a loop: a reverse loop, which pops the intermediates that the forward loop pushed."""
    return _WhileGradient(op, grads).run()


class _WhileGradient:
    def __init__(self, op: Node, grads: Sequence[Any]) -> None:
        self.op = op
        self.library = op.graph.library
        self.flows = [is_continuous(t.dtype) for t in op.inputs]
        self.grads = [
            (zeros_like(x if x.dtype == _RESOURCE else y) if g is None else g) if flow else None
            for x, y, g, flow in zip(op.inputs, op.outputs, grads, self.flows, strict=True)
        ]
        self.derived = derive(op.attr("body"), self.library, self.flows, _hints(op.inputs, shapes=False))
        self.invariant: dict[Tensor, Tensor] = {}  # the argument of each loop-invariant tensor
        self.saved = self._find_saved()

    def _find_saved(self) -> list[Tensor]:
        """Return the values of each iteration that the reverse loop needs: intermediates, and arguments that vary."""
        read_backward = dict.fromkeys(t for node in self._backward_nodes() for t in node.inputs)
        read_backward.update(dict.fromkeys(dx for dx in self.derived.dxs if dx is not None))
        changing = {x for x, y in zip(self.derived.args, self.derived.body.results, strict=True) if _root(y) is not x}
        tensors = []
        for tensor in [*self.derived.intermediates(), *(x for x in self.derived.args if x in read_backward)]:
            root = _root(tensor)
            if root.node.op == "_Arg" and root not in changing:
                self.invariant[tensor] = root
            elif tensor.dtype == _RESOURCE:
                raise UnimplementedError(
                    f"the gradient of loop '{self.op.name}' would need the handle '{tensor.name}' of each iteration",
                    node=self.op.name,
                    op=self.op.op,
                    hint="create handles outside of the loop",
                )
            else:
                tensors.append(tensor)
        return tensors

    def _backward_nodes(self) -> list[Node]:
        return [n for n in self.derived.body.graph.nodes.values() if n not in self.derived.forward]

    def run(self) -> list[Any]:
        count = len(self.op.inputs)
        self._extend()
        trip_count, stacks = self.op.outputs[count], self.op.outputs[count + 1 :]
        output_grads = [g for g in self.grads if g is not None]
        variables = [trip_count, *output_grads, *stacks, *self.op.inputs[:count]]
        results = apply_op(
            self.op.op,
            variables,
            cond=NameAttrList(self._reverse_cond(variables)),
            body=NameAttrList(self._reverse_body(variables)),
            parallel_iterations=self.op.attr("parallel_iterations"),
        )
        gradients = iter(results[1 : 1 + len(output_grads)])
        return [next(gradients) if flow else None for flow in self.flows]

    def _extend(self) -> None:
        """Extend the loop by a trip count and by a stack for each value that the reverse loop needs."""
        op, graph = self.op, self.op.graph
        extra = [graph.constant(0, DataType.DT_INT32)]
        for tensor in self.saved:
            extra.append(
                apply_op(
                    "EmptyTensorList", _shape_value(tensor.shape), -1, element_dtype=tensor.dtype, shape_type="int32"
                )
            )
        types = AttrValue("list(type)", (*op.attr("T"), *(t.dtype for t in extra)))
        shapes = op.attr("output_shapes")
        output_shapes = AttrValue("list(shape)", (*shapes, *(TensorShape(()) for _ in extra)) if shapes else ())
        attrs: dict[str, AttrValue] = {
            "T": types,
            "output_shapes": output_shapes,
            "body": self._forward_body(),
            "cond": self._forward_cond(extra),
        }
        graph.update_node(op, attrs, [*op.inputs, *extra])

    def _forward_body(self) -> AttrValue:
        derived = self.derived
        graph = derived.body.graph
        with graph.as_default():
            start = len(derived.args)
            trip_count = _argument(graph, "trip_count", DataType.DT_INT32, start, TensorShape(()))
            stacks = [_argument(graph, "stack", _VARIANT, start + 1 + i) for i in range(len(self.saved))]
            pushed = [
                apply_op("TensorListPushBack", stack, tensor, element_dtype=tensor.dtype)
                for stack, tensor in zip(stacks, self.saved, strict=True)
            ]
            outputs = [*derived.body.results, trip_count + 1, *pushed]
        effects = dict.fromkeys([*derived.body.control_rets, *(n for n in derived.forward if n.is_stateful)])
        function = graph_to_function(
            self.library.unique_name(f"{derived.body.function.name}_with_stacks"),
            [*derived.args, trip_count, *stacks],
            outputs,
            control_outputs=[n for n in sorted(effects, key=lambda node: node.id) if _has_effect(n)],
        )
        return _function_attr(_add_function(self.library, function))

    def _forward_cond(self, extra: Sequence[Tensor]) -> AttrValue:
        name: NameAttrList = self.op.attr("cond")
        condition = self.library.find(name.name)
        if condition is None:
            raise NotFoundError(f"function '{name.name}' is not in the library", node=self.op.name, op=self.op.op)
        body = instantiate(condition, name.attrs, self.library)
        with body.graph.as_default():
            extra_args = [_argument(body.graph, "more", t.dtype, len(body.args) + i) for i, t in enumerate(extra)]
        function = graph_to_function(
            self.library.unique_name(f"{condition.name}_with_stacks"),
            [*(node.outputs[0] for node in body.args), *extra_args],
            body.results,
            control_outputs=body.control_rets,
        )
        return _function_attr(_add_function(self.library, function))

    def _reverse_cond(self, variables: Sequence[Tensor]) -> str:
        graph = Graph(self.library.default_registry)
        with graph.as_default():
            args = [_argument(graph, "arg", t.dtype, i) for i, t in enumerate(variables)]
            has_trips = args[0] > 0
        name = self.library.unique_name(f"__backward_cond_{self.op.attr('cond').name}")
        return _add_function(self.library, graph_to_function(name, args, [has_trips]))

    def _reverse_body(self, variables: Sequence[Tensor]) -> str:
        """Add the body of the reverse loop: pop the stacks, and propagate the gradients."""
        derived = self.derived
        graph = derived.body.graph
        with graph.as_default():
            trip_count = _argument(graph, "trips_left", DataType.DT_INT32, 0, TensorShape(()))
            stacks = [_argument(graph, "saved", _VARIANT, 0) for _ in self.saved]
            popped = [
                apply_op("TensorListPopBack", stack, _shape_value(t.shape), element_dtype=t.dtype)
                for stack, t in zip(stacks, self.saved, strict=True)
            ]
            replacements = {**self.invariant, **dict(zip(self.saved, (tensor for _, tensor in popped), strict=True))}
            for node in self._backward_nodes():
                node.inputs = [replacements.get(t, t) for t in node.inputs]
            dxs = [
                (zeros_like(x) if dx is None else replacements.get(dx, dx))
                for x, dx, flow in zip(derived.args, derived.dxs, self.flows, strict=True)
                if flow
            ]
            outputs = [trip_count - 1, *dxs, *(stack for stack, _ in popped), *derived.args]
        inputs = [trip_count, *derived.dys, *stacks, *derived.args]
        name = self.library.unique_name(f"__backward_{derived.body.function.name}")
        return _add_function(self.library, graph_to_function(name, inputs, outputs))


def _root(tensor: Tensor) -> Tensor:
    """Return the source of a tensor behind Identity nodes."""
    while tensor.node.op == "Identity":
        tensor = tensor.node.inputs[0]
    return tensor


def _shape_value(shape: TensorShape) -> Any:
    """Return a shape as an operand of list ops, with -1 for unknown sizes."""
    return -1 if shape.dims is None else np.array([-1 if d is None else d for d in shape.dims], np.int32)
