"""Splitting C into compilation units: the units, and that splitting changes no bit."""

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.hlo import parse_module
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.cpu.native import split_units
from cyxla.xla.service import CompileOptions

KERNEL = """typedef float k3_v __attribute__((vector_size(64)));
#define k3_TWICE(x) \\
  ((x) + (x))
static float k3_table[4];
static __attribute__((noinline)) void k3_free(const k3_v *x, k3_v *y) {
  *y = k3_TWICE(*x);
}
static CYX_FUSED __attribute__((noinline)) float k3_bound(int i) {
  return k3_table[i];
}
static __attribute__((noinline)) void k3_caller(const k3_v *x, k3_v *y) {
  k3_free(x, y);
}
static __attribute__((noinline)) void k3_reader(const k3_v *x, k3_v *y) {
  k3_free(x, y);
  k3_bound(0);
}
static inline void k3_small(void) {
}
/* dot -> f32[16] */
static cyx_status k3(void *const *bufs, int64_t begin, int64_t end) {
  k3_caller(bufs[0], bufs[1]);
  return CYX_OK;
}
"""


def test_functions_that_need_only_types_and_each_other_stand_apart():
    whole, *apart = split_units.split_kernel(3, "k3", KERNEL)
    heads = [f"void {name}(const k3_v *x, k3_v *y)" for name in ("k3_free", "k3_caller")]
    assert [p.text.split(" {")[0] for p in apart] == [f"__attribute__((noinline)) {head}" for head in heads]
    declared = "".join(f"{head};\n" for head in heads)
    assert {p.types for p in apart} == {"".join(KERNEL.splitlines(keepends=True)[:3]) + declared}
    assert all(f"\n{head};\n" in whole.text for head in heads)
    assert "\ncyx_status k3(void" in whole.text
    assert "k3_TWICE(*x)" not in whole.text


DIRECTIVES = """#define k4_STEP 2
static __attribute__((noinline)) void k4_free(int *x) {
#if k4_STEP
  *x += k4_STEP;
#define TWICE (2 * k4_STEP)
  *x += TWICE;
#endif
}
static cyx_status k4(void *const *bufs, int64_t begin, int64_t end) {
  k4_free(bufs[0]);
#if k4_STEP
  return CYX_OK;
#endif
}
"""


def test_directives_in_a_function_stay_there():
    whole, apart = split_units.split_kernel(4, "k4", DIRECTIVES)
    start, end = DIRECTIVES.index("static "), DIRECTIVES.index("static cyx_status")
    assert apart.text == DIRECTIVES[start:end].removeprefix("static ")
    assert apart.types == "#define k4_STEP 2\nvoid k4_free(int *x);\n"
    assert whole.text.endswith(DIRECTIVES[end:].removeprefix("static "))


INSTANCE = """typedef float k2_e;
static const k2_tile k2_4x4_sizes = {.count = 3};
static const k2_numbers k2_sizes = {.k = 5};
static const float k2_table[2] = {1, 2};
static __attribute__((noinline)) void k2_4x4(const k2_e *x);
/* instance of dot_tile.h: k2_4x4 */
#define TILE_ZERO 0
CYX_FUSED __attribute__((noinline)) void k2_4x4(const k2_e *x) {
}
#undef TILE_ZERO
/* end of dot_tile.h */
/* instance of dot.h */
static void k2_run(void) {
}
/* end of dot.h */
static cyx_status k2(void *const *bufs, int64_t begin, int64_t end) {
  k2_4x4(bufs[0]);
  k2_run();
}
"""


def test_an_instance_of_a_template_stands_apart_if_its_function_is_declared():
    whole, tile = split_units.split_kernel(2, "k2", INSTANCE)
    assert tile.text == INSTANCE[INSTANCE.index("/* instance of dot_tile.h") : INSTANCE.index("/* instance of dot.h")]
    declared = "__attribute__((noinline)) void k2_4x4(const k2_e *x);\n"
    assert tile.types == "".join(INSTANCE.splitlines(keepends=True)[:3]) + declared
    assert f"\n{declared}/* instance of dot.h" in whole.text
    assert "TILE_ZERO" not in whole.text


def test_instances_cost_the_same_for_any_length():
    longer = INSTANCE.replace("void) {\n", "void) {\n  for (;;) continue;\n")
    for cost in (split_units.code_size, split_units.compile_cost):
        assert cost(longer) == cost(INSTANCE) > 2 * split_units.INSTANCE_COST


def test_parts_go_where_there_is_least_to_do(monkeypatch):
    monkeypatch.setattr(split_units, "FUNCTION_COST", 0)
    pieces = [split_units.Part("x" * size, "", (k, 0)) for k, size in enumerate((50, 10, 30, 20))]
    dealt = split_units.distribute(35, pieces, 2)
    assert [[len(p.text) for p in unit] for unit in dealt] == [[10, 30], [50, 20]]
    assert split_units.distribute(7, [], 4) == [[]]


def test_a_function_costs_something_however_short(monkeypatch):
    pieces = [split_units.Part("x" * size, "", (k, 0)) for k, size in enumerate((50, 10, 10, 10))]
    monkeypatch.setattr(split_units, "FUNCTION_COST", 0)
    assert [[len(p.text) for p in unit] for unit in split_units.distribute(0, pieces, 2)] == [[50], [10, 10, 10]]
    monkeypatch.setattr(split_units, "FUNCTION_COST", 1000)
    assert [[len(p.text) for p in unit] for unit in split_units.distribute(0, pieces, 2)] == [[10, 10], [50, 10]]


def test_loops_and_expanded_functions_count_more_than_their_length():
    plain = split_units.compile_cost("x = y + z;")
    assert plain == len("x = y + z;")
    assert split_units.compile_cost("for (;;) y;") > plain + split_units.LOOP_COST - 1
    assert split_units.compile_cost("cyx_erf_f32(x)") > plain + 500


PROGRAMS = {
    "dot": "ENTRY e { a = f32[70,300] parameter(0) b = f32[300,90] parameter(1) d = f32[70,90] dot(a, b), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT r = f32[70,90] tanh(d) }",
    "convolution": "ENTRY e { a = f32[2,14,15,8] parameter(0) b = f32[3,3,8,40] parameter(1) ROOT d = f32[2,14,15,40] "
    "convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
    "several": "ENTRY e { a = f32[40,300] parameter(0) b = f32[300,40] parameter(1) t = f32[300,40] transpose(a), "
    "dimensions={1,0} d = f32[40,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} e = f32[300,40] "
    "exponential(t) ROOT r = (f32[40,40], f32[300,40]) tuple(d, e) }",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_number_of_compilers_changes_no_bit(text, monkeypatch):
    module = parse_module(text)
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(p.shape.dims).astype(np.float32) for p in module.parameters]
    seen = set()
    for count in (1, 2, 8):
        monkeypatch.setattr(split_units, "MIN_UNIT_COST", 1)
        monkeypatch.setattr(split_units, "max_compilers", lambda count=count: count)
        compiler = CpuCompiler()
        source = compiler.emit(compiler.run_hlo_passes(module, CompileOptions()))[2]
        assert 1 <= len(source.units) <= count
        assert count == 1 or len(source.units) > 1
        results = flat(cyxla.compile(text, cache=False)(*arguments))
        seen.add(b"".join(np.asarray(r).tobytes() for r in results))
    assert len(seen) == 1
