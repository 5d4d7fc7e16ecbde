"""Every form of matrix product, stored directly or through an epilogue, agrees with the interpreter."""

# ruff: noqa: E501  programs read best a line at a time

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree

import cyxla
from cyxla.xla.cpu.dot.product import panel_width, tasks

#: name: type, (batch, m, k, n), the left operand's and the right operand's contracted dimension
FORMS = {
    "whole tiles": ("f32", (1, 24, 40, 128), 1, 0),
    "tiles of two heights": ("f32", (1, 128, 30, 64), 1, 0),
    "a cut vector": ("f32", (1, 9, 30, 77), 1, 0),
    "one vector": ("f32", (1, 31, 30, 5), 1, 0),
    "five vectors": ("f32", (1, 31, 30, 80), 1, 0),
    "one row": ("f32", (1, 1, 50, 300), 1, 0),
    "one column": ("f32", (1, 300, 50, 1), 1, 0),
    "links": ("f32", (1, 13, 2100, 70), 1, 0),
    "links of copied panels": ("f32", (1, 70, 2050, 1024), 1, 0),
    "links of a cut vector": ("f64", (1, 7, 1300, 21), 1, 0),
    "rows a page apart": ("f32", (1, 50, 20, 1024), 1, 0),
    "many rows on a page each": ("f64", (1, 70, 600, 530), 1, 0),
    "links of many rows on a page each": ("f32", (2, 70, 1030, 1100), 1, 0),
    "pairs of copied panels": ("f32", (4, 50, 20, 512), 1, 0),
    "pairs, a finer end": ("f32", (1, 780, 9, 2048), 1, 0),
    "pairs in ranges": ("f64", (1, 800, 7, 512), 1, 0),
    "pairs and one, a cut vector": ("f32", (2, 50, 513, 1080), 1, 0),
    "pairs across": ("f32", (8, 40, 20, 256), 1, 1),
    "pairs, left operand across": ("f32", (8, 40, 20, 256), 0, 0),
    "links of pairs": ("f64", (1, 40, 1100, 1024), 1, 0),
    "slabs of a large left operand": ("f32", (1, 4100, 1030, 70), 1, 0),
    "slabs, left operand across": ("f64", (1, 4224, 520, 33), 0, 1),
    "right operand across": ("f32", (1, 50, 20, 100), 1, 1),
    "left operand across": ("f32", (1, 50, 20, 100), 0, 0),
    "large left operand across": ("f32", (1, 70, 260, 130), 0, 0),
    "both across": ("f64", (1, 50, 21, 33), 0, 1),
    "few rows along the sum": ("f32", (1, 3, 301, 37), 1, 1),
    "streamed": ("f32", (1, 16, 300, 2050), 1, 0),
    "one streamed row": ("f32", (1, 1, 300, 2050), 1, 0),
    "one row in parts": ("f32", (1, 1, 2500, 1701), 1, 0),
    "few rows in parts": ("f64", (1, 3, 2600, 821), 1, 0),
    "few rows in parts, left operand across": ("f32", (2, 2, 2111, 2000), 0, 0),
    "a row of one tile, in parts": ("f32", (1, 1, 40000, 112), 1, 0),
    "sum of rows, batches": ("f32", (3, 1, 103, 601), 1, 0),
    "sum of rows, left operand across": ("f64", (1, 1, 50, 1025), 0, 0),
    "sum of no rows": ("f32", (1, 1, 0, 300), 1, 0),
    "streamed, several groups": ("f64", (1, 5, 70, 4100), 1, 0),
    "batches": ("f32", (5, 20, 30, 64), 1, 0),
    "batches, right operand across": ("f32", (6, 33, 16, 40), 1, 1),
    "nothing to add up": ("f32", (1, 9, 0, 30), 1, 0),
}


