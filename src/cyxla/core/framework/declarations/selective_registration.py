"""Registering only the ops that somebody needs.

The choice is a property of a registry and must be made before its first query; ops declared with ``system=True`` are
there under any choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cyxla.core.framework.declarations.op import OpRegistry


def select_ops(names: Iterable[str] | None, registry: OpRegistry | None = None) -> None:
    """Let only ops of these names (and system ops) into a registry, the process's own by default; None lets all in.

    Raises
    ------
    FailedPreconditionError
        The registry has been asked already.
    """
    (OpRegistry.global_() if registry is None else registry).select(names)


def should_register_op(name: str, registry: OpRegistry | None = None) -> bool:
    """Whether the choice lets an op in."""
    return (OpRegistry.global_() if registry is None else registry).selects(name)


def should_register_op_kernel(op_name: str, registry: OpRegistry | None = None) -> bool:
    """Whether kernels of an op have a use: it is chosen, or a system op that is there anyway."""
    registry = OpRegistry.global_() if registry is None else registry
    return registry.selects(op_name) or op_name in registry


def required_ops(graph_def: Any) -> list[str]:
    """The names of the ops that a ``GraphDef`` message needs, functions in its library looked into.

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
