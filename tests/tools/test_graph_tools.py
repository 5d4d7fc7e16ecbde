"""Every verb of ``cyxla`` that is about graphs, as a user calls it."""

import io
import json
import sys

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def_proto import op_list_from
from cyxla.core.graph.graph import Graph
from cyxla.tools import main as command


@pytest.fixture
def cyxla(capsys, monkeypatch):
    """Run the command; gives status, output and errors."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def call(*args):
        status = command.main(list(args))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def file(tmp_path):
    """A graph of z = x @ x + 1, and a node that only runs."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2, 2], name="x")
        apply_op("AddV2", apply_op("MatMul", x, x), np.float32(1), name="z")
        apply_op("NoOp", name="nothing")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.to_graph_def().SerializeToString())
    return str(path)


def test_ops_lists_declarations(cyxla):
    status, out, _ = cyxla("ops", "MatMul")
    assert (status, out.split()) == (0, ["MatMul", "(a:", "T,", "b:", "T)", "->", "(product:", "T)"])
    assert int(cyxla("ops", "--count")[1]) < int(cyxla("ops", "--count", "--internal")[1])


def test_op_shows_one_declaration(cyxla):
    """Every field of an attribute is visible."""
    status, out, _ = cyxla("op", "AddN", "--pbtxt")
    assert status == 0
    for text in ('name: "AddN"', 'number_attr: "N"', "has_minimum: true", "minimum: 1", "is_aggregate: true"):
        assert text in out
    status, out, _ = cyxla("op", "AddN")
    assert "signature=inputs:N*T -> sum:T" in out
    assert "flags: is_commutative, is_aggregate" in out


@pytest.mark.parametrize("verb", ["op", "kernels", "xla-ops", "trace-lowering"])
@pytest.mark.parametrize("name, hint", [
    ("MatMull", "did you mean MatMul"), ("matmul", "did you mean MatMul"), ("RELU", "did you mean Relu"),
    ("Qqq", "import the module that declares it first"),
])  # fmt: skip
def test_unknown_ops_have_hints(cyxla, verb, name, hint):
    status, _, err = cyxla(verb, name)
    assert (status, f"NOT_FOUND: op type not registered: '{name}'" in err, hint in err) == (1, True, True)


def test_kernels_lists_registrations(cyxla):
    status, out, _ = cyxla("kernels", "MatMul")
    assert status == 0
    assert out.startswith("MatMul: device='CPU'")
    everything = cyxla("kernels")[1].splitlines()
    assert len(everything) > 300
    assert cyxla("kernels", "--device", "TPU")[1] == ""
    assert cyxla("kernels", "NoSuchOp")[0] == 1


def test_kernels_lists_compilation_kernels(cyxla):
    """The kernels of compilation devices are in the same registry."""
    lines = {line.split("'")[1]: line for line in cyxla("kernels", "Relu")[1].splitlines()}
    assert lines.keys() >= {"CPU", "XLA_CPU_JIT", "XLA_INTERPRETER_JIT"}
    assert cyxla("kernels", "Relu", "--device", "XLA_CPU_JIT")[1] == lines["XLA_CPU_JIT"] + "\n"


def test_xla_ops_lists_ops_that_compile(cyxla):
    lines = cyxla("xla-ops")[1].splitlines()
    names = sorted({line.split()[0] for line in lines})
    assert int(cyxla("xla-ops", "--count")[1]) == len(names) >= 410
    assert next(line for line in lines if line.split()[0] == "Reshape").split(maxsplit=1)[1] == "constant: shape"
    missing = cyxla("xla-ops", "--missing")[1].split()
    assert "AsString" in missing
    assert not set(missing) & set(names)


def test_xla_ops_shows_one_op(cyxla):
    status, out, _ = cyxla("xla-ops", "Shape")
    head, *backends = out.splitlines()
    assert (status, head) == (0, "Shape: reads shapes and types only")
    assert [line.split(":")[0].strip() for line in backends] == ["XLA_CPU_JIT", "XLA_INTERPRETER_JIT"]
    assert "out_type in int32 int64" in backends[0]
    assert cyxla("xla-ops", "AsString")[1] == "AsString does not compile\n"
    assert "NOT_FOUND" in cyxla("xla-ops", "Shapes")[2]


