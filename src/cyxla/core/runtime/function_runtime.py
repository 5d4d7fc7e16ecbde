"""Function runtime: instantiates functions of a library, once for each set of attributes, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.rendezvous import Rendezvous
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import FunctionBody, instantiate
from cyxla.core.graph.function_gradients import extend_by_gradient
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.step_stats import FunctionGraphs
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import InvalidArgumentError, NotFoundError
from cyxla.forking import new_lock

if TYPE_CHECKING:
    from cyxla.core.runtime.engine import Engine, Runner

_ARGS_AND_RETVALS = frozenset({"_Arg", "_Retval"})


class FunctionHandle:
    """An instantiated function that is ready to run.

    Attributes
    ----------
    name : str
        Name of the function.
    arg_types, ret_types : list of DataType
        Types of arguments and results; lists are flattened.
    runner : Runner
        Runner of the body.
    """

    def __init__(self, name: str, args: Sequence[Tensor], rets: Sequence[Tensor], runner: Runner) -> None:
        self.name, self.runner = name, runner
        self.arg_types: list[DataType] = [t.dtype for t in args]
        self.ret_types: list[DataType] = [t.dtype.base for t in rets]


class FunctionRuntime:
    """The functions of one library on one engine.

    Parameters
    ----------
    engine : Engine
        Engine that places the bodies and creates their kernels.
    library : FunctionLibraryDefinition
        Library of the functions.
    """

    def __init__(self, engine: Engine, library: FunctionLibraryDefinition) -> None:
        self.engine, self.library = engine, library
        self._handles: dict[Any, FunctionHandle] = {}
        self._lock = new_lock()

    def instantiate(self, function: NameAttrList, executor_type: str = "") -> FunctionHandle:
        """Return the cached handle of a function, which the executor of a name runs.

        Raises
        ------
        NotFoundError
            The function is not in the library.
        InvalidArgumentError
            An attribute is missing, or the body is malformed.
        """
        return self._cached_handle(function, partial(self._make_function, executor_type), f"runs on {executor_type}")

    def instantiate_gradient(self, function: NameAttrList) -> FunctionHandle:
        """Return the cached handle of a function's gradient.

        Its arguments are those of the function and a gradient for each result; its results are the gradients of the
        arguments. The gradient that the library registers for the function is used, or else one derived from the body.

        Raises
        ------
        NotFoundError
            The function is not in the library, or an op of the body has no gradient.
        """
        gradient_name = self.library.gradient_of(function.name)
        if gradient_name:
            return self.instantiate(NameAttrList(gradient_name, function.attrs))
        return self._cached_handle(function, self._make_gradient, "gradient")

    def _cached_handle(
        self, function: NameAttrList, make: Callable[[NameAttrList], FunctionHandle], kind: str = ""
    ) -> FunctionHandle:
        key = (kind, function.name, frozenset(function.attrs.items()))
        handle = self._handles.get(key)
        if handle is None:
            with self._lock:
                handle = self._handles.get(key) or make(function)
                self._handles[key] = handle
        return handle

    def _instantiate_body(self, function: NameAttrList) -> FunctionBody:
        definition = self.library.find(function.name)
        if definition is None:
            raise NotFoundError(f"Function '{function.name}' is not defined", hint="add it to the library of the graph")
        return instantiate(definition, function.attrs, self.library)

    def _make_function(self, executor_type: str, function: NameAttrList) -> FunctionHandle:
        body = self._instantiate_body(function)
        args = [node.outputs[0] for node in body.args]
        effects = [node for node in body.graph.nodes.values() if node.is_stateful and node.op not in _ARGS_AND_RETVALS]
        return self._prepare_handle(
            function.name, body.graph, args, body.results, [*body.control_rets, *effects], executor_type
        )

    def _make_gradient(self, function: NameAttrList) -> FunctionHandle:
        body = self._instantiate_body(function)
        inputs, results = extend_by_gradient(body)
        return self._prepare_handle(f"gradient of {function.name}", body.graph, inputs, results, [])

    def _prepare_handle(
        self,
        name: str,
        graph: Graph,
        args: Sequence[Tensor],
        rets: Sequence[Tensor],
        targets: Sequence[Node],
        executor_type: str = "",
    ) -> FunctionHandle:
        """Prepare the part of a graph that computes the results and targets."""
        needed = self.engine.place(executable_graph(graph, args, rets, targets))
        return FunctionHandle(
            name, args, rets, self.engine.prepare(needed, keep_kernels=False, executor_type=executor_type)
        )

    def run(self, handle: FunctionHandle, args: Sequence[Any], step: StepContext) -> list[Any]:
        """Run a function on this thread, as part of a step.

        Raises
        ------
        InvalidArgumentError
            The number or types of the arguments do not match the function.
        """
        if len(args) != len(handle.arg_types):
            raise InvalidArgumentError(
                f"function '{handle.name}' takes {len(handle.arg_types)} arguments, but {len(args)} were given"
            )
        for k, (arg, dtype) in enumerate(zip(args, handle.arg_types, strict=True)):
            if isinstance(arg, np.ndarray) and arg.dtype != dtype.numpy:
                raise InvalidArgumentError(
                    f"argument {k} of function '{handle.name}' is {dtype}, but a value of {arg.dtype} was given"
                )
        if step.graph_collector is not None:
            _collect_graphs(step.graph_collector, handle)
        if len(handle.runner.parts) > 1:
            step = _with_rendezvous(step)
        return handle.runner.run(step, args)


def _collect_graphs(collector: list[Any], handle: FunctionHandle) -> None:
    if all(graphs.partition_graphs is not handle.runner.parts for graphs in collector):
        collector.append(FunctionGraphs(handle.name, handle.runner.parts))


def _with_rendezvous(step: StepContext) -> StepContext:
    """Return the step with a rendezvous of its own, so that concurrent calls do not receive each other's values."""
    # Created lazily: force it here, so that both steps share them
    _ = step.step_container, step.cancellation_manager, step.collective_executor
    _ = step.tensor_store, step.deferred_ops
    inner = copy(step)
    inner.rendezvous = Rendezvous()
    return inner


class FunctionCallKernel(OpKernel):
    """Kernel of a node whose op is the name of a function."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = {name: value for name, value in construction.props.node_def.attr.items() if not name.startswith("_")}
        self.function = NameAttrList(self.type_string, attrs)

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function with the node's attributes."""
        args = [ctx.input(k) for k in range(ctx.num_inputs)]
        for k, value in enumerate(ctx.call_function(ctx.instantiate(self.function), args)):
            ctx.set_output(k, value)


def is_function_call(node: Node) -> bool:
    """Return True if a node's op is a function of its graph's library."""
    return node.graph.library.find(node.op) is not None
