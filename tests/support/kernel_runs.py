"""Type combinations, sample inputs and results of stateless ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DATA, QUANTIZED, DataType
from support.graphs.kernel_samples import SAMPLES, At, draw

Attrs = dict[str, Any]
Types = dict[str, DataType]
PLAIN = (*DATA, *QUANTIZED)


def op_def(op: str) -> OpDef:
    return OpRegistry.global_().look_up(op).op_def


def samples(op: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    if op in SAMPLES:
        return SAMPLES[op]
    count = len(op_def(op).input_arg)
    return [((sizes,) * count, {}) for sizes in ((2, 3), (), (0, 3))]


def types_of(op: str, device: str = "CPU", plain: tuple[DataType, ...] = PLAIN) -> Iterator[dict[str, DataType]]:
    """Yield the types of an op: each type attribute through all its types, with the others at their first."""
    kernels = [k for k in KernelRegistry.global_().get_registered_kernels_for_op(op) if k.device_type == device]
    attrs = [a for a in op_def(op).attr if a.type == "type"]
    for kernel in kernels:
        allowed = {}
        for attr in attrs:
            choice = [t for t in attr.allowed or plain if t in plain]
            if attr.name in kernel.constraints:
                choice = [t for t in choice if t in kernel.constraints[attr.name]]
            if attr.default is not None and attr.default.value in choice:
                choice = [attr.default.value, *(t for t in choice if t != attr.default.value)]
            allowed[attr.name] = choice
        first = {name: choice[0] for name, choice in allowed.items() if choice}
        if len(first) < len(allowed):
            continue
        yield first
        for name, choice in allowed.items():
            for t in choice[1:]:
                yield {**first, name: t}


def fits(op: str, types: dict[str, DataType]) -> bool:
    """Return whether types that depend on each other match."""
    if {"Treal", "Tcomplex"} <= set(types):
        return (types["Treal"].text == "double") == (types["Tcomplex"].text == "complex128")
    if op in ("Complex", "Real", "Imag", "Angle", "ComplexAbs"):
        return (types["T"].numpy.itemsize in (8, 16) and types["T"].text in ("double", "complex128")) == (
            types["Tout"].text in ("double", "complex128")
        )
    if op == "BatchMatMulV3":
        return types["Ta"] == types["Tb"]
    return True


def built(op: str, inputs: tuple[Any, ...], types: dict[str, DataType]) -> list[Any]:
    rng = np.random.default_rng(7)

    def one(spec: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        if not isinstance(spec, At):
            return draw(spec, dtype, rng)
        numbers = np.asarray(spec.value)
        return numbers.astype("S").astype(object) if dtype.hasobject else numbers.astype(dtype)

    args = op_def(op).input_arg
    dtypes = [types[a.type_attr].numpy if a.type_attr else a.type.numpy if a.type else None for a in args]
    if len(args) != len(inputs):
        raise AssertionError(f"{op} has {len(args)} inputs, the sample {len(inputs)}")
    values: list[Any] = []
    for spec, dtype in zip(inputs, dtypes, strict=True):
        dtype = np.dtype(np.float32) if dtype is None else dtype
        values.append([one(s, dtype) for s in spec] if isinstance(spec, list) else one(spec, dtype))
    return values


def run(op: str, values: list[Any], attrs: Attrs, types: Types) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in flat(apply_op(op, *values, **attrs, **types))]


def flat(value: Any) -> list[Any]:
    return [x for part in value for x in flat(part)] if isinstance(value, (tuple, list)) else [value]
