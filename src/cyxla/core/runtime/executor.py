"""The executor of graphs without loops and branches: a list of calls that run in order.

The order, the slot of each value and its last use are computed once. A kernel that is a pure function of arrays is
called directly; only other kernels get an `OpKernelContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.step.context import StepContext
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.invoke import Array, KernelCall, annotate, as_output, required_outputs
from cyxla.core.runtime.schedule import topological_order
from cyxla.errors import InvalidArgumentError

_CONTROL_FLOW = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration")
) | {"_XlaMerge", "ControlTrigger"}
_SINKS = frozenset({"_Retval", "_DeviceRetval"})

_UNARY, _BINARY, _GENERAL = range(3)
_Step = tuple[int, Callable[..., Any], Any, int, Any, Any, tuple[int, ...], Node]


def is_control_flow(node: Node) -> bool:
    """Return True if a node is part of a branch or loop of single nodes."""
    return node.op in _CONTROL_FLOW


def is_flat(graph: Graph, kernels: Mapping[Node, Any]) -> bool:
    """Return True if a graph has no branches, loops or asynchronous kernels."""
    return not any(node.op in _CONTROL_FLOW for node in graph.nodes.values()) and not any(
        kernel.is_async for kernel in kernels.values()
    )


class FlatExecutor:
    """Executor of a graph without loops and branches, on the calling thread.

    Parameters
    ----------
    graph : Graph
        Graph with ``_Arg`` and ``_Retval`` nodes for its arguments and results.
    kernels : dict of Node to OpKernel
        Kernels of all other nodes.

    Raises
    ------
    InvalidArgumentError
        The graph has a cycle.
    """

    def __init__(self, graph: Graph, kernels: Mapping[Node, Any]) -> None:
        order = topological_order(graph.nodes.values())
        slots: dict[tuple[Node, int], int] = {}
        for node in order:
            for k in range(len(node.outputs)):
                slots[node, k] = len(slots)
        self._template: list[Any] = [None] * len(slots)
        self._args: list[tuple[int, int]] = []
        self._results: dict[int, int] = {}
        result_slots: set[int] = set()
        computed: list[Node] = []
        for node in order:
            if node.op in ("_Arg", "_DeviceArg"):
                self._args.append((slots[node, 0], node.attr("index")))
            elif node.op in _SINKS:
                slot = slots[node.inputs[0].node, node.inputs[0].index]
                self._results[node.attr("index")] = slot
                result_slots.add(slot)
            elif kernels[node].const_tensor is not None:
                self._template[slots[node, 0]] = kernels[node].const_tensor
                result_slots.add(slots[node, 0])
            else:
                computed.append(node)
        freed_after = _last_uses(computed, slots, result_slots)
        required = required_outputs(order)
        self._calls = [
            (
                KernelCall(
                    node,
                    kernels[node],
                    [slots[t.node, t.index] in freed for t in node.inputs],
                    required.get(node, ()),
                ),
                [slots[t.node, t.index] for t in node.inputs],
                [slots[node, k] for k in range(len(node.outputs))],
                freed,
            )
            for node, freed in zip(computed, freed_after, strict=True)
        ]
        self._steps = [_quick_step(*entry) for entry in self._calls]

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """Run the graph, and return the values of the ``_Retval`` nodes in order."""
        values = self._template.copy()
        for slot, index in self._args:
            if index >= len(args):
                raise InvalidArgumentError(f"argument {index} is missing: but {len(args)} were given")
            values[slot] = args[index]
        with np.errstate(all="ignore"):
            if step.stats_collector is None:
                self._run_steps(step, values)
            else:
                self._run_timed(step, values)
        return [values[self._results[k]] for k in sorted(self._results)]

    def _run_steps(self, step: StepContext, values: list[Any]) -> None:
        array = np.ndarray
        manager = step.cancellation_manager
        limited = step.deadline is not None
        node: Node | None = None
        try:
            for kind, fn, first, second, out, dtype, drop, node in self._steps:  # noqa: B007 (used by the handler)
                if limited or manager.is_cancelled:
                    step.check_running()
                if kind == _GENERAL:
                    result = results = value = None  # drop references, which would prevent reuse by the last user
                    results = fn(step, [values[k] for k in first])
                    for k, value in zip(out, results, strict=True):
                        values[k] = value
                else:
                    result = fn(values[first]) if kind == _UNARY else fn(values[first], values[second])
                    if result.__class__ is not array or result.dtype is not dtype:
                        result = as_output(result, dtype)
                    values[out] = result
                for k in drop:
                    values[k] = None
        except Exception as error:
            raise annotate(error, node) from None

    def _run_timed(self, step: StepContext, values: list[Any]) -> None:
        """Run every node by its `KernelCall`, which reports to the collector of statistics."""
        node: Node | None = None
        try:
            for call, inputs, outputs, drop in self._calls:
                node = call.node
                step.check_running()
                for k, value in zip(outputs, call(step, [values[i] for i in inputs]), strict=True):
                    values[k] = value
                for k in drop:
                    values[k] = None
        except Exception as error:
            raise annotate(error, node) from None


def _quick_step(call: KernelCall, inputs: list[int], outputs: list[int], drop: tuple[int, ...]) -> _Step:
    """Return a step that calls the array function directly if the node has one or two inputs and one output."""
    fn = call.kernel.array_fn
    if fn is None or call.derefs or len(outputs) != 1 or len(inputs) not in (1, 2):
        return (_GENERAL, call, inputs, 0, outputs, None, drop, call.node)
    kind = _BINARY if len(inputs) == 2 else _UNARY
    return (kind, fn, inputs[0], inputs[-1], outputs[0], call.kernel.output_dtypes[0], drop, call.node)


def _last_uses(
    computed: Sequence[Node], slots: Mapping[tuple[Node, int], int], result_slots: set[int]
) -> list[tuple[int, ...]]:
    """Return the slots that are dead after each node: inputs that it reads last, and outputs without readers."""
    live = set(result_slots)
    freed_after: list[tuple[int, ...]] = []
    for node in reversed(computed):
        output_slots = [slots[node, k] for k in range(len(node.outputs))]
        node_slots = [slots[t.node, t.index] for t in node.inputs] + output_slots
        freed = tuple(slot for slot in dict.fromkeys(node_slots) if slot not in live)
        live.update(node_slots)
        freed_after.append(freed)
    return freed_after[::-1]
