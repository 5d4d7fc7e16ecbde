"""Claim: a GraphDef of 20,000 nodes and 40 MB loads in at most 1.5 s."""

import numpy as np

import cyxla
from cyxla import raw_ops

LAYERS = 10_000


def serialized():
    """Return a GraphDef with a chain of additions of constants of 4 KiB."""
    graph = cyxla.Graph()
    with graph.as_default():
        t = graph.placeholder("float", [64], name="x")
        for k in range(LAYERS):
            constant = np.full((16, 64), k % 7, np.float32) + np.arange(64, dtype=np.float32)
            t = raw_ops.AddV2(x=t, y=graph.constant(constant))
    return graph.to_graph_def().SerializeToString()


def test_load(benchmark, claim, best_time):
    data = serialized()
    assert len(data) > 40e6
    assert len(cyxla.load_graph(data)) == 2 * LAYERS + 1
    claim("GraphDef of 20,000 nodes, 40 MB: load", best_time(lambda: cyxla.load_graph(data)), "s", at_most=1.5)
    benchmark.pedantic(cyxla.load_graph, args=(data,), rounds=2)
