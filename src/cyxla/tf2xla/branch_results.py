"""The results of the branches of a conditional, in the one form in which all branches must return them.

A dimension whose size is known only at run time in one branch is so for the caller: each branch returns an array that
is padded to the greatest bound, and its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cyxla.errors import ShapeError
from cyxla.tf2xla.argument import CompilationResult, Output, ResourceUpdate
from cyxla.tf2xla.lib.size_checks import SizeCheck, no_failures
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import scalar, sizes_of


def common_result(names: Sequence[str], results: Sequence[CompilationResult]) -> CompilationResult:
    """Return the first result in the form of all branches: with their outputs, updates of resources and checks.

    Raises
    ------
    ShapeError
        The branches return different types or static shapes.
    """
    start = 0

    def place(count: int) -> tuple[int, ...]:
        nonlocal start
        start += count
        return tuple(range(start - count, start))

    outputs: list[Output] = []
    for k, row in enumerate(zip(*(result.outputs for result in results), strict=True)):
        output = _common_output(k, names, row)
        count = 1 + len(output.dynamic) if _is_array(output) else len(output.tuple_indices)
        outputs.append(replace(output, tuple_indices=place(count)))
    modified = {u.input_index for result in results for u in result.resource_updates if u.modified}
    updates: list[ResourceUpdate] = [
        replace(u, modified=u.input_index in modified, tuple_indices=place(len(u.tuple_indices)))
        for u in results[0].resource_updates
    ]
    checks = tuple(check for result in results for check in result.size_checks)
    return replace(results[0], outputs=tuple(outputs), resource_updates=tuple(updates), size_checks=checks)


def _is_array(output: Output) -> bool:
    return output.shape is not None and output.tensor_list is None


def _common_output(k: int, names: Sequence[str], outputs: Sequence[Output]) -> Output:
    """Return an output with the sizes that are known only at run time in any branch."""
    first = outputs[0]
    dynamic = tuple(sorted({d for output in outputs for d in output.dynamic}))
    static = [_static_sizes(output, dynamic) for output in outputs]
    for name, output, sizes in zip(names, outputs, static, strict=True):
        if (output.dtype, sizes, output.tensor_list) != (first.dtype, static[0], first.tensor_list):
            raise ShapeError(
                f"result {k} is {_text(first)} in branch {names[0]!r} and {_text(output)} in {name!r}: "
                "compiled branches must agree"
            )
    if not dynamic:
        return first
    shape = tuple(max(n) for n in zip(*(output.shape or () for output in outputs), strict=True))
    return replace(first, shape=shape, dynamic=dynamic)


def _static_sizes(output: Output, dynamic: Sequence[int]) -> list[int] | None:
    """Return the sizes of an array, with 0 for those that are known only at run time in any branch."""
    return None if output.shape is None else [0 if d in dynamic else n for d, n in enumerate(output.shape)]


def _text(output: Output) -> str:
    sizes = [f"<={n}" if d in output.dynamic else str(n) for d, n in enumerate(output.shape or ())]
    return f"{output.dtype}[{', '.join(sizes)}]"


def common_parts(
    parts: Sequence[XlaOp], results: Sequence[CompilationResult], branch: int, common: CompilationResult
) -> list[XlaOp]:
    """Return the results of a branch in the form that is common to all branches."""
    result, elements = results[branch], list[XlaOp]()
    for own, output in zip(result.outputs, common.outputs, strict=True):
        own_parts = [parts[i] for i in own.tuple_indices]
        elements += _padded(own_parts, own, output) if output.dynamic else own_parts
    for update in result.resource_updates:
        elements += [parts[i] for i in update.tuple_indices]
    if common.size_checks:
        elements.append(_checks(parts, results, branch))
    return elements


def _padded(parts: Sequence[XlaOp], own: Output, output: Output) -> list[XlaOp]:
    """Return an array that is padded to the common bounds, and its sizes."""
    value, *own_sizes = parts
    sizes = dict(zip(own.dynamic, own_sizes, strict=True))
    actual = sizes_of(value)
    room = [(0, to - n) for n, to in zip(actual, output.shape or (), strict=True)]
    if any(high for _, high in room):
        value = xla.pad(value, scalar(value, 0), [(low, high, 0) for low, high in room])
    return [value, *[sizes.get(d, xla.constant(value.builder, np.int32(actual[d]))) for d in output.dynamic]]


def _checks(parts: Sequence[XlaOp], results: Sequence[CompilationResult], branch: int) -> XlaOp:
    """Return the numbers of the checks of all branches, of which only those of one run."""

    def numbers(k: int, checks: Sequence[SizeCheck]) -> XlaOp:
        return parts[-1] if k == branch else no_failures(builder, checks)

    builder = parts[0].builder
    return xla.concatenate([numbers(k, r.size_checks) for k, r in enumerate(results) if r.size_checks], 0)
