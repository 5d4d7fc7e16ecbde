"""Executables of programs with bounded dynamic dimensions among their arguments or results.

Native code knows padded arrays with their sizes. An argument may have any sizes up to the bounds: below these it is
copied into a padded array, zeros beyond its elements. Likewise a result that came below its bounds is a copy of the
elements inside the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

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

#: Padded arrays by bounds and dtype, each with the sizes beyond which it has zeros.
FreeArrays: TypeAlias = "dict[tuple[Any, ...], list[tuple[npt.NDArray[Any], tuple[int, ...]]]]"

_SIZE = np.dtype(np.int32)
_MOST_FREE = 2  # padded arrays of each kind that are kept


class BoundedExecutable(HostedExecutable):
    """Executable whose native code takes and gives padded arrays, each in a tuple with its sizes."""

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run; see `Executable`."""
        parameters = self._bounded_parameters
        if len(args) == len(parameters):  # else `flatten` says what is wrong
            args = tuple([without_tokens(s, a) for s, a in zip(self.inputs, args, strict=True)])
        trees = self._trees
        flat = iter(enumerate(arguments.flatten(args, trees)))
        arrays = _PaddedArrays(self._free_arrays, is_donated=bool(self.options.donate))
        packed = tuple([_pack(plain, flat, trees, arrays) for plain in parameters])
        *_, result = self._bounded
        destinations = arguments.match_out(out, *self._destinations)
        cut = _cut(result, self._run(packed, None), iter(destinations))
        arrays.give_back()
        return with_tokens(self.outputs, cut if out is None else arguments.write_out(cut, destinations))

    def bind(self, arguments: Mapping[int | str, Any]) -> CpuExecutable:
        """Fix some arguments, which are padded once; see `Executable.bind`."""
        fixed = {self._unbound[k]: v for k, v in check_bound(arguments, self.names, self.inputs).items()}
        self._check_not_donated(fixed)
        trees = signature.number_arrays(self._bounded[:-1])
        packed = {}
        for k, value in fixed.items():
            flat = iter(signature.flatten(trees[k], value))
            packed[k] = private_copy(_pack(self._bounded[k], flat, tuple(trees), _PaddedArrays({}, is_donated=False)))
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
    def _trees(self) -> tuple[Any, ...]:
        """Numbers of the arrays of each argument."""
        return tuple(signature.number_arrays(self._bounded_parameters))

    @cached_property
    def _destinations(self) -> tuple[Any, tuple[Any, ...]]:
        """Numbers of the arrays of the result, and their types."""
        *_, result = self._bounded
        return signature.number_arrays([result])[0], tuple(map(_type_of, signature.arrays(result)))

    @cached_property
    def _free_arrays(self) -> FreeArrays:
        """Padded arrays for calls to come."""
        return {}

    @cached_property
    def _bounded_parameters(self) -> list[PlainShape]:
        return [self._bounded[k] for k in self._unbound]

    @cached_property
    def _inputs(self) -> tuple[Shape, ...]:
        return tuple(map(signature.from_plain, self._bounded_parameters))

    @cached_property
    def _result(self) -> Shape:
        return signature.from_plain(self._bounded[-1])


class _PaddedArrays:
    """Padded arrays of one call, of zeros beyond the elements; they serve further calls without being filled anew.

    Parameters
    ----------
    free : FreeArrays
        Arrays that no call uses.
    is_donated : bool
        Whether the program may write to its arguments: they are copied, and serve no further calls.
    """

    def __init__(self, free: FreeArrays, *, is_donated: bool) -> None:
        self._free, self._is_donated = free, is_donated
        self._used: list[tuple[tuple[Any, ...], npt.NDArray[Any], tuple[int, ...]]] = []

    def padded(self, array: npt.NDArray[Any], bounds: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return an array with zeros behind its elements; the same array if there is no room for any."""
        if self._is_donated or array.shape != bounds:
            return self._copied(array, bounds)
        return array

    def _copied(self, array: npt.NDArray[Any], bounds: tuple[int, ...]) -> npt.NDArray[Any]:
        key = (bounds, array.dtype.str)
        try:
            padded, filled = self._free[key].pop()
        except (KeyError, IndexError):
            padded, filled = np.zeros(bounds, array.dtype), array.shape
        _clear(padded, filled, array.shape)
        padded[tuple(map(slice, array.shape))] = array
        self._used.append((key, padded, array.shape))
        return padded

    def give_back(self) -> None:
        """Let further calls use the arrays."""
        for key, padded, filled in () if self._is_donated else self._used:
            free = self._free.setdefault(key, [])
            if len(free) < _MOST_FREE:
                free.append((padded, filled))


def _clear(padded: npt.NDArray[Any], filled: tuple[int, ...], kept: tuple[int, ...]) -> None:
    """Write zeros to the elements of an array inside some sizes and beyond others."""
    for d, (size, low) in enumerate(zip(filled, kept, strict=True)):
        if size > low:
            padded[tuple([slice(low if k == d else 0, n) for k, n in enumerate(filled)])] = 0


def _pack(plain: PlainShape, flat: Iterator[tuple[int, Any]], trees: Any, arrays: _PaddedArrays) -> Any:
    """Return the next arrays as native code takes them."""
    if not isinstance(plain, str):
        return tuple([_pack(part, flat, trees, arrays) for part in plain or ()])
    number, value = next(flat)
    dtype, bounds, dynamic = _type_of(plain)
    if not dynamic:
        return arguments.convert(value, dtype, bounds, (trees, number))
    dims = np.shape(value)
    if not _fits(dims, bounds, dynamic):
        raise ShapeError(f"{arguments.name((trees, number))}: got {arguments.describe(value)}, want {plain}")
    array = arguments.convert(value, dtype, dims, (trees, number))
    return (arrays.padded(array, bounds), *(np.array(dims[d], _SIZE) for d in dynamic))


@lru_cache
def _type_of(plain: str) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """Return the dtype, the bounds and the dynamic dimensions of an array type."""
    return *signature.dtype_and_dims(signature.without_bounds(plain)), signature.dynamic_dims(plain)


def _fits(dims: tuple[int, ...], bounds: tuple[int, ...], dynamic: tuple[int, ...]) -> bool:
    pairs = zip(dims, bounds, strict=False)
    return len(dims) == len(bounds) and all(n == b or (d in dynamic and n < b) for d, (n, b) in enumerate(pairs))


def _cut(plain: PlainShape, value: Any, destinations: Iterator[Any]) -> Any:
    """Return a result of native code with its present sizes; what is copied to a destination stays a view."""
    if not isinstance(plain, str):
        return tuple([_cut(part, v, destinations) for part, v in zip(plain or (), value, strict=True)])
    (*_, dynamic), out = _type_of(plain), next(destinations)
    if not dynamic:
        return value
    padded, *sizes = value
    present = dict(zip(dynamic, map(int, sizes), strict=True))
    dims = tuple([present.get(d, n) for d, n in enumerate(padded.shape)])
    if dims == padded.shape:
        return padded
    part = padded[tuple(map(slice, dims))]
    return part.copy() if out is None else part
