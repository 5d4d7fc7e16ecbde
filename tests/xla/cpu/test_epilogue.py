"""Epilogues are fused into contractions and agree with the interpreter."""

# ruff: noqa: E501  programs read best a line at a time

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree

import cyxla
from cyxla.xla.cpu.plan.fusion import fuse
from cyxla.xla.hlo import parse_module

MATMUL = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def program(parameters: list[str], lines: str) -> str:
    """A program of one line an instruction; the last one is its result."""
    body = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    *first, last = [line.strip() for line in lines.strip().splitlines()]
    return "\n".join(["HloModule m", "ENTRY e {", *body, *first, f"ROOT {last}", "}"])


#: name: parameters, lines, kinds of the groups
CASES = {
    "activation": (["f32[70,33]", "f32[33,90]"], f"""
        d = f32[70,90] dot(p0, p1), {MATMUL}
        t = f32[70,90] tanh(d)""", ["dot"]),
    "bias, gelu": (["f32[70,33]", "f32[33,65]", "f32[65]"], f"""
        d = f32[70,65] dot(p0, p1), {MATMUL}
        b = f32[70,65] broadcast(p2), dimensions={{1}}
        a = f32[70,65] add(d, b)
        e = f32[70,65] erf(a)
        m = f32[70,65] multiply(a, e)""", ["dot"]),
    "rows and columns": (["f64[7,33]", "f64[33,65]", "f64[65]", "f64[7]"], f"""
        d = f64[7,65] dot(p0, p1), {MATMUL}
        b = f64[7,65] broadcast(p2), dimensions={{1}}
        r = f64[7,65] broadcast(p3), dimensions={{0}}
        a = f64[7,65] multiply(d, r)
        s = f64[7,65] add(a, b)""", ["dot"]),
    "reshaped residual": (["f32[24,16]", "f32[16,96]", "f32[2,12,8,12]", "f32[8,12]"], f"""
        d = f32[24,96] dot(p0, p1), {MATMUL}
        r = f32[2,12,8,12] reshape(d)
        b = f32[2,12,8,12] broadcast(p3), dimensions={{2,3}}
        s = f32[2,12,8,12] add(r, b)
        o = f32[2,12,8,12] add(s, p2)""", ["dot"]),
    "rows that do not fit": (["f32[6,5]", "f32[5,20]", "f32[15]"], f"""
        d = f32[6,20] dot(p0, p1), {MATMUL}
        r = f32[8,15] reshape(d)
        b = f32[8,15] broadcast(p2), dimensions={{1}}
        s = f32[8,15] add(r, b)""", ["dot"]),
    "one column": (["f32[70,33]", "f32[33,1]", "f32[70]"], f"""
        d = f32[70,1] dot(p0, p1), {MATMUL}
        r = f32[70] reshape(d)
        s = f32[70] add(r, p2)""", ["dot"]),
    "one row along k": (["f32[1,100]", "f32[300,100]", "f32[300]"], """
        d = f32[1,300] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}
        r = f32[300] reshape(d)
        s = f32[300] add(r, p2)""", ["dot"]),
    "a scalar": (["f32[50]", "f32[50]", "f32[]"], """
        d = f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        s = f32[] add(d, p2)""", ["dot"]),
    "batches": (["f32[3,20,8]", "f32[3,8,70]", "f32[]"], """
        d = f32[3,20,70] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
        b = f32[3,20,70] broadcast(p2), dimensions={}
        i = s32[3,20,70] iota(), iota_dimension=2
        j = s32[3,20,70] iota(), iota_dimension=1
        c = pred[3,20,70] compare(i, j), direction=LE
        s = f32[3,20,70] select(c, d, b)""", ["dot"]),
    "integers": (["s8[20,30]", "s8[30,70]", "s32[70]"], f"""
        d = s32[20,70] dot(p0, p1), {MATMUL}
        b = s32[20,70] broadcast(p2), dimensions={{1}}
        s = s32[20,70] add(d, b)
        f = f32[20,70] convert(s)""", ["dot"]),
    "complex": (["c64[9,30]", "c64[30,70]", "c64[9,70]"], f"""
        d = c64[9,70] dot(p0, p1), {MATMUL}
        s = c64[9,70] add(d, p2)""", ["dot"]),
    "two outputs": (["f32[20,30]", "f32[30,70]"], f"""
        d = f32[20,70] dot(p0, p1), {MATMUL}
        t = f32[20,70] tanh(d)
        r = (f32[20,70], f32[20,70]) tuple(d, t)""", ["dot"]),
    "a reader that is waited for": (["f32[20,30]", "f32[30,20]"], f"""
        d = f32[20,20] dot(p0, p1), {MATMUL}
        e = f32[20,20] dot(d, d), {MATMUL}
        s = f32[20,20] add(d, e)""", ["dot", "dot"]),
    "operand and residual are one": (["f32[20,20]", "f32[20,20]"], f"""
        d = f32[20,20] dot(p0, p1), {MATMUL}
        s = f32[20,20] add(d, p0)""", ["dot"]),
    "transposed": (["f32[20,30]", "f32[30,70]"], f"""
        d = f32[20,70] dot(p0, p1), {MATMUL}
        t = f32[70,20] transpose(d), dimensions={{1,0}}
        s = f32[70,20] tanh(t)""", ["dot", "loop"]),
    "a bfloat16 layer": (["bf16[20,30]", "bf16[30,70]", "bf16[70]"], f"""
        d = bf16[20,70] dot(p0, p1), {MATMUL}
        b = bf16[20,70] broadcast(p2), dimensions={{1}}
        s = bf16[20,70] add(d, b)""", None),
    "a table": (["f32[20,30]", "f32[30,4]"], f"""
        d = f32[20,4] dot(p0, p1), {MATMUL}
        c = f32[4] constant({{1, 2, 3, 4}})
        b = f32[20,4] broadcast(c), dimensions={{1}}
        s = f32[20,4] add(d, b)""", ["dot"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    parameters, lines, kinds = CASES[name]
    text = program(parameters, lines)
    if kinds is not None:
        assert [g.kind for g in fuse(parse_module(text).entry)] == kinds
    agree(text, ulp=256, floor=1.0)


def test_reasons_are_kept():
    parameters, lines, _ = CASES["transposed"]
    groups = fuse(parse_module(program(parameters, lines)).entry)
    assert any("dot f32[20,70]: its elements are not read in their order" in str(r) for g in groups for r in g.reasons)


def test_rare_arguments():
    """Functions with a second form for rare arguments get it, for those alone."""
    lines = f"""
        d = f32[40,70] dot(p0, p1), {MATMUL}
        c = f32[] constant(1e30)
        b = f32[40,70] broadcast(c), dimensions={{}}
        m = f32[40,70] multiply(d, b)
        s = f32[40,70] sine(m)
        t = f32[40,70] add(s, p2)"""
    agree(program(["f32[40,1]", "f32[1,70]", "f32[40,70]"], lines), ulp=4, floor=1.0)


def test_residual_in_place():
    """A residual that dies is overwritten, where nothing else reads it."""
    lines = f"""
        t = f32[40,70] tanh(p2)
        d = f32[40,70] dot(p0, p1), {MATMUL}
        s = f32[40,70] add(d, t)"""
    agree(program(["f32[40,5]", "f32[5,70]", "f32[40,70]"], lines), ulp=64, floor=1.0)


@st.composite
def layers(draw):
    """A dot of any sizes with a chain behind it."""
    m, k, n = draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 150))
    dtype = draw(st.sampled_from(["f32", "f64", "s32", "c64"]))
    shape = f"{dtype}[{m},{n}]"
    lines = [f"v0 = {shape} dot(p0, p1), {MATMUL}"]
    for i in range(1, draw(st.integers(2, 6))):
        lines.append(draw(st.sampled_from([
            f"v{i} = {shape} add(v{i - 1}, p2)", f"v{i} = {shape} multiply(v{i - 1}, v{draw(st.integers(0, i - 1))})",
            f"v{i} = {shape} negate(v{i - 1})",
            f"v{i}b = {shape} broadcast(p3), dimensions={{1}}\nv{i} = {shape} subtract(v{i - 1}, v{i}b)",
        ])))  # fmt: skip
    return program([f"{dtype}[{m},{k}]", f"{dtype}[{k},{n}]", shape, f"{dtype}[{n}]"], "\n".join(lines))


@settings(max_examples=12, deadline=None)
@given(layers())
def test_any_layer(text):
    agree(text, ulp=1 << 12, floor=100.0)


def test_the_loop_is_in_vectors():
    """A chain behind a dot has one function for whole tiles, and one for the rest."""
    parameters, lines, _ = CASES["bias, gelu"]
    source = cyxla.compile(program(parameters, lines)).c_source
    widths = {int(n) for n in re.findall(r"_after(\d+)\(", source)}
    assert len(widths) == 2
    assert max(widths) % 16 == 0
