"""Sums of floats below 32 bits, on both platforms: they run in a wider type and are rounded once, as XLA's do."""

import numpy as np
import pytest

import cyxla
from cyxla.types import element_type

BODIES = """
plain { x = T[] parameter(0) y = T[] parameter(1) ROOT s = T[] add(x, y) }
widened {
  x = T[] parameter(0) y = T[] parameter(1)
  a = f32[] convert(x) b = f32[] convert(y) s = f32[] add(a, b) ROOT r = T[] convert(s)
}
"""
SUMS = {
    "reduce": "T[2] reduce(x, zero), dimensions={1}, to_apply=plain",
    "reduce in f32": "T[2] reduce(x, zero), dimensions={1}, to_apply=widened",
    "windows": "T[2,2] reduce-window(x, zero), window={size=1x1500 pad=0_0x1_0}, to_apply=plain",
    "windows in f32": "T[2,1] reduce-window(x, zero), window={size=1x1500}, to_apply=widened",
    "running sums": "T[2,1500] reduce-window(x, zero), window={size=1x1500 pad=0_0x1499_0}, to_apply=plain",
    "dot": "T[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "convolution": "T[2,1,1] convolution(image, kernel), window={size=1500}, dim_labels=bf0_oi0->bf0",
}


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e5m2"])
def test_ones_are_all_counted(dtype, backend):
    lines = [f"r{n} = {sum_}" for n, sum_ in enumerate(SUMS.values())]
    results = ", ".join(f"r{n}" for n in range(len(lines)))
    setup = ["x = T[2,1500] parameter(0)", "zero = T[] constant(0)", "image = T[2,1,1500] reshape(x)"]
    setup.append("kernel = T[1,1,1500] slice(image), slice={[0:1],[0:1],[0:1500]}")
    text = BODIES + "ENTRY e {\n" + "\n".join([*setup, *lines, f"ROOT t = tuple({results})"]) + "\n}"
    ones = np.ones((2, 1500), element_type(dtype).numpy_dtype)
    got = cyxla.compile(text.replace("T[", f"{dtype}["), platform=backend)(ones)
    want = np.arange(1, 1501).astype(np.float32).astype(ones.dtype).astype(np.float32)
    for name, sums in zip(SUMS, got, strict=True):
        counted = sums.astype(np.float32).reshape(2, -1)
        expected = want if name == "running sums" else want[[1498, 1499] if name == "windows" else [1499]]
        np.testing.assert_array_equal(counted, np.broadcast_to(expected, counted.shape), err_msg=name)
