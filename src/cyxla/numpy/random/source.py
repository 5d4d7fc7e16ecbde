"""Where random numbers come from: words of a counter, numbers in [0, 1), and drawing again what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.control.loops import while_loop
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import reduced, scalar

Array = Any
Sizes = tuple[int, ...]
F32: np.dtype[Any] = np.dtype(np.float32)
F64: np.dtype[Any] = np.dtype(np.float64)
_FRACTION = {F32: 24, F64: 53}  # bits of a number below 1
_WORD: dict[Any, np.dtype[Any]] = {F32: np.dtype(np.uint32), F64: np.dtype(np.uint64)}
_ROUNDS = 1000  # of proposals; two in three are accepted, so that only those of parameters that make no sense are left


@dataclass(eq=False, repr=False)
class Source:
    """A generator of random numbers in a traced function.

    Attributes
    ----------
    state : TracedArray of uint64[3]
        Key, place, sequence; drawing moves the place on. Being the only field, it makes a generator a container: one
        may be the state of a loop, or a part of it.
    """

    state: Any

    def words(self, sizes: Sequence[int], dtype: Any = np.uint64) -> Array:
        """Random bits.

        Raises
        ------
        TraceError
            A loop or branch draws from the generator of the function around it.
        """
        if self.state.owner is not _trace.current():
            raise TraceError(
                "a loop or branch draws from a generator of the function around it", where=_trace.place(),
                hint="hand the generator in as part of the state, and return it; or use keys: cyxla.random.split",
            )  # fmt: skip
        dtype = np.dtype(dtype)
        if 0 in sizes:
            return as_traced(np.zeros(sizes, dtype))
        made = xla.rng_bit_generator(
            value_of(self.state), Shape.array(from_numpy(dtype), tuple(sizes)), "rng_philox"
        )  # fmt: skip
        self.state.overwrite(xla.get_tuple_element(made, 0))
        return TracedArray(xla.get_tuple_element(made, 1))

    def unit(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Numbers in [0, 1), all that are multiples of the distance below 1."""
        dtype = np.dtype(dtype)
        word = _WORD[dtype]
        shift = 8 * word.itemsize - _FRACTION[dtype]
        return (self.words(sizes, word) >> word.type(shift)).astype(dtype) * dtype.type(0.5 ** _FRACTION[dtype])

    def positive(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Numbers in (0, 1]."""
        dtype = np.dtype(dtype)
        word = self.words(sizes, _WORD[dtype])
        if dtype == F64:
            word = word >> np.uint64(11)
        scale = dtype.type(2.0**-53 if dtype == F64 else 2.0**-32)
        return (word.astype(dtype) + dtype.type(0.5)) * scale

    def normals(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Two of each length and angle of a point of the plane (Box and Muller)."""
        dtype = np.dtype(dtype)
        count = prod(sizes)
        half = (count + 1) // 2
        length = np.sqrt(dtype.type(-2) * np.log(self.positive((half,), dtype)))
        angle = self.unit((half,), dtype) * dtype.type(2 * np.pi)
        turns = np.array([[0], [np.pi / 2]], dtype)
        return np.reshape(np.reshape(length * np.cos(angle - turns), (2 * half,))[:count], sizes)

    def accepted(
        self, sizes: Sizes, dtype: Any, propose: Callable[[Source], tuple[Array, Array]], busy: Any = True
    ) -> Array:
        """Propose again until all that is proposed has been accepted; 0 where nothing ever is.

        Parameters
        ----------
        sizes : tuple of int
            Of the result.
        dtype : dtype
            Of the result.
        propose : callable
            From a source to proposals and whether each is accepted.
        busy : array of bool, optional
            Which elements are wanted; others are 0.
        """
        start = np.broadcast_to(as_traced(busy), sizes) if isinstance(busy, TracedArray) else np.full(sizes, busy)

        def again(now: Any) -> Any:
            state, value, waiting, count = now
            source = type(self)(state)
            made, good = propose(source)
            found = waiting & good
            return source.state, np.where(found, made, value), waiting & ~found, count + 1

        init = (as_traced(self.state), as_traced(np.zeros(sizes, dtype)), as_traced(start), 0)
        state, value, _, _ = while_loop(lambda now: np.any(now[2]) & (now[3] < _ROUNDS), again, init)
        self.state.overwrite(value_of(state))
        return value


def sizes_of(size: Any, *parameters: Any) -> Sizes:
    """The sizes of a result: those asked for, or those that the parameters broadcast to.

    Raises
    ------
    ValueError
        The parameters do not fit.
    """
    common = np.broadcast_shapes(*[p.shape for p in parameters])
    if size is None:
        return common
    wanted = tuple(map(index, size)) if isinstance(size, (tuple, list, np.ndarray)) else (index(size),)
    if any(n < 0 for n in wanted):
        raise ValueError("negative dimensions are not allowed")
    if np.broadcast_shapes(common, wanted) != wanted:
        raise ValueError(f"Output size {wanted} is not compatible with broadcast dimensions of inputs {common}.")
    return wanted


def real(value: Any) -> Array:
    """A parameter, in double precision."""
    return as_traced(value, np.float64)


def require(value: Any, test: Callable[[Any], Any], message: str) -> None:
    """Check a parameter: at once if it is known, else when the program runs.

    Raises
    ------
    ValueError
        The test does not hold.
    """
    if not isinstance(value, TracedArray):
        if not np.all(test(np.asarray(value))):
            raise ValueError(message)
        return
    op = value_of(as_traced(test(value), bool))
    good = reduced(op, "and", scalar(op, True), range(op.shape.rank)) if op.shape.rank else op
    trace = _trace.require_current()
    trace.fail_if(xla.not_(good), trace.constant(0, np.dtype(np.int64)), lambda _: ValueError(message))


def delivered(value: Array, out: Any) -> Array:
    """A result, or it written to an array that must be like it."""
    if out is None:
        return value
    if not isinstance(out, TracedArray) or out.dtype != value.dtype:
        raise TypeError(f"Supplied output array has the wrong type. Expected {value.dtype}")
    if out.shape != value.shape:
        raise ValueError("size must match out.shape when used together")
    out.overwrite(value_of(value))
    return out


def float_type(dtype: Any, name: str) -> np.dtype[Any]:
    """Single or double precision.

    Raises
    ------
    TypeError
        It is neither.
    """
    found: np.dtype[Any] = np.dtype(dtype)
    if found not in _WORD:
        raise TypeError(f"Unsupported dtype {found!r} for {name}")
    return found
