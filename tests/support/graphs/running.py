"""Ops and kernels that a test adds to the global ones, and graphs with branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework import KernelRegistry, OpRegistry, kernel, op
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.kernel_registry import KernelRegistration
from cyxla.core.graph.graph import Graph, Tensor
from cyxla.core.runtime.session import Session
from cyxla.errors import NotFoundError


class _Ops(OpRegistry):
    """A registry that looks unknown names up in the global one."""

    def look_up(self, name: str) -> Any:
        try:
            return super().look_up(name)
        except NotFoundError:
            return OpRegistry.global_().look_up(name)


class _Kernels(KernelRegistry):
    """A registry that looks missing kernels up in the global one."""

    def find_kernel_registration(
        self, device_type: str, op: str, attrs: Mapping[str, AttrValue], where: str = ""
    ) -> tuple[KernelRegistration | None, bool]:
        found = super().find_kernel_registration(device_type, op, attrs, where)
        if found[0] is not None or found[1]:
            return found
        return KernelRegistry.global_().find_kernel_registration(device_type, op, attrs, where)


class Extension:
    """Ops and kernels that a test adds to the global ones."""

    def __init__(self) -> None:
        self.ops, self.kernels = _Ops(), _Kernels()

    def op(self, name: str, signature: str, *attrs: str, shape: Any = None, **flags: Any) -> None:
        """Declare an op."""
        op(name, signature, *attrs, shape=shape, registry=self.ops, **flags)

    def kernel(self, name: str, **facts: Any) -> Callable[[Any], Any]:
        """Register a function of the context, or a class, as a kernel."""
        return kernel(name, registry=self.kernels, **facts)

    def probe(
        self, name: str, function: Callable[[Any], object], signature: str = "x: T -> y: T", **flags: Any
    ) -> None:
        """Declare an op of one input and one output with a function of the context as its kernel."""
        self.op(name, signature, *(["T: type"] if "T" in signature else []), **flags)
        self.kernel(name)(function)

    def graph(self) -> Graph:
        """Return a graph with these ops."""
        return Graph(self.ops)

    def session(self, graph: Graph, **options: Any) -> Session:
        """Return a session with these kernels."""
        return Session(graph, kernels=self.kernels, **options)


Body = Callable[..., Any]


def cond(pred: Tensor, then: Body, otherwise: Body, values: Sequence[Tensor]) -> list[Tensor]:
    """Add a conditional of Switch and Merge nodes; both branches take and return the same number of values."""
    switched = [apply_op("Switch", value, pred) for value in values]
    with_then = then(*(on for _, on in switched))
    with_else = otherwise(*(off for off, _ in switched))
    return [apply_op("Merge", [a, b])[0] for a, b in zip(with_else, with_then, strict=True)]


def while_loop(
    graph: Graph,
    goes_on: Body,
    body: Body,
    values: Sequence[Tensor],
    *,
    name: str = "loop",
    invariants: Sequence[Tensor] = (),
    parallel_iterations: int = 10,
) -> list[Tensor]:
    """Add a loop of control-flow nodes; condition and body take the values, then the invariants."""
    frame = graph.unique_name(name)
    facts = {"frame_name": frame, "parallel_iterations": parallel_iterations}
    enters = [apply_op("Enter", value, **facts) for value in values]
    fixed = [apply_op("Enter", value, is_constant=True, **facts) for value in invariants]
    merges = [apply_op("Merge", [enter, enter]) for enter in enters]
    merged = [m[0] for m in merges]
    goes = apply_op("LoopCond", goes_on(*merged, *fixed))
    switched = [apply_op("Switch", m, goes) for m in merged]
    results = body(*(apply_op("Identity", on) for _, on in switched), *fixed)
    for m, result in zip(merged, results, strict=True):
        m.node.inputs[1] = apply_op("NextIteration", result)
    return [apply_op("Exit", off) for off, _ in switched]


def constant_like(anchor: Tensor, value: Any) -> Tensor:
    """Add a constant in the frame and branch of another tensor."""
    if anchor.node.op == "Switch":  # a Switch runs in both branches
        anchor = apply_op("Identity", anchor)
    with anchor.graph.control_dependencies([anchor]):
        return apply_op("Const", value=np.asarray(value, anchor.dtype.numpy), dtype=anchor.dtype)
