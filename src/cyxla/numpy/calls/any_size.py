"""Programs for any size of some dimensions: arguments are padded to a bound, and passed with their sizes."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import inf, prod
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cyxla._native.dispatch import CallSignature, CaughtError, Compiled, Node
from cyxla.errors import UnimplementedError
from cyxla.forking import new_lock
from cyxla.numpy.calls.entries import Entry
from cyxla.numpy.calls.lowering import LargeArrayError, OpenSizes
from cyxla.numpy.calls.signatures import Call
from cyxla.numpy.calls.size_history import OpenDims, Shapes, SizeHistory, group_key, shapes_of
from cyxla.numpy.tracing.results.result_layout import inverse
from cyxla.records import dataclass

MODES: Final = ("auto", "any", "exact")
SIZES_BEFORE: Final = {"auto": 2, "any": 1}  # sizes of a dimension that are compiled exactly, before any size is
MOST_BYTES: Final = 1 << 27  # of a padded array; larger ones are better compiled for each size than padded
MOST_PRODUCT_BYTES: Final = 1 << 23  # of an array that is padded along several dimensions, unless bounds are tight
MOST_MOVED_BYTES: Final = 1 << 17  # of an array that is flattened, or changed by a loop, likewise: time follows bounds
LEAST_BOUNDS: Final = (4096, 1024, 256)  # elements of a dimension: those beyond the size take only address space
LEAST_BOUNDS_OF_LISTS: Final = LEAST_BOUNDS[1:]  # of the first program: 4096 x 4096 elements would often be too many
COMPILATIONS: Final = 10  # times as long as a compilation take the calls of a size that gets a program of its own
LEAST_SECONDS: Final = 1.0  # that they take at least
MOST_RECURRING: Final = 4  # sizes with programs of their own
MOST_RECURRING_LARGE: Final = 16  # if time follows bounds, as soon as the calls have taken as long as a compilation
MOST_SIZES: Final = 4096  # sizes whose time is added up
MOST_BUFFERS: Final = 2  # sets of padded arguments that a program keeps
ROOM: Final = 4  # times a size, rounded up to a power of two, is the bound

Compile: TypeAlias = Callable[[Call, OpenSizes], "Entry | None"]
_LOG = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """Bounds of a program for any size, and what it may take.

    Attributes
    ----------
    most : tuple of int
        Bound of each group of equal dimensions.
    padded_bytes : int
        Greatest size of an array that is padded along several dimensions.
    moved_bytes : int or None
        Greatest size of an array that a loop changes, or that is flattened, if there is one.
    """

    most: tuple[int, ...]
    padded_bytes: int
    moved_bytes: int | None = None

    def have_room_for(self, large: LargeArrayError) -> bool:
        """Return True if an array that was too large with other bounds most likely is not with these."""
        return self.moved_bytes is None or large.nbytes(self.most) <= self.moved_bytes

    def least(self, large: LargeArrayError | None) -> tuple[int, ...]:
        """Return the smallest sizes that are served: large ones if the time follows the bounds."""
        return tuple([0 if large is None or self.moved_bytes is not None else n // 2 for n in self.most])


class RecurringSizes:
    """Time that the calls of each size have taken: a size that recurs gets a program for exactly this size.

    Programs for any size pad their arguments, and leave room up to their bounds, which takes time in each call.

    Parameters
    ----------
    most : int
        Number of sizes that may get such programs.
    compilations : int
        Compilations that take as long as the calls of such a size.
    least : float
        Seconds that these calls take at least.
    """

    def __init__(self, most: int = 0, compilations: int = 0, least: float = 0.0) -> None:
        self._most, self._compilations, self._least = most, compilations, least
        self._seconds: dict[tuple[int, ...], float] = {}

    def add(self, sizes: tuple[int, ...], seconds: float) -> None:
        """Count a call."""
        if len(self._seconds) >= MOST_SIZES:
            self._seconds.clear()
        self._seconds[sizes] = self._seconds.get(sizes, 0.0) + seconds

    def recurs(self, sizes: tuple[int, ...], compilation: float) -> bool:
        """Return True, once, if a compilation of so many seconds is worth it for a size."""
        if self._seconds.get(sizes, 0.0) <= max(self._least, self._compilations * compilation) or self._most == 0:
            return False
        self._seconds[sizes] = -inf
        self._most -= 1
        return True


@dataclass(frozen=True)
class AnySizeProgram:
    """Program for any size of some dimensions, up to their bounds.

    Attributes
    ----------
    dims : OpenDims
        Dimensions of any size.
    static : tuple of tuple of int
        Shapes of the arguments, with -1 for these dimensions.
    bounds : tuple of int
        Bound of each group of equal dimensions.
    least : tuple of int
        Smallest size of each group.
    entry : Entry
        Compiled program; it takes the padded arguments, then the size of each group.
    free_buffers : list of dict
        Padded arrays by input, for calls to come. Padding has any values.
    recurring : RecurringSizes
        Sizes of the calls so far.
    """

    dims: OpenDims
    static: Shapes
    bounds: tuple[int, ...]
    least: tuple[int, ...] = ()
    entry: Entry | None = None
    free_buffers: list[dict[int, npt.NDArray[Any]]] = field(default_factory=list)
    recurring: RecurringSizes = field(default_factory=RecurringSizes)

    def sizes(self, shapes: Shapes) -> tuple[int, ...] | None:
        """Return the size of each group in a call, or None if the program does not serve the call."""
        sizes = self.dims.sizes(shapes)
        if sizes is None or self.dims.without(shapes) != self.static:
            return None
        ranges = zip(self.least, sizes, self.bounds, strict=True)
        return sizes if all(least <= n <= bound for least, n, bound in ranges) else None

    def replaces(self, other: AnySizeProgram) -> bool:
        """Return True if a program serves all sizes that an earlier one serves."""
        covers = not any(self.least) and all(map(operator.ge, self.bounds, other.bounds))
        return (self.dims, self.static) == (other.dims, other.static) and covers

    def serves(self, call: Call) -> bool:
        """Return True if the values from outside are those that the program was traced with."""
        return self.entry is None or self.entry.guards.fetch(call.passed) is not None

    def padded_bytes(self, leaves: Sequence[Any]) -> list[int]:
        """Return the bytes of each padded input."""
        return [prod(shape) * leaves[k].dtype.itemsize for k, shape in self.padded_shapes.items()]

    def open_node(self, node: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the node of an argument with -1 in place of its open sizes; see `CallSignature`."""
        kind, count, slot, key, names = node
        if kind not in (Node.ARRAY, Node.NUMBERS) or slot not in self.padded_shapes:
            return node
        if kind is Node.NUMBERS:
            return kind, *self.static[slot], slot, key, names
        dtype, _, axes = key
        return kind, count, slot, (dtype, self.static[slot], axes), names

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run on arguments, followed by the values from outside."""
        try:
            buffers = self.free_buffers.pop()
        except IndexError:
            buffers = {k: self._buffer(k, leaves[k].dtype) for k in self.padded_shapes}
        assert self.entry is not None
        count, numbers = len(self.static), [np.int64(leaves[k].shape[d]) for (k, d), *_ in self.dims.groups]
        passed = [*leaves[:count], *numbers, *leaves[count:]]
        inputs = list(passed)
        for k, buffer in buffers.items():
            leaf = leaves[k]
            buffer[tuple(map(slice, leaf.shape))] = leaf
            inputs[k] = buffer
        result = self.entry(inputs, None, passed)
        for k in self.entry.writes:
            if k in buffers:
                leaves[k][...] = buffers[k][tuple(map(slice, leaves[k].shape))]
        if len(self.free_buffers) < MOST_BUFFERS:
            self.free_buffers.append(buffers)
        return result

    def _buffer(self, k: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return a padded array for an input, in the order of its dimensions in memory."""
        assert self.entry is not None
        shape, order = self.padded_shapes[k], self.entry.lowered.input_axes[k]
        if order is None:
            return np.zeros(shape, dtype)
        return np.zeros([shape[d] for d in order], dtype).transpose(inverse(order))

    @cached_property
    def compiled(self) -> AnySizeEntry:
        """Entry of the program in the cache of its function."""
        return AnySizeEntry(self)

    @cached_property
    def padded_shapes(self) -> dict[int, tuple[int, ...]]:
        """Shape that each input with open dimensions is padded to."""
        shapes = {k: list(self.static[k]) for group in self.dims.groups for k, _ in group}
        for group, bound in zip(self.dims.groups, self.bounds, strict=True):
            for k, d in group:
                shapes[k][d] = bound
        return {k: tuple(shape) for k, shape in shapes.items()}


