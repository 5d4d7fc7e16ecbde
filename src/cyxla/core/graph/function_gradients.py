"""Gradients of nodes that call functions.

What a function computes on the way, and its gradient needs, leaves the call through outputs that are added to it: the
node in the graph then calls a function that gives more. Nothing is computed twice, so functions with random numbers
or other effects have right gradients too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.function import FunctionDef, FunctionLibraryDefinition
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import FunctionBody, graph_to_function, instantiate
from cyxla.errors import NotFoundError, UnimplementedError

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph, Node, Tensor

_VARIANT, _RESOURCE = DataType.DT_VARIANT, DataType.DT_RESOURCE


@dataclass
class Derived:
    """A function's body with the nodes of its gradient added.

    Parameters
    ----------
    body : FunctionBody
        The nodes of both.
    forward : set of Node
        The nodes that were there before.
    dys : list of Tensor
        Arguments that bring the gradients of the results that were asked for.
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
        """What the gradient needs of what the function computes; constants are made again instead."""
        found: dict[Tensor, None] = {}
        for node in self.body.graph.nodes.values():
            if node not in self.forward:
                found.update(dict.fromkeys(t for t in node.inputs if self._is_computed(t)))
        found.update(dict.fromkeys(t for t in self.dxs if t is not None and self._is_computed(t)))
        return list(found)

    def _is_computed(self, tensor: Tensor) -> bool:
        return tensor.node in self.forward and tensor.node.op not in ("Const", "_Arg")


def derive(
    name: NameAttrList,
    library: FunctionLibraryDefinition,
    wanted: Sequence[bool],
    hints: Sequence[dict[str, AttrValue]],
) -> Derived:
    """Add to a function's body the gradient of those results that are wanted.

    Parameters
    ----------
    name : NameAttrList
        The function.
    library : FunctionLibraryDefinition
        Where it is.
    wanted : sequence of bool
        Which of its results are differentiated.
    hints : sequence of dict
        What the caller knows of each argument, as remarks for its node.

    Raises
    ------
    NotFoundError
        There is no such function.
    """
    function = library.find(name.name)
    if function is None:
        raise NotFoundError(f"function '{name.name}' is not in the library")
    body = instantiate(function, name.attrs, library, hints)
    graph = body.graph
    forward = set(graph.nodes.values())
    ys = [y for y, want in zip(body.results, wanted, strict=True) if want]
    with graph.as_default():
        dys = [_argument(graph, f"grad_{i}", gradient_type(y), len(body.args) + i, y.shape) for i, y in enumerate(ys)]
    from cyxla.core.graph.gradients import gradients

    dxs = gradients(ys, [node.outputs[0] for node in body.args], dys) if ys else [None] * len(body.args)
    return Derived(body, forward, dys, dxs)


def _hints(inputs: Sequence[Tensor], *, shapes: bool = True) -> list[dict[str, AttrValue]]:
    """What the graph around a call knows of its arguments: their shapes, and what handles stand for."""
    hints = []
    for tensor in inputs:
        handle = tensor.node.output_handles[tensor.index] if tensor.node.output_handles else None
        hint = {"_output_shapes": AttrValue("list(shape)", (tensor.shape,))} if shapes else {}
        if handle:
            hint["_handle_shapes"] = AttrValue("list(shape)", tuple(shape for shape, _ in handle))
            hint["_handle_dtypes"] = AttrValue("list(type)", tuple(dtype for _, dtype in handle))
        hints.append(hint)
    return hints


def gradient_type(tensor: Tensor) -> DataType:
    """Type of a tensor's gradient: that of the variable behind a handle, else its own."""
    if tensor.dtype != _RESOURCE:
        return tensor.dtype.base
    handle = tensor.node.output_handles[tensor.index] if tensor.node.output_handles else None
    return handle[0][1] if handle else DataType.DT_FLOAT


