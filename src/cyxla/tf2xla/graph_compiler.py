"""Traversal of a graph in a stable order, in which the kernel of each node emits its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cyxla import config
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.environment.file_access import FileAccess
from cyxla.core.framework.kernel_registry import KernelRegistry, create_op_kernel
from cyxla.core.framework.node_properties import resolve
from cyxla.core.framework.op_kernel import OpKernelConstruction
from cyxla.core.framework.types import HANDLES
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node
from cyxla.errors import InternalError, OpError
from cyxla.tf2xla.bounded_kernels import compile_padded
from cyxla.tf2xla.functions import call_function
from cyxla.tf2xla.xla_context import XlaContext
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel, XlaOpKernelContext

if TYPE_CHECKING:
    from cyxla.tf2xla.xla_compiler import XlaCompiler

UNCOMPILABLE_OPS = frozenset(
    {
        "_Send", "_Recv", "_HostSend", "_HostRecv", "Switch", "Merge", "Enter", "Exit", "NextIteration", "RefSwitch",
        "RefMerge", "RefEnter", "RefExit",
    }
)  # fmt: skip
_NO_FILES = FileAccess(is_limited=True, reason="compilation accesses no files")
_MAX_FOLDED_ELEMENTS = 1 << 16  # maximum number of elements of a folded constant


class GraphCompiler:
    """Compiles one graph into the builder of a context.

    Parameters
    ----------
    compiler : XlaCompiler
    context : XlaContext
    graph : Graph
        Graph without frames; its ``_Arg`` and ``_Retval`` nodes are those of the context.
    """

    def __init__(self, compiler: XlaCompiler, context: XlaContext, graph: Graph) -> None:
        self.compiler, self.context, self.graph = compiler, context, graph
        self._checks: bool = config.get("VERIFY")

    def compile(self) -> None:
        """Emit all nodes.

        Raises
        ------
        OpError
            A kernel failed, in which case the node's name is added, or a node cannot be compiled (code INTERNAL).
        """
        values: dict[Node, list[XlaExpression | None]] = {}
        for node in topological_order(self.graph):
            inputs = [values[t.node][t.index] for t in node.inputs]
            missing_names = [t.name for t, value in zip(node.inputs, inputs, strict=True) if value is None]
            if missing_names:
                raise InternalError(
                    f"node {node.name!r} reads {missing_names[0]}, which was not set", node=node.name, op=node.op
                )
            try:
                with self.context.builder.metadata(op_type=node.op, op_name=node.name):
                    values[node] = self._node(node, [x for x in inputs if x is not None])
            except OpError as error:
                error.node, error.op = error.node or node.name, error.op or node.op
                error.where = error.where or f"node '{node.name}' ({node.op})"
                raise

    def _node(self, node: Node, inputs: list[XlaExpression]) -> list[XlaExpression | None]:
        if node.op in UNCOMPILABLE_OPS:
            raise InternalError(f"{node.op} cannot be inside of compiled code")
        if self.graph.library.find(node.op) is not None:
            outputs: list[XlaExpression | None] = [
                *call_function(self.context, NameAttrList(node.op, node.attrs), inputs)
            ]
            return outputs
        folded = self._fold(node, inputs)
        return self._emit(node, inputs) if folded is None else [*folded]

    def _emit(self, node: Node, inputs: list[XlaExpression]) -> list[XlaExpression | None]:
        ctx = XlaOpKernelContext(self.compiler.kernel(node), inputs, self.context)
        if not compile_padded(ctx):
            ctx.kernel.compile(ctx)
        if self.context.builder.first_error is not None:
            raise self.context.builder.first_error
        if self._checks:
            check_shapes(node, ctx.outputs)
        return ctx.outputs

    def _fold(self, node: Node, inputs: Sequence[XlaExpression]) -> list[XlaExpression] | None:
        """Evaluate a node by its eager kernel if all inputs are constants."""
        if not inputs or node.is_stateful or not all(x.is_constant for x in inputs):
            return None
        if sum(x.value.size for x in inputs) > _MAX_FOLDED_ELEMENTS or any(t in HANDLES for t in node.output_types):
            return None
        function = self.compiler.eager_function(node)
        if function is None or not _is_small(node):
            return None
        values = function(*(x.value for x in inputs))
        results = [values] if len(node.output_types) == 1 else list(values)
        return [
            XlaExpression.constant(np.asarray(r, t.numpy), t) for r, t in zip(results, node.output_types, strict=True)
        ]


def _is_small(node: Node) -> bool:
    counts = [shape.num_elements for shape in node.output_shapes]
    return all(n is None or n <= _MAX_FOLDED_ELEMENTS for n in counts)


def check_shapes(node: Node, outputs: Sequence[XlaExpression | None]) -> None:
    """Check the shapes emitted by a kernel against the op's shape function.

    Raises
    ------
    InternalError
        The kernel and the shape function contradict each other.
    """
    for i, (value, declared) in enumerate(zip(outputs, node.output_shapes, strict=True)):
        is_array = value is not None and value.kind in (ExpressionKind.CONSTANT, ExpressionKind.XLA_OP)
        if value is not None and is_array and not value.tensor_shape.is_compatible_with(declared):
            raise InternalError(
                f"output {i} of {node.op} was compiled as {value.tensor_shape}; its shape function infers {declared}",
                hint="mend the XLA kernel or the shape function, whichever is wrong",
            )


def kernel_on(node: Node, device: DeviceBase, kernels: KernelRegistry) -> XlaOpKernel:
    """Create the XLA kernel of a node.

    Raises
    ------
    NotFoundError
        No kernel is registered for its types on the compilation device.
    InternalError
        The registered kernel is not an XLA kernel.
    """
    kernel = create_op_kernel(
        device,
        node.node_def,
        ops=node.graph.library,
        kernels=kernels,
        graph_def_version=node.graph.versions.producer,
        file_access=_NO_FILES,
    )
    if not isinstance(kernel, XlaOpKernel):
        raise InternalError(f"the kernel of {node.op} on {device.device_type} is not an XlaOpKernel")
    return kernel


def eager_function(node: Node, kernels: KernelRegistry) -> object | None:
    """Return the array function of a node's eager CPU kernel, or None if it has none."""
    node_def = node.node_def
    try:
        registration = kernels.find("CPU", node_def)
        props = resolve(node_def, node.op_def)
        kernel = registration.factory(OpKernelConstruction(DeviceBase(), props, file_access=_NO_FILES))
    except OpError:
        return None
    return getattr(kernel, "array_fn", None)