class SizesError(Exception):
    """A program for any size has no result for the sizes of a call, or is slow: that for exactly these sizes has it.

    It has the result of a dimension of size 1 that is broadcast, and NumPy's errors. Arguments that are not contiguous
    where the result depends on it have none either.
    """


class AnySizeEntry(Compiled):
    """A program for any size, in the cache of a function.

    Parameters
    ----------
    program : AnySizeProgram
        Program.
    """

    def __init__(self, program: AnySizeProgram) -> None:
        entry, count, sizes = program.entry, len(program.static), len(program.bounds)
        assert entry is not None
        passed = [*range(count), *[-1] * sizes, *range(count, len(entry.lowered.input_axes))]
        writes = tuple([passed[k] for k in entry.writes])
        self._dense = [(passed[k], entry.lowered.input_axes[k]) for k in entry.dense]
        super().__init__(None, (0,), False, b"", writes=writes)
        self.any_size, self.guards = program, entry.guards

    def run_slowly(self, arguments: Sequence[Any], out: Any, passed: Sequence[Any]) -> Any:
        """Run on arguments of any sizes, which the signature has compared with the bounds."""
        program = self.any_size
        assert program.entry is not None
        if not all(_is_dense(passed[k], axes) for k, axes in self._dense):
            raise CaughtError(SizesError())
        sizes = tuple([passed[k].shape[d] for (k, d), *_ in program.dims.groups])
        if program.recurring.recurs(sizes, program.entry.seconds):
            raise CaughtError(SizesError())
        started = perf_counter()
        try:
            result = program.run(passed)
        except Exception as error:
            raise CaughtError(SizesError()) from error
        program.recurring.add(sizes, perf_counter() - started)
        return result

    def signature(self, nargs: int, kwnames: tuple[str, ...], nodes: list[Any], inputs: int) -> CallSignature:
        """Return the signature of calls with these nodes, whatever their sizes."""
        program = self.any_size
        open_dims = [
            (k, d, least, bound, at > 0)
            for group, least, bound in zip(program.dims.groups, program.least, program.bounds, strict=True)
            for at, (k, d) in enumerate(group)
        ]
        nodes = [program.open_node(node) for node in nodes]
        return self.guards.signature(self, nargs, kwnames, nodes, inputs, open_dims)


