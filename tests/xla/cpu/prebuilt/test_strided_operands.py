"""Prebuilt element-wise functions read broadcasts, slices and transposes without a copy, and clamp in one call."""

import re

import numpy as np
import pytest
from support.hlo.random_steps import same_bits

import cyxla
from cyxla.xla.cpu.prebuilt import program as prebuilt_program
from cyxla.xla.service import CompileOptions

TYPES = ("pred", "s8", "bf16", "f32", "f64", "c128")
ROWS = (63, 64, 65, 100, 128, 191)

# lines after the parameters x[m,n], r[n], c[m], w[m+2,n+3] of a type, and the number of moves: copies
PROGRAMS = {
    "a row": ("b = {t}[{m},{n}] broadcast(r), dimensions={{1}} ROOT y = {t}[{m},{n}] {op}(x, b)", 0),
    "a column": ("b = {t}[{m},{n}] broadcast(c), dimensions={{0}} ROOT y = {t}[{m},{n}] {op}(b, x)", 0),
    "a row and a column": (
        "b = {t}[{m},{n}] broadcast(r), dimensions={{1}} d = {t}[{m},{n}] broadcast(c), dimensions={{0}} "
        "ROOT y = {t}[{m},{n}] {op}(b, d)", 0),
    "a row twice": ("b = {t}[{m},{n}] broadcast(r), dimensions={{1}} ROOT y = {t}[{m},{n}] {op}(b, b)", 0),
    "a row that is computed": (
        "s = {t}[{n}] {op}(r, r) b = {t}[{m},{n}] broadcast(s), dimensions={{1}} "
        "u = {t}[{m},{n}] {op}(x, b) ROOT y = {t}[{m},{n}] {op}(u, b)", 0),
    "a row that is a result": (
        "b = {t}[{m},{n}] broadcast(r), dimensions={{1}} s = {t}[{m},{n}] {op}(x, b) "
        "ROOT y = ({t}[{m},{n}], {t}[{m},{n}]) tuple(s, b)", 1),
    "a row that is also turned": (
        "b = {t}[{m},{n}] broadcast(r), dimensions={{1}} s = {t}[{m},{n}] {op}(x, b) "
        "v = {t}[{n},{m}] transpose(b), dimensions={{1,0}} "
        "ROOT y = ({t}[{m},{n}], {t}[{n},{m}]) tuple(s, v)", 2),
    "a slice": ("s = {t}[{m},{n}] slice(w), slice={{[1:{m}+1], [2:{n}+2]}} ROOT y = {t}[{m},{n}] {op}(x, s)", 0),
    "neighbours": (
        "s = {t}[{m},{n}] slice(w), slice={{[0:{m}], [0:{n}]}} "
        "u = {t}[{m},{n}] slice(w), slice={{[2:{m}+2], [3:{n}+3]}} "
        "ROOT y = {t}[{m},{n}] {op}(s, u)", 0),
    "every other row": (
        "s = {t}[3,{n}] slice(x), slice={{[1:7:2], [0:{n}]}} ROOT y = {t}[3,{n}] {op}(s, s)", 0),
    "every other column": (
        "s = {t}[{m},3] slice(x), slice={{[0:{m}], [1:7:2]}} ROOT y = {t}[{m},3] {op}(s, s)", 1),
    "a slice and a row": (
        "s = {t}[{m},{n}] slice(w), slice={{[0:{m}], [3:{n}+3]}} b = {t}[{m},{n}] broadcast(r), dimensions={{1}} "
        "ROOT y = {t}[{m},{n}] {op}(s, b)", 0),
    "a slice of adjacent rows and a column": (
        "s = {t}[5,{n}] slice(x), slice={{[2:7], [0:{n}]}} f = {t}[5] slice(c), slice={{[0:5]}} "
        "b = {t}[5,{n}] broadcast(f), dimensions={{0}} ROOT y = {t}[5,{n}] {op}(s, b)", 0),
    "a slice that is also a result": (
        "s = {t}[{m},{n}] slice(w), slice={{[1:{m}+1], [2:{n}+2]}} u = {t}[{m},{n}] {op}(x, s) "
        "ROOT y = ({t}[{m},{n}], {t}[{m},{n}]) tuple(s, u)", 1),
    "rows in reverse": ("s = {t}[{m},{n}] reverse(x), dimensions={{0}} ROOT y = {t}[{m},{n}] {op}(x, s)", 0),
    "columns in reverse": ("s = {t}[{m},{n}] reverse(x), dimensions={{1}} ROOT y = {t}[{m},{n}] {op}(x, s)", 1),
    "transposed planes": (
        "a = {t}[2,{m},{n}] broadcast(x), dimensions={{1,2}} d = {t}[2,{m},{n}] broadcast(r), dimensions={{2}} "
        "e = {t}[2,{m},{n}] {op}(a, d) g = {t}[{m},2,{n}] transpose(e), dimensions={{1,0,2}} "
        "ROOT y = {t}[{m},2,{n}] {op}(g, g)", 0),
}  # fmt: skip


def parsed(text, t, m, n):
    parameters = (
        f"x = {t}[{m},{n}] parameter(0) r = {t}[{n}] parameter(1) c = {t}[{m}] parameter(2) "
        f"w = {t}[{m + 2},{n + 3}] parameter(3) "
    )
    text = text.format(t=t, m=m, n=n, op="xor" if t in ("pred", "s8") else "subtract")
    text = re.sub(r"\d+\+\d+", lambda added: str(sum(map(int, added[0].split("+")))), text)
    return cyxla.hlo.parse_module("HloModule t\nENTRY e { " + parameters + text + " }")


