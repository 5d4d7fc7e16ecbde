"""Random graphs: clustering changes no result, and clusters never wait for each other."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.graphs.clustered_graphs import SIZE, Maker

import cyxla
from cyxla.autojit import pass_table as passes
from cyxla.autojit.flags import flags
from cyxla.autojit.passes.partially_decluster import is_acyclic
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassRegistry

GRAPHS, TOGETHER = 300, 10


def checked_passes(seen):
    """The passes with one among them that looks at the clusters."""
    registry = OptimizationPassRegistry()
    passes.register(registry)
    for phase in (11, 41):
        registry.register(
            Grouping.POST_REWRITE_FOR_EXEC, phase, lambda o: seen.append(is_acyclic(o.graph)), f"look {phase}"
        )
    return registry


def results(made, session, seed):
    """Return the results of three steps, and the variables after each."""
    rng = np.random.default_rng(seed)
    session.run([n.name for n in made.init]) if made.init else None
    found = []
    for _ in range(3):
        feeds = {x: rng.standard_normal(SIZE).astype(np.float32) for x in made.feeds}
        found += session.run([*made.fetches, *made.reads], feeds)
    return found


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("start", range(0, GRAPHS, TOGETHER))
def test_clusters_change_nothing(start):
    """Graphs with branches, loops, functions and variables; clusters are acyclic."""
    for seed in range(start, start + TOGETHER):
        made = Maker(seed).make()
        seen = []
        plain = results(made, cyxla.Session(made.graph), seed)
        with flags(tf_xla_min_cluster_size=1 + seed % 4):
            session = cyxla.Session(made.graph, jit="auto", platform="interpreter", passes=checked_passes(seen))
            clustered = results(made, session, seed)
        assert seen
        assert all(seen), f"seed {seed}"
        for a, b in zip(plain, clustered, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6, err_msg=f"seed {seed}")


PRINT = """
from support.graphs.clustered_graphs import Maker
import numpy as np, cyxla
from cyxla.tf2xla.xla_compiler import XlaCompiler
compile_graph = XlaCompiler.compile_graph
def printing(self, name, graph, *args, **kwargs):
    result = compile_graph(self, name, graph, *args, **kwargs)
    print(result.computation.to_text())
    return result
XlaCompiler.compile_graph = printing
for seed in (3, 11, 29):
    made = Maker(seed).make()
    session = cyxla.Session(made.graph, jit="auto", platform="interpreter")
    if made.init:
        session.run([n.name for n in made.init])
    session.run([*made.fetches, *made.reads], {x: np.ones(3, np.float32) for x in made.feeds})
    print({k: v.cluster for k, v in sorted(session.clusters().items())})
"""


def test_programs_do_not_depend_on_the_hash_seed():
    """The same graph gives the same HLO text."""
    texts = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])}
        run = subprocess.run([sys.executable, "-c", PRINT], env=env, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        texts.add(run.stdout)
    assert len(texts) == 1
    assert "HloModule" in texts.pop()