def _is_dense(array: npt.NDArray[Any], axes: tuple[int, ...] | None) -> bool:
    """Return True if the elements of an array, with its dimensions permuted, are contiguous."""
    return bool((array if axes is None else array.transpose(axes)).flags.c_contiguous)


class AnySizePrograms:
    """Programs of a function for any size, by the groups of calls that differ in sizes alone.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._lock = new_lock()
        self.clear()

    def clear(self) -> None:
        """Forget all programs and sizes."""
        self._history = SizeHistory(SIZES_BEFORE.get(self.mode, 0))
        self._programs: dict[Any, list[AnySizeProgram]] = {}
        self.refusals: dict[Any, str] = {}

    @property
    def entries(self) -> list[Entry]:
        """Compiled programs."""
        with self._lock:
            return [p.entry for programs in self._programs.values() for p in programs if p.entry is not None]

    @property
    def reason(self) -> str:
        """Reason why calls with many sizes are compiled for each; empty if there is none."""
        return next(reversed(self.refusals.values()), "")

    def find(self, call: Call, compile_: Compile, forget: Callable[[AnySizeEntry], None]) -> AnySizeEntry | None:
        """Return the entry for a call that no exact program serves; None to compile exactly.

        Parameters
        ----------
        call : Call
            Arguments.
        compile_ : callable
            Function from a call and its open dimensions to the compiled entry; None if arrays of the program would be
            too large.
        forget : callable
            Function that is called with the entry of a program that a new one replaces.

        Raises
        ------
        Exception
            The function cannot be compiled for any size, and the mode is "any".
        """
        if self.mode == "exact":
            return None
        key, shapes = group_key(call), shapes_of(call)
        with self._lock:
            programs = self._programs.setdefault(key, [])
            for program in programs:
                if program.sizes(shapes) is not None and program.serves(call):
                    return program.compiled
            dims = None if key in self.refusals else self._history.add(key, shapes, call.growing)
            sizes = None if dims is None else dims.sizes(shapes)
            if dims is None or sizes is None:
                return None
            least = LEAST_BOUNDS_OF_LISTS if call.growing and not programs else LEAST_BOUNDS
            new_program = self._new_program(call, key, dims, shapes, possible_bounds(sizes, least), compile_)
            if new_program is None:
                return None
            replaced = [p for p in programs if new_program.replaces(p) and p.serves(call)]
            programs[:] = [p for p in programs if p not in replaced]
            programs.append(new_program)
            for program in replaced:
                forget(program.compiled)
            return new_program.compiled

    def _recurring(self, least: Sequence[int]) -> RecurringSizes:
        """Return the sizes of the calls of a program, which is slow if it serves large ones alone."""
        if self.mode != "auto":
            return RecurringSizes()
        if any(least):
            return RecurringSizes(MOST_RECURRING_LARGE, 1)
        return RecurringSizes(MOST_RECURRING, COMPILATIONS, LEAST_SECONDS)

    def _new_program(
        self,
        call: Call,
        key: Any,
        dims: OpenDims,
        shapes: Shapes,
        candidates: Sequence[Bounds],
        compile_: Compile,
    ) -> AnySizeProgram | None:
        static = dims.without(shapes)
        large: LargeArrayError | None = None
        try:
            for bounds in candidates:
                if large is not None and not bounds.have_room_for(large):
                    continue
                least = bounds.least(large)
                program = AnySizeProgram(dims, static, bounds.most, least, recurring=self._recurring(least))
                if any(n > MOST_BYTES for n in program.padded_bytes(call.leaves)):
                    continue
                try:
                    entry = compile_(call, OpenSizes(dims.groups, bounds.most, bounds.padded_bytes, bounds.moved_bytes))
                except LargeArrayError as error:
                    large, entry = error, None
                if entry is not None:
                    return replace(program, entry=entry)
            size = min(candidates[-1].most)
            raise UnimplementedError(f"arrays padded to {size} elements take more than {MOST_BYTES} bytes")
        except Exception as error:  # Python code that depends on a size may raise anything
            if self.mode == "any":
                raise
            self.refusals[key] = str(error)
            _LOG.info("compiled for each size, since %s", error)
            return None


def possible_bounds(sizes: tuple[int, ...], least: Sequence[int] = LEAST_BOUNDS) -> list[Bounds]:
    """Return generous bounds for dimensions that had these sizes, then less generous ones, and two tight ones."""
    generous = [tuple([max(k, ROOM * _power_of_two(n)) for n in sizes]) for k in least]
    twice, once = (tuple([k * _power_of_two(n) for n in sizes]) for k in (2, 1))
    bounds = [Bounds(most, MOST_PRODUCT_BYTES, MOST_MOVED_BYTES) for most in dict.fromkeys(generous)]
    return [*bounds, Bounds(twice, MOST_BYTES, MOST_MOVED_BYTES), Bounds(once, MOST_BYTES)]


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()
