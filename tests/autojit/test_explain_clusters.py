"""An explanation of a graph gives the reason for each node outside of clusters, and for each border between two."""

import json

import pytest
from support.graphs.jitting import auto, chain, ones

import cyxla
from cyxla.autojit.flags import flags
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.tools.main import main
from cyxla.xla.service.refusal import Refusal


def checked():
    graph, x, y = chain(4)
    with graph.as_default():
        y = apply_op("CheckNumerics", y, message="y", name="checked")
    return graph, x, y


def text():
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default():
        y = apply_op("AsString", apply_op("Exp", x), name="text")
    return graph, x, y


def short():
    return chain(2)


def long():
    return chain(9)


SHORT = "its cluster would have 2 of at least 4 nodes: no other adjacent node can be compiled"
#: graph: (flags, summary, refusals)
CASES = {
    checked: (
        "",
        "1 clusters: cluster_0 of 4 nodes; 1 nodes run by their kernels",
        [Refusal("clustering", "CheckNumerics 'checked'", "CheckNumerics: compiled code would omit the check")],
    ),
    text: (
        "",
        "0 clusters; 2 nodes run by their kernels",
        [Refusal("clustering", "AsString 'text'", "AsString has no XLA_INTERPRETER_JIT kernel")],
    ),
    short: (
        "",
        "0 clusters; 2 nodes run by their kernels",
        [Refusal("clustering", f"{op} '{op}'", SHORT) for op in ("Exp", "Neg")],
    ),
    long: (
        "--tf_xla_max_cluster_size=5",
        "2 clusters: cluster_0 of 4 nodes, cluster_1 of 5 nodes; 0 nodes run by their kernels",
        [Refusal("clustering", "Cos 'Cos'", "'Sin' is in another cluster, since the cluster would be too large")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_refusals(build):
    options, summary, refusals = CASES[build]
    graph, x, y = build()
    session = auto(graph)
    with flags(options):
        session.run(y, {x: ones(2)})
    explanation = session.explanation()
    assert explanation.summary == summary
    assert [r for r in refusals if r not in explanation.refusals] == []
    assert session.explain() == str(explanation)
    assert all(f"  clustering: {r}" in session.explain().splitlines() for r in refusals)


def test_preparing_is_enough():
    graph, x, y = chain(4)
    session = auto(graph)
    session.prepare([y], [x])
    assert session.explanation().summary == "1 clusters: cluster_0 of 4 nodes; 0 nodes run by their kernels"
    assert session.num_executors == 1


def test_sessions_that_do_not_compile():
    graph, x, y = chain(4)
    session = cyxla.Session(graph)
    session.run(y, {x: ones(2)})
    assert session.explanation() is None
    assert session.explain() == "all nodes run by their kernels: no graph was clustered"


def test_a_dump_holds_the_clusters(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    graph, x, y = checked()
    session = auto(graph)
    session.prepare([y], [x])
    (folder,) = tmp_path.glob("graph.*")
    assert (folder / "clusters.txt").read_text() == f"{session.explain()}\n"
    assert json.loads((folder / "clusters.json").read_text()) == json.loads(json.dumps(session.explanation().as_dict()))


def test_the_command(tmp_path, capsys):
    graph, _, _ = checked()
    path = tmp_path / "graph.pbtxt"
    path.write_text(str(graph.to_graph_def()))
    assert main(["dump", str(path), "--stage", "clusters", "--platform", "interpreter"]) == 0
    assert "CheckNumerics 'checked': CheckNumerics: compiled code would omit the check" in capsys.readouterr().out
