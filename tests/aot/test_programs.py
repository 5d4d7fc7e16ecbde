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


BOUNDED_SIZES = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  w = f32[2] parameter(0)
  x = f32[<=4,<=3] parameter(1)
  z = f32[] constant(0)
  s = f32[] reduce(x, z), dimensions={0,1}, to_apply=add
  c = f32[<=8,<=3] concatenate(x, x), dimensions={0}
  ROOT r = (f32[], f32[<=8,<=3]) tuple(s, c)
}"""


@pytest.mark.parametrize("sizes, message", [
    ((4, 3), ""), ((0, 0), ""), ((5, 3), "size 0 of x is 5, want 0 to 4"), ((-3, 3), "size 0 of x is -3, want 0 to 4"),
    ((4, 10**9), "size 1 of x is 1000000000, want 0 to 3"), ((-(2**31), -1), "size 0 of x is -2147483648"),
])  # fmt: skip
def test_sizes_of_arguments_are_within_their_bounds(tmp_path, sizes, message):
    library = shared(tmp_path, BOUNDED_SIZES)
    given = [np.zeros(2, np.float32), np.ones((4, 3), np.float32), *map(np.int32, sizes)]
    if message:
        with pytest.raises(InvalidArgumentError, match=message):
            library(*given)
    else:
        total, _, *got = library(*given)
        assert (float(total), *map(int, got)) == (sizes[0] * sizes[1], 2 * sizes[0], sizes[1])


SIZES_MAIN = """#include <stdio.h>
#include "f.h"
int main(void) {
  const float w[2] = {0}, x[12] = {0};
  const int32_t n = 9, m = 3;
  float s = -7, c[24];
  int32_t sizes[2] = {-7, -7};
  for (int k = 0; k < 24; ++k) c[k] = -7;
  const void *const args[] = {w, x, &n, &m};
  void *const results[] = {&s, c, sizes, sizes + 1};
  const int status = f(args, results, NULL);
  for (int k = 0; k < 24; ++k) s += c[k];
  printf("%d %g %d %d", status, s, sizes[0], sizes[1]);
  return 0;
}
"""


@needs_gcc
@pytest.mark.parametrize("kind, library", [("static", "libf.a"), ("shared", "libf.so"), ("object", "f.o")])
def test_a_wrong_size_writes_nothing(tmp_path, kind, library):
    aot.compile(BOUNDED_SIZES, directory=tmp_path, kind=kind, name="f", isa=LEVEL)
    (tmp_path / "main.c").write_text(SIZES_MAIN)
    run_command("gcc", "main.c", f"./{library}", "-lm", "-Wl,-rpath,.", "-o", "main", cwd=tmp_path)
    assert run_command("./main", cwd=tmp_path) == f"3 {-7 * 25} -7 -7"
    assert "int32[] size 0 of x, 0 to 4" in (tmp_path / "f.h").read_text()
