"""Selective registration: restriction of a registry to the required ops.

The selection is a property of a registry and must be made before its first query; ops declared with ``system=True`` are
always registered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cyxla.core.framework.declarations.op import OpRegistry


def select_ops(names: Iterable[str] | None, registry: OpRegistry | None = None) -> None:
    """Restrict a registry, by default the global one, to ops of these names and system ops; None lifts it.

    Raises
    ------
    FailedPreconditionError
        The registry has been queried already.
    """
    (OpRegistry.global_() if registry is None else registry).select(names)


def should_register_op(name: str, registry: OpRegistry | None = None) -> bool:
    """Return True if the selection includes an op."""
    return (OpRegistry.global_() if registry is None else registry).selects(name)


def should_register_op_kernel(op_name: str, registry: OpRegistry | None = None) -> bool:
    """Return True if kernels of an op are needed: it is selected, or a registered system op."""
    registry = OpRegistry.global_() if registry is None else registry
    return registry.selects(op_name) or op_name in registry


def required_ops(graph_def: Any) -> list[str]:
    """Return the names of the ops that a ``GraphDef`` message requires, including those in its functions.

    Examples
    --------
    >>> from cyxla.core.framework.protos.messages import parse_text
    >>> required_ops(parse_text("GraphDef", 'node { name: "a" op: "NoOp" } node { name: "b" op: "Const" }'))
    ['Const', 'NoOp']
    """
    functions = {function.signature.name: function for function in graph_def.library.function}
    names = {node.op for node in graph_def.node}
    for function in functions.values():
        names |= {node.op for node in function.node_def}
    return sorted(names - functions.keys())