def program(form: tuple[Any, ...], epilogue: bool) -> str:
    """A dot, with a bias and a residual behind it if asked."""
    dtype, (batch, m, k, n), left, right = form
    b, first, batched = ("", 0, "") if batch == 1 else (f"{batch},", 1, "lhs_batch_dims={0}, rhs_batch_dims={0}, ")
    lhs, rhs = (f"{m},{k}" if left else f"{k},{m}"), (f"{n},{k}" if right else f"{k},{n}")
    attributes = f"{batched}lhs_contracting_dims={{{left + first}}}, rhs_contracting_dims={{{right + first}}}"
    shape = f"{dtype}[{b}{m},{n}]"
    dot = f"{shape} dot(p0, p1), {attributes}"
    behind = f"""  d = {dot}
  b = {shape} broadcast(p2), dimensions={{{1 + first}}}
  s = {shape} add(d, b)
  ROOT r = {shape} multiply(s, p3)"""
    return f"""HloModule m
ENTRY e {{
  p0 = {dtype}[{b}{lhs}] parameter(0)
  p1 = {dtype}[{b}{rhs}] parameter(1)
  p2 = {dtype}[{n}] parameter(2)
  p3 = {shape} parameter(3)
{behind if epilogue else f"  ROOT d = {dot}"}
}}"""


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("epilogue", [False, True], ids=["stored", "epilogue"])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, epilogue: bool) -> None:
    executable = agree(program(FORMS[name], epilogue), ulp=1 << 10, floor=16.0)
    assert "KERNEL" not in executable.c_source


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["f32", "f64"]),
    st.tuples(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.integers(1, 200)),
    st.integers(0, 1),
    st.integers(0, 1),
    st.booleans(),
)
def test_any_sizes(dtype: str, sizes: tuple[int, ...], left: int, right: int, epilogue: bool) -> None:
    agree(program((dtype, sizes, left, right), epilogue), ulp=1 << 10, floor=16.0)


