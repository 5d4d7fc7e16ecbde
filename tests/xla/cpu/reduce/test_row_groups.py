"""Row groups: their instructions, their values against the evaluator, their bits against separate kernels."""

# ruff: noqa: E501  programs read best a line at a time

import re
from functools import cache, partial

import ml_dtypes
import numpy as np
import pytest
from support.hlo.kernel_groups import build, judge
from support.hlo.kernel_groups import check as compare

from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.reduce.rows import prefetch

check = partial(compare, near=1.0)
plain = cache(build)  # several tests compare with the same program; not for what a test has changed the limits of
RNG = np.random.default_rng(5)
NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "s32": np.int32,
    "u8": np.uint8,
}


def reducers(dtype: str) -> str:
    two = f"a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n"
    return "".join(f"{o} {{\n {two} ROOT r = {dtype}[] {o}(a, b)\n}}\n" for o in ("add", "maximum", "minimum"))


def module(lines: str, dtype: str = "f32") -> str:
    return f"HloModule m\n{reducers(dtype)}ENTRY e {{\n" + lines.replace(";", "\n").replace("T[", f"{dtype}[") + "\n}\n"


SOFTMAX = """p = T[R,C] parameter(0); z = T[] constant(0); l = T[] constant(-inf); x = T[R] reduce(p, l), dimensions={1}, to_apply=maximum
    xb = T[R,C] broadcast(x), dimensions={0}; d = T[R,C] subtract(p, xb); e = T[R,C] exponential(d)
    s = T[R] reduce(e, z), dimensions={1}, to_apply=add; sb = T[R,C] broadcast(s), dimensions={0}; """
PROGRAMS = {
    "softmax": SOFTMAX + "ROOT q = T[R,C] divide(e, sb)",
    "softmax and its largest": SOFTMAX + "q = T[R,C] divide(e, sb); ROOT t = (T[R,C], T[R]) tuple(q, x)",
    "log-softmax": SOFTMAX + "g = T[R] log(s); gb = T[R,C] broadcast(g), dimensions={0}; ROOT q = T[R,C] subtract(d, gb)",
    "logsumexp": SOFTMAX + "g = T[R] log(s); ROOT q = T[R] add(g, x)",
    "cross entropy": SOFTMAX + """g = T[R] log(s); gb = T[R,C] broadcast(g), dimensions={0}; q = T[R,C] subtract(d, gb)
        w = T[R,C] parameter(1); m = T[R,C] multiply(q, w); n = T[R] reduce(m, z), dimensions={1}, to_apply=add; ROOT o = T[R] negate(n)""",
    "gradient of softmax": """p = T[R,C] parameter(0); w = T[R,C] parameter(1); z = T[] constant(0); m = T[R,C] multiply(p, w)
        s = T[R] reduce(m, z), dimensions={1}, to_apply=add; sb = T[R,C] broadcast(s), dimensions={0}; d = T[R,C] subtract(w, sb)
        ROOT r = T[R,C] multiply(p, d)""",
    "layer norm": """p = T[R,C] parameter(0); w = T[C] parameter(1); z = T[] constant(0); n = T[] constant(C); nb = T[R] broadcast(n), dimensions={}
        s = T[R] reduce(p, z), dimensions={1}, to_apply=add; u = T[R] divide(s, nb); ub = T[R,C] broadcast(u), dimensions={0}
        d = T[R,C] subtract(p, ub); q = T[R,C] multiply(d, d); v = T[R] reduce(q, z), dimensions={1}, to_apply=add; vn = T[R] divide(v, nb)
        h = T[] constant(0.01); hb = T[R] broadcast(h), dimensions={}; ve = T[R] add(vn, hb); i = T[R] rsqrt(ve); ib = T[R,C] broadcast(i), dimensions={0}
        y = T[R,C] multiply(d, ib); wb = T[R,C] broadcast(w), dimensions={1}; ROOT o = T[R,C] multiply(y, wb)""",
    "root mean square of a sum": """p = T[R,C] parameter(0); w = T[R,C] parameter(1); a = T[R,C] add(p, w); q = T[R,C] multiply(a, a); z = T[] constant(0.5)
        s = T[R] reduce(q, z), dimensions={1}, to_apply=add; i = T[R] rsqrt(s); ib = T[R,C] broadcast(i), dimensions={0}
        y = T[R,C] multiply(a, ib); ROOT t = (T[R,C], T[R,C], T[R]) tuple(y, a, i)""",
    "sum, least and largest": """p = T[R,C] parameter(0); z = T[] constant(0); l = T[] constant(-inf); h = T[] constant(inf)
        s = T[R] reduce(p, z), dimensions={1}, to_apply=add; x = T[R] reduce(p, l), dimensions={1}, to_apply=maximum
        n = T[R] reduce(p, h), dimensions={1}, to_apply=minimum; ROOT t = (T[R], T[R], T[R]) tuple(s, x, n)""",
    "distances from the ends": """p = T[R,C] parameter(0); l = T[] constant(-inf); h = T[] constant(inf); x = T[R] reduce(p, l), dimensions={1}, to_apply=maximum
        n = T[R] reduce(p, h), dimensions={1}, to_apply=minimum; xb = T[R,C] broadcast(x), dimensions={0}; nb = T[R,C] broadcast(n), dimensions={0}
        a = T[R,C] subtract(xb, p); b = T[R,C] subtract(p, nb); ROOT t = (T[R,C], T[R,C]) tuple(a, b)""",
    "sines of rows": """p = T[R,C] parameter(0); z = T[] constant(0); f = T[] constant(3e4); fb = T[R,C] broadcast(f), dimensions={}; b = T[R,C] multiply(p, fb)
        e = T[R,C] sine(b); s = T[R] reduce(e, z), dimensions={1}, to_apply=add; sb = T[R,C] broadcast(s), dimensions={0}; ROOT q = T[R,C] subtract(e, sb)""",
}  # fmt: skip
ALONE = {"logsumexp", "sum, least and largest"}  # results of a row only


