"""The verbs aot and tfcompile: each flag, in both spellings."""

import json
import shutil

import numpy as np
import pytest
from cyxla.tools.verbs.tfcompile import target_levels
from support.builds.ahead_of_time import LEVEL, needs_gcc, run_command
from support.graphs.saved_models import WEIGHTS, write_model

from cyxla import Graph
from cyxla.aot.loader import Function
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.checkpoint.tensor_bundle import write_bundle
from cyxla.core.framework.protos import messages as proto
from cyxla.tools import main as command
from cyxla.xla.hlo import HloModule, parse_module

X = np.random.default_rng(0).standard_normal((4, 3), np.float32)
SOURCE = """
import numpy as np

def scale(x, y):
    for _ in range(3):
        x = x * y + 1
    return x

class Namespace:
    scale = staticmethod(scale)
"""
HLO = "HloModule m\nENTRY e { x = f32[4,3] parameter(0) ROOT y = f32[4,3] add(x, x) }\n"


@pytest.fixture
def cyxla(capsys, tmp_path, monkeypatch):
    """Run the command in a folder of its own; gives status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        capsys.readouterr()
        status = command.main([str(a) for a in args])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def function(tmp_path):
    (tmp_path / "functions.py").write_text(SOURCE)
    return ["functions.py:scale", "--spec", "f32[4,3]", "--spec", "float32[]", "--target-cpu", LEVEL[0]]


def scaled(x, y):
    for _ in range(3):
        x = x * y + np.float32(1)
    return x


# --- aot --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["functions.py:scale", "functions:scale", "functions:Namespace.scale"])
def test_functions_of_files_and_modules(cyxla, function, tmp_path, place):
    status, out, _ = cyxla("aot", place, *function[1:], "--name", "scale", "--out", "lib")
    assert (status, out.startswith("scale (shared): ")) == (0, True)
    [result] = Function(tmp_path / "lib" / "libscale.so", "scale")(X, np.float32(2))
    np.testing.assert_allclose(result, scaled(X, np.float32(2)), rtol=1e-6)


@pytest.mark.parametrize("kind, file", [
    ("shared", "libscale.so"), ("static", "libscale.a"), ("object", "scale.o"), ("c", "scale.mk"),
])  # fmt: skip
def test_kinds(cyxla, function, tmp_path, kind, file):
    assert cyxla("aot", *function, "--kind", kind)[0] == 0
    assert (tmp_path / file).exists()
    described = json.loads((tmp_path / "scale.json").read_text())["programs"][0]
    assert described["arguments"] == [
        {"name": "x", "dtype": "float32", "dims": [4, 3]}, {"name": "y", "dtype": "float32", "dims": []},
    ]  # fmt: skip


def test_options_of_the_header(cyxla, function, tmp_path):
    assert cyxla("aot", *function, "--cpp_class", "ns::Scale", "--gen_program_shape")[0] == 0
    header = (tmp_path / "scale.h").read_text()
    assert "class Scale final" in header
    assert "ProgramShape" in header


def test_bound_arguments_and_weights_in_a_file(cyxla, function, tmp_path):
    np.save("x.npy", X)
    assert cyxla("aot", *function, "--bind", "x=x.npy", "--weights", "file", "--threads")[0] == 0
    library = Function(tmp_path / "libscale.so", "scale")
    assert library.arg_names == ["y"]
    assert library.load(tmp_path / "scale.weights", "scale") == 0
    np.testing.assert_allclose(library(np.float32(2))[0], scaled(X, np.float32(2)), rtol=1e-6)


@needs_gcc
@pytest.mark.parametrize("weights", ["embed", "file"])
def test_generated_tests_and_benchmarks(cyxla, function, tmp_path, weights):
    np.save("x.npy", X)
    flags = ["--kind", "c", "--test", "--benchmark", "--threads", "--bind", "x=x.npy", "--weights", weights]
    assert cyxla("aot", *function, *flags)[0] == 0
    run_command("make", "-f", "scale.mk", "scale.test", "scale.benchmark", cwd=tmp_path)
    assert run_command("./scale.test", cwd=tmp_path) == "scale: ok\n"
    assert run_command("./scale.benchmark", 10, 2, cwd=tmp_path).startswith("scale: 10 calls, best ")
    text = (tmp_path / "scale.test.c").read_text()
    at = text.index("result0[] = {\n") + len("result0[] = {\n")
    (tmp_path / "scale.test.c").write_text(text[:at] + "0x1111111111111111, " + text[at:])
    run_command("make", "-f", "scale.mk", "scale.test", cwd=tmp_path)
    with pytest.raises(AssertionError, match="result 0 differs"):
        run_command("./scale.test", cwd=tmp_path)


@needs_gcc
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_builds_the_sources(cyxla, function, tmp_path):
    assert cyxla("aot", *function, "--kind", "c", "--test", "--out", "lib")[0] == 0
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p C)\ninclude(lib/scale.cmake)\n"
        "add_executable(main lib/scale.test.c)\ntarget_link_libraries(main PRIVATE scale)\n"
    )
    run_command("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run_command("cmake", "--build", "build", cwd=tmp_path)
    assert run_command("build/main", cwd=tmp_path) == "scale: ok\n"


def test_programs_in_files(cyxla, tmp_path):
    (tmp_path / "p.hlo").write_text(HLO)
    (tmp_path / "p.pb").write_bytes(parse_module(HLO).to_proto())
    for path in ("p.hlo", "p.pb"):
        assert cyxla("aot", path, "--name", "p", "--target-cpu", LEVEL[0])[0] == 0
        np.testing.assert_array_equal(Function(tmp_path / "libp.so", "p")(X)[0], X + X)
        (tmp_path / "libp.so").unlink()


@pytest.fixture
def graph(tmp_path):
    """Files of y = x @ w with a variable, of its config and of a checkpoint."""
    made = Graph()
    with made.as_default():
        x = made.placeholder("float", [None, 3], name="x")
        w = apply_op("VarHandleOp", dtype="float", shape=[3, 2], shared_name="w", name="w")
        apply_op("MatMul", x, apply_op("ReadVariableOp", w, dtype="float"), name="y")
    (tmp_path / "g.pb").write_bytes(made.to_graph_def().SerializeToString())
    (tmp_path / "g.pbtxt").write_text(proto.to_text(made.to_graph_def()))
    (tmp_path / "g.config").write_text(
        'feed { id { node_name: "x" } shape { dim { size: 4 } dim { size: 3 } } name: "x" }\n'
        'fetch { id { node_name: "y" } name: "y" }\nvariable { node_name: "w" readonly: true }\n'
    )
    write_bundle(tmp_path / "model", {"w": WEIGHTS})
    return tmp_path


@pytest.mark.parametrize("flags", [
    ["g.pb", "--config", "g.config"], ["g.pbtxt", "--feed", "x:0=4,3", "--fetch", "y"],
])  # fmt: skip
def test_graphs(cyxla, graph, flags):
    flags = [*flags, "--checkpoint", "model", "--name", "net", "--target-cpu", LEVEL[0]]
    assert cyxla("aot", *flags)[0] == 0
    np.testing.assert_allclose(Function(graph / "libnet.so", "net")(X)[0], X @ WEIGHTS, rtol=1e-5)


def test_saved_models(cyxla, tmp_path):
    write_model(tmp_path / "model")
    flags = ["--signature", "serving_default", "--feed", "x=4,3", "--name", "net", "--target-cpu", LEVEL[0]]
    assert cyxla("aot", "model", *flags)[0] == 0
    np.testing.assert_allclose(Function(tmp_path / "libnet.so", "net")(X)[0], X @ WEIGHTS, rtol=1e-5)


@pytest.mark.parametrize("args, message", [
    (["nothing.py:f"], "no file nothing.py"),
    (["nothing:f"], "cannot import nothing"),
    (["functions.py:nothing"], "has no function 'nothing'"),
    (["functions.py:scale", "--spec", "f32"], "--spec f32"),
    (["functions.py:scale", "--spec", "f99[2]"], "f99"),
    (["functions.py:scale", "--bind", "x"], "--bind x: no '='"),
    (["m.hlo", "--fetch", "y", "--feed", "x"], "--feed x"),
    (["functions.py:scale", "--spec", "f32[2]", "--spec", "f32[2]", "--target-cpu", "z80"], "isa="),
])  # fmt: skip
def test_mistakes(cyxla, function, args, message):
    status, _, err = cyxla("aot", *args)
    assert status == 1
    assert message in err


# --- tfcompile --------------------------------------------------------------------------------------------------------

MAIN = """
#include <cstdio>
#include "include/net.h"
int main() {
  models::Net net;
  for (int k = 0; k < 12; ++k) net.arg_x_data()[k] = static_cast<float>(k);
  if (!net.Run() || net.LookupArgIndex("x") != 0) return 1;
  for (int k = 0; k < 8; ++k) std::printf("%g ", net.result_y_data()[k]);
  std::printf("%s", METADATA);
  return 0;
}
"""


@needs_gcc
@pytest.mark.parametrize("spell", [lambda flag: flag, lambda flag: "--" + flag[2:].replace("-", "_")])
def test_tfcompile(cyxla, graph, spell):
    flags = {
        "--graph": "g.pb", "--config": "g.config", "--checkpoint": "model", "--cpp-class": "models::Net",
        "--entry-point": "net_entry", "--out-header": "include/net.h", "--out-function-object": "out/net.o",
        "--out-metadata-object": "out/helper.o", "--out-session-module": "out/net.hlo.pb",
        "--target-triple": "x86_64-pc-linux", "--target-cpu": LEVEL[0], "--target-features": "",
        "--gen-name-to-index": "true", "--gen-program-shape": "1",
    }  # fmt: skip
    assert cyxla("tfcompile", *(f"{spell(flag)}={value}" for flag, value in flags.items()))[0] == 0
    main = MAIN.replace("METADATA", "net_entry_metadata").replace(
        "int main", 'extern "C" const char net_entry_metadata[];\nint main'
    )
    (graph / "main.cpp").write_text(main)
    run_command("g++", "main.cpp", "out/net.o", "out/helper.o", "-o", "main", cwd=graph)
    *values, metadata = run_command("./main", cwd=graph).split(" ", 8)
    expected = (np.arange(12, dtype=np.float32).reshape(4, 3) @ WEIGHTS).reshape(-1)
    np.testing.assert_allclose([float(v) for v in values], expected)
    assert json.loads(metadata)["library"] == "net_entry"
    assert "ProgramShape" in (graph / "include" / "net.h").read_text()
    module = HloModule.from_proto((graph / "out" / "net.hlo.pb").read_bytes())
    assert [p.shape.dims for p in module.parameters] == [(4, 3), (3, 2)]


def test_dump_fetch_nodes(cyxla, graph):
    status, out, _ = cyxla("tfcompile", "--graph=g.pb", "--config=g.config", "--dump_fetch_nodes")
    assert (status, out) == (0, "y\n")
    assert not (graph / "out.h").exists()


def test_flags_that_are_off(cyxla, graph):
    flags = ["--gen_program_shape=false", "--cpp_class=N", f"--target_cpu={LEVEL[0]}"]
    assert cyxla("tfcompile", "--graph", "g.pbtxt", "--config", "g.config", *flags)[0] == 0
    assert "ProgramShape" not in (graph / "out.h").read_text()
    assert (graph / "out_model.o").exists()
    assert (graph / "out_helper.o").exists()


@pytest.mark.parametrize("cpu, features, level", [
    ("", "", None), ("x86-64-v3", "", "x86-64-v3"), ("haswell", "", "x86-64-v3"), ("generic", "", "x86-64-v1"),
    ("skylake-avx512", "-avx512vl", "x86-64-v3"), ("nehalem", "+avx2", "x86-64-v2"),
    ("x86-64-v3", "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl", "x86-64-v4"),
])  # fmt: skip
def test_levels_of_processors(cpu, features, level):
    assert target_levels("", cpu, features) == (None if level is None else (level,))


@pytest.mark.parametrize("args, message", [
    (["--target_cpu=z80"], "--target-cpu z80"), (["--target_features=avx"], "--target-features avx"),
    (["--target_triple=riscv64"], "--target-triple riscv64"), (["--entry_point=a b"], "not an identifier"),
])  # fmt: skip
def test_mistakes_of_tfcompile(cyxla, graph, args, message):
    status, _, err = cyxla("tfcompile", "--graph=g.pb", "--config=g.config", *args)
    assert status == 1
    assert message in err


def test_a_feed_without_a_shape(cyxla, graph):
    (graph / "bad.config").write_text('feed { id { node_name: "x" } } fetch { id { node_name: "y" } }')
    status, _, err = cyxla("tfcompile", "--graph=g.pb", "--config=bad.config")
    assert status == 1
    assert "INVALID_ARGUMENT: the feed x:0 has no shape" in err
