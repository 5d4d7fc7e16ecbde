"""Run one op in a graph that is compiled as a whole, and by its eager kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph

Array = np.ndarray[Any, Any]

PLATFORMS = ("interpreter", "cpu")
TOLERANCE = {"e": 4e-3, "E": 3e-2, "f": 2e-5, "d": 1e-10, "F": 2e-5, "D": 1e-10}  # by the character of a dtype


def run(
    op: str, *operands: Any, jit: str = "on", platform: str = "interpreter", known: bool = True, **attrs: Any
) -> list[Array]:
    """Return the outputs of an op on fed arrays, or lists of them; `known` says whether the graph has their shapes."""
    graph, feeds = Graph(), {}

    def placeholder(array: Array) -> Any:
        made = graph.placeholder(as_data_type(array.dtype), array.shape if known else None)
        feeds[made.name] = array
        return made

    with graph.as_default():
        given = [[placeholder(x) for x in o] if isinstance(o, list) else placeholder(np.asarray(o)) for o in operands]
        made = apply_op(op, *given, **attrs)
    outputs = made if isinstance(made, (tuple, list)) else [made]
    return [
        np.asarray(x) for x in cyxla.Session(graph, jit=jit, platform=platform).run([o.name for o in outputs], feeds)
    ]


def check(op: str, *operands: Any, scale: float = 1.0, platforms: Sequence[str] = PLATFORMS, **attrs: Any) -> None:
    """Check that an op compiled for each platform gives the results of its eager kernel."""
    wanted = run(op, *operands, jit="off", **attrs)
    for platform in platforms:
        close(run(op, *operands, platform=platform, **attrs), wanted, scale)


def close(got: Sequence[Array], wanted: Sequence[Array], scale: float = 1.0) -> None:
    """Check that shapes, types and values are equal, floats within the tolerance of their type."""
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        tolerance = TOLERANCE.get(b.dtype.char, 0.0) * scale
        wide = [x.astype(np.complex128) if tolerance else x for x in (a, b)]
        most = float(np.abs(wide[1][np.isfinite(wide[1])]).max(initial=0.0)) if tolerance else 0.0
        if tolerance:
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance * most)
        else:
            np.testing.assert_array_equal(*wide)


def drawn(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Return random floats from -1 to 1, or integers from -5 to 4 (from 0 to 4 for unsigned types)."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -5, 5, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)
