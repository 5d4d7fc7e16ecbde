"""``cyxla dump``: a program at one stage of its compilation, or the clusters of a graph."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from cyxla.autojit.jit_session import Session
from cyxla.core.graph.graph_constructor import load_graph
from cyxla.tools.programs import add_specs, read_module
from cyxla.tools.run_graph import read_feeds, results
from cyxla.xla.client import compile_program
from cyxla.xla.service import Executable

STAGES: dict[str, Callable[[Executable], str]] = {
    "input": lambda e: e.hlo("input"),
    "optimized": lambda e: e.hlo("optimized"),
    "plan": lambda e: e.explain(),
    "kernels": lambda e: json.dumps(e.explanation().as_dict(), indent=2),
    "c": lambda e: e.c_source,
    "memory": lambda e: "\n".join(f"{use}: {size} bytes" for use, size in e.memory.items()),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO text, a .pb proto, or - for standard input; for clusters a GraphDef")
    add_specs(parser)
    choices = (*STAGES, "clusters")
    parser.add_argument("--stage", choices=choices, default="optimized", help="stage to print (default optimized)")
    parser.add_argument("--platform", default="cpu", help="platform to compile for (default cpu)")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    if args.stage == "clusters":
        print(clusters(args.file, args.platform))
        return 0
    module = read_module(args.file, args.spec)
    print(STAGES[args.stage](compile_program(module, platform=args.platform)).rstrip())
    return 0


def clusters(path: str, platform: str) -> str:
    """Return the clusters of a graph under ``jit="auto"``, and the reason for each node in none, without running it."""
    graph = load_graph(path)
    fetches = [tensor.name for tensor in results(graph)]
    session = Session(graph, jit="auto", platform=platform)
    session.prepare(fetches, list(read_feeds(graph, [], fetches, 0)))
    return session.explain()
