"""``cyxla run`` for graphs: execution of a GraphDef on arrays."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.core.framework.apply import to_array
from cyxla.core.framework.types import INTEGRAL, DataType
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.graph.graph_constructor import load_graph, parse_graph_def
from cyxla.core.runtime.session import Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.core.runtime.subgraph import needed_nodes
from cyxla.errors import InvalidArgumentError, OpError
from cyxla.tools.programs import read_arrays
from cyxla.tools.timing import best_of

_TEXT = (".pbtxt", ".txt")
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


def is_graph(args: argparse.Namespace) -> bool:
    """Return True if a file is a graph: by its suffix, by the options, or by its contents."""
    if args.feed or args.fetch or args.file.endswith(_TEXT):
        return True
    if not args.file.endswith(".pb"):
        return False
    try:
        nodes = parse_graph_def(Path(args.file).read_bytes()).node
    except OpError:
        return False
    return bool(nodes) and all(node.op for node in nodes)


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    graph = load_graph(args.file, allow_file_access=args.allow_file_access)
    fetches = args.fetch or [tensor.name for tensor in results(graph)]
    feeds = read_feeds(graph, args.feed, fetches, args.seed)
    session = Session(graph, platform=args.platform)
    metadata = RunMetadata() if args.profile or args.trace else None
    values, seconds = best_of(lambda: session.run(fetches, feeds), args.repeat)
    if metadata is not None:
        session.run(fetches, feeds, metadata=metadata)
    report(args, fetches, values, metadata)
    print(f"{len(graph.nodes)} nodes, ran in {seconds * 1e6:.1f} us")
    return 0


def report(args: argparse.Namespace, fetches: Sequence[str], values: list[Any], metadata: RunMetadata | None) -> None:
    """Print and write the results, step stats and trace, as the options ask."""
    if not args.quiet:
        show(fetches, values)
    if args.output:
        arrays = {name: value for name, value in zip(fetches, values, strict=True) if value is not None}
        np.savez(args.output, **arrays)
    if args.profile and metadata is not None:
        print(metadata.step_stats)
    if args.trace and metadata is not None:
        metadata.step_stats.save_trace(args.trace)


def results(graph: Graph) -> list[Tensor]:
    """Return the outputs that no node uses, which are the default fetches."""
    read_tensors = {t for node in graph.nodes.values() for t in node.inputs}
    return [t for node in graph.nodes.values() for t in node.outputs if t not in read_tensors and not t.dtype.is_ref]


def read_feeds(graph: Graph, texts: Sequence[str], fetches: Sequence[str], seed: int) -> dict[str, Any]:
    """Return fed values by tensor name: the given ones, and random ones for other placeholders that are needed.

    Raises
    ------
    InvalidArgumentError
        A text is not ``NAME=FILE.npy`` or ``NAME=VALUE``.
    """
    feeds = dict(_feed(graph, text) for text in texts)
    rng = np.random.default_rng(seed)
    for node in _needed_placeholders(graph, fetches, feeds):
        feeds[f"{node.name}:0"] = _random(node, rng)
    return feeds


def _feed(graph: Graph, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgumentError(f"--feed {text}: no '='", hint="write NAME=FILE.npy or NAME=[1, 2]")
    tensor = graph.tensor(name)
    if value.endswith(".npy"):
        return tensor.name, read_arrays(value)[0]
    try:
        return tensor.name, to_array(json.loads(value), tensor.dtype.base, f"--feed {name}")
    except ValueError:
        if tensor.dtype.base == DataType.DT_STRING:
            return tensor.name, to_array(value, DataType.DT_STRING)
        raise InvalidArgumentError(f"--feed {text}: '{value}' is neither a .npy file nor a value") from None


def _needed_placeholders(graph: Graph, fetches: Sequence[str], feeds: dict[str, Any]) -> list[Node]:
    tensors = [graph.tensor(name) for name in fetches if ":" in name]
    targets = [graph.node(name) for name in fetches if ":" not in name]
    needed = needed_nodes(tensors, targets, [graph.tensor(name) for name in feeds])
    return [node for node in graph.nodes.values() if node in needed and node.op in _PLACEHOLDERS]


def _random(node: Node, rng: np.random.Generator) -> Any:
    """Return a random value for a placeholder; unknown sizes are 1, integers are below 10."""
    dims = [1 if d is None else d for d in node.output_shapes[0].dims or ()]
    dtype = node.output_types[0]
    if dtype == DataType.DT_STRING:
        return np.full(dims, b"", object)
    if dtype == DataType.DT_BOOL:
        return rng.random(dims) < 0.5
    if dtype in INTEGRAL:
        return rng.integers(0, 10, dims).astype(dtype.numpy)
    return np.asarray(rng.standard_normal(dims)).astype(dtype.numpy)


def show(fetches: Sequence[str], values: list[Any]) -> None:
    """Print results, long ones abbreviated."""
    with np.printoptions(threshold=20, edgeitems=3, precision=6, suppress=True):
        for name, value in zip(fetches, values, strict=True):
            print(f"{name}: {'ran' if value is None else f'{value.dtype}{list(value.shape)}'}")
            if value is not None:
                print(value)