def test_xla_ops_writes_a_page(cyxla):
    lines = cyxla("xla-ops", "--markdown")[1].splitlines()
    assert any(line.startswith("| Reshape | shape |") for line in lines)
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_devices_lists_names_types_and_priorities(cyxla):
    assert cyxla("devices")[1] == "/job:localhost/replica:0/task:0/device:CPU:0  type CPU  priority 60\n"


def test_passes_lists_groups_phases_and_names_in_order(cyxla):
    rows = [line.split() for line in cyxla("passes")[1].splitlines()]
    assert ["POST_REWRITE_FOR_EXEC", "1", "tree_aggregation"] in rows
    assert ["POST_PARTITIONING", "10", "constant_folding"] in rows
    assert ["POST_PARTITIONING", "20", "common_subgraph_elimination"] in rows


def test_run_a_graph(cyxla, file, tmp_path):
    out = tmp_path / "out.npz"
    args = ["--feed", "x=[[1, 2], [3, 4]]", "--fetch", "z:0", "--fetch", "nothing", "--output", str(out)]
    status, text, _ = cyxla("run", file, *args)
    assert status == 0
    assert "z:0: float32[2, 2]" in text
    assert "nothing: ran" in text
    with np.load(out) as arrays:
        assert arrays.files == ["z:0"]
        np.testing.assert_array_equal(arrays["z:0"], np.float32([[8, 11], [16, 23]]))


def test_run_a_graph_on_files_and_random_values(cyxla, file, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2, dtype=np.float32))
    assert "[[2. 1.]" in cyxla("run", file, "--feed", f"x:0={tmp_path}/x.npy")[1]
    first, again = (cyxla("run", file, "--seed", "7")[1].splitlines()[:-1] for _ in range(2))
    assert first == again


def test_run_a_graph_measures(cyxla, file, tmp_path):
    trace = tmp_path / "trace.json"
    status, out, _ = cyxla("run", file, "--quiet", "--profile", "--trace", str(trace))
    assert (status, "1 x MatMul" in out) == (0, True)
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"MatMul", "AddV2"} <= names


@pytest.mark.parametrize("args, message", [
    (["--fetch", "y:0"],              "NOT_FOUND"),
    (["--feed", "x"],                 "no '='"),
    (["--feed", "x=[[1,2],[3"],       "neither a .npy file nor a value"),
    (["--feed", "x=[1,2]"],           "shape"),
    (["--feed", "x=no.npy"],          "no.npy"),
])  # fmt: skip
def test_run_a_graph_with_wrong_words(cyxla, file, args, message):
    status, _, err = cyxla("run", file, *args)
    assert status == 1
    assert message in err


# --- ops, select-ops, trace-lowering ---


@pytest.fixture
def functional(tmp_path):
    """A graph that calls a function of open types, in text form."""
    path = tmp_path / "functional.pbtxt"
    path.write_text("""
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape { dim { size: 2 } } } } }
      node { name: "y" op: "twice" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      library { function {
        signature { name: "twice" input_arg { name: "a" type_attr: "T" } output_arg { name: "b" type_attr: "T" }
                    attr { name: "T" type: "type" } }
        node_def { name: "sum" op: "AddV2" input: "a" input: "a" attr { key: "T" value { placeholder: "T" } } }
        ret { key: "b" value: "sum:z:0" } } }
      versions { producer: 1000 }""")
    return str(path)


def test_ops_writes_an_op_list(cyxla):
    status, out, _ = cyxla("ops", "Mat*", "--pbtxt")
    ops = op_list_from(out)
    assert status == 0
    assert [op.name for op in ops] == sorted(op.name for op in ops)
    assert {"MatMul", "MatrixInverse"} <= {op.name for op in ops}
    assert OpRegistry.global_().look_up("MatMul").op_def in ops


def test_ops_selects_those_of_a_graph(cyxla, file, functional):
    assert [line.split()[0] for line in cyxla("ops", "--selected", file)[1].splitlines()] == [
        "AddV2", "Const", "MatMul", "NoOp", "Placeholder",
    ]  # fmt: skip
    assert cyxla("ops", "--selected", functional, "--count")[1] == "2\n"
    assert [op.name for op in op_list_from(cyxla("ops", "A*", "--selected", file, "--pbtxt")[1])] == ["AddV2"]


