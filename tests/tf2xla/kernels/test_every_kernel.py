"""Each XLA kernel gives the results of the eager kernel, at each type it is registered for."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.graphs.kernel_runs import PLAIN, Attrs, Types, built, fits, flat, op_def, run, samples, types_of
from support.graphs.kernel_samples import ELEMENTWISE, SAMPLES

import cyxla
from cyxla.core.catalogue import load_catalogue
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import FLOAT8, INDEX, INT4, DataType, as_data_type
from cyxla.core.graph.graph import Graph, Tensor
from cyxla.tf2xla.xla_backends import XLA_INTERPRETER_JIT
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

load_catalogue()
XLA = XlaOpRegistry.global_()
XLA.register_compilation_kernels()
FACTS = json.loads(lzma.decompress((Path(__file__).parents[2] / "data" / "xla_kernel_facts.json.xz").read_bytes()))
COMPLEX = ("complex64", "complex128")
TOLERANCE = {"float16": 2e-2, "bfloat16": 1.2e-1, "float32": 1e-4, "complex64": 1e-4}
COMPILED = sorted(op for op in {*ELEMENTWISE, *SAMPLES} if XLA.registrations(op))

# Types that are left out.
_ORDER = "complex numbers have no order"
_GREAT = "the samples' numbers are too great for it, which leaves rows out of order"
NOT_COMPILED = {
    **{(op, t): _ORDER for op in ("LowerBound", "UpperBound", "FloorDiv", "TruncateDiv") for t in COMPLEX},
    **{(op, "int4"): _GREAT for op in ("LowerBound", "UpperBound")},
    **{(op, "bool"): "booleans have no difference" for op in ("InplaceSub", "TensorScatterSub")},
    **{("_FusedConv2D", t): "its operands are others than those of floats" for t in ("int8", "qint8")},
}
# Results that may differ in more than rounding.
FREE = {
    "Qr": "signs",
    "SelfAdjointEigV2": "signs",
    "Svd": "signs",
    "StatelessParameterizedTruncatedNormal": "other numbers of the same distribution",
}


class Run(NamedTuple):
    """An op on values, at types."""

    op: str
    values: list[Any]
    attrs: Attrs
    types: Types

    def __str__(self) -> str:
        shapes = [np.shape(v) for v in flat(self.values)]
        return f"{self.op} of { ({k: t.text for k, t in self.types.items()}) } on {shapes} with {self.attrs}"


def runs_of(op: str) -> tuple[list[Run], list[Run]]:
    """The samples at each type that compiles: those that the op has an eager kernel of, and the others."""
    with_eager: list[Run] = []
    without: list[Run] = []
    done: list[Types] = []
    for types in types_of(op, XLA_INTERPRETER_JIT, (*PLAIN, *FLOAT8, *INT4)):
        if types in done or not fits(op, types) or any((op, t.numpy_name) in NOT_COMPILED for t in types.values()):
            continue
        done.append(types)
        runs = with_eager if is_eager(op, types) else without
        some = samples(op)[:1] if only_index_differs(types, done[0]) else samples(op)
        for inputs, attrs in some:
            own = {k: v for k, v in attrs.items() if k not in types}
            if op != "Bitcast" or types["type"].numpy.itemsize <= types["T"].numpy.itemsize:
                runs.append(Run(op, built(op, inputs, types), own, types))
    return with_eager, without


def only_index_differs(types: Types, first: Types) -> bool:
    changed = {k: t for k, t in types.items() if t != first[k]}
    return bool(changed) and "T" not in changed and all(t in INDEX for t in changed.values())


def is_eager(op: str, types: Types) -> bool:
    kernels = [k for k in KernelRegistry.global_().get_registered_kernels_for_op(op) if k.device_type == "CPU"]
    return any(all(t in k.constraints.get(name, (t,)) for name, t in types.items()) for k in kernels)


def held(types: Types) -> Types:
    """Plain integers for quantised ones."""
    return {name: as_data_type(t.text.removeprefix("q")) for name, t in types.items()}


def compiled(runs: list[Run], platform: str) -> list[list[np.ndarray[Any, Any]]]:
    """All runs as one compiled graph."""
    graph = Graph()
    feeds: dict[Tensor, Any] = {}
    with graph.as_default():
        results = [flat(added(graph, one, feeds)) for one in runs]
    values = cyxla.Session(graph, jit="on", platform=platform).run(flat(results), feeds)
    rest = iter(values)
    return [[np.asarray(next(rest)) for _ in tensors] for tensors in results]


def added(graph: Graph, one: Run, feeds: dict[Tensor, Any]) -> Any:
    """A node on placeholders, and on constants where values must be known."""
    constant = XLA.compile_time_constant_input_names(one.op)

    def tensor(value: Any, dtype: DataType, name: str) -> Tensor:
        if name in constant:
            return graph.constant(value, dtype)
        made = graph.placeholder(dtype, value.shape)
        feeds[made] = value
        return made

    inputs: list[Any] = []
    for arg, value in zip(op_def(one.op).input_arg, one.values, strict=True):
        dtype = one.types[arg.type_attr] if arg.type_attr else arg.type or DataType.DT_FLOAT
        many = isinstance(value, list)
        made = [tensor(v, dtype, arg.name) for v in (value if many else [value])]
        inputs.append(made if many else made[0])
    return apply_op(one.op, *inputs, **one.attrs, **one.types)


def compare(one: Run, got: list[np.ndarray[Any, Any]], types: Types) -> None:
    """Compare results with those of the eager kernel of these types."""
    wanted = run(one.op, one.values, one.attrs, types)
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), str(one)
        if one.op in FREE:
            continue
        if g.dtype.kind not in "fcV" or g.dtype.name.startswith(("int", "uint", "float8")):
            np.testing.assert_array_equal(g, w, err_msg=str(one))
            continue
        kind = np.complex128 if w.dtype.kind == "c" else np.float64
        largest = np.abs(w[np.isfinite(w)].astype(kind)).max(initial=1.0)
        tolerance = TOLERANCE.get(w.dtype.name, 1e-9)
        np.testing.assert_allclose(
            g.astype(kind), w.astype(kind), rtol=tolerance, atol=tolerance * largest, err_msg=str(one)
        )


@pytest.mark.slow_but_every(34)
@pytest.mark.parametrize("op", COMPILED)
def test_compiled_is_eager_at_each_type(op: str) -> None:
    """Types without an eager kernel give the results of the integers that hold them, or at least compile."""
    with_eager, without = runs_of(op)
    runs = [*with_eager, *without]
    assert with_eager or op == "_FusedConv2D"
    try:
        results = compiled(runs, "interpreter") if runs else []
    except Exception:
        for one in runs:  # which of them it is
            try:
                compiled([one], "interpreter")
            except Exception as error:
                error.add_note(str(one))
                raise
        raise
    for one, got in zip(runs, results, strict=True):
        types = one.types if is_eager(op, one.types) else held(one.types)
        if is_eager(op, types):
            compare(one, got, types)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(COMPILED), 30))
def test_code_for_cpus_is_eager(start: int) -> None:
    """One sample of each op, of floats where it takes them, thirty ops in a program."""
    runs = []
    for op in COMPILED[start : start + 30]:
        found, _ = runs_of(op)
        floats = [one for one in found if DataType.DT_FLOAT in one.types.values()]
        runs += [*floats, *found][:1]
    for one, got in zip(runs, compiled(runs, "cpu"), strict=True):
        compare(one, got, one.types)


# ------------------------------------------------------------------------------- what kernels take, as it is declared


@cache
def allowed() -> dict[str, dict[str, set[str]]]:
    """Types by attribute, by op."""
    found: dict[str, dict[str, set[str]]] = {}
    for kernel in XLA.device_kernels("XLA_CPU_JIT"):
        for name, types in kernel.constraints.items():
            found.setdefault(kernel.op, {}).setdefault(name, set()).update(t.numpy_name for t in types)
    return found


# Declared types that a kernel does not take.
FEWER = {
    ("EmptyTensorList", "shape_type"): ({"variant"}, "sizes are integers"),
}


@pytest.mark.parametrize("op", sorted(op for op in FACTS if XLA.registrations(op)))
def test_types_and_constants_are_tensorflows(op: str) -> None:
    """Kernels have TensorFlow's types and compile-time constants; no type is missing without a reason."""
    types = allowed().get(op, {})
    for name, declared in FACTS[op]["types"].items():
        assert types[name] == set(declared) - FEWER.get((op, name), (set(),))[0], name
    constant = set(XLA.compile_time_constant_input_names(op))
    assert set(FACTS[op]["constant"]) <= constant
    assert not constant & set(FACTS[op]["free"])
