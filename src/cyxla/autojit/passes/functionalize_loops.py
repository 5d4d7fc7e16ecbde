"""Functionalizes loops of frames into While nodes if all loops of a graph can be compiled."""

from __future__ import annotations

from cyxla.autojit.analysis.candidates import STRUCTURED, RecursiveCompilabilityChecker
from cyxla.autojit.analysis.frames import ENTERS
from cyxla.autojit.analysis.list_lengths import ListLengths
from cyxla.autojit.devices import ENCLOSING, DeviceInfo, Policy
from cyxla.autojit.options import JitOptions
from cyxla.core.graph.algorithm import copy_graph
from cyxla.core.graph.graph import Graph, Node
from cyxla.errors import OpError
from cyxla.tf2xla.functionalize.control_flow import functionalize_control_flow


def functionalize_loops(jit: JitOptions) -> None:
    """Replace all frames and branches of a clustered graph, or none of them."""
    graph = jit.graph
    if not jit.is_global or not any(node.op in ENTERS for node in graph.nodes.values()):
        return
    devices = {node.assigned_device or node.device for node in graph.nodes.values()}
    info = jit.info(next(iter(graph.nodes.values())))
    if (
        len(devices) == 1
        and info is not None
        and info.policy is not Policy.IF_REQUESTED
        and _can_be_compiled(jit, info)
    ):
        original_functions = {function.name for function in graph.library}
        functionalize_control_flow(graph)
        for function in [
            f for f in graph.library if f.name not in original_functions
        ]:  # leave the session's library unchanged
            graph.library.remove(function.name)
            graph.library.add_derived(function)
        (device,) = devices
        for node in graph.nodes.values():
            node.assigned_device = node.assigned_device or device


def _can_be_compiled(jit: JitOptions, info: DeviceInfo) -> bool:
    """Return True if all frames and branches can be functionalized, and each resulting node can be compiled."""
    trial = copy_graph(jit.graph)
    try:
        functionalize_control_flow(trial)
    except OpError:
        return False
    checker = RecursiveCompilabilityChecker(info, jit.options.engine.kernels, trial.library, info.filter | ENCLOSING)
    list_reasons = {} if info.filter.growing else ListLengths(trial.library).reasons(trial)
    return not any(node in list_reasons or checker.reason(node) for node in _new_nodes(trial, jit.graph))


def _new_nodes(functionalized: Graph, original: Graph) -> list[Node]:
    return [n for n in functionalized.nodes.values() if n.op in STRUCTURED and n.name not in original.nodes]
