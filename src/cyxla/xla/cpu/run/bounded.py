"""Executables of programs with bounded dynamic dimensions among their arguments or results.

Native code knows padded arrays with their sizes. An argument may have any sizes up to the bounds: it is copied into a
padded array, zeros beyond its elements. A result is a copy of the elements inside the sizes that came out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla._native import arguments
from cyxla.errors import ShapeError
from cyxla.xla.cpu.run import signature
from cyxla.xla.cpu.run.python_calls import HostedExecutable, with_tokens, without_tokens
from cyxla.xla.service.bound_arguments import check_bound, private_copy
from cyxla.xla.service.pickling import reduce_executable

if TYPE_CHECKING:
    from cyxla.types import Shape
    from cyxla.xla.cpu.run.executable import CpuExecutable
    from cyxla.xla.cpu.run.signature import PlainShape

_SIZE = np.dtype(np.int32)


class BoundedExecutable(HostedExecutable):
    """Executable whose native code takes and gives padded arrays, each in a tuple with its sizes."""

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run; see `Executable`."""
        parameters = self._bounded_parameters
        if len(args) == len(parameters):  # else `flatten` says what is wrong
            args = tuple([without_tokens(s, a) for s, a in zip(self.inputs, args, strict=True)])
        trees = tuple(signature.number_arrays(parameters))
        flat = iter(enumerate(arguments.flatten(args, trees)))
        packed = tuple([_pack(plain, flat, trees) for plain in parameters])
        *_, result = self._bounded
        specs = tuple([signature.dtype_and_dims(a) for a in signature.arrays(signature.without_bounds(result))])
        destinations = iter(arguments.match_out(out, signature.number_arrays([result])[0], specs))
        cut = _cut(result, self._run(packed, None), destinations)
        return with_tokens(self.outputs, cut)

    def bind(self, arguments: Mapping[int | str, Any]) -> CpuExecutable:
        """Fix some arguments, which are padded once; see `Executable.bind`."""
        fixed = {self._unbound[k]: v for k, v in check_bound(arguments, self.names, self.inputs).items()}
        self._check_not_donated(fixed)
        trees = signature.number_arrays(self._bounded[:-1])
        packed = {}
        for k, value in fixed.items():
            flat = iter(signature.flatten(trees[k], value))
            packed[k] = private_copy(_pack(self._bounded[k], flat, tuple(trees)))
        return self.with_fixed({**self._bound, **packed}) if packed else self

    def __reduce__(self) -> tuple[Any, ...]:
        fixed = {}
        for k, value in self._bound.items():
            nothing = iter([None] * len(list(signature.arrays(self._bounded[k]))))
            fixed[k] = _cut(self._bounded[k], value, nothing)
        return reduce_executable(self._module, self.platform, self.options, fixed)

    @property
    def _bounded(self) -> list[PlainShape]:
        """Types of the parameters, then that of the result, with their bounds."""
        assert self._manifest.bounded is not None
        return self._manifest.bounded

    @cached_property
    def _bounded_parameters(self) -> list[PlainShape]:
        return [self._bounded[k] for k in self._unbound]

    @cached_property
    def _inputs(self) -> tuple[Shape, ...]:
        return tuple(map(signature.from_plain, self._bounded_parameters))

    @cached_property
    def _result(self) -> Shape:
        return signature.from_plain(self._bounded[-1])


def _pack(plain: PlainShape, flat: Iterator[tuple[int, Any]], trees: Any) -> Any:
    """Return the next arrays as native code takes them."""
    if not isinstance(plain, str):
        return tuple([_pack(part, flat, trees) for part in plain or ()])
    number, value = next(flat)
    dtype, bounds = signature.dtype_and_dims(signature.without_bounds(plain))
    dynamic = signature.dynamic_dims(plain)
    if not dynamic:
        return arguments.convert(value, dtype, bounds, (trees, number))
    dims = np.shape(value)
    if not _fits(dims, bounds, dynamic):
        raise ShapeError(f"{arguments.name((trees, number))}: got {arguments.describe(value)}, want {plain}")
    array = arguments.convert(value, dtype, dims, (trees, number))
    padded = np.zeros(bounds, dtype)
    padded[tuple(map(slice, dims))] = array
    return (padded, *(np.array(dims[d], _SIZE) for d in dynamic))


def _fits(dims: tuple[int, ...], bounds: tuple[int, ...], dynamic: tuple[int, ...]) -> bool:
    pairs = zip(dims, bounds, strict=False)
    return len(dims) == len(bounds) and all(n == b or (d in dynamic and n < b) for d, (n, b) in enumerate(pairs))


def _cut(plain: PlainShape, value: Any, destinations: Iterator[Any]) -> Any:
    """Return a result of native code with its present sizes, in the memory of `destinations` where there is any."""
    if not isinstance(plain, str):
        return tuple([_cut(part, v, destinations) for part, v in zip(plain or (), value, strict=True)])
    dynamic, out = signature.dynamic_dims(plain), next(destinations)
    if dynamic:
        padded, *sizes = value
        present = dict(zip(dynamic, map(int, sizes), strict=True))
        value = padded[tuple([slice(present.get(d)) for d in range(padded.ndim)])].copy()
    if out is None:
        return value
    if out.shape != value.shape:
        raise ShapeError(f"out: the result came as {arguments.describe(value)}, want {arguments.describe(out)}")
    np.copyto(out, value)
    return out