def given(module):
    rng = np.random.default_rng(0)
    shapes = [p.shape for p in module.parameters]
    return [(rng.standard_normal(s.dims) * 3).astype(s.dtype.numpy_dtype) for s in shapes]


def prebuilt(module):
    return prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12, exact=False)


def expected(module):
    return cyxla.compile(module, platform="interpreter")


def moves(program):
    return sum(int(line.split(" x")[1]) for line in program.explain().splitlines() if line.startswith("  move_"))


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operands(name, t):
    text, count = PROGRAMS[name]
    for n in ROWS:
        module = parsed(text, t, 7, n)
        first, arrays = prebuilt(module), given(module)
        assert same_bits(first(*arrays), expected(module)(*arrays))
        assert moves(first) == count if n >= 64 else moves(first) > 0, n


@pytest.mark.parametrize("n", [100, 1000, 40000])
def test_tasks_that_begin_within_rows(n):
    module = parsed(PROGRAMS["a row and a column"][0], "f32", 100000 // n + 1, n)
    arrays = given(module)
    assert same_bits(prebuilt(module)(*arrays), expected(module)(*arrays))


def test_rows_of_several_lengths():
    module = cyxla.hlo.parse_module("""HloModule t
ENTRY e { r = f32[80] parameter(0) q = f32[3,80] parameter(1) x = f32[2,3,80] parameter(2)
 b = f32[2,3,80] broadcast(r), dimensions={2} d = f32[2,3,80] broadcast(q), dimensions={1,2}
 k = f32[2,3,80] broadcast(q), dimensions={1,2} s = f32[2,3,80] add(b, d) ROOT y = f32[2,3,80] multiply(s, x) }""")
    first, arrays = prebuilt(module), given(module)
    assert moves(first) == 0
    assert same_bits(first(*arrays), expected(module)(*arrays))


SPECIAL = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5, -1.5, 5e-324, 3.0])
CLAMPS = {
    "a pair": ("m = f64[10] maximum(x, l) ROOT y = f64[10] minimum(m, h)", "clamp x1"),
    "a maximum on the right": ("m = f64[10] maximum(x, l) ROOT y = f64[10] minimum(h, m)", "maximum_f64 x1"),
    "a maximum that is read": (
        "m = f64[10] maximum(x, l) n = f64[10] minimum(m, h) ROOT y = f64[10] add(m, n)", "maximum_f64 x1"),
    "a maximum that is a result": (
        "m = f64[10] maximum(x, l) n = f64[10] minimum(m, h) ROOT y = (f64[10], f64[10]) tuple(m, n)",
        "maximum_f64 x1"),
    "a chain": (
        "m = f64[10] maximum(x, l) n = f64[10] minimum(m, h) o = f64[10] maximum(n, x) ROOT y = f64[10] minimum(o, l)",
        "clamp_f64 x2"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAMPS)
def test_clamps(name):
    text, called = CLAMPS[name]
    parameters = " ".join(f"{p} = f64[10] parameter({k})" for k, p in enumerate("xlh"))
    module = cyxla.hlo.parse_module(f"HloModule t\nENTRY e {{ {parameters} {text} }}")
    first = prebuilt(module)
    assert called.replace("clamp x", "clamp_f64 x") in first.explain()
    for low in SPECIAL:
        for high in SPECIAL:
            arrays = SPECIAL, np.full(10, low), np.full(10, high)
            assert same_bits(first(*arrays), expected(module)(*arrays))


@pytest.mark.parametrize("t", ["u8", "f16", "f32", "s64", "c128"])
@pytest.mark.parametrize("dims", [(1, 17), (15, 33), (16, 16), (40, 7), (3, 19, 21)], ids=str)
def test_transposes(dims, t):
    left, order = ",".join(map(str, dims[::-1])), ",".join(map(str, range(len(dims))[::-1]))
    module = cyxla.hlo.parse_module(f"""HloModule t
ENTRY e {{ x = {t}[{",".join(map(str, dims))}] parameter(0)
 ROOT y = {t}[{left}] transpose(x), dimensions={{{order}}} }}""")
    (x,) = given(module)
    np.testing.assert_array_equal(prebuilt(module)(x), x.T)


BOUNDS = {
    "maximum": "b = {t}[n] broadcast(l), dimensions={{}} ROOT y = {t}[n] maximum(x, b)",
    "maximum on the left": "b = {t}[n] broadcast(l), dimensions={{}} ROOT y = {t}[n] maximum(b, x)",
    "minimum": "b = {t}[n] broadcast(h), dimensions={{}} ROOT y = {t}[n] minimum(x, b)",
    "minimum on the left": "b = {t}[n] broadcast(h), dimensions={{}} ROOT y = {t}[n] minimum(b, x)",
    "clamp": "ROOT y = {t}[n] clamp(l, x, h)",
}


@pytest.mark.parametrize("t", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_that_are_numbers(name, t):
    body = BOUNDS[name].format(t=t).replace("[n]", "[70]")
    module = cyxla.hlo.parse_module(
        f"HloModule t\nENTRY e {{ x = {t}[70] parameter(0) l = {t}[] parameter(1) h = {t}[] parameter(2) {body} }}"
    )
    first, numbers = prebuilt(module), SPECIAL.astype(module.parameters[0].shape.dtype.numpy_dtype)
    for low in numbers:
        for high in numbers:
            arrays = np.tile(numbers, 7), low, high
            assert same_bits(first(*arrays), expected(module)(*arrays)), (low, high)