def program(name: str, rows: int, columns: int, dtype: str = "f32") -> str:
    lines = PROGRAMS[name].replace("R,", f"{rows},").replace("[R]", f"[{rows}]").replace(",C]", f",{columns}]")
    return module(lines.replace("[C]", f"[{columns}]").replace("(C)", f"({columns})"), dtype)


def arguments(name: str, rows: int, columns: int, dtype: str = "f32") -> list[np.ndarray]:
    more = [(columns,)] if "norm" in name else [(rows, columns)] if "parameter(1)" in PROGRAMS[name] else []
    return [RNG.normal(size=dims).astype(NUMPY[dtype]) for dims in [(rows, columns), *more]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel(name):
    compiled = check(program(name, 30, 60), *arguments(name, 30, 60), ulp=64)
    assert [g.kind for g in compiled.groups] == ["row"]
    assert len(compiled.steps) == 1


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
@pytest.mark.parametrize("name", ["softmax", "layer norm", "logsumexp", "sum, least and largest"])
def test_other_types(name, dtype):
    ulp = 2**20 if dtype == "bf16" else 64  # of a float; a bfloat16 has 16 bits less
    compiled = check(program(name, 20, 50, dtype), *arguments(name, 20, 50, dtype), ulp=ulp)
    assert len(compiled.steps) == 1


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    "dims",
    [(0, 40), (40, 0), (1, 1), (9, 1), (9, 7), (1, 100), (3, 16), (5, 17), (2, 1023), (33, 65), (3, 5003), (2, 9000)],
)
@pytest.mark.parametrize("name", ["softmax and its largest", "layer norm", "sines of rows"])
def test_lengths(name, dims):
    check(program(name, *dims), *arguments(name, *dims), ulp=256)


