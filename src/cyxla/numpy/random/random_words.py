"""Source of random numbers: words of a counter-based generator, numbers in [0, 1), and rejection sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.control.loops import while_loop
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.records import dataclass
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import reduced, scalar

Array = Any
Sizes = tuple[int, ...]
F32: np.dtype[Any] = np.dtype(np.float32)
F64: np.dtype[Any] = np.dtype(np.float64)
_FRACTION_BITS = {F32: 24, F64: 53}  # bits of a number below 1
_WORD: dict[Any, np.dtype[Any]] = {F32: np.dtype(np.uint32), F64: np.dtype(np.uint64)}
_MAX_ATTEMPTS = 1000  # of rejection sampling, which accepts most proposals if parameters are valid


@dataclass(eq=False, repr=False)
class Source:
    """Generator of random numbers in a traced function.

    Attributes
    ----------
    state : TracedArray of uint64[3]
        Key, counter and stream; a draw advances the counter. As this is the only field, a generator is a container,
        which may be part of the carry of a loop.
    """

    state: Any

    def words(self, sizes: Sequence[int], dtype: Any = np.uint64) -> Array:
        """Draw random words.

        Raises
        ------
        TraceError
            A loop, branch or mapped function draws from the generator of the enclosing function.
        """
        if self.state.owner is not _trace.current():
            raise TraceError(
                "a loop, branch or mapped function draws from a generator that was created outside of it",
                where=_trace.user_line(),
                hint="pass the generator as part of the carry, and return it; or use keys: cyxla.random.split",
            )  # fmt: skip
        dtype = np.dtype(dtype)
        if 0 in sizes:
            return as_traced(np.zeros(sizes, dtype))
        generated = xla.rng_bit_generator(
            value_of(self.state), Shape.array(from_numpy(dtype), tuple(sizes)), "rng_philox"
        )  # fmt: skip
        self.state.overwrite(xla.get_tuple_element(generated, 0))
        return TracedArray(xla.get_tuple_element(generated, 1))

    def unit(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Draw multiples of the spacing of floats below 1, in [0, 1)."""
        dtype = np.dtype(dtype)
        word = _WORD[dtype]
        shift = 8 * word.itemsize - _FRACTION_BITS[dtype]
        return (self.words(sizes, word) >> word.type(shift)).astype(dtype) * dtype.type(0.5 ** _FRACTION_BITS[dtype])

    def positive(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Draw numbers in (0, 1]."""
        dtype = np.dtype(dtype)
        word = self.words(sizes, _WORD[dtype])
        if dtype == F64:
            word = word >> np.uint64(11)
        scale = dtype.type(2.0**-53 if dtype == F64 else 2.0**-32)
        return (word.astype(dtype) + dtype.type(0.5)) * scale

    def normals(self, sizes: Sequence[int], dtype: Any = F64) -> Array:
        """Draw normal numbers in pairs, as coordinates of points of random length and angle (Box and Muller)."""
        dtype = np.dtype(dtype)
        count = prod(sizes)
        half = (count + 1) // 2
        length = np.sqrt(dtype.type(-2) * np.log(self.positive((half,), dtype)))
        angle = self.unit((half,), dtype) * dtype.type(2 * np.pi)
        phases = np.array([[0], [np.pi / 2]], dtype)
        return np.reshape(np.reshape(length * np.cos(angle - phases), (2 * half,))[:count], sizes)

    def sample_by_rejection(
        self, sizes: Sizes, dtype: Any, propose: Callable[[Source], tuple[Array, Array]], active: Any = True
    ) -> Array:
        """Sample by rejection until all elements are accepted; those that never are remain 0.

        Parameters
        ----------
        sizes : tuple of int
            Shape of the result.
        dtype : dtype
            Element type of the result.
        propose : callable
            Function from a source to proposals and a mask of the accepted ones.
        active : array of bool, optional
            Mask of the elements to draw; others are 0.
        """
        start = np.broadcast_to(as_traced(active), sizes) if isinstance(active, TracedArray) else np.full(sizes, active)

        def step(loop_state: Any) -> Any:
            state, value, pending, count = loop_state
            source = type(self)(state)
            proposal, accepted = propose(source)
            newly_accepted = pending & accepted
            return source.state, np.where(newly_accepted, proposal, value), pending & ~newly_accepted, count + 1

        init = (as_traced(self.state), as_traced(np.zeros(sizes, dtype)), as_traced(start), 0)
        state, value, _, _ = while_loop(
            lambda loop_state: np.any(loop_state[2]) & (loop_state[3] < _MAX_ATTEMPTS), step, init
        )
        self.state.overwrite(value_of(state))
        return value


def sizes_of(size: Any, *parameters: Any) -> Sizes:
    """Return the shape of a result: the requested one, or the broadcast shape of the parameters.

    Raises
    ------
    ValueError
        The parameters do not broadcast.
    """
    common = np.broadcast_shapes(*[p.shape for p in parameters])
    if size is None:
        return common
    requested = tuple(map(index, size)) if isinstance(size, (tuple, list, np.ndarray)) else (index(size),)
    if any(n < 0 for n in requested):
        raise ValueError("negative dimensions are not allowed")
    if np.broadcast_shapes(common, requested) != requested:
        raise ValueError(f"Output size {requested} is not compatible with broadcast dimensions of inputs {common}.")
    return requested


def as_float64(value: Any) -> Array:
    """Convert a parameter to double precision."""
    return as_traced(value, np.float64)


def require(value: Any, test: Callable[[Any], Any], message: str) -> None:
    """Check a parameter: at once if it is known, else at run time.

    Raises
    ------
    ValueError
        The test fails.
    """
    if not isinstance(value, TracedArray):
        if not np.all(test(np.asarray(value))):
            raise ValueError(message)
        return
    op = value_of(as_traced(test(value), bool))
    all_valid = reduced(op, "and", scalar(op, True), range(op.shape.rank)) if op.shape.rank else op
    trace = _trace.require_current()
    trace.fail_if(xla.not_(all_valid), trace.constant(0, np.dtype(np.int64)), lambda _: ValueError(message))


def to_out(value: Array, out: Any) -> Array:
    """Return a result, written to ``out=`` of the same shape and dtype if given."""
    if out is None:
        return value
    if not isinstance(out, TracedArray) or out.dtype != value.dtype:
        raise TypeError(f"Supplied output array has the wrong type. Expected {value.dtype}")
    if out.shape != value.shape:
        raise ValueError("size must match out.shape when used together")
    out.overwrite(value_of(value))
    return out


def float_type(dtype: Any, name: str) -> np.dtype[Any]:
    """Return a dtype of single or double precision.

    Raises
    ------
    TypeError
        The dtype is another one.
    """
    result: np.dtype[Any] = np.dtype(dtype)
    if result not in _WORD:
        raise TypeError(f"Unsupported dtype {result!r} for {name}")
    return result
