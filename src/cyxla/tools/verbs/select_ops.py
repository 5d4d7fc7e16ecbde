"""``cyxla select-ops``: the ops and kernels that graphs need."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.selective_registration import required_ops
from cyxla.core.framework.kernel_registry import KernelRegistration, KernelRegistry
from cyxla.core.framework.node_def import NodeDef, add_defaults_to_node_def
from cyxla.core.graph.graph_constructor import read_graph_def


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help="a .pb or .pbtxt file, or a SavedModel")
    parser.add_argument("--device", default="CPU", metavar="TYPE", help="type of device of the kernels (default: CPU)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--names", action="store_true", help="only the names of the ops, a line each")
    form.add_argument("--json", action="store_true", help='pairs of op and kernel: [["MatMul", "matmul"], ..]')


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    graphs = [read_graph_def(path) for path in args.graphs]
    names = sorted({name for graph in graphs for name in required_ops(graph)})
    for name in names:
        OpRegistry.global_().look_up(name)  # raises for an op that is not declared
    if args.names:
        print(*names, sep="\n")
        return 0
    needed: dict[str, dict[KernelRegistration, None]] = {name: {} for name in names}
    for graph in graphs:
        for node in nodes_of(graph):
            if node.op in needed:
                needed[node.op].update(dict.fromkeys(kernels_of(node, args.device)))
    if args.json:
        print(json.dumps([[op, row.class_name] for op, rows in needed.items() for row in rows]))
        return 0
    for op, rows in needed.items():
        for row in rows:
            print(f"{op:32s} {row.class_name:32s} {row.kernel_def}")
        if not rows:
            print(f"{op:32s} no kernel for {args.device} devices")
    return 0


def nodes_of(graph_def: Any) -> Iterator[NodeDef]:
    """Yield the nodes of a GraphDef message and of its functions."""
    for proto in graph_def.node:
        yield NodeDef.from_proto(proto)
    for function in graph_def.library.function:
        for proto in function.node_def:
            yield NodeDef.from_proto(proto)


def kernels_of(node: NodeDef, device: str) -> list[KernelRegistration]:
    """Return the kernel of a node; all kernels of its op for a node whose types its function leaves open."""
    registry = KernelRegistry.global_()
    if any(value.kind == "placeholder" for value in node.attr.values()):
        return [row for row in registry.registrations(node.op) if row.kernel_def.device_type in (device, "DEFAULT")]
    add_defaults_to_node_def(node, OpRegistry.global_().look_up(node.op).op_def)
    found, _ = registry.find_kernel_registration(device, node.op, node.attr, f"node '{node.name}' ({node.op})")
    return [] if found is None else [found]
