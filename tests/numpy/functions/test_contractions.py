"""Products of tensors of any labels and shapes agree with NumPy's."""

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.numpy import jit

SIZES = dict(zip("abcdefg", (2, 3, 1, 4, 2, 1, 3), strict=True))


@st.composite
def equations(draw):
    """Draw labels of up to three operands, which may repeat in one, and those of the result."""
    labels = st.lists(st.sampled_from("abcdefg"), max_size=4)
    terms = draw(st.lists(labels, min_size=1, max_size=3))
    used = sorted({n for t in terms for n in t})
    if draw(st.booleans()):
        return ",".join(map("".join, terms))
    result = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    return ",".join(map("".join, terms)) + "->" + "".join(result)


@st.composite
def stacks(draw):
    """Draw shapes of two operands of matmul."""
    batch = [draw(st.sampled_from([0, 1, 2, 3])) for _ in range(draw(st.integers(0, 3)))]
    m, k, n = (draw(st.integers(0, 4)) for _ in "mkn")
    sides = []
    for own in ((m, k), (k, n)):
        front = [1 if draw(st.booleans()) else size for size in batch][draw(st.integers(0, len(batch))) :]
        vector = draw(st.integers(0, 4)) == 0
        sides.append((k,) if vector else (*front, *own))
    return sides


def check(function, *arrays):
    result, want = jit(function, platform="interpreter")(*arrays), function(*arrays)
    assert (np.shape(result), result.dtype) == (np.shape(want), want.dtype)
    np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(equations(), st.sampled_from("dlD"), st.booleans())
def test_einsum(equation, dtype, optimize):
    rng = np.random.default_rng(5)
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.integers(-3, 4, [SIZES[n] for n in term]).astype(dtype) for term in terms]
    check(lambda *x: np.einsum(equation, *x, optimize=optimize), *arrays)


@settings(max_examples=60, deadline=None)
@given(stacks(), st.sampled_from("dl"))
def test_matmul(shapes, dtype):
    rng = np.random.default_rng(5)
    check(np.matmul, *[rng.integers(-3, 4, shape).astype(dtype) for shape in shapes])


def test_bfloat16():
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-3, 4, shape).astype(ml_dtypes.bfloat16) for shape in ((4, 3), (3, 5)))
    for function in (np.matmul, np.dot, lambda x, y: np.outer(x, y), lambda x, y: np.tensordot(x, y, 1)):
        result, want = jit(lambda x, y, f=function: f(x, y), platform="interpreter")(x, y), function(x, y)
        assert result.dtype == want.dtype
        np.testing.assert_array_equal(result.astype(float), want.astype(float))


def test_python_numbers_count_as_arrays():
    x = np.ones(3, np.float32)
    program = jit(lambda x, s: (np.dot(x, s), np.inner(s, x), np.outer(x, s), np.kron(x, s)), platform="interpreter")
    assert [v.dtype for v in program(x, 2.0)] == [np.float64] * 4


def test_einsum_path_equals_numpys():
    x = np.ones((4, 5))
    result = []
    record = result.append.__call__
    jit(lambda x: record(np.einsum_path("ij,kj,kl", x, x, x)) or x, platform="interpreter")(x)
    assert result[0][0] == np.einsum_path("ij,kj,kl", x, x, x)[0]
