"""scaled-dot of native code against the evaluator."""

import numpy as np
import pytest

import cyxla
from cyxla.types import element_type

RNG = np.random.default_rng(5)
ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCH = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
CASES = [
    # result; operands; scales; dimension numbers
    ("f32[2,3]", "f8e4m3fn[2,64]", "f8e4m3fn[64,3]", ["f8e8m0fnu[2,2]", "f8e8m0fnu[2,3]"], ROWS),
    ("bf16[2,3]", "f8e5m2[2,64]", "f8e4m3fn[64,3]", ["f8e8m0fnu[2,2]", "f8e8m0fnu[4,1]"], ROWS),
    ("bf16[2,3]", "bf16[2,8]", "bf16[8,3]", ["bf16[1,4]"], ROWS),
    ("f32[2,3]", "f4e2m1fn[2,32]", "f4e2m1fn[32,3]", ["f8e4m3fn[2,2]", "f8e4m3fn[2,3]"], ROWS),
    ("f16[4,2,3]", "f16[4,2,6]", "f16[4,6,3]", ["f32[4,1,3]", "f32[2,2,3]"], BATCH),
    ("f64[2,3]", "f64[2,8]", "f64[8,3]", ["f64[]", "f64[2,1]"], ROWS),
    ("f64[2,3]", "f64[2,8]", "f64[8,3]", ["f64[1,1]", "f64[1]"], ROWS),
    ("f32[2,3]", "f32[2,0]", "f32[0,3]", ["f32[2,0]", "f32[]"], ROWS),
    ("f32[0,3]", "f32[0,4]", "f32[4,3]", ["f32[0,2]", "f32[2,3]"], ROWS),
    ("c64[2,3]", "c64[2,8]", "c64[8,3]", ["c64[2,4]", "f32[4,3]"], ROWS),
    ("s32[2,3]", "s8[2,8]", "s8[8,3]", ["s8[2,4]", "s8[2,1]"], ROWS),
    ("f32[]", "f32[8]", "f32[8]", ["f32[2]", "f32[8]"], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
]  # fmt: skip


def numbers(shape):
    dtype, _, dims = shape.rstrip("]").partition("[")
    sizes = tuple(int(d) for d in dims.split(",") if d)
    kind = element_type(dtype)
    if kind.is_integer:
        return RNG.integers(-3, 4, sizes).astype(kind.numpy_dtype)
    values = RNG.normal(size=sizes) + (1j * RNG.normal(size=sizes) if kind.is_complex else 0)
    return np.asarray(2.0 ** RNG.integers(-3, 4, sizes) if dtype == "f8e8m0fnu" else values).astype(kind.numpy_dtype)


@pytest.mark.parametrize("result, lhs, rhs, scales, dims", CASES)
def test_native_code_agrees_with_the_evaluator(result, lhs, rhs, scales, dims):
    shapes = [lhs, rhs, *scales]
    lines = [f"p{k} = {s} parameter({k})" for k, s in enumerate(shapes)]
    names = ", ".join(f"p{k}" for k in range(len(shapes)))
    text = f"ENTRY e {{ {' '.join(lines)} ROOT r = {result} scaled-dot({names}), {dims} }}"
    args = [numbers(s) for s in shapes]
    want = cyxla.compile(text, platform="interpreter")(*args)
    got = cyxla.compile(text)(*args)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    step = float(np.finfo(want.dtype).eps) if want.dtype.kind in "fc" and want.dtype.itemsize > 2 else 2.0**-7
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=step, atol=1e-13)


def test_a_scale_beyond_f32():
    """2^127 * 448 is more than f32 has; the other scale brings the product back."""
    text = f"""ENTRY e {{ a = f8e4m3fn[1,2] parameter(0) b = f8e4m3fn[2,1] parameter(1) s = f8e8m0fnu[1,1] parameter(2)
      t = f8e8m0fnu[1,1] parameter(3) ROOT r = f32[1,1] scaled-dot(a, b, s, t), {ROWS} }}"""
    f8, e8 = (element_type(n).numpy_dtype for n in ("f8e4m3fn", "f8e8m0fnu"))
    args = [np.full((1, 2), 448).astype(f8), np.ones((2, 1)).astype(f8)]
    args += [np.full((1, 1), 2.0**127).astype(e8), np.full((1, 1), 2.0**-120).astype(e8)]
    for platform in ("interpreter", "cpu"):
        np.testing.assert_array_equal(cyxla.compile(text, platform=platform)(*args), [[2 * 448 * 2.0**7]])
