"""``cyxla convert`` and ``cyxla functions``, as a user calls them."""

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.tools import main as command

PROGRAM = "HloModule small\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] multiply(x, x) }\n"
X = np.arange(4, dtype=np.float32)


def run(*words):
    return command.main([str(w) for w in words])


@pytest.mark.parametrize("way", [["a.mlir", "b.hlo"], ["a.pb", "b.stablehlo", "c.txt"]], ids="-".join)
def test_forms_lead_back(way, tmp_path):
    first = tmp_path / "first.hlo"
    first.write_text(PROGRAM)
    for name in way:
        assert run("convert", first, tmp_path / name) == 0
        first = tmp_path / name
    np.testing.assert_array_equal(cyxla.compile(first.read_text(), platform="interpreter")(X), X * X)


def test_graphs_become_programs(tmp_path, capsys):
    graph = cyxla.Graph()
    x = graph.placeholder("float", (4,), name="x")
    with graph.as_default():
        apply_op("Square", x, name="y")
    path = tmp_path / "graph.pbtxt"
    path.write_text(str(graph.to_graph_def()))
    assert run("convert", path, "-", "--to", "stablehlo", "--fetch", "y:0") == 0
    text = capsys.readouterr().out
    np.testing.assert_array_equal(cyxla.compile(text, platform="interpreter")(X), X * X)
    assert run("convert", path, tmp_path / "again.pbtxt") == 0
    assert (tmp_path / "again.pbtxt").read_text() == path.read_text()


@pytest.mark.parametrize("output, message", [("a.xyz", "unknown suffix"), ("a.pbtxt", "is not a graph")])
def test_programs_that_cannot_be_written(output, message, tmp_path, capsys):
    first = tmp_path / "first.hlo"
    first.write_text(PROGRAM)
    assert run("convert", first, tmp_path / output) == command.PROGRAM_ERROR
    assert message in capsys.readouterr().err
    assert not (tmp_path / output).exists()


def test_the_list_of_functions_does_not_depend_on_earlier_use(capsys):
    from scipy import special

    def listed():
        assert run("functions", "*i0") == 0
        return capsys.readouterr().out

    before = listed()
    cyxla.jit(lambda x: special.i0(x), platform="interpreter")(np.ones(3))
    assert listed() == before
    assert before.count("\n") == 2  # numpy.i0 and scipy.special.i0