@pytest.mark.slow_but_every(14)
@pytest.mark.parametrize("dims", [(40, 64), (30, 1000), (7, 5003), (3, 8192)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_kernels_apart(name, dims):
    args, text = arguments(name, *dims), program(name, *dims)
    together, apart = plain(text), build(text, apart=True)
    assert len(together.steps) == 1
    assert len(apart.steps) > 1
    for a, b in zip(together(*args), apart(*args), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ["layer norm", "gradient of softmax", "sum, least and largest"])
def test_bits_do_not_depend_on_the_processor(name):
    args, text = arguments(name, 30, 1000), program(name, 30, 1000)
    for a, b in zip(build(text)(*args), build(text, "-march=x86-64-v2")(*args), strict=True):
        assert a.tobytes() == b.tobytes()


LARGE = ["softmax and its largest", "layer norm", "gradient of softmax", "root mean square of a sum", "sines of rows"]


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("dims", [(9, 40), (5, 512), (5, 1000), (4, 1024), (7, 5003), (3, 8192)])
@pytest.mark.parametrize("name", LARGE)
def test_large_arrays_are_asked_for_ahead_and_streamed_to_the_same_bits(name, dims, monkeypatch):
    args, text = arguments(name, *dims), program(name, *dims)
    near = plain(text)
    monkeypatch.setattr(prefetch, "_CACHED_BYTES", 0)
    monkeypatch.setattr(cost, "STREAMING_BYTES", 0)
    far = build(text)
    assert "cyx_prefetch(" in far.text
    assert "cyx_prefetch(" not in near.text
    assert ("cyx_stream(" in far.text) == (dims[1] >= 256)
    for a, b in zip(near(*args), far(*args), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("rows, columns, ahead", [(2048, 1024, 1), (16384, 1024, 4), (65536, 256, 16), (4096, 4096, 1)])
def test_short_rows_of_large_arrays_are_prefetched_several_at_a_time(rows, columns, ahead):
    asked = re.findall(
        r"cyx_prefetch\(\(const char \*\)p0 .*?\((\d+)ll\)", build(program("softmax", rows, columns)).text
    )
    assert set(asked) == {str(ahead * columns)}


PIPELINED = [
    ("softmax", 64, "f32"), ("softmax", 2048, "f32"), ("softmax", 320, "f64"), ("softmax", 416, "bf16"), ("softmax", 800, "f16"),
    ("softmax and its largest", 1600, "f32"), ("log-softmax", 4096, "f32"), ("layer norm", 272, "f32"), ("layer norm", 2096, "f32"),
    ("gradient of softmax", 1040, "f32"), ("root mean square of a sum", 1040, "f32"), ("sines of rows", 400, "f32"),
]  # fmt: skip
SINGLE_ROWS = [("softmax", 2048, "f32"), ("layer norm", 272, "f32")]


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize(
    "name, columns, dtype, rows",
    [*((*case, rows) for case in PIPELINED for rows in (2, 133)), *((*case, 1) for case in SINGLE_ROWS)],
)
def test_results_of_large_arrays_are_written_one_row_behind(name, columns, dtype, rows, monkeypatch):
    args, text = arguments(name, rows, columns, dtype), program(name, rows, columns, dtype)
    near = build(text)
    monkeypatch.setattr(prefetch, "_CACHED_BYTES", 0)
    monkeypatch.setattr(cost, "STREAMING_BYTES", 0)
    monkeypatch.setattr(cost, "TASK_NS", 2000.0)
    far = build(text)
    assert ("u > first" in far.text) == (rows > 1 and columns >= 256)
    assert "u > first" not in near.text
    for a, b in zip(near(*args), far(*args), strict=True):
        assert a.tobytes() == b.tobytes()


DIFFERENCES = {
    "from the largest": ("subtract(p, xb)", True),
    "to the largest": ("subtract(xb, p)", False),
    "of another array": ("subtract(e, xb)", False),
}


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("name", DIFFERENCES)
def test_exponentials_of_differences_from_the_largest(name, dtype):
    difference, decays = DIFFERENCES[name]
    lines = f"""p = T[9,50] parameter(0); l = T[] constant(-inf); x = T[9] reduce(p, l), dimensions={{1}}, to_apply=maximum
        xb = T[9,50] broadcast(x), dimensions={{0}}; e = T[9,50] negate(p); d = T[9,50] {difference}; ROOT r = T[9,50] exponential(d)"""
    values = RNG.normal(size=(9, 50)).astype(NUMPY[dtype]) * 3
    values[1:5, 7] = [np.inf, -np.inf, np.nan, -np.nan]
    values[6] = -np.inf
    compiled = check(module(lines, dtype), values, ulp=8)
    assert ("cyx_exp_decay_" in compiled.text) == (decays and dtype != "f16")


@pytest.mark.parametrize("columns", [1000, 4160, 8192])
def test_rows_that_are_not_written_behind(columns, monkeypatch):
    monkeypatch.setattr(cost, "STREAMING_BYTES", 0)
    assert "u > first" not in build(program("softmax", 3, columns)).text


def test_rows_read_backwards_are_asked_for_ahead(monkeypatch):
    monkeypatch.setattr(prefetch, "_CACHED_BYTES", 0)
    text = program("gradient of softmax", 6, 700)
    text = text.replace("m = f32[6,700] multiply(p, w)", "m = f32[6,700] multiply(p, v)")
    text = text.replace("\n z = ", "\n v = f32[6,700] reverse(w), dimensions={1}\n z = ", 1)
    assert "reverse" in text
    compiled = check(text, *arguments("gradient of softmax", 6, 700), ulp=256)
    assert "- c - " in compiled.text or "- q - " in compiled.text


@pytest.mark.parametrize(
    "trip, runs",
    [(40, (40, 1, 0)), (512, (512, 1, 0)), (1024, (256, 4, 0)), (768, (256, 3, 0)), (960, (192, 5, 0)), (1000, (256, 3, 232))],
)  # fmt: skip
def test_runs(trip, runs):
    assert prefetch.Runs.of(trip) == prefetch.Runs(*runs)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("columns", [40, 300])
@pytest.mark.parametrize(
    "name", ["softmax", "layer norm", "log-softmax", "sum, least and largest", "distances from the ends"]
)
def test_odd_values_stay_in_their_rows(name, columns):
    compiled, args = plain(program(name, 5, columns)), arguments(name, 5, columns)
    for special in (np.nan, np.inf, -np.inf, -np.nan):
        args[0][1, 3] = special
        args[0][2, :] = special
        judge(compiled, *args, ulp=256, near=1.0)
        assert all(np.isfinite(out[[0, 3, 4]]).all() for out in compiled(*args))


SHAPED = {
    "rows of several dims": """p = f32[4,6,8,20] parameter(0); z = f32[] constant(0); s = f32[4,6] reduce(p, z), dimensions={2,3}, to_apply=add
        b = f32[4,6,8,20] broadcast(s), dimensions={0,1}; ROOT o = f32[4,6,8,20] multiply(p, b)""",
    "the last dim of four": """p = f32[4,6,8,20] parameter(0); z = f32[] constant(0); s = f32[4,6,8] reduce(p, z), dimensions={3}, to_apply=add
        b = f32[4,6,8,20] broadcast(s), dimensions={0,1,2}; w = f32[6,20] constant({{}}); c = f32[4,6,8,20] broadcast(w), dimensions={1,3}
        d = f32[4,6,8,20] multiply(p, c); ROOT o = f32[4,6,8,20] multiply(d, b)""".replace("{{}}", "{" + ", ".join("{" + ", ".join(str(r * 20 + c) for c in range(20)) + "}" for r in range(6)) + "}"),
    "through reshapes": """p = f32[4,6,8,20] parameter(0); q = f32[24,160] reshape(p); z = f32[] constant(0); s = f32[24] reduce(q, z), dimensions={1}, to_apply=add
        t = f32[4,6] reshape(s); e = f32[4,6] exponential(t); b = f32[4,6,8,20] broadcast(e), dimensions={0,1}; ROOT o = f32[4,6,8,20] subtract(p, b)""",
    "the only row": """p = f32[4,6,8,20] parameter(0); z = f32[] constant(0); s = f32[] reduce(p, z), dimensions={0,1,2,3}, to_apply=add
        b = f32[4,6,8,20] broadcast(s), dimensions={}; ROOT o = f32[4,6,8,20] multiply(p, b)""",
    "numbers": """p = f32[4,6,8,20] parameter(0); i = s32[4,6,8,20] iota(), iota_dimension=3; f = f32[4,6,8,20] convert(i); m = f32[4,6,8,20] multiply(f, p)
        z = f32[] constant(0); s = f32[4,6,8] reduce(m, z), dimensions={3}, to_apply=add; b = f32[4,6,8,20] broadcast(s), dimensions={0,1,2}
        ROOT o = f32[4,6,8,20] add(m, b)""",
    "reversed rows": """p = f32[4,6,8,20] parameter(0); v = f32[4,6,8,20] reverse(p), dimensions={3}; t = f32[4,6,8,20] tanh(v); z = f32[] constant(0)
        s = f32[4,6,8] reduce(t, z), dimensions={3}, to_apply=add; b = f32[4,6,8,20] broadcast(s), dimensions={0,1,2}; ROOT o = f32[4,6,8,20] add(t, b)""",
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPED)
def test_shapes(name):
    compiled = check(module(SHAPED[name]), RNG.normal(size=(4, 6, 8, 20)).astype(np.float32), ulp=256)
    assert len(compiled.steps) == 1


APART = {
    "another row": """p = f32[20,20] parameter(0); z = f32[] constant(0); s = f32[20] reduce(p, z), dimensions={1}, to_apply=add
        b = f32[20,20] broadcast(s), dimensions={1}; ROOT o = f32[20,20] divide(p, b)""",
    "reversed results": """p = f32[20,20] parameter(0); z = f32[] constant(0); s = f32[20] reduce(p, z), dimensions={1}, to_apply=add
        v = f32[20] reverse(s), dimensions={0}; b = f32[20,20] broadcast(v), dimensions={0}; ROOT o = f32[20,20] divide(p, b)""",
    "other lengths": """p = f32[20,20] parameter(0); z = f32[] constant(0); s = f32[20] reduce(p, z), dimensions={1}, to_apply=add
        e = f32[20] exponential(s); t = f32[] reduce(e, z), dimensions={0}, to_apply=add; b = f32[20] broadcast(t), dimensions={}; ROOT o = f32[20] divide(e, b)""",
    "a path out and back": """p = f32[20,20] parameter(0); z = f32[] constant(0); s = f32[20] reduce(p, z), dimensions={1}, to_apply=add
        b = f32[20,20] broadcast(s), dimensions={0}; d = f32[20,20] subtract(p, b); v = f32[20,20] transpose(d), dimensions={1,0}; e = f32[20,20] exponential(v); m = f32[20,20] reverse(e), dimensions={0}
        x = f32[20,20] tanh(d); ROOT o = f32[20,20] add(x, m)""",
    "columns": """p = f32[20,20] parameter(0); z = f32[] constant(0); s = f32[20] reduce(p, z), dimensions={0}, to_apply=add
        b = f32[20,20] broadcast(s), dimensions={1}; ROOT o = f32[20,20] divide(p, b)""",
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_groups_that_are_not_merged(name):
    compiled = check(module(APART[name]), RNG.normal(size=(20, 20)).astype(np.float32), ulp=512)
    assert len(compiled.steps) > 1


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("columns", [8300, 20_000, 20_001])
def test_long_rows_keep_their_values_where_a_result_will_be(columns):
    for name in ("softmax", "softmax and its largest", "root mean square of a sum"):
        args, text = arguments(name, 3, columns), program(name, 3, columns)
        together = check(text, *args, ulp=64)
        assert len(together.steps) == 1
        for a, b in zip(together(*args), build(text, apart=True)(*args), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name,dtype", [("sines of rows", "f32"), ("softmax", "bf16")])
def test_long_rows_stay_apart_if_there_is_no_room(name, dtype):
    compiled = build(program(name, 3, 20_000, dtype))
    assert all(np.isfinite(out.astype(np.float32)).all() for out in compiled(*arguments(name, 3, 20_000, dtype)))
    assert len(compiled.steps) > 1
    (group,) = (g for g in compiled.groups if g.kind == "row")
    assert any("more bytes of buffers" in str(r) for r in group.reasons)


def test_integers():
    lines = """p = s32[30,60] parameter(0); z = s32[] constant(7); s = s32[30] reduce(p, z), dimensions={1}, to_apply=add
        x = s32[30] reduce(p, z), dimensions={1}, to_apply=maximum; a = s32[30] add(s, x); b = s32[30,60] broadcast(a), dimensions={0}
        ROOT o = s32[30,60] subtract(p, b)"""
    compiled = check(module(lines, "s32"), RNG.integers(-(2**31), 2**31, (30, 60)).astype(np.int32))
    assert len(compiled.steps) == 1