def test_select_ops_lists_ops_and_kernels(cyxla, file, functional):
    status, out, _ = cyxla("select-ops", file)
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert status == 0
    assert list(rows) == ["AddV2", "Const", "MatMul", "NoOp", "Placeholder"]
    assert "device='CPU'" in rows["MatMul"]
    assert cyxla("select-ops", file, functional, "--names")[1].split() == list(rows)
    pairs = json.loads(cyxla("select-ops", file, "--json")[1])
    assert [op for op, _ in pairs] == list(rows)
    assert all(kernel for _, kernel in pairs)
    assert "AddV2" in cyxla("select-ops", functional)[1]
    assert "no kernel for TPU devices" in cyxla("select-ops", file, "--device", "TPU")[1]


@pytest.mark.parametrize("args, message", [
    (("select-ops", "nowhere.pb"), "NOT_FOUND"), (("ops", "--selected", "nowhere.pb"), "NOT_FOUND"),
    (("trace-lowering", "nowhere.pb"), "NOT_FOUND"), (("trace-lowering", "MatMull"), "not registered: 'MatMull'"),
    (("trace-lowering", "MatMul", "--input", "f32[2,2]"), "MatMul has 2 inputs, got 1"),
    (("trace-lowering", "MatMul", "--input", "f32[2", "--input", "f32[2,2]"), "neither a shape nor JSON"),
    (("trace-lowering", "MatMul", "--attr", "transpose_a"), "no '='"),
    (("trace-lowering", "MatMul", "--feed", "x=1"), "has no --feed"),
    (("trace-lowering", "Reshape"), "compile-time constant"),
    (("trace-lowering", "AddN"), "is a list"), (("trace-lowering", "AsString"), "AsString"),
])  # fmt: skip
def test_errors_of_graph_verbs(cyxla, args, message):
    status, _, err = cyxla(*args)
    assert status == 1
    assert message in err


def test_select_ops_names_undeclared_ops(cyxla, tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "MatMull" }')
    for verb in (("select-ops", str(path)), ("ops", "--selected", str(path))):
        status, _, err = cyxla(*verb)
        assert (status, "MatMull" in err) == (1, True)


def heads(out):
    return [line for line in out.splitlines() if not line.startswith("  ")]


def test_trace_lowering_shows_the_instructions_of_each_kernel(cyxla, file):
    status, out, _ = cyxla("trace-lowering", file, "--fetch", "z:0")
    assert status == 0
    (line,) = [h for h in heads(out) if h.startswith("MatMul = ")]
    assert line.startswith("MatMul = MatMul by cyxla.tf2xla.kernels.")
    after = out.splitlines()[out.splitlines().index(line) + 1]
    assert " dot(" in after
    assert "metadata" not in out
    assert any(h.startswith("z = AddV2 by cyxla.tf2xla.") for h in heads(out))


def test_trace_lowering_looks_into_functions(cyxla, functional):
    status, out, _ = cyxla("trace-lowering", functional)
    assert status == 0
    assert any(h.startswith("sum = AddV2 by ") for h in heads(out))
    assert " add(" in out


OPS = [
    # arguments, an opcode that is emitted
    (["MatMul", "--input", "f32[2,3]", "--input", "f32[4,3]", "--attr", "transpose_b=true"], "dot"),
    (["Relu"], "maximum"),
    (["Reshape", "--input", "f32[6]", "--input", "[2, 3]"], "reshape"), (["Softmax"], "reduce"),
    (["ConcatV2", "--input", "f32[2];f32[3]", "--input", "0"], "concatenate"), (["BitwiseAnd"], "and"),
    (["Cast", "--attr", "DstT=int32"], "convert"), (["LogicalNot"], "not"),
]  # fmt: skip


@pytest.mark.parametrize("args, opcode", OPS)
def test_trace_lowering_of_one_op(cyxla, args, opcode):
    status, out, err = cyxla("trace-lowering", *args)
    assert status == 0, err
    assert any(h.startswith(f"{args[0]} = {args[0]} by ") for h in heads(out))
    assert f" {opcode}(" in out
