"""Products of integers in tiles give the interpreter's bits, for every pair of types, layout and size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree

import cyxla

#: left operand, right operand, result
TYPES = [
    ("s8", "s8", "s32"), ("u8", "s8", "s32"), ("u8", "u8", "u32"), ("s8", "s8", "s8"), ("s4", "u4", "s32"),
    ("s2", "s8", "s16"), ("s16", "s16", "s32"), ("s16", "u8", "s16"), ("u16", "u16", "u32"), ("s16", "u16", "s32"),
    ("s32", "s32", "s32"), ("u32", "u32", "u32"), ("s32", "s8", "s32"), ("s64", "s64", "s64"), ("s8", "s8", "s64"),
    ("u64", "u64", "u64"), ("s32", "s32", "s64"),
]  # fmt: skip
#: (batch, m, k, n), the left operand's and the right operand's contracted dimension
FORMS = {
    "whole tiles": ((1, 24, 40, 128), 1, 0),
    "an odd sum": ((1, 7, 41, 30), 1, 0),
    "several parts of the sum": ((1, 9, 601, 70), 1, 0),
    "several blocks of rows": ((1, 203, 12, 9), 1, 0),
    "fewer rows than a tile": ((1, 4, 33, 100), 1, 0),
    "across": ((1, 50, 20, 67), 0, 1),
    "batches": ((3, 20, 13, 17), 1, 1),
}


def program(types: tuple[str, str, str], sizes: tuple[int, ...], left: int, right: int, epilogue: bool) -> str:
    """A dot, with a sum and a choice behind it if asked."""
    (of_left, of_right, result), (batch, m, k, n) = types, sizes
    b, first, batched = ("", 0, "") if batch == 1 else (f"{batch},", 1, "lhs_batch_dims={0}, rhs_batch_dims={0}, ")
    lhs, rhs = (f"{m},{k}" if left else f"{k},{m}"), (f"{n},{k}" if right else f"{k},{n}")
    attributes = f"{batched}lhs_contracting_dims={{{left + first}}}, rhs_contracting_dims={{{right + first}}}"
    shape = f"{result}[{b}{m},{n}]"
    dot = f"{shape} dot(p0, p1), {attributes}"
    behind = f"  d = {dot}\n  s = {shape} add(d, p2)\n  ROOT r = {shape} maximum(s, d)"
    return f"""HloModule m
ENTRY e {{
  p0 = {of_left}[{b}{lhs}] parameter(0)
  p1 = {of_right}[{b}{rhs}] parameter(1)
  p2 = {shape} parameter(2)
{behind if epilogue else f"  ROOT d = {dot}"}
}}"""


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("epilogue", [False, True], ids=["stored", "epilogue"])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_types(types: tuple[str, str, str], epilogue: bool) -> None:
    source = agree(program(types, (1, 25, 37, 70), 1, 0, epilogue)).c_source
    assert "vector_size" in source


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("types", [("s8", "s8", "s32"), ("s32", "s32", "s32")], ids="-".join)
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, types: tuple[str, str, str]) -> None:
    agree(program(types, *FORMS[name], epilogue=True))


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TYPES),
    st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(0, 300), st.integers(1, 90)),
    st.integers(0, 1),
    st.integers(0, 1),
    st.booleans(),
)
def test_any_sizes(types: tuple[str, str, str], sizes: tuple[int, ...], left: int, right: int, epilogue: bool) -> None:
    agree(program(types, sizes, left, right, epilogue))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_sums_wrap(dtype: type[np.signedinteger]) -> None:
    """The smallest number times itself, so often that the sum leaves the type."""
    info = np.iinfo(dtype)
    name = f"s{info.bits}"
    a = np.full((8, 515), info.min, dtype)
    b = np.full((515, 24), info.min, dtype)
    wide = "s64" if info.bits == 64 else "s32"
    executable = cyxla.compile(program((name, name, wide), (1, 8, 515, 24), 1, 0, False), platform="cpu")
    want = (515 * int(info.min) ** 2 + 2**63) % 2**64 - 2**63
    out = np.asarray(executable(a, b, np.zeros((8, 24), np.int64 if wide == "s64" else np.int32)))
    assert np.array_equal(out, np.full((8, 24), want).astype(out.dtype))
