"""Loops with little state run in one kernel, with the state in C locals, and agree with the interpreter."""

# ruff: noqa: E501  programs read best a line at a time

from itertools import product

import numpy as np
import pytest
from support.hlo.differential import agree
from support.interrupts import repeatedly

import cyxla
from cyxla.errors import CancelledError

MORE = "ROOT l = pred[] compare(i, n), direction=LT"


def loop(
    state: str,
    initial: str,
    body: str,
    results: str,
    *,
    head: str = "",
    turns: str = "n = s32[] constant(7)",
    more: str = MORE,
    extra: str = "",
) -> str:
    """A module that counts i from 0 and carries `state`; `initial`, `body` and `results` name its other elements."""
    types = state.split(" ")
    gets = "\n".join(f"s{k} = {t} get-tuple-element(s), index={k + 1}" for k, t in enumerate(types))
    tuple_type = f"(s32[], {', '.join(types)})"
    return f"""HloModule m
{extra}
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
more {{ s = {tuple_type} parameter(0)
i = s32[] get-tuple-element(s), index=0
{gets}
{turns}
{more} }}
step {{ s = {tuple_type} parameter(0)
i = s32[] get-tuple-element(s), index=0
one = s32[] constant(1)
j = s32[] add(i, one)
{gets}
{body}
ROOT t = {tuple_type} tuple(j, {results}) }}
ENTRY e {{
z = s32[] constant(0)
{head}
t = {tuple_type} tuple(z, {initial})
ROOT w = {tuple_type} while(t), condition=more, body=step }}
"""


