"""Random graphs give the same results compiled as a whole, as clusters, and op by op."""

import numpy as np
import pytest
from support.graphs.graph_programs import random_graph

import cyxla

GRAPHS, TOGETHER = 150, 10


def results(program, **options):
    """Return the results of two steps; the variables are among the fetches."""
    session = cyxla.Session(program.graph, **options)
    session.run(program.ready)
    steps = [session.run(program.fetches, program.feeds) for _ in range(2)]
    return [value for step in steps for value in step if value is not None]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("start", range(0, GRAPHS, TOGETHER))
def test_compiled_graphs_give_the_same(start):
    """Branches and loops of both kinds, calls, variables."""
    for seed in range(start, start + TOGETHER):
        program = random_graph(seed)
        wanted = results(program, jit="off")
        modes = ["on"] * program.compiles + ["auto"] * (seed % 5 == 0)
        for mode in modes:
            found = results(program, jit=mode, platform="interpreter")
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}, jit={mode}")


def test_ops_that_never_compile_are_named():
    seed = next(s for s in range(0, 100, 3) if any(n.op == "BesselI0" for n in random_graph(s).graph.nodes.values()))
    program = random_graph(seed)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match=r"\(BesselI0\)"):
        results(program, jit="on", platform="interpreter")
