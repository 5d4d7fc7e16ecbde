"""Programs of every kind of input: names, structure, sizes, and what cannot be read."""

import numpy as np
import pytest
from support.builds.ahead_of_time import LEVEL, assert_same_bits, needs_gcc, run_command, shared
from support.hlo.random_programs import random_module

import cyxla
from cyxla import aot
from cyxla.aot.program import Fixed
from cyxla.errors import InvalidArgumentError, TraceError, UnimplementedError
from cyxla.tools.programs import random_value

RNG = np.random.default_rng(0)


def test_the_structure_of_functions():
    def f(params, scale, *, flip=False):
        """Scale things."""
        return {"a": params["w"] * scale, "b": [scale, None, "text"]}

    made = aot.program(f, {"w": ((2,), "f4"), "b": ((), int)}, 2.0)
    assert made.name == "f"
    assert made.doc == "Scale things."
    assert [(a.name, a.dtype.name, a.dims) for a in made.arguments] == [
        ("params['w']", "float32", (2,)), ("params['b']", "int64", ()), ("scale", "float64", ()),
    ]  # fmt: skip
    assert made.parameters == ("params", "scale", "flip")
    assert made.argument_trees == ({"w": 0, "b": 1}, 2, Fixed(False))
    assert made.result_tree == {"a": 0, "b": [1, None, "text"]}
    assert [r.name for r in made.results] == ["result['a']", "result['b'][0]"]
    assert made.rank0[1] == "python"


def test_bound_arguments_leave_the_structure():
    made = aot.program(lambda x, y, z: (x + y, z), *[((2,), float)] * 3, bind={"y": np.ones(2)})
    assert [a.name for a in made.arguments] == ["x", "z"]
    assert made.argument_trees == (0, None, 1)
    again = aot.program(made, bind={0: np.zeros(2)}, name="again")
    assert [a.name for a in again.arguments] == ["z"]
    assert sorted(again.bound) == [0, 1]


@pytest.mark.parametrize("text, name", [
    ("x.y-z", "x_y_z"), ("2x", "p_2x"), ("exp", "p_exp"), ("free", "p_free"), ("main", "p_main"), ("int", "p_int"),
    ("cyx_info", "p_cyx_info"), ("<lambda>", "lambda"), ("é", "p"), ("_a_", "a"),
])  # fmt: skip
def test_names_in_c(text, name):
    module = cyxla.hlo.parse_module("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }")
    module.name = text
    assert aot.program(module).name == name


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "name", ["message", "status", "k", "args", "info", "program", "results", "run", "half", "calls"]
)
@needs_gcc
def test_names_that_generated_c_uses_too(tmp_path, name):
    aot.compile(lambda x: x * 2, ((3,), np.float16), directory=tmp_path, kind="static", name=name, isa=LEVEL,
                cpp_class=f"ns::{name}", test=True, benchmark=True)  # fmt: skip
    (tmp_path / "main.cpp").write_text(f'#include "{name}.h"\nint main() {{ ns::{name} f; return !f.Run(); }}\n')
    for source, compiler in ((f"{name}.test.c", "gcc"), (f"{name}.benchmark.c", "gcc"), ("main.cpp", "g++")):
        run_command(compiler, "-Wall", "-Wextra", "-Werror", source, f"lib{name}.a", "-lm", "-o", "main", cwd=tmp_path)
        run_command("./main", cwd=tmp_path)


TUPLES = """HloModule m
ENTRY e {
  p = (f32[2], (s32[], f32[3])) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  q = (s32[], f32[3]) get-tuple-element(p), index=1
  b = f32[3] get-tuple-element(q), index=1
  inner = (f32[2], f32[3]) tuple(a, b)
  n = f32[2] negate(a)
  ROOT t = ((f32[2], f32[3]), f32[2]) tuple(inner, n)
}"""


def test_tuples_of_hlo(tmp_path):
    library = shared(tmp_path, TUPLES)
    assert library.arg_names == ["p[0]", "p[1][0]", "p[1][1]"]
    assert library.result_names == ["result0[0]", "result0[1]", "result1"]
    a, b = np.float32([1, 2]), np.float32([3, 4, 5])
    assert_same_bits(library(a, 7, b), [a, b, -a])


BOUNDED = """HloModule m
ENTRY e {
  x = f32[<=5] parameter(0)
  ROOT y = f32[<=5] add(x, x)
}"""


def test_bounded_arrays_come_with_their_sizes(tmp_path):
    library = shared(tmp_path, BOUNDED)
    assert library.arg_names == ["x", "size 0 of x"]
    assert library.result_names == ["result", "size 0 of result"]
    y, size = library(np.float32([1, 2, 3, 0, 0]), 3)
    assert size == 3
    np.testing.assert_array_equal(y[:3], [2, 4, 6])


OPEN = """
func.func public @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
"""


def test_open_sizes_of_stablehlo(tmp_path):
    x = RNG.random((4, 3), np.float32)
    assert_same_bits(shared(tmp_path, OPEN, ((4, 3), np.float32))(x), x + x)
    with pytest.raises(UnimplementedError):
        aot.program(OPEN)


def test_what_is_no_program(tmp_path):
    with pytest.raises(InvalidArgumentError, match="cannot compile a int"):
        aot.program(3)
    with pytest.raises(InvalidArgumentError, match="specs are for Python functions"):
        aot.program(BOUNDED, ((3,), float))
    with pytest.raises(TraceError):
        aot.program(lambda x: x.tobytes(), ((2,), float))
    with pytest.raises(FileNotFoundError):
        aot.program(tmp_path / "nothing.hlo")
    token = "HloModule m\nENTRY e { t = token[] after-all() ROOT r = (token[]) tuple(t) }"
    with pytest.raises(UnimplementedError, match="token"):
        aot.program(token)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_bits_of_jit(tmp_path, seed):
    module, _ = random_module(seed + 1000)
    rng = np.random.default_rng(seed)
    arguments = [random_value(p.shape, rng) for p in module.parameters]
    assert_same_bits(shared(tmp_path, module)(*arguments), cyxla.compile(module)(*arguments))