def _argument(graph: Graph, name: str, dtype: DataType, index: int, shape: TensorShape | None = None) -> Tensor:
    known: dict[str, Any] = (
        {} if shape is None or dtype == _VARIANT else {"_output_shapes": AttrValue("list(shape)", (shape,))}
    )
    result: Tensor = apply_op("_Arg", T=dtype, index=index, name=name, **known)
    return result


def _extended(derived: Derived, extra: Sequence[Tensor], suffix: str, library: FunctionLibraryDefinition) -> str:
    """Add to the library a function that gives more results; its name."""
    body = derived.body
    kept = dict.fromkeys([*body.control_rets, *(n for n in derived.forward if n.is_stateful and _has_effect(n))])
    function = graph_to_function(
        library.unique_name(f"{body.function.name}_{suffix}"),
        derived.args,
        [*body.results, *extra],
        control_outputs=sorted(kept, key=lambda node: node.id),
        attr=body.function.attr,
    )
    return _add(library, function)


def _has_effect(node: Node) -> bool:
    return node.op not in ("_Arg", "_Retval", "Placeholder")


def _add(library: FunctionLibraryDefinition, function: FunctionDef) -> str:
    library.add(function)
    return function.name


def _backward(derived: Derived, inputs: Sequence[Tensor], outputs: Sequence[Tensor], library: Any) -> str:
    name = library.unique_name(f"__backward_{derived.body.function.name}")
    return _add(library, graph_to_function(name, inputs, outputs))


def _function(name: str) -> AttrValue:
    return AttrValue("func", NameAttrList(name))


# Calls -------------------------------------------------------------------------------------------------------------
@gradient("PartitionedCall", "StatefulPartitionedCall", none_grads=True)
def call_gradient(op: Node, *grads: Any) -> list[Any]:
    """One call back for one call forth."""
    library = op.graph.library
    called: NameAttrList = op.attr("f")
    if library.gradient_of(called.name):
        return _given_gradient(op, library.gradient_of(called.name), grads)
    derived = derive(called, library, [g is not None for g in grads], _hints(op.inputs))
    extra = derived.intermediates()
    count = len(op.outputs)
    outputs = [dx for dx in derived.dxs if dx is not None]
    if not outputs:
        return [None] * len(op.inputs)
    backward = _backward(derived, [*derived.args, *extra, *derived.dys], outputs, library)
    if extra:
        forward = _extended(derived, extra, "with_intermediates", library)
        types = [*op.attr("Tout"), *(t.dtype for t in extra)]
        op.graph.update_node(op, {"f": _function(forward), "Tout": AttrValue("list(type)", tuple(types))})
        for tensor, inner in zip(op.outputs[count:], extra, strict=True):
            op.output_shapes[tensor.index] = inner.shape
    inputs = [*op.inputs, *op.outputs[count:], *(g for g in grads if g is not None)]
    found = iter(_call(op.op, inputs, outputs, backward))
    return [None if dx is None else next(found) for dx in derived.dxs]


def _call(op_name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], function: str) -> list[Any]:
    results: list[Any] = apply_op(op_name, list(inputs), Tout=[t.dtype for t in outputs], f=NameAttrList(function))
    return results


def _given_gradient(op: Node, name: str, grads: Sequence[Any]) -> list[Any]:
    """Call the function that the library names as the gradient."""
    full = [apply_op("ZerosLike", t) if g is None else g for t, g in zip(op.outputs, grads, strict=True)]
    results: list[Any] = apply_op(op.op, [*op.inputs, *full], Tout=[t.dtype for t in op.inputs], f=NameAttrList(name))
    return results


def direct_call_gradient(op: Node, *grads: Any) -> list[Any]:
    """A node whose op is a function's name becomes a call of that function first."""
    name = op.op
    attrs = {key: value for key, value in op.attrs.items() if op.op_def.find_attr(key)}
    call = {
        "Tin": AttrValue("list(type)", tuple(op.input_types)),
        "Tout": AttrValue("list(type)", tuple(op.output_types)),
        "f": AttrValue("func", NameAttrList(name, attrs)),
        "config": AttrValue("string", ""),
        "config_proto": AttrValue("string", ""),
        "executor_type": AttrValue("string", ""),
    }
    op.graph.update_node(op, call, op_name="StatefulPartitionedCall")
    return call_gradient(op, *grads)


