"""Functions mapped over an axis by `cyxla.vmap`, beside the same computation written for arrays with that axis."""

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
W, X, M = RNG.normal(size=(64, 64)), RNG.normal(size=(256, 64)), RNG.normal(size=(256, 64, 16))
SPD = M[:, :16] @ M[:, :16].transpose(0, 2, 1) + np.eye(16)
INDICES = RNG.integers(0, 64, 256)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


CASES = {
    "W @ x": (lambda x: W @ x, lambda x: x @ W.T, (X,)),
    "W @ m": (lambda m: W @ m, lambda m: W @ m, (M,)),
    "x @ y": (np.dot, lambda x, y: np.einsum("bi,bi->b", x, y), (X, X + 1)),
    "softmax(x)": (softmax, softmax, (X,)),
    "sort(x)": (np.sort, lambda x: np.sort(x, -1), (X,)),
    "x[i]": (lambda x, i: x[i], lambda x, i: np.take_along_axis(x, i[:, None], 1)[:, 0], (X, INDICES)),
    "x[x > 0].sum()": (lambda x: x[x > 0].sum(), lambda x: np.where(x > 0, x, 0).sum(1), (X,)),
    "solve(a, b)": (
        np.linalg.solve, lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], (SPD, X[:, :16].copy())
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_vmap(name, claim, best_time):
    of_element, of_batch, arrays = CASES[name]
    mapped, written = cyxla.jit(cyxla.vmap(of_element)), cyxla.jit(of_batch)
    np.testing.assert_allclose(mapped(*arrays), written(*arrays), 1e-9, 1e-9)
    for function in (mapped, written):
        function.wait()
    claim(f"{name}, vmap", best_time(lambda: mapped(*arrays)) * 1e6, "us")
    claim(f"{name}, written for the batch", best_time(lambda: written(*arrays)) * 1e6, "us")
