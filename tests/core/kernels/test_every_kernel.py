"""Each eager kernel at each type it is registered for: scalars, empty arrays and arrays of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.kernel_names import ops_with_kernels
from support.graphs.kernel_runs import Attrs, Types, built, fits, flat, op_def, run, samples, types_of
from support.graphs.kernel_samples import ELEMENTWISE, NOT_COMPARED, SAMPLES

from cyxla.core.catalogue import load_catalogue
from cyxla.core.framework.apply import to_attr_value
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType

load_catalogue()
WIDER = {"float16": "double", "bfloat16": "double", "float32": "double", "complex64": "complex128"}
OF_PARTS = ("Real", "Imag", "ComplexAbs", "Angle", "Complex")
TOLERANCE = {"float16": 2e-2, "bfloat16": 1.2e-1, "float32": 1e-4, "complex64": 1e-4}


def spread(value: Any) -> Any:
    """The same numbers, not side by side in memory."""
    if isinstance(value, list):
        return [spread(v) for v in value]
    if not value.ndim:
        return value.copy()
    wide = np.empty([2 * n for n in value.shape], value.dtype)
    view = wide[(slice(None, None, 2),) * value.ndim]
    view[...] = value
    return view


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tolist() == b.tolist() if a.dtype.hasobject else a.tobytes() == b.tobytes()


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("op", sorted({*ELEMENTWISE, *SAMPLES}))
def test_kernel_at_each_type(op: str) -> None:
    done = []
    for types in types_of(op):
        if types not in done and fits(op, types):
            done.append(types)
            for inputs, attrs in samples(op):
                own = {k: v for k, v in attrs.items() if k not in types}
                try:
                    check(op, inputs, own, types)
                except Exception as error:
                    error.add_note(f"{op} of {types} with {inputs} and {own}")
                    raise
    assert done


def check(op: str, inputs: tuple[Any, ...], attrs: Attrs, types: Types) -> None:
    values, kept = built(op, inputs, types), built(op, inputs, types)
    if op == "Bitcast" and types["type"].numpy.itemsize > types["T"].numpy.itemsize:
        return
    results = run(op, values, attrs, types)
    assert all(same(x, y) for x, y in zip(flat(kept), flat(values), strict=True)), "it wrote to its input"
    again = run(op, [spread(v) for v in values], attrs, types)
    assert all(same(x, y) for x, y in zip(results, again, strict=True)), "the layout matters"
    check_shapes(op, values, attrs, types, results)
    compare_with_double(op, inputs, attrs, types, results)


def check_shapes(
    op: str, values: list[Any], attrs: dict[str, Any], types: dict[str, DataType], results: list[Any]
) -> None:
    """Results have the shapes that the shape function infers."""
    registration = OpRegistry.global_().look_up(op)
    declared = {a.name: a for a in registration.op_def.attr}
    node_attrs = {name: a.default for name, a in declared.items() if a.default is not None}
    node_attrs.update({k: to_attr_value(declared[k].type, v) for k, v in attrs.items()})
    node_attrs.update({k: AttrValue("type", t) for k, t in types.items()})
    for arg, value in zip(registration.op_def.input_arg, values, strict=True):
        if arg.number_attr:
            node_attrs[arg.number_attr] = AttrValue("int", len(value))
        if arg.type_list_attr:
            node_attrs[arg.type_list_attr] = AttrValue("list(type)", (DataType.DT_FLOAT,) * len(value))
    if registration.shape_inference_fn is None:
        return
    c = InferenceContext(registration.op_def, node_attrs, [TensorShape(x.shape) for x in flat(values)], flat(values))
    registration.shape_inference_fn(c)
    for k, result in enumerate(results):
        told = c.output(k)
        assert told is None or told.is_compatible_with(TensorShape(result.shape)), f"{op}: {told} is {result.shape}"


def compare_with_double(
    op: str, inputs: Any, attrs: dict[str, Any], types: dict[str, DataType], results: list[Any]
) -> None:
    """A narrower type gives the rounded results of the widest."""
    main = next((k for k in ("T", "Tcomplex", "Tparams", "dtype") if k in types), None)
    if main is None or op in NOT_COMPARED or "Random" in op or ("Normal" in op and "Stateless" in op):
        return
    narrow = types[main]
    wide = {"float16": "double", "bfloat16": "double", "float32": "double", "complex64": "complex128"}.get(
        narrow.numpy_name
    )
    allowed = [t[main] for t in types_of(op) if main in t]
    widest = next((t for t in allowed if t.text == wide), None)
    if widest is None or (
        len([k for k in types if k != "T"]) and op in ("Real", "Imag", "ComplexAbs", "Angle", "Complex")
    ):
        return
    values = built(op, inputs, types)
    args = op_def(op).input_arg
    lifted = [
        lift(v, widest, narrow) if a.type_attr in (main, "Treal") else v for a, v in zip(args, values, strict=True)
    ]
    other = {**types, main: widest}
    if "Treal" in other:
        other["Treal"] = DataType.DT_DOUBLE
    exact = run(op, lifted, attrs, other)
    tolerance = TOLERANCE[narrow.numpy_name]
    for got, want in zip(results, exact, strict=True):
        if got.dtype.kind in "fcV" and got.size:
            kind = np.complex128 if want.dtype.kind == "c" else np.float64
            largest = np.abs(want[np.isfinite(want)]).max(initial=1.0)
            np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=tolerance, atol=tolerance * largest)


def is_function(op: str) -> bool:
    found = op_def(op)
    args = (*found.input_arg, *found.output_arg)
    handles = any(a.is_ref or a.type in (DataType.DT_RESOURCE, DataType.DT_VARIANT) for a in args)
    return bool(found.input_arg) and not handles and not found.is_stateful


def lift(value: Any, to: DataType, narrow: DataType) -> Any:
    if isinstance(value, list):
        return [lift(v, to, narrow) for v in value]
    return value.astype(to.numpy if value.dtype == narrow.numpy else np.float64)


def test_every_function_kernel_has_samples() -> None:
    """Whoever adds a kernel that is a function of its inputs adds a sample."""
    assert not sorted(op for op in ops_with_kernels() - {*ELEMENTWISE, *SAMPLES, *ELSEWHERE} if is_function(op))


# Control flow, functions and files: tested where they run.
ELSEWHERE = {
    "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch", "For", "MapDefun", "PartitionedCall",
    "StatelessCase", "StatelessIf", "StatelessWhile", "ReadFile", "ShardedFilename", "_ArrayToList", "_ListToArray",
    "SymbolicGradient", "_EagerConst", "PyFuncStateless", "TensorArrayCloseV2", "TensorArrayConcatV2",
    "TensorArrayGatherV2", "TensorArrayReadV2", "TensorArrayScatterV2", "TensorArraySizeV2", "TensorArraySplitV2",
    "TensorArrayWriteV2",
}  # fmt: skip
