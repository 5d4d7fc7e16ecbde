"""Graphs of arrays whose sizes are known only at run time, compiled and by their eager kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.errors import OpError
from support.graphs.compiled import close

Array = np.ndarray[Any, Any]
Make = Callable[..., Any]


def ints(*values: int) -> Array:
    """Return a vector of int32."""
    return np.array(values, np.int32)


def chosen(x: Any, mask: Any) -> Any:
    """Return the rows that a mask chooses."""
    places = apply_op("Squeeze", apply_op("Where", mask), squeeze_dims=[1])
    return apply_op("GatherV2", x, places, np.int32(0))


def bools(*values: int) -> Array:
    """Return a mask."""
    return np.array(values, bool)


def runner(make: Make, feeds: Sequence[Array]) -> Callable[..., list[Array] | OpError]:
    """Return a function that runs a graph of placeholders for these arrays, and returns its results or its error."""
    graph = Graph()
    with graph.as_default():
        args = [graph.placeholder(as_data_type(x.dtype), x.shape) for x in feeds]
        made = make(*args)
    names = [made.name]

    def run(jit: str, platform: str, values: Sequence[Array]) -> list[Array] | OpError:
        try:
            session = cyxla.Session(graph, jit=jit, platform=platform)
            return list(session.run(names, {a.name: x for a, x in zip(args, values, strict=True)}))
        except OpError as error:
            return error

    return run


def check_all(make: Make, rows: Sequence[Sequence[Array]], platform: str) -> None:
    """Check that a graph has the results, or the class of the error, of the eager kernels."""
    run = runner(make, rows[0])
    for feeds in rows:
        wanted, got = run("off", platform, feeds), run("on", platform, feeds)
        if isinstance(wanted, OpError):
            assert type(got) is type(wanted), got
            assert got.node == wanted.node
        else:
            assert not isinstance(got, OpError), got
            close(got, wanted)
