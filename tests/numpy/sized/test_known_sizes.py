"""Arrays of run-time size beside arrays of known size: sizes that agree, are 1, or differ."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

RNG = np.random.default_rng(0)
X = RNG.random((7, 4))
ARGUMENTS = {
    "x": RNG.random(7), "X": X, "i": RNG.integers(0, 5, 7), "f": X[:, 1].astype("f4"), "w": RNG.random(3),
    "A": RNG.random((4, 3)), "S": RNG.random((3, 3)), "one": RNG.random(1), "b": np.array([True, False, True]),
}  # fmt: skip
COUNTS = (3, 1, 0, 5)
EXPRESSIONS = """
x[m].reshape(3) | x[m].reshape((3,)) + w | x[m].reshape(1) | x[m].reshape(0) | x[m].reshape(3, 1) | x[m].reshape(1, 0)
X[m].reshape(12) | X[m].reshape(4, 3) | X[m].T.reshape(12) | X[m][:, 0].reshape(3) | X[m].sum(1).reshape(3)
np.nonzero(m)[0].reshape(3) | np.unique(i[m]).reshape(3) | np.argwhere(m).reshape(3) | x[:n].reshape(3)
x[m].reshape(7) | np.fft.fft(x[m].reshape(3)) | np.diag(x[m].reshape(3)) | np.linalg.inv(X[m][:, :3].reshape(3, 3))
(x[m] > 0).reshape(3) | x[m] + w | w - x[m] | x[m] * S | S @ x[m] | A @ x[m] | x[m] @ S | np.dot(x[m], w)
np.inner(w, x[m]) | np.vdot(x[m], w) | np.outer(w, x[m]) | np.einsum("i,i", x[m], w) | np.einsum("i,ij->j", x[m], S)
np.einsum("ij,i->j", X[m], x[m]) | np.stack([x[m], w]) | np.vstack([x[m], w]) | np.column_stack([x[m], w])
np.where(w > 0.5, x[m], 0) | np.broadcast_to(x[m], (2, 3)) | np.clip(x[m], 0, w) | np.kron(x[m], w)
np.histogram(x[m], weights=w, bins=3) | np.bincount(i[m], weights=w) | np.bincount(i[m], weights=x[m])
np.average(x[m], weights=w) | np.average(X[m], weights=X[:3]) | np.average(X[m], axis=0, weights=X[:3])
np.lexsort((w, x[m])) | np.linalg.vecdot(X[m].T, x[m]) | np.linalg.vecdot(S, X[m][:, :3])
X[m][:, None, :3] @ np.stack([S, S, S]) | np.compress(w > 0.5, x[m]) | x[m][w > 0.5] | np.split(x[m], 3)
np.meshgrid(x[m], w) | np.tensordot(x[m], w, 1) | X[m].T @ w | X[m] * w[:, None] | np.concatenate([X[m], S], 1)
np.concatenate((X[m], S[:2, :1])) | np.vstack((X[m], A[:2])) | np.append(X[m], S[:1], 0) | np.stack((x[m], one))
np.concatenate((f[m], 0.5), axis=None) | np.append(f[m], 2) | np.union1d(f[m], 0.5) | np.concatenate((f[m], [0.5]))
np.corrcoef(x[m], w) | np.cov(x[m], w) | np.allclose(x[m], w) | np.array_equal(x[m], w) | np.array_equiv(x[m], w)
np.array_equiv(x[m], x[:3]) | np.array_equiv(X[m], x[:4]) | np.setxor1d(x[m], x[m]) | np.setxor1d(x[m], x[m][1:])
np.log2(one, x[:n]) | np.add(one, 2, x[:n]) | np.add(x[m], 1, out=x[:n]) | np.nanargmin(X[m], axis=-1)
np.nanargmax(X[m], axis=1) | np.nanargmax(X[m] / X[m].max(), axis=-1, keepdims=True) | np.nansum(x[:n], where=b)
np.sum(x[m], where=b) | np.max(x[m], where=b, initial=0) | np.mean(X[m], 0, where=b[:, None])
np.nanpercentile(i[m], 3) | np.nanpercentile(x[m], [3, 4]) | np.nanquantile(X[m], [0.5], axis=0)
np.take(w, x[m] > 0.5) | np.inner(f[m], 2) | np.dot(f[m], 2.5) | np.isclose(x[m], w, w) | X[m][X[m][:, :3] > 0.3]
X[m].T[np.ones((n, 3)) > 0.3] | X[:, x[:4] > 0.3][b] | X[:, x[:4] > 0.3][:, b] | X[m][:, b] | x[m][b] | x[:n][b]
(x[m] > 0.3).conj() | x[m].conj() | (x[m] * 1j).conj() | np.trapezoid(X[:n], x[:n], axis=0) | np.trapezoid(w, x[m])
np.choose([0, 1, 0], [x[m], w]) | np.hstack([X[m], w[:, None]])
"""


def outcome(function, m, n):
    arguments = {name: value.copy() for name, value in ARGUMENTS.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FallbackWarning)  # of functions that are not compiled
        try:
            return function(m, n, **arguments), arguments
        except Exception as error:
            return error, arguments


def assert_alike(got, want):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        for pair in zip(got, want, strict=True):
            assert_alike(*pair)
        return
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if np.asarray(want).dtype == np.float32 else 1e-9, strict=True)


@pytest.mark.parametrize("text", [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(" | ")])
def test_known_sizes(text):
    namespace = {"np": np}
    exec(f"def function(m, n, {', '.join(ARGUMENTS)}): return {text}", namespace)
    function = namespace["function"]
    compiled = cyxla.jit(function, platform="interpreter", fallback="numpy")
    for count in COUNTS:
        m = np.arange(7) % 3 == 0 if count == 3 else np.arange(7) < count
        (got, changed), (want, wanted) = (outcome(f, m, count) for f in (compiled, function))
        if isinstance(want, Exception):
            assert isinstance(got, type(want)), (got, want)
            continue
        assert not isinstance(got, Exception), got
        assert_alike(got, want)
        assert_alike(list(changed.values()), list(wanted.values()))


@pytest.mark.parametrize("count", [3, 2])
def test_a_known_size_on_cpu(count):
    """The rest of the padding is not part of the result."""
    x, m = np.arange(6.0), np.arange(6) < count
    compiled = cyxla.jit(lambda x, m: x[m].reshape(3) + 1, platform="cpu")
    if count == 3:
        np.testing.assert_array_equal(compiled(x, m), [1.0, 2.0, 3.0], strict=True)
    else:
        with pytest.raises(ValueError, match="cannot reshape array of size 2"):
            compiled(x, m)