# Branches ----------------------------------------------------------------------------------------------------------
@gradient("If", "StatelessIf", "Case", "StatelessCase", none_grads=True)
def branch_gradient(op: Node, *grads: Any) -> list[Any]:
    """The same choice again, between the branches' gradients."""
    library = op.graph.library
    names = op.attr("branches") if op.has_attr("branches") else (op.attr("then_branch"), op.attr("else_branch"))
    wanted = [g is not None for g in grads]
    branches = [derive(name, library, wanted, _hints(op.inputs[1:])) for name in names]
    flows = [any(branch.dxs[i] is not None for branch in branches) for i in range(len(op.inputs) - 1)]
    if not any(flows):
        return [None] * len(op.inputs)
    extras = [branch.intermediates() for branch in branches]
    count = len(op.outputs)
    forward = [_padded(branch, extras, i, library) for i, branch in enumerate(branches)]
    backward = [_branch_back(branch, extras, i, flows, library) for i, branch in enumerate(branches)]
    flat = [t for extra in extras for t in extra]
    if flat:
        types = AttrValue("list(type)", (*op.attr("Tout"), *(t.dtype for t in flat)))
        shapes = op.attr("output_shapes")
        more = AttrValue("list(shape)", (*shapes, *(t.shape for t in flat)) if shapes else ())
        op.graph.update_node(op, {"Tout": types, "output_shapes": more, **_branch_attrs(op, forward)})
    inputs = [*op.inputs[1:], *op.outputs[count:], *(g for g in grads if g is not None)]
    types_out = [gradient_type(t) for t, flow in zip(op.inputs[1:], flows, strict=True) if flow]
    results = apply_op(op.op, op.inputs[0], inputs, Tout=types_out, **_branch_attrs(op, backward))
    found = iter(results)
    return [None, *(next(found) if flow else None for flow in flows)]


def _branch_attrs(op: Node, names: Sequence[str]) -> dict[str, Any]:
    if op.has_attr("branches"):
        return {"branches": AttrValue("list(func)", tuple(map(NameAttrList, names)))}
    return {"then_branch": _function(names[0]), "else_branch": _function(names[1])}


def _padded(branch: Derived, extras: Sequence[Sequence[Tensor]], mine: int, library: FunctionLibraryDefinition) -> str:
    """A branch that gives every branch's intermediates: its own, and stand-ins for the others'."""
    with branch.body.graph.as_default():
        outputs = [
            t if i == mine else apply_op("FakeParam", dtype=t.dtype, shape=t.shape)
            for i, extra in enumerate(extras)
            for t in extra
        ]
    return _extended(branch, outputs, "with_intermediates", library)


def _branch_back(
    branch: Derived,
    extras: Sequence[Sequence[Tensor]],
    mine: int,
    flows: Sequence[bool],
    library: FunctionLibraryDefinition,
) -> str:
    graph = branch.body.graph
    with graph.as_default():
        start = len(branch.args)
        intermediates = [
            t if i == mine else _argument(graph, "unused", t.dtype, start, t.shape)
            for i, extra in enumerate(extras)
            for t in extra
        ]
        outputs = [
            zeros_like(x) if dx is None else dx
            for x, dx, flow in zip(branch.args, branch.dxs, flows, strict=True)
            if flow
        ]
    return _backward(branch, [*branch.args, *intermediates, *branch.dys], outputs, library)


def zeros_like(x: Tensor) -> Any:
    """Zeros of the shape and type that the gradient of a tensor has."""
    if x.dtype == _RESOURCE:
        return apply_op("Fill", apply_op("VariableShape", x), x.graph.constant(0, gradient_type(x)))
    return apply_op("ZerosLike", x)


