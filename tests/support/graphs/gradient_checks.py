"""Gradients of ops against central differences in float64."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

SEED = 1907


@dataclass(frozen=True)
class Case:
    """An op with its attributes, and inputs in order (a list for an input that is a list).

    `wrt` holds the indices of the flattened inputs to differentiate by; None stands for all float and complex inputs.
    """

    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    wrt: tuple[int, ...] | None = None
    outputs: tuple[int, ...] | None = None  # indices of weighted outputs; None stands for all float and complex ones
    step: float = 1e-5
    tolerance: float = 2e-6
    note: str = ""

    def __str__(self) -> str:
        return f"{self.op}{'-' if self.note else ''}{self.note}"


def points(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = SEED) -> np.ndarray:
    """Return random numbers, none of which is a multiple of another, so that no op is tested at a kink."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def complex_points(*shape: int, seed: int = SEED) -> np.ndarray:
    """Return random complex numbers."""
    return points(*shape, seed=seed) + 1j * points(*shape, seed=seed + 1)


def _flat(value: Any) -> list[Any]:
    return [v for item in value for v in (item if isinstance(item, list) else [item])]


def _is_continuous(array: np.ndarray) -> bool:
    return array.dtype.kind in "fc"


def check_gradient(case: Case) -> None:
    """Compare the gradient of a random weighting of an op's outputs with central differences."""
    graph = Graph()
    arrays = [np.asarray(a) for a in _flat(case.inputs)]
    with graph.as_default():
        given = [_placeholders(graph, value) for value in case.inputs]
        flat = _flat(given)
        result = apply_op(case.op, *given, **case.attrs)
        outputs = [result] if not isinstance(result, (list, tuple)) else _flat(result)
    wrt = [i for i, a in enumerate(arrays) if _is_continuous(a)] if case.wrt is None else list(case.wrt)
    session = Session(graph)
    feeds = dict(zip(flat, arrays, strict=True))
    values = session.run(outputs, feeds)
    chosen = [i for i, v in enumerate(values) if v.dtype.kind in "fc"] if case.outputs is None else case.outputs
    weights = [np.where(np.isfinite(values[i]), _weight(values[i], i), 0) for i in chosen]
    ys = [outputs[i] for i in chosen]
    grads = gradients(ys, [flat[i] for i in wrt], weights, unconnected="zero")
    session = Session(graph)
    found = session.run(grads, feeds)

    def loss(changed: int, array: np.ndarray) -> float:
        at = session.run(ys, {**feeds, flat[changed]: array})
        return sum(float(np.sum(np.real(np.conj(w[w != 0]) * v[w != 0]))) for w, v in zip(weights, at, strict=True))

    for i, grad in zip(wrt, found, strict=True):
        want = _numeric(loss, i, arrays[i], case.step)
        assert grad.dtype == arrays[i].dtype
        assert grad.shape == arrays[i].shape
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(grad, want, rtol=case.tolerance, atol=case.tolerance * scale, err_msg=f"input {i}")


def _placeholders(graph: Graph, value: Any) -> Any:
    if isinstance(value, list):
        return [_placeholders(graph, v) for v in value]
    array = np.asarray(value)
    if _is_continuous(array):
        return graph.placeholder(array.dtype, array.shape)
    return graph.constant(array)


def _weight(value: np.ndarray, seed: int) -> np.ndarray:
    shape = value.shape
    weight = points(*shape, seed=seed) if value.dtype.kind == "f" else complex_points(*shape, seed=seed)
    return weight.astype(value.dtype)


def _numeric(loss: Any, i: int, array: np.ndarray, step: float) -> np.ndarray:
    """Return central differences, taken separately for real and imaginary parts."""
    want = np.zeros_like(array)
    units = (1.0, 1j) if array.dtype.kind == "c" else (1.0,)
    for place in np.ndindex(array.shape):
        for unit in units:
            sides = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * step * unit
                sides.append(loss(i, moved))
            want[place] += unit * (sides[0] - sides[1]) / (2 * step)
    return want