COMPLEX = {
    "a matrix": ("c64[20,30]", "c64[30,40]", "c64[20,40] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "batches": ("c128[3,16,20]", "c128[3,22,16]", "c128[3,20,22] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                "lhs_contracting_dims={1}, rhs_contracting_dims={2}"),
    "several dimensions": ("c64[4,6,20]", "c64[6,5,4,8]", "c64[20,5,8] dot(p0, p1), lhs_contracting_dims={0,1}, rhs_contracting_dims={2,0}"),
    "few rows": ("c64[3,90]", "c64[90,40]", "c64[3,40] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "a vector": ("c64[300,90]", "c64[90]", "c64[300] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name: str) -> None:
    """Large complex products are real ones of twice the size."""
    lhs, rhs, line = COMPLEX[name]
    text = f"HloModule m\nENTRY e {{\n  p0 = {lhs} parameter(0)\n  p1 = {rhs} parameter(1)\n  ROOT d = {line}\n}}"
    source = agree(text, ulp=1 << 10, floor=64.0).c_source
    tiles = "_v __attribute__((vector_size" in source or "dot, dot_tiles" in source
    assert tiles == (name not in ("few rows", "a vector"))


PANELS = """HloModule m
ENTRY e {{
  x = {t}[{m},{k}] parameter(0)
  w = {t}[{p},{k},{width}] parameter(1)
  b = {t}[{n}] parameter(2)
  d = {t}[{m},{p},{width}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  r = {t}[{m},{n}] reshape(d)
  c = {t}[{m},{n}] broadcast(b), dimensions={{1}}
  ROOT s = {t}[{m},{n}] add(r, c)
}}"""


@pytest.mark.parametrize(
    "dtype, m, k, p, width",
    [("f32", 50, 40, 3, 64), ("f32", 1, 40, 3, 64), ("f64", 13, 1500, 2, 32), ("f32", 20, 30, 1, 16),
     ("f32", 64, 1100, 5, 48), ("f32", 40, 1300, 4, 64), ("f32", 70, 260, 4, 64), ("f32", 9, 20, 3, 10)],
)  # fmt: skip
def test_panels(dtype: str, m: int, k: int, p: int, width: int) -> None:
    """A right operand that lies in panels is read as it is; other widths are laid out anew."""
    text = PANELS.format(t=dtype, m=m, k=k, p=p, width=width, n=p * width)
    source = agree(text, ulp=1 << 10, floor=16.0).c_source
    assert ("transpose" in source) == (width == 10)


@pytest.mark.parametrize(
    "dtype, n, widths", [("f32", 768, {64, 16}), ("f64", 96, {32, 16}), ("f32", 1000, {None}), ("s32", 64, {None})]
)
def test_width_of_panels(dtype: str, n: int, widths: set[int | None]) -> None:
    found = panel_width(cyxla.types.element_type(dtype), 8, 64, n)
    assert found is None or n % found == 0
    assert found in widths or found is not None


def test_tasks_are_level() -> None:
    assert [tasks(ns, 1 << 20) for ns in (10.0, 11_999.0, 12_000.0, 90_000.0, 1e9)] == [1, 1, 2, 4, 256]
    assert tasks(1e9, 7) == 4


def test_bits_do_not_depend_on_tasks() -> None:
    """A row of a large product has the bits that it has with other rows beside it."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((300, 700)).astype(np.float32), rng.standard_normal((700, 200)).astype(np.float32)
    zeros = np.zeros(200, np.float32)
    whole = cyxla.compile(program(("f32", (1, 300, 700, 200), 1, 0), True))
    part = cyxla.compile(program(("f32", (1, 100, 700, 200), 1, 0), True))
    ones = np.ones((300, 200), np.float32)
    np.testing.assert_array_equal(
        np.asarray(whole(a, b, zeros, ones))[:100], np.asarray(part(a[:100], b, zeros, ones[:100]))
    )


@pytest.mark.parametrize("dtype", ["c64", "c128", "s32", "s8", "u64"])
def test_plain_vectors(dtype: str) -> None:
    """Sums along the contracted dimension, of other types than real floats."""
    text = """HloModule m
ENTRY e {{
  x = {t}[2,9,150] parameter(0)
  y = {t}[2,150] parameter(1)
  z = {t}[2,9] parameter(2)
  d = {t}[2,9] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  a = {t}[2,9] add(d, z)
  ROOT r = ({t}[2,9], {t}[2,9]) tuple(d, a)
}}"""
    agree(text.format(t=dtype), ulp=1 << 10, floor=64.0)


@pytest.mark.parametrize("dtype, dims", [("f32", "600001"), ("f64", "300000"), ("f64", "600,500")])
def test_long_vectors_are_cut(dtype: str, dims: str) -> None:
    each = "{0,1}" if "," in dims else "{0}"
    text = f"""HloModule m
ENTRY e {{
  p0 = {dtype}[{dims}] parameter(0)
  p1 = {dtype}[{dims}] parameter(1)
  ROOT r = {dtype}[] dot(p0, p1), lhs_contracting_dims={each}, rhs_contracting_dims={each}
}}"""
    rng, shape = np.random.default_rng(0), tuple(map(int, dims.split(",")))
    x, y = (rng.standard_normal(shape).astype({"f32": np.float32, "f64": np.float64}[dtype]) for _ in "xy")
    compiled = cyxla.compile(text)
    exact = np.multiply(x, y, dtype=np.float64)
    assert abs(float(compiled(x, y)) - exact.sum()) <= np.finfo(x.dtype).eps * np.abs(exact).sum() / 10
    assert "parallel_for(ctx" in compiled.c_source


#: name: vector, array, part, result, starts, the vector's and the part's contracted dimensions
PARTS = {
    "columns, by rows": ("[200]", "[200,300]", "200,250", "[250]", "zero, i", "0", "0"),
    "columns, by columns": ("[250]", "[200,300]", "200,250", "[200]", "zero, i", "0", "1"),
    "rows of a matrix of one row": ("[1,100]", "[700,400]", "100,400", "[1,400]", "i, zero", "1", "0"),
    "three dimensions": ("[10,40]", "[90,40,100]", "10,40,100", "[100]", "i, zero, zero", "0,1", "0,1"),
}


@pytest.mark.parametrize("start", [-1, 7, 10_000])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_arrays_are_not_copied(name: str, dtype: str, start: int) -> None:
    vector, array, part, result, starts, left, right = PARTS[name]
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}{vector} parameter(0)
  a = {dtype}{array} parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  part = {dtype}[{part}] dynamic-slice(a, {starts}), dynamic_slice_sizes={{{part}}}
  ROOT d = {dtype}{result} dot(x, part), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}
}}
"""
    rng, numpy_dtype = np.random.default_rng(0), {"f32": np.float32, "f64": np.float64}[dtype]
    x, a = (rng.standard_normal(json.loads(dims)).astype(numpy_dtype) for dims in (vector, array))
    compiled, oracle = (cyxla.compile(text, platform=p) for p in ("cpu", "interpreter"))
    tolerance = 1e-3 if dtype == "f32" else 1e-11
    np.testing.assert_allclose(compiled(x, a, np.int32(start)), oracle(x, a, np.int32(start)), tolerance, tolerance)
    assert {k.kind for k in compiled.explanation().kernels} == {"reduce"}