INNER = """
inner_more { s = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
inner_step {
  s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[2] get-tuple-element(s), index=1
  y = f32[2] cosine(x)
  ROOT t = (s32[], f32[2]) tuple(j, y)
}
"""
BRANCHES = """
up { a = (f32[2], s32[]) parameter(0) x = f32[2] get-tuple-element(a), index=0 y = f32[2] add(x, x) ROOT t = (f32[2]) tuple(y) }
down { a = f32[2] parameter(0) y = f32[2] negate(a) ROOT t = (f32[2]) tuple(y) }
same { a = f32[2] parameter(0) ROOT t = (f32[2]) tuple(a) }
"""
SMALL = {
    "places change": loop("f32[] f32[] f32[]", "a, b, a", "c = f32[] negate(s2)", "c, s0, s1", head="a = f32[] parameter(0) b = f32[] parameter(1)"),
    "a vector": loop("f64[3]", "a", "c = f64[3] add(s0, s0) r = f64[3] reverse(c), dimensions={0}", "r", head="a = f64[3] parameter(0)"),
    "runs until a value is small": loop(
        "f32[]", "a", "h = f32[] constant(0.5) c = f32[] multiply(s0, h)", "c", head="a = f32[] constant(1000)",
        turns="n = f32[] constant(1)", more="ROOT l = pred[] compare(s0, n), direction=GT",
    ),
    "reads an array by the counter": loop(
        "f32[] f32[1000]", "a, b", "d = f32[1] dynamic-slice(s1, i), dynamic_slice_sizes={1} e = f32[] reshape(d) c = f32[] add(s0, e)", "c, s1",
        head="a = f32[] parameter(0) b = f32[1000] parameter(1)",
    ).replace("ROOT w = ", "w = ").replace("body=step }", "body=step ROOT r = f32[] get-tuple-element(w), index=1 }"),
    "writes an array by the counter": loop(
        "f32[2] f32[40,2]", "a, b",
        "z = s32[] constant(0) c = f32[2] add(s0, s0) d = f32[1,2] reshape(c) o = f32[1,2] dynamic-slice(s1, i, z), dynamic_slice_sizes={1,2} e = f32[1,2] add(d, o) u = f32[40,2] dynamic-update-slice(s1, e, i, z)",
        "c, u", head="a = f32[2] parameter(0) b = f32[40,2] parameter(1)",
    ),
    "reads a row written before": loop(
        "f32[40]", "b",
        "one2 = s32[] constant(1) k = s32[] subtract(i, one2) o = f32[1] dynamic-slice(s0, k), dynamic_slice_sizes={1} e = f32[1] add(o, o) u = f32[40] dynamic-update-slice(s0, e, i) v = f32[40] dynamic-update-slice(u, e, z0)",
        "v", head="b = f32[40] parameter(0)",
    ).replace("one2 =", "z0 = s32[] constant(39) one2 ="),
    "a tiny array by the counter": loop(
        "f32[3] f32[]", "a, b", "e = f32[] add(s1, s1) f = f32[1] reshape(e) u = f32[3] dynamic-update-slice(s0, f, i) d = f32[1] dynamic-slice(u, j), dynamic_slice_sizes={1} g = f32[] reshape(d)",
        "u, g", head="a = f32[3] parameter(0) b = f32[] parameter(1)",
    ),
    "part of a small array": loop(
        "f32[3,3]", "a", "k = s32[] constant(1) d = f32[2,1] slice(s0), slice={[0:2],[1:2]} n = f32[2,1] negate(d) u = f32[3,3] dynamic-update-slice(s0, n, k, i)", "u",
        head="a = f32[3,3] parameter(0)",
    ),
    "sums": loop("f32[2,3]", "a", "zero = f32[] constant(0.5) r = f32[3] reduce(s0, zero), dimensions={0}, to_apply=sum b = f32[2,3] broadcast(r), dimensions={1} q = f32[2,3] constant({{1,2,3},{4,5,6}}) c = f32[2,3] divide(b, q)", "c", head="a = f32[2,3] parameter(0)"),
    "products": loop("f32[2,2] f32[2,2]", "a, b", "c = f32[2,2] dot(s0, s1), lhs_contracting_dims={1}, rhs_contracting_dims={0} d = f32[2,2] multiply(c, c) e = f32[2,2] negate(d)", "e, s1", head="a = f32[2,2] parameter(0) b = f32[2,2] parameter(1)"),
    "a batch of products": loop("s32[2,2,2]", "a", "c = s32[2,2,2] dot(s0, s0), lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={0}, rhs_contracting_dims={1}", "c", head="a = s32[2,2,2] parameter(0)"),
    "a loop inside": loop("f32[2]", "a", "zero = s32[] constant(0) b = f32[2] sine(s0) t2 = (s32[], f32[2]) tuple(zero, b) w2 = (s32[], f32[2]) while(t2), condition=inner_more, body=inner_step c = f32[2] get-tuple-element(w2), index=1", "c", head="a = f32[2] parameter(0)", extra=INNER),
    "branches inside": loop(
        "f32[2]", "a", "three = s32[] constant(3) r = s32[] remainder(i, three) two = s32[] constant(1) r1 = s32[] subtract(r, two) p = (f32[2], s32[]) tuple(s0, i) k = (f32[2]) conditional(r1, p, s0, s0), branch_computations={up, down, same} c = f32[2] get-tuple-element(k), index=0", "c",
        head="a = f32[2] parameter(0)", extra=BRANCHES,
    ),
    "a predicate inside": loop(
        "f32[2]", "a", "three = s32[] constant(3) r = pred[] compare(i, three), direction=LT p = (f32[2], s32[]) tuple(s0, i) k = (f32[2]) conditional(r, p, s0), true_computation=up, false_computation=down c = f32[2] get-tuple-element(k), index=0", "c",
        head="a = f32[2] parameter(0)", extra=BRANCHES,
    ),
    "numbers of the counter": loop("f32[4]", "a", "q = f32[4] iota(), iota_dimension=0 x = f32[] convert(i) y = f32[4] broadcast(x), dimensions={} u = f32[4] multiply(q, y) c = f32[4] add(s0, u)", "c", head="a = f32[4] parameter(0)"),
}  # fmt: skip
INDEXED = {
    "a small array by the counter": loop(
        "f32[5] f32[]", "a, b", "e = f32[] add(s1, s1) f = f32[1] reshape(e) u = f32[5] dynamic-update-slice(s0, f, i) d = f32[1] dynamic-slice(u, j), dynamic_slice_sizes={1} g = f32[] reshape(d)",
        "u, g", head="a = f32[5] parameter(0) b = f32[] parameter(1)",
    ),
    "a histogram": loop(
        "f32[20] s32[7]", "a, k", "p = s32[1] dynamic-slice(s1, i), dynamic_slice_sizes={1} at = s32[] reshape(p) o = f32[1] dynamic-slice(s0, at), dynamic_slice_sizes={1} w = f32[1] add(o, o) u = f32[20] dynamic-update-slice(s0, w, at)",
        "u, s1", head="a = f32[20] parameter(0) k = s32[7] constant({3,19,3,0,25,-4,3})",
    ).replace("ROOT w = ", "w = ").replace("body=step }", "body=step ROOT r = f32[20] get-tuple-element(w), index=1 }"),
    "a constant": loop("f32[8]", "a", "x = f32[] convert(j) v = f32[1] reshape(x) u = f32[8] dynamic-update-slice(s0, v, j)", "u", head="z1 = f32[] constant(1.5) a = f32[8] broadcast(z1), dimensions={}"),
}  # fmt: skip
DTYPES = ["bf16", "f16", "f8e4m3fn", "f64", "c64", "c128", "s4", "u2", "s8", "u16", "s32", "u64"]