# Loops -------------------------------------------------------------------------------------------------------------
@gradient("While", "StatelessWhile", none_grads=True)
def while_gradient(op: Node, *grads: Any) -> list[Any]:
    """The loop backward: what each turn computed is kept on lists going forth and taken off them going back."""
    return _WhileGradient(op, grads).run()


class _WhileGradient:
    def __init__(self, op: Node, grads: Sequence[Any]) -> None:
        from cyxla.core.graph.gradients import is_continuous

        self.op = op
        self.library = op.graph.library
        self.flows = [is_continuous(t.dtype) for t in op.inputs]
        self.grads = [
            (zeros_like(x if x.dtype == _RESOURCE else y) if g is None else g) if flow else None
            for x, y, g, flow in zip(op.inputs, op.outputs, grads, self.flows, strict=True)
        ]
        self.derived = derive(op.attr("body"), self.library, self.flows, _hints(op.inputs, shapes=False))
        self.invariant: dict[Tensor, Tensor] = {}  # what is the same in each turn: the argument that it is
        self.kept = self._kept()

    def _kept(self) -> list[Tensor]:
        """What the way back needs of each turn: intermediates, and the arguments that change."""
        used = dict.fromkeys(t for node in self._backward_nodes() for t in node.inputs)
        used.update(dict.fromkeys(dx for dx in self.derived.dxs if dx is not None))
        changing = {x for x, y in zip(self.derived.args, self.derived.body.results, strict=True) if _root(y) is not x}
        kept = []
        for tensor in [*self.derived.intermediates(), *(x for x in self.derived.args if x in used)]:
            root = _root(tensor)
            if root.node.op == "_Arg" and root not in changing:
                self.invariant[tensor] = root
            elif tensor.dtype == _RESOURCE:
                raise UnimplementedError(
                    f"the gradient of loop '{self.op.name}' would need to keep the handle '{tensor.name}' of each turn",
                    node=self.op.name,
                    op=self.op.op,
                    hint="make handles outside of the loop",
                )
            else:
                kept.append(tensor)
        return kept

    def _backward_nodes(self) -> list[Node]:
        return [n for n in self.derived.body.graph.nodes.values() if n not in self.derived.forward]

    def run(self) -> list[Any]:
        count = len(self.op.inputs)
        self._extend()
        turns, stacks = self.op.outputs[count], self.op.outputs[count + 1 :]
        going = [g for g in self.grads if g is not None]
        variables = [turns, *going, *stacks, *self.op.inputs[:count]]
        results = apply_op(
            self.op.op,
            variables,
            cond=NameAttrList(self._cond_back(variables)),
            body=NameAttrList(self._body_back(variables)),
            parallel_iterations=self.op.attr("parallel_iterations"),
        )
        found = iter(results[1 : 1 + len(going)])
        return [next(found) if flow else None for flow in self.flows]

    def _extend(self) -> None:
        """Let the loop count its turns and keep what the way back needs."""
        op, graph = self.op, self.op.graph
        extra = [graph.constant(0, DataType.DT_INT32)]
        for tensor in self.kept:
            extra.append(
                apply_op(
                    "EmptyTensorList", _shape_value(tensor.shape), -1, element_dtype=tensor.dtype, shape_type="int32"
                )
            )
        types = AttrValue("list(type)", (*op.attr("T"), *(t.dtype for t in extra)))
        shapes = op.attr("output_shapes")
        more = AttrValue("list(shape)", (*shapes, *(TensorShape(()) for _ in extra)) if shapes else ())
        attrs: dict[str, AttrValue] = {
            "T": types,
            "output_shapes": more,
            "body": self._body_forth(),
            "cond": self._cond_forth(extra),
        }
        graph.update_node(op, attrs, [*op.inputs, *extra])

    def _body_forth(self) -> AttrValue:
        derived = self.derived
        graph = derived.body.graph
        with graph.as_default():
            start = len(derived.args)
            turns = _argument(graph, "turns", DataType.DT_INT32, start, TensorShape(()))
            stacks = [_argument(graph, "stack", _VARIANT, start + 1 + i) for i in range(len(self.kept))]
            pushed = [
                apply_op("TensorListPushBack", stack, tensor, element_dtype=tensor.dtype)
                for stack, tensor in zip(stacks, self.kept, strict=True)
            ]
            outputs = [*derived.body.results, turns + 1, *pushed]
        kept = dict.fromkeys([*derived.body.control_rets, *(n for n in derived.forward if n.is_stateful)])
        function = graph_to_function(
            self.library.unique_name(f"{derived.body.function.name}_with_stacks"),
            [*derived.args, turns, *stacks],
            outputs,
            control_outputs=[n for n in sorted(kept, key=lambda node: node.id) if _has_effect(n)],
        )
        return _function(_add(self.library, function))

    def _cond_forth(self, extra: Sequence[Tensor]) -> AttrValue:
        name: NameAttrList = self.op.attr("cond")
        condition = self.library.find(name.name)
        if condition is None:
            raise NotFoundError(f"function '{name.name}' is not in the library", node=self.op.name, op=self.op.op)
        body = instantiate(condition, name.attrs, self.library)
        with body.graph.as_default():
            more = [_argument(body.graph, "more", t.dtype, len(body.args) + i) for i, t in enumerate(extra)]
        function = graph_to_function(
            self.library.unique_name(f"{condition.name}_with_stacks"),
            [*(node.outputs[0] for node in body.args), *more],
            body.results,
            control_outputs=body.control_rets,
        )
        return _function(_add(self.library, function))

    def _cond_back(self, variables: Sequence[Tensor]) -> str:
        from cyxla.core.graph.graph import Graph

        graph = Graph(self.library.default_registry)
        with graph.as_default():
            args = [_argument(graph, "arg", t.dtype, i) for i, t in enumerate(variables)]
            more = args[0] > 0
        name = self.library.unique_name(f"__backward_cond_{self.op.attr('cond').name}")
        return _add(self.library, graph_to_function(name, args, [more]))

    def _body_back(self, variables: Sequence[Tensor]) -> str:
        """One turn back: take what is kept off the stacks, and pass the gradients on."""
        derived = self.derived
        graph = derived.body.graph
        with graph.as_default():
            turns = _argument(graph, "turns_left", DataType.DT_INT32, 0, TensorShape(()))
            stacks = [_argument(graph, "kept", _VARIANT, 0) for _ in self.kept]
            popped = [
                apply_op("TensorListPopBack", stack, _shape_value(t.shape), element_dtype=t.dtype)
                for stack, t in zip(stacks, self.kept, strict=True)
            ]
            taken = {**self.invariant, **dict(zip(self.kept, (tensor for _, tensor in popped), strict=True))}
            for node in self._backward_nodes():
                node.inputs = [taken.get(t, t) for t in node.inputs]
            dxs = [
                (zeros_like(x) if dx is None else taken.get(dx, dx))
                for x, dx, flow in zip(derived.args, derived.dxs, self.flows, strict=True)
                if flow
            ]
            outputs = [turns - 1, *dxs, *(stack for stack, _ in popped), *derived.args]
        inputs = [turns, *derived.dys, *stacks, *derived.args]
        name = self.library.unique_name(f"__backward_{derived.body.function.name}")
        return _add(self.library, graph_to_function(name, inputs, outputs))


def _root(tensor: Tensor) -> Tensor:
    """What a tensor is when Identity nodes are looked through."""
    while tensor.node.op == "Identity":
        tensor = tensor.node.inputs[0]
    return tensor


def _shape_value(shape: TensorShape) -> Any:
    """A shape as the list ops take it: -1 for what is not known."""
    return -1 if shape.dims is None else np.array([-1 if d is None else d for d in shape.dims], np.int32)
