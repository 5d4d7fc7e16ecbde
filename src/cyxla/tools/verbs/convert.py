"""``cyxla convert``: conversion of programs and graphs to another form."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cyxla.core.graph.graph import Graph
from cyxla.core.graph.graph_constructor import load_graph
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.xla_compiler import CompileOptions, XlaCompiler, XlaCompilerOptions, argument_for
from cyxla.tools.programs import add_specs, read_module
from cyxla.tools.run_graph import is_graph, read_feeds, results
from cyxla.xla.hlo import HloModule

_SUFFIXES = {
    ".hlo": "hlo", ".txt": "hlo", ".mlir": "stablehlo", ".stablehlo": "stablehlo", ".pb": "proto", ".pbtxt": "graphdef",
}  # fmt: skip
FORMS = ("hlo", "stablehlo", "proto", "graphdef")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO or StableHLO text, a proto (.pb), a graph (.pb, .pbtxt), or - for HLO text")
    parser.add_argument("output", help="output file, whose suffix selects the form, or -")
    parser.add_argument("--to", choices=FORMS, help="output form, if the suffix does not select it")
    add_specs(parser)
    parser.add_argument("--feed", action="append", default=[], help="NAME=FILE.npy or NAME=VALUE: an input of a graph")
    parser.add_argument(
        "--fetch", action="append", default=[], help="tensor of a graph to compute (default: all unused outputs)"
    )


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    target_form = args.to or _SUFFIXES.get(Path(args.output).suffix)
    if target_form is None:
        raise InvalidArgumentError(f"{args.output}: unknown suffix", hint=f"--to {', '.join(FORMS)}")
    graph = load_graph(args.file) if is_graph(args) else None
    if target_form == "graphdef":
        if graph is None:
            raise InvalidArgumentError(f"{args.file} is not a graph, and a program cannot be converted to one")
        _write(args.output, str(graph.to_graph_def()))
        return 0
    module = read_module(args.file, args.spec) if graph is None else lowered(graph, args.feed, args.fetch)
    _write(args.output, _FORMS[target_form](module))
    return 0


def _stablehlo(module: HloModule) -> str:
    from cyxla.xla.stablehlo import write_stablehlo

    module.verify()
    return write_stablehlo(module)


_FORMS: dict[str, Callable[[HloModule], str | bytes]] = {
    "hlo": HloModule.to_text, "stablehlo": _stablehlo, "proto": HloModule.to_proto,
}  # fmt: skip


def lowered(
    graph: Graph, feeds: list[str], fetches: list[str], make: Callable[[XlaCompilerOptions], XlaCompiler] = XlaCompiler
) -> HloModule:
    """Compile a graph to a module; placeholders become parameters of their own or their fed shapes.

    Parameters
    ----------
    graph : Graph
        The graph.
    feeds, fetches : list of str
        Fed values, ``NAME=FILE.npy`` or ``NAME=VALUE``, and names of tensors to compute; by default all unused outputs.
    make : callable
        Constructor of the compiler.

    Raises
    ------
    InvalidArgumentError
        An op cannot be compiled; the message names it.
    """
    names = fetches or [tensor.name for tensor in results(graph)]
    values = read_feeds(graph, feeds, names, 0)
    part = executable_graph(graph, [graph.tensor(n) for n in values], [graph.tensor(n) for n in names], [])
    compiler = make(XlaCompilerOptions("XLA_CPU_JIT", part.library))
    constants = compiler.analysis.run(part).args
    args = [
        argument_for(np.asarray(value), graph.tensor(name).dtype, constant=k in constants)
        for k, (name, value) in enumerate(values.items())
    ]
    options = CompileOptions(check_sizes=False)  # a module has no place to report them to
    return compiler.compile_graph("graph", part, args, options).computation.module()


def _write(path: str, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    if path == "-":
        sys.stdout.buffer.write(data)
    else:
        Path(path).write_bytes(data)