@pytest.mark.parametrize("text", SMALL.values(), ids=SMALL)
def test_one_kernel_agrees_with_the_interpreter(text):
    executable = agree(text, ulp=64)
    assert executable.explain().count("small loop") == 1


@pytest.mark.parametrize("text", INDEXED.values(), ids=INDEXED)
def test_small_arrays_that_are_indexed_stay_in_memory(text):
    executable = agree(text)
    assert executable.explain().count("loop nest") == 1


LONG = "n = s32[] constant(50000)"
COUNTED = {
    "a sum": (
        loop("s32[] s32[50000]", "a, b", "d = s32[1] dynamic-slice(s1, i), dynamic_slice_sizes={1} e = s32[] reshape(d) c = s32[] add(s0, e)", "c, s1", head="a = s32[] parameter(0) b = s32[50000] parameter(1)", turns=LONG)
        .replace("ROOT w = ", "w = ").replace("body=step }", "body=step ROOT r = s32[] get-tuple-element(w), index=1 }"), True,
    ),
    "neighbours": (
        loop("f32[50001] f32[50001]", "a, b", "d = f32[2] dynamic-slice(s1, i), dynamic_slice_sizes={2} x = f32[1] slice(d), slice={[0:1]} y = f32[1] slice(d), slice={[1:2]} v = f32[1] subtract(y, x) u = f32[50001] dynamic-update-slice(s0, v, j)", "u, s1", head="a = f32[50001] parameter(0) b = f32[50001] parameter(1)", turns=LONG)
        .replace("ROOT w = ", "w = ").replace("body=step }", "body=step ROOT r = f32[50001] get-tuple-element(w), index=1 }"), True,
    ),
    "beyond the end": (
        loop("s32[] s32[500]", "a, b", "d = s32[1] dynamic-slice(s1, i), dynamic_slice_sizes={1} e = s32[] reshape(d) c = s32[] add(s0, e)", "c, s1", head="a = s32[] parameter(0) b = s32[500] parameter(1)", turns=LONG)
        .replace("ROOT w = ", "w = ").replace("body=step }", "body=step ROOT r = s32[] get-tuple-element(w), index=1 }"), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_counted_loops_have_no_checks_in_their_inner_loop(name):
    """Indices that are in bounds have no clamps, and cancellation is looked for once in many iterations."""
    text, in_bounds = COUNTED[name]
    executable = agree(text)
    source = executable.c_source
    inner = source[source.index("for (; t1 < e1; ++t1)") :].split("poll")[0]
    assert ("? 0 :" in inner) is not in_bounds
    assert "budget" not in inner[: inner.index("}")]


@pytest.mark.parametrize("turns", [-3, 0, 1, 9])
def test_turns_from_outside(turns):
    text = loop(
        "f32[] s32[]",
        "a, k",
        "c = f32[] add(s0, s0)",
        "c, s1",
        head="a = f32[] parameter(0) k = s32[] parameter(1)",
        turns="",
        more="ROOT l = pred[] compare(i, s1), direction=LT",
    )
    agree(text, np.float32(1.5), np.int32(turns))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(dtype):
    text = loop(
        f"{dtype}[3] {dtype}[50]",
        "a, b",
        f"d = {dtype}[3] dynamic-slice(s1, i), dynamic_slice_sizes={{3}} c = {dtype}[3] add(s0, d) e = {dtype}[1] slice(c), slice={{[1:2]}} u = {dtype}[50] dynamic-update-slice(s1, e, i)",
        "c, u",
        head=f"a = {dtype}[3] parameter(0) b = {dtype}[50] parameter(1)",
    )
    assert "small loop" in agree(text).explain()


LARGE = {
    "a large state": loop("f32[100]", "a", "c = f32[100] reverse(s0), dimensions={0}", "c", head="a = f32[100] parameter(0)"),
    "an array read while it changes": loop(
        "f32[100] f32[]", "a, b", "n = f32[1] reshape(s1) u = f32[100] dynamic-update-slice(s0, n, i) k = s32[] constant(3) d = f32[1] dynamic-slice(u, k), dynamic_slice_sizes={1} e = f32[] reshape(d) c = f32[] add(e, e)", "u, c",
        head="a = f32[100] parameter(0) b = f32[] parameter(1)",
    ),
    "one array twice": loop(
        "f32[100] f32[100] f32[]", "a, a, b", "n = f32[1] reshape(s2) u = f32[100] dynamic-update-slice(s0, n, i) d = f32[1] dynamic-slice(s1, i), dynamic_slice_sizes={1} e = f32[] reshape(d) c = f32[] add(e, e)", "u, s1, c",
        head="a = f32[100] parameter(0) b = f32[] parameter(1)",
    ),
    "nothing in the state": loop("f32[0] f32[]", "a, b", "c = f32[] add(s1, s1)", "s0, c", head="a = f32[0] parameter(0) b = f32[] parameter(1)"),
}  # fmt: skip


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_loops_that_do_not_fit_run_in_kernels(text):
    executable = agree(text)
    assert "small loop" not in executable.explain().split("while")[0]


def test_a_long_loop_can_be_cancelled():
    text = loop(
        "f32[]",
        "a",
        "c = f32[] add(s0, s0)",
        "c",
        head="a = f32[] parameter(0)",
        turns="n = s32[] constant(-1)",
        more="ROOT l = pred[] compare(i, n), direction=NE",
    )
    executable = cyxla.compile(text)
    assert "small loop" in executable.explain()
    with repeatedly(executable.cancel), pytest.raises(CancelledError):
        executable(np.float32(1))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_products_round_as_in_a_kernel(dtype):
    """The power of a nearly nilpotent matrix consists of rounding errors."""
    product = f"c = {dtype}[2,2] dot(%s, %s), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    head = f"a = {dtype}[2,2] parameter(0)"
    kind = f"{dtype}[2,2]"
    looped = loop(f"{kind} {kind}", "a, a", product % ("s0", "s1"), "c, s1", head=head, turns="n = s32[] constant(3)")
    steps = [f"ENTRY e {{ {head}", *(product.replace("c", f"c{k}", 1) % (f"c{k - 1}", "a") for k in range(1, 4))]
    steps[1] = steps[1].replace("c0", "a")
    x = np.array([[-0.25575233, -0.13207754], [1.1303879, 0.51078486]], dtype.replace("f", "float"))
    straight = cyxla.compile("\n".join([*steps, f"ROOT r = {kind} copy(c3) }}"]))(x)
    np.testing.assert_array_equal(cyxla.compile(looped)(x)[1], straight)


INDICES = ("i", "k")


@pytest.mark.parametrize("where", [*product(INDICES, repeat=4)], ids="-".join)
def test_updated_arrays_depend_on_old_elements_of_each_other(where):
    """Each update writes at one index what it reads from the other array at another index."""
    write_x, read_y, write_y, read_x = where
    text = f"""HloModule t
body {{ s = (s64[], s64[], f64[300], f64[300]) parameter(0)
  i = s64[] get-tuple-element(s), index=0 k = s64[] get-tuple-element(s), index=1
  x = f64[300] get-tuple-element(s), index=2 y = f64[300] get-tuple-element(s), index=3 one = s64[] constant(1)
  a = f64[1] dynamic-slice(y, {read_y}), dynamic_slice_sizes={{1}}
  b = f64[1] dynamic-slice(x, {write_x}), dynamic_slice_sizes={{1}} c = f64[1] subtract(b, a)
  d = f64[1] dynamic-slice(x, {read_x}), dynamic_slice_sizes={{1}}
  e = f64[1] dynamic-slice(y, {write_y}), dynamic_slice_sizes={{1}} f = f64[1] add(e, d)
  u = f64[300] dynamic-update-slice(x, c, {write_x}) v = f64[300] dynamic-update-slice(y, f, {write_y})
  j = s64[] add(i, one) ROOT r = (s64[], s64[], f64[300], f64[300]) tuple(j, k, u, v) }}
condition {{ s = (s64[], s64[], f64[300], f64[300]) parameter(0) i = s64[] get-tuple-element(s), index=0
  n = s64[] constant(300) ROOT p = pred[] compare(i, n), direction=LT }}
ENTRY e {{ k = s64[] parameter(0) x = f64[300] parameter(1) y = f64[300] parameter(2) z = s64[] constant(0)
  s = (s64[], s64[], f64[300], f64[300]) tuple(z, k, x, y)
  w = (s64[], s64[], f64[300], f64[300]) while(s), condition=condition, body=body
  u = f64[300] get-tuple-element(w), index=2 v = f64[300] get-tuple-element(w), index=3
  ROOT r = (f64[300], f64[300]) tuple(u, v) }}"""
    cpu, interpreter = (cyxla.compile(text, platform=p) for p in ("cpu", "interpreter"))
    x, y = np.random.default_rng(0).standard_normal((2, 300)).round(2)
    for k in (0, 7, 299):
        for got, expected in zip(cpu(k, x, y), interpreter(k, x, y), strict=True):
            np.testing.assert_array_equal(got, expected)
