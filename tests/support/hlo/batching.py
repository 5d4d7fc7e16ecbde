"""Whole modules batched, and run for one element after another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import cyxla
from cyxla.xla.batching import Batcher, Value
from cyxla.xla.batching.values import leaves, with_batch
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.builder import XlaBuilder
from cyxla.xla.hlo.builder import functions as xla


def batched(module: HloModule, flags: Sequence[bool], size: int) -> HloModule:
    """Return a module for all elements, whose parameters have the batch in front where their flag is set.

    Its result is a tuple of the leaves of the module's, all with the batch in front.
    """
    builder = XlaBuilder("batched")
    batcher = Batcher(builder, size)
    arguments = []
    for k, (parameter, flag) in enumerate(zip(module.entry.parameters, flags, strict=True)):
        shape = parameter.shape.logical
        arguments.append(Value(xla.parameter(builder, k, with_batch(shape, size) if flag else shape), flag))
    results = [batcher.lead(v) for v in leaves(batcher.run(module.entry, arguments))]
    builder.order_effects()
    return builder.build(xla.tuple_(builder, results)).module()


def varied(argument: np.ndarray, number: int) -> np.ndarray:
    """Return an argument for another element: other numbers of the same kind."""
    if argument.ndim:
        return np.roll(argument.ravel(), number).reshape(argument.shape)
    if argument.dtype == bool:
        return np.asarray(bool(argument) ^ bool(number % 2))
    return np.asarray(argument + argument.dtype.type(number % 3))


def flat(value: Any) -> list[np.ndarray]:
    """Return the arrays of nested tuples."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, (tuple, list)) else [value]


def check(module: HloModule, arguments: Sequence[np.ndarray], flags: Sequence[bool], size: int) -> None:
    """Check a batched module against the module itself, run for each element."""
    elements = [
        [varied(a, k) if flag else a for a, flag in zip(arguments, flags, strict=True)] for k in range(max(size, 1))
    ]
    stacked = [
        np.stack([e[n] for e in elements])[:size] if flag else a
        for n, (a, flag) in enumerate(zip(arguments, flags, strict=True))
    ]
    program = batched(module, flags, size)
    got = flat(cyxla.compile(program, platform="interpreter")(*stacked))
    one = cyxla.compile(module, platform="interpreter")
    want = [np.stack(column)[:size] for column in zip(*[flat(one(*e)) for e in elements], strict=True)]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        close(g, w)


@np.errstate(all="ignore")
def close(got: np.ndarray, want: np.ndarray) -> None:
    """Check that arrays are equal, floats up to rounding in another order."""
    if want.dtype.kind in "biu" or "int" in want.dtype.name:
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    bits = 8 * want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)
    tolerance = {64: 1e-12, 32: 1e-5}.get(bits, 0.05)
    finite = np.abs(want.astype(wide))
    scale = np.max(finite[np.isfinite(finite)], initial=0)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), tolerance, tolerance * scale)
