"""Compiled code against eager kernels at the ends of ranges, infinities, NaN and signed zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import check
from support.graphs.kernel_runs import fits, op_def, types_of
from support.graphs.kernel_runs import run as eager
from support.graphs.kernel_samples import ELEMENTWISE

import cyxla
from cyxla.core.catalogue import load_catalogue
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.tf2xla.xla_backends import XLA_INTERPRETER_JIT
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

load_catalogue()
XLA = XlaOpRegistry.global_()
XLA.register_compilation_kernels()

FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    1e-8,
    1e-3,
    3.3,
    -7.7,
    20.0,
    88.0,
    -100.0,
    3e4,
    np.inf,
    -np.inf,
    np.nan,
]
KINDS = ("float", "double", "half", "int32", "int8", "uint8", "complex64")
TOLERANCE = {"float16": 4e-3, "float32": 3e-5, "complex64": 1e-4}
WHOLE = {"L2Loss", "Where", "Size", "Rank", "Shape"}  # not element by element
# Where compiled code goes another way, as XLA does.
APART = {
    "Cast": "floats beyond the range of integers become the nearest one, NaN becomes 0",
    "Digamma": "a pole is NaN",
    "EluGrad": "NaN in the result makes the gradient NaN",
    "Igamma": "outside of the domain is NaN",
    "IgammaGradA": "outside of the domain is NaN",
    "Igammac": "outside of the domain is NaN",
    "Polygamma": "a pole is NaN",
    "Zeta": "a pole is NaN",
}
DIVIDES = {"Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"}  # by 0: an error beside a value
POWERS = {"Pow"}  # integers to negative powers: an error beside a value


def values(dtype: np.dtype[Any], positive: bool) -> np.ndarray[Any, Any]:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        found = np.unique(np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max // 2, info.max], dtype))
        return found[found > 0] if positive else found
    if dtype.kind == "c":
        return np.array([complex(a, b) for a in FLOATS[2:13] for b in (0.0, 1.0, -0.7)], dtype)
    return np.array(FLOATS).astype(dtype)


def cases(op: str) -> list[tuple[dict[str, DataType], list[np.ndarray[Any, Any]]]]:
    found = []
    args = op_def(op).input_arg
    for types in types_of(op, XLA_INTERPRETER_JIT):
        if types in [t for t, _ in found] or not fits(op, types) or not {t.text for t in types.values()} & set(KINDS):
            continue
        if len(types) == 1 and types not in list(types_of(op)):
            continue
        dtypes = [(types[a.type_attr] if a.type_attr else a.type).numpy for a in args]
        whole = all(d.kind in "iu" for d in map(np.dtype, dtypes))
        inputs = [values(np.dtype(d), whole and k == 1 and op in DIVIDES | POWERS) for k, d in enumerate(dtypes)]
        if len(inputs) == 2:
            inputs = [grid.reshape(-1) for grid in np.meshgrid(*inputs, indexing="ij")]
        found.append((types, inputs))
    return found


def is_elementwise(op: str) -> bool:
    args = op_def(op).input_arg
    plain = not any(a.number_attr or a.type_list_attr or a.type is DataType.DT_BOOL for a in args)
    return bool(XLA.registrations(op)) and op not in WHOLE and plain and len(args) <= 2


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("op", sorted(op for op in ELEMENTWISE if is_elementwise(op) and op not in APART))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(op: str) -> None:
    graph, feeds, results, todo = Graph(), {}, [], cases(op)
    with graph.as_default():
        for types, inputs in todo:
            made = []
            for arg, value in zip(op_def(op).input_arg, inputs, strict=True):
                tensor = graph.placeholder(types[arg.type_attr] if arg.type_attr else arg.type, value.shape)
                feeds[tensor] = value
                made.append(tensor)
            results.append(apply_op(op, *made, **types))
    found = cyxla.Session(graph, jit="on", platform="interpreter").run(results, feeds) if todo else []
    for (types, inputs), got in zip(todo, found, strict=True):
        for a, b in zip([got], eager(op, inputs, {}, types), strict=True):
            wrong = np.flatnonzero(~close(a, b))[:4]
            detail = [(*(x[i] for x in inputs), a.reshape(-1)[i], b.reshape(-1)[i]) for i in wrong]
            assert not detail, f"{op} of {[t.text for t in types.values()]}: {detail}"


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    assert a.dtype == b.dtype
    if a.dtype.kind not in "fc":
        return a == b
    tolerance = TOLERANCE.get(a.dtype.name, 1e-9)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    both = (np.isnan(x) & np.isnan(y)) | (x == y) | (a.dtype.kind == "c" and ~np.isfinite(x) & ~np.isfinite(y))
    return both | (np.abs(x - y) <= tolerance * np.abs(y) + 4 * np.finfo(a.dtype).tiny + 1e-3 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_in_the_last_bucket(dtype: Any) -> None:
    """No boundary is greater than it."""
    check("Bucketize", np.array([np.nan, -np.inf, np.inf, 0, 1, 2], dtype), boundaries=[0.0, 1.0])


@pytest.mark.parametrize("target", ["int32", "uint8", "float"])
def test_the_bits_of_a_scalar(target: str) -> None:
    check("Bitcast", np.float32(1.5), type=target)
