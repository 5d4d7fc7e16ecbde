"""Programs of element-wise operations and data movement as calls of prebuilt functions, without passes, plan and C.

Each instruction becomes a step of a recipe (see `entry.recipe`), or none if it is a view of its operand. This takes a
few microseconds for each instruction instead of a run of the C compiler, and results have the same bits as native code
because the functions contain the same expressions. Programs whose native code may compute differently are refused: sums
of floats whose order depends on fusion, and operations that passes fold or, such as powers, replace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cyxla._native import kernels as library
from cyxla.types import ElementType, Kind, Shape, row_major
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.kernel import cost, machine, prebuilt_numbers
from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.sum_order import MAX_UNBLOCKED_ROW, MIN_ROW_LENGTH, PART_NS
from cyxla.xla.cpu.native.library import Library
from cyxla.xla.cpu.prebuilt import reduction_calls
from cyxla.xla.cpu.prebuilt.clamps import find_clamps
from cyxla.xla.cpu.prebuilt.extremes import find_searches, needed
from cyxla.xla.cpu.prebuilt.forms import BLOCK, LANED, MAX_RANK, OPCODES, TYPES, Form
from cyxla.xla.cpu.prebuilt.reduction_calls import ReductionCall, Sizes
from cyxla.xla.cpu.prebuilt.spreads import EACH, SAME, find_spreads
from cyxla.xla.cpu.run import signature
from cyxla.xla.cpu.run.executable import CpuExecutable, Manifest
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.bound_arguments import private_copy

if TYPE_CHECKING:
    from cyxla.xla.service.explanation import Explanation

TASK: Final = 1 << 15  # elements of an element-wise operation that are one task
BYTE_NS: Final = 0.1  # ns of a byte that is moved; assumed: it bounds the programs that run without compilation
SCAN_NS: Final = 0.5  # ns of an element of a scan, assumed
MAX_IOTA_BYTES: Final = 1 << 24  # bytes of an iota, which becomes a constant
# Rounded once or not at all: passes that fold them on constants get the same bits as kernels.
_EXACT: Final = frozenset({"add", "subtract", "negate", "compare", "select", "convert", "real", "imag", "complex"})
_EXACT_REAL: Final = _EXACT | {
    "multiply", "divide", "abs", "sign", "sqrt", "floor", "ceil", "maximum", "minimum", "clamp", "is-finite",
    "round-nearest-afz", "round-nearest-even",
}  # fmt: skip


class NotCoveredError(Exception):
    """Refusal of a program that prebuilt functions cannot run; the text is the reason."""


class PrebuiltExecutable(CpuExecutable):
    """Executable of platform cpu that calls only prebuilt functions."""

    tier, exact = "kernels", True

    def bind(self, arguments: Mapping[int | str, Any]) -> CpuExecutable:
        """Fix some arguments; see `Executable.bind`. The program is not specialised."""
        fixed = self._checked_arguments(arguments)
        return self.with_fixed(self._bound | {k: private_copy(v) for k, v in fixed.items()}) if fixed else self

    def explanation(self) -> Explanation:
        """Return one kernel for each prebuilt function and shape."""
        from cyxla.xla.service.explanation import Explanation, instruction_reports

        writer = _RecordingWriter(self._module, inf, prebuilt_numbers.suffix() or "", exact=self.exact)
        writer.write()
        names = {number: name.rpartition("_")[0] for name, number in library.numbers.items()}
        calls = [(names[number], ins) for number, ins in writer.calls]
        kernels = instruction_reports(calls, "prebuilt", "an instruction is one call, without compilation")
        return Explanation("cpu", self.tier, self.explain().split("\n")[0], kernels)

    def explain(self) -> str:
        """Describe the functions that are called, and the number of calls of each."""
        names = {number: name.rpartition("_")[0] for name, number in library.numbers.items()}
        calls = Counter(names[number] for number in library.called_functions(self.library.recipe or b""))
        lines = [
            f"{sum(calls.values())} calls of {len(calls)} prebuilt functions, {self._manifest.arena_bytes} bytes of "
            "temporaries"
        ]
        return "\n".join([*lines, *(f"  {name} x{count}" for name, count in calls.most_common())])


def prebuilt_program(
    module: HloModule, options: CompileOptions, max_ns: float, kind: type[PrebuiltExecutable] = PrebuiltExecutable,
    *, exact: bool = True,
) -> PrebuiltExecutable:  # fmt: skip
    """Return the executable of a program.

    Parameters
    ----------
    module : HloModule
        Verified module.
    options : CompileOptions
        Options as for native code.
    max_ns : float
        Limit of the estimated time of a call in ns.
    kind : type
        Class of the executable.
    exact : bool
        Whether results must have the bits of native code; without a C compiler there is none.

    Raises
    ------
    NotCoveredError
        The program or an option is unsupported by prebuilt functions, or the time limit is exceeded.
    """
    suffix = prebuilt_numbers.suffix()
    if options.profile or options.donate or options.disabled_passes or suffix is None:
        raise NotCoveredError("options that are for native code")
    if not all(p.shape.is_array for p in module.parameters):
        raise NotCoveredError("arguments that are no arrays")
    writer = _Writer(module, max_ns, suffix, exact=exact)
    writer.write()
    manifest = Manifest(
        arena_bytes=writer.arena_bytes,
        cost=writer.cost,
        loops=False,
        constants=[signature.to_plain(shape) for shape, _ in writer.constants],
        functions=[],
        parameters=[signature.to_plain(p.shape) for p in module.parameters],
        result=signature.to_plain(module.entry.root.shape),
        longest=writer.cost,
    )
    constants = [array.reshape(-1).view(np.uint8).data for _, array in writer.constants]
    return kind(module, Library.from_bytes(writer.recipe), manifest, constants, options)


class _Writer:
    """Writer of the recipe of a program.

    Attributes
    ----------
    cost : float
        Estimated time of a call in ns.
    arena_bytes : int
        Size of the temporaries in bytes.
    constants : list of (Shape, array)
        Constants in the order of their buffers.
    """

    def __init__(self, module: HloModule, max_ns: float, suffix: str, *, exact: bool = True) -> None:
        self.module, self.max_ns, self._suffix, self.exact = module, max_ns, suffix, exact
        self.current = module.entry.root  # instruction of the steps that are being written
        self.cost, self.arena_bytes = 0.0, 0
        self.constants: list[tuple[Shape, np.ndarray[Any, Any]]] = []
        root = module.entry.root
        is_tuple = root.opcode == "tuple"
        self.results = list(root.operands) if is_tuple else [root]
        order = [ins for ins in module.entry.post_order() if ins is not root or not is_tuple]
        self.searches = {} if exact else find_searches(order)
        if self.searches:
            order = needed(order, self.results, self.searches)
        self.clamps = {} if exact else find_clamps(order, self.results)
        computed = {ins.operands[0] for ins in self.clamps}
        self.order = [ins for ins in order if ins not in computed]
        self.source: dict[Instruction, Instruction] = {}  # instruction whose buffer holds the elements of a value
        self.uniform: set[Instruction] = set()  # values with all elements equal; the buffer holds one
        self.maybe_constant: set[Instruction] = set()  # values that passes may fold
        self.spreads = find_spreads(self.order, self.results, self._operands)
        self.buffer: dict[Instruction, int] = {}  # of each source
        self.result_buffer: dict[Instruction, int] = {}  # of sources that are results
        self._words: list[int] = []
        self._steps = 0
        self._free: dict[int, list[int]] = {}
        self._first_constant = len(module.parameters) + len(self.results)

    def write(self) -> None:
        """Write the steps of all instructions."""
        last_readers = self._survey()
        for index, ins in enumerate(self.order):
            if self.source[ins] is ins:
                self.current = ins
                write = _Writer.first_extreme if ins in self.searches else _WRITERS[ins.opcode]
                write(self, ins)
                if self.cost > self.max_ns:
                    raise NotCoveredError(f"more than {self.max_ns:.0f} ns of work")
            for source in last_readers.get(index, ()):
                buffer = self.buffer.get(source, 1)
                if not buffer & 1:
                    self._free.setdefault(self._nbytes(source), []).append(buffer)
        stored: set[Instruction] = set()
        for number, leaf in enumerate(self.results):
            source = self.source[leaf]
            if source not in self.result_buffer or source in stored or not self._is_materialised(leaf):
                self._copy_out(leaf, 2 * (len(self.module.parameters) + number) + 1)
            stored.add(source)

    @property
    def recipe(self) -> bytes:
        """Return the encoded steps."""
        return library.recipe(self._words, self._steps)

    def _survey(self) -> dict[int, list[Instruction]]:
        """Find aliases, scalars, and the instruction after which each buffer is free."""
        last: dict[Instruction, int] = {}
        for index, ins in enumerate(self.order):
            is_search = ins in self.searches
            _check(ins, "reduce" if is_search else ins.opcode)
            operands = self._operands(ins)
            is_uniform = (
                bool(operands) and ins.opcode in _UNIFORM_OF_UNIFORM and self.uniform.issuperset(operands)
            ) and not is_search
            if is_uniform or ins.shape.size == 1:
                self.uniform.add(ins)
            is_view = ins.opcode in _VIEWS or ins in self.spreads or (is_uniform and ins.opcode in _MOVES)
            self.source[ins] = self.source[operands[0]] if is_view else ins
            if self.exact and self._may_be_constant(ins):
                self.maybe_constant.add(ins)
            if self.exact and operands and self.maybe_constant.issuperset(operands):
                _check_folded(ins)
            for o in operands:
                last[self.source[o]] = index
        for number, leaf in enumerate(self.results):
            source = self.source[leaf]
            last[source] = len(self.order)
            if self._is_materialised(leaf) and source.opcode not in ("parameter", "constant", "iota"):
                self.result_buffer.setdefault(source, 2 * (len(self.module.parameters) + number) + 1)
        last_readers: dict[int, list[Instruction]] = {}
        for source, index in last.items():
            last_readers.setdefault(index, []).append(source)
        return last_readers

    def _operands(self, ins: Instruction) -> Sequence[Instruction]:
        """Return the operands of the function that computes an instruction."""
        search = self.searches.get(ins)
        return self.clamps.get(ins, ins.operands) if search is None else [search.operand]

    def _is_materialised(self, ins: Instruction) -> bool:
        """Return True if every element of a value is in memory."""
        return ins not in self.uniform or ins.shape.size == 1

    def _may_be_constant(self, ins: Instruction) -> bool:
        """Return True unless it is certain that passes cannot fold an instruction."""
        operands, opcode, maybe_constant = ins.operands, ins.opcode, self.maybe_constant
        if not operands:
            return opcode != "parameter"
        if maybe_constant.issuperset(operands):
            return True
        if opcode in ("concatenate", "pad"):  # a slice may keep one part alone
            return not maybe_constant.isdisjoint(operands)
        if opcode == "select":
            arms = operands[1:]
            return maybe_constant.issuperset(arms) or (
                operands[0] in maybe_constant and not maybe_constant.isdisjoint(arms)
            )
        if opcode == "reduce":
            return operands[0] in maybe_constant or not operands[0].shape.size
        if len(operands) == 1 or (_is_inexact(operands[0]) and opcode != "compare"):
            return False
        kinds = {o.opcode for o in operands}
        equal = (len(kinds) == 1 and "parameter" not in kinds) or len({self.source[o] for o in operands}) == 1
        return equal or not (_is_inexact(operands[0]) or maybe_constant.isdisjoint(operands))

    # --- memory ------------------------------------------------------------------------------------------------------

    def _allocate(self, ins: Instruction) -> int:
        """Allocate a buffer for the result of an instruction; return its index."""
        buffer = self.result_buffer.get(ins)
        if buffer is None:
            buffer = self._temporary(self._nbytes(ins))
        self.buffer[ins] = buffer
        return buffer

    def _nbytes(self, ins: Instruction) -> int:
        """Return the size in bytes of the result of an instruction."""
        return machine.LINE_BYTES if ins in self.uniform else _align(ins.shape.nbytes)

    def _temporary(self, nbytes: int) -> int:
        free = self._free.get(nbytes)
        if free:
            return free.pop()
        offset = self.arena_bytes
        self.arena_bytes += nbytes
        return 2 * offset

    def _constant(self, shape: Shape, array: np.ndarray[Any, Any]) -> int:
        self.constants.append((shape, array))
        return 2 * (self._first_constant + len(self.constants) - 1) + 1

    def _function(self, name: str) -> int:
        number = library.numbers.get(name + self._suffix)
        if number is None:
            raise NotCoveredError(f"{name} is not prebuilt")
        return number

    # --- steps -------------------------------------------------------------------------------------------------------

    def _call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        self._words += [library.CALL, function, tasks, 1, len(buffers), *buffers, len(numbers), *numbers]
        self._steps += 1
        self.cost += machine.RECIPE_STEP_NS + ns

    def parameter(self, ins: Instruction) -> None:
        """Use the buffer of the caller."""
        self.buffer[ins] = 2 * int(ins.attrs["parameter_number"]) + 1

    def constant(self, ins: Instruction) -> None:
        """Add a constant buffer."""
        self.buffer[ins] = self._constant(ins.shape, np.ascontiguousarray(ins.attrs["literal"].array))

    def iota(self, ins: Instruction) -> None:
        """Add the numbers as a constant buffer."""
        shape, axis = ins.shape, ins.attrs["iota_dimension"]
        if shape.nbytes > MAX_IOTA_BYTES:
            raise NotCoveredError(f"an iota of {shape.nbytes} bytes")
        numbers = np.arange(shape.dims[axis]).astype(shape.dtype.numpy_dtype)
        dims = [-1 if d == axis else 1 for d in range(len(shape.dims))]
        self.cost += shape.nbytes * BYTE_NS
        self.buffer[ins] = self._constant(
            shape, np.ascontiguousarray(np.broadcast_to(numbers.reshape(dims), shape.dims))
        )

    def elementwise(self, ins: Instruction) -> None:
        """Call a function of `prebuilt.elementwise`."""
        operands, opcode = self._operands(ins), "clamp" if ins in self.clamps else ins.opcode
        source, buffer = self.source, self.buffer
        types = tuple([o.shape.dtype for o in operands])
        function, ns = _find_form(opcode, ins.shape.dtype, types, ins.attrs.get("direction", ""), self._suffix)
        if self.exact and opcode == "power" and operands[1] in self.maybe_constant:
            raise NotCoveredError("powers that the passes multiply out")
        read = [SAME if o in self.uniform else self.spreads.get(o, EACH) for o in operands]
        count = 1 if ins in self.uniform else ins.shape.size
        buffers = [buffer[source[o]] for o in operands]
        buffers.append(self._allocate(ins))
        if count:
            tasks = -(-count // TASK)
            row = max(spread.row for spread in read) or count
            self._call(function, tasks, buffers, (count, TASK, row, *(s.kind for s in read)), ns * max(count, BLOCK))

    def transpose(self, ins: Instruction) -> None:
        """Move with permuted strides."""
        (operand,), order = ins.operands, ins.attrs["dimensions"]
        strides = _strides(operand.shape)
        self._move_all(ins, operand, [strides[d] for d in order])

    def broadcast(self, ins: Instruction) -> None:
        """Move with zero strides."""
        (operand,), mapping = ins.operands, ins.attrs["dimensions"]
        strides = [0] * len(ins.shape.dims)
        for d, stride in zip(mapping, _strides(operand.shape), strict=True):
            strides[d] = stride
        self._move_all(ins, operand, strides)

    def reverse(self, ins: Instruction) -> None:
        """Move with negative strides."""
        (operand,), reversed_dims = ins.operands, ins.attrs["dimensions"]
        strides, first = _strides(operand.shape), 0
        for d in reversed_dims:
            first += (operand.shape.dims[d] - 1) * strides[d]
            strides[d] = -strides[d]
        self._move_all(ins, operand, strides, first)

    def slice(self, ins: Instruction) -> None:
        """Move with an offset and larger strides."""
        (operand,), ranges = ins.operands, ins.attrs["slice"]
        strides = _strides(operand.shape)
        first = sum(r.start * s for r, s in zip(ranges, strides, strict=True))
        self._move_all(ins, operand, [r.stride * s for r, s in zip(ranges, strides, strict=True)], first)

    def concatenate(self, ins: Instruction) -> None:
        """Move each operand."""
        (axis,), strides = ins.attrs["dimensions"], _strides(ins.shape)
        buffer, start = self._allocate(ins), 0
        for operand in ins.operands:
            self._move((self._buffer_of(operand), buffer), ins.shape.dtype.itemsize, operand.shape.dims,
                       self._read_strides(operand), strides, 0, start * strides[axis])  # fmt: skip
            start += operand.shape.dims[axis]

    def pad(self, ins: Instruction) -> None:
        """Fill with the padding value, then move the operand."""
        operand, value = ins.operands
        buffer, size, strides = self._allocate(ins), ins.shape.dtype.itemsize, _strides(ins.shape)
        zeros = [0] * len(strides)
        self._move((self._buffer_of(value), buffer), size, ins.shape.dims, zeros, strides)
        read_strides, dims, write_strides, read_start, write_start = self._read_strides(operand), [], [], 0, 0
        for n, padded, pad, read_stride, write_stride in zip(
            operand.shape.dims, ins.shape.dims, ins.attrs["padding"], read_strides, strides, strict=True
        ):
            step = pad.interior + 1
            begin = max(0, -(pad.low // step))  # the first element that is not cut off: a ceiling
            end = min(n, (padded - 1 - pad.low) // step + 1)
            dims.append(max(0, end - begin))
            write_strides.append(write_stride * step)
            read_start += begin * read_stride
            write_start += (pad.low + begin * step) * write_stride
        if prod(dims):
            self._move(
                (self._buffer_of(operand), buffer), size, dims, read_strides, write_strides, read_start, write_start
            )

    def reduce(self, ins: Instruction) -> None:
        """Call a function of `prebuilt.reductions`."""
        reduced, dtype = ins.attrs["dimensions"], ins.shape.dtype
        if len(ins.operands) != 2 or not reduced:
            raise NotCoveredError("a reduction of several arrays, or along no dimension")
        operand, start = ins.operands
        name = combiner(ins.called[0])
        function = self._function(f"reduce_{name}_{dtype}")
        is_sum = dtype.is_float and name in LANED
        if is_sum and self.exact:
            self._check_sum(ins)
        sizes = self._sizes(operand.shape.dims, reduced)
        sum_parts = 1 if self.exact or not is_sum else reduction_calls.sum_parts(ins, sizes)
        source, sizes = self._adjacent(ins, sizes, is_sum=is_sum)
        ns = operand.shape.size * scalar.cost("maximum", dtype)
        if dtype.is_complex:
            calls = [ReductionCall([*sizes], 1)]
        elif is_sum:
            calls = reduction_calls.sums(sizes, sum_parts, ns)
        else:
            calls = reduction_calls.reductions(sizes, ns)
        partial = reduction_calls.partial_results(calls, sizes)
        parts = self._temporary(_align(partial * dtype.itemsize)) if partial else 0
        target = self._allocate(ins)
        if ins.shape.size:
            for call in calls:
                to = target if call is calls[-1] else parts
                self._call(function, call.tasks, (source, self._buffer_of(start), to), call.numbers, ns)
                source, ns = parts, partial * scalar.cost("maximum", dtype)

    def first_extreme(self, ins: Instruction) -> None:
        """Call a function of `prebuilt.reductions` that searches for an extreme."""
        operand, axis, extreme = self.searches[ins]
        dtype = operand.shape.dtype
        function = self._function(f"first_{extreme}_{ElementType.U8 if dtype is ElementType.PRED else dtype}")
        if not self._is_materialised(operand):
            raise NotCoveredError("the first of equal elements")
        sizes, ns = self._sizes(operand.shape.dims, (axis,)), operand.shape.size * 2 * scalar.cost("maximum", dtype)
        call = reduction_calls.search(sizes, ns)
        target = self._allocate(ins)
        if ins.shape.size:
            self._call(function, call.tasks, (self._buffer_of(operand), target), call.numbers, ns)

    @staticmethod
    def _sizes(dims: Sequence[int], reduced: Sequence[int]) -> Sizes:
        """Return the sizes before the first reduced dimension, of those that are, and of the others."""
        first = min(reduced)
        others = [d for d in range(len(dims)) if d not in reduced]
        return Sizes(
            prod(dims[d] for d in others if d < first),
            prod(dims[d] for d in reduced),
            prod(dims[d] for d in others if d > first),
        )

    def _adjacent(self, ins: Instruction, sizes: Sizes, *, is_sum: bool) -> tuple[int, Sizes]:
        """Return the buffer of the operand of a reduction with adjacent reduced dimensions, and the sizes there.

        The operand is copied if it has these elsewhere or is no array in memory. The columns of a sum of floats become
        rows where native code runs along strided rows.
        """
        operand, reduced = ins.operands[0], ins.attrs["dimensions"]
        dims, strides = operand.shape.dims, self._read_strides(operand)
        others = [d for d in range(len(dims)) if d not in reduced]
        before = [d for d in others if d < min(reduced)]
        behind = [d for d in others if d > min(reduced)]
        order = [*before, *sorted(reduced), *behind]
        if is_sum and sizes.inner > 1 and reduction_calls.is_along_rows(sizes):
            order, sizes = [*before, *behind, *sorted(reduced)], Sizes(sizes.outer * sizes.inner, sizes.reduced, 1)
        if order == list(range(len(dims))) and self._is_materialised(operand):
            return self._buffer_of(operand), sizes
        copied = self._temporary(_align(operand.shape.nbytes))
        sorted_dims = [dims[d] for d in order]
        self._move(
            (self._buffer_of(operand), copied), ins.shape.dtype.itemsize, sorted_dims, [strides[d] for d in order],
            _strides_of(sorted_dims),
        )  # fmt: skip
        return copied, sizes

    def dot(self, ins: Instruction) -> None:
        """Call the prebuilt kernel of a small product."""
        if self.exact:
            raise NotCoveredError(f"dot to {ins.shape}")
        from cyxla.xla.cpu.prebuilt.small_products import is_small, step_of

        if not is_small(ins):
            raise NotCoveredError(f"dot to {ins.shape}, which is not small")
        step = step_of(ins)
        call = step.kernel.call
        reads = [v.instruction for v in step.reads]
        if call is None or step.kernel.phases > 1 or not all(map(self._is_materialised, reads)):
            raise NotCoveredError("a product without a prebuilt kernel")
        buffers = [*map(self._buffer_of, reads), self._allocate(ins)]
        if step.kernel.scratch:
            buffers.append(self._temporary(_align(step.kernel.scratch)))
        self._call(self._function(call.name), step.kernel.tasks, buffers, call.numbers, step.kernel.cost)

    def reduce_window(self, ins: Instruction) -> None:
        """Call a scan of `prebuilt.reductions`."""
        scanned = prefix(ins)
        is_same_shape = len(ins.operands) == 2 and ins.shape.dims == ins.operands[0].shape.dims
        if scanned is None or scanned.backward or not is_same_shape:
            raise NotCoveredError("a window that is no scan from the start")
        operand, start = ins.operands
        dtype, dims = ins.shape.dtype, ins.shape.dims
        function = self._function(f"scan_{combiner(ins.called[0])}_{dtype}")
        source, sizes = self._adjacent_scan(operand, dims, scanned.dimension)
        ns = ins.shape.size * (scalar.cost("maximum", dtype) + SCAN_NS)
        call = reduction_calls.scan(sizes, ns)
        target = self._allocate(ins)
        if ins.shape.size:
            self._call(function, call.tasks, (source, self._buffer_of(start), target), call.numbers, ns)

    def _adjacent_scan(self, operand: Instruction, dims: Sequence[int], axis: int) -> tuple[int, Sizes]:
        sizes = Sizes(prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :]))
        if self._is_materialised(operand):
            return self._buffer_of(operand), sizes
        copied = self._temporary(_align(operand.shape.nbytes))
        self._move(
            (self._buffer_of(operand), copied), operand.shape.dtype.itemsize, dims, [0] * len(dims), _strides_of(dims)
        )
        return copied, sizes

    def _check_sum(self, ins: Instruction) -> None:
        """Raise unless native code sums in the order of the elements, lane by lane."""
        operand, reduced = ins.operands[0], ins.attrs["dimensions"]
        dims = operand.shape.dims
        row_length, rows = prod(dims[d] for d in reduced), prod(dims) // max(1, prod(dims[d] for d in reduced))
        if not 0 < row_length <= MAX_UNBLOCKED_ROW or (
            len(reduced) < len(dims) and (reduced != (len(dims) - 1,) or row_length < MIN_ROW_LENGTH)
        ):
            raise NotCoveredError("a sum of floats that is not along short rows")
        if row_length * rows * self._element_ns > PART_NS:
            raise NotCoveredError("a sum of floats that may be split into parts")
        visited, stack = {operand}, [operand]
        while stack:
            source = stack.pop()
            if source in self.uniform or source.opcode in ("parameter", "constant", "iota"):
                continue
            if source.opcode == "broadcast" and len(reduced) == 1 < len(dims) and source.operands[0].shape.rank <= 1:
                continue
            if source.opcode not in OPCODES:
                raise NotCoveredError(f"a sum of floats computed by {source.opcode}")
            operands = [o for o in source.operands if o not in visited]
            visited.update(operands)
            stack += operands

    @cached_property
    def _element_ns(self) -> float:
        """Return the total time per element of all operations in ns."""
        return cost.element_ns(self.order) + cost.memory_ns(8 * len(self.module.parameters))

    # --- moves -------------------------------------------------------------------------------------------------------

    def _buffer_of(self, operand: Instruction) -> int:
        return self.buffer[self.source[operand]]

    def _read_strides(self, operand: Instruction) -> list[int]:
        return [0] * len(operand.shape.dims) if operand in self.uniform else _strides(operand.shape)

    def _move_all(self, ins: Instruction, operand: Instruction, strides: Sequence[int], read_start: int = 0) -> None:
        buffers = (self._buffer_of(operand), self._allocate(ins))
        self._move(buffers, ins.shape.dtype.itemsize, ins.shape.dims, strides, _strides(ins.shape), read_start)

    def _copy_out(self, leaf: Instruction, buffer: int) -> None:
        dims = leaf.shape.dims
        self._move(
            (self._buffer_of(leaf), buffer),
            leaf.shape.dtype.itemsize,
            dims,
            self._read_strides(leaf),
            _strides_of(dims),
        )

    def _move(
        self, buffers: Sequence[int], size: int, dims: Sequence[int],
        read_strides: Sequence[int], write_strides: Sequence[int], read_start: int = 0, write_start: int = 0,
    ) -> None:  # fmt: skip
        if 0 in dims:
            return
        loops = _merge_loops(dims, read_strides, write_strides)
        if loops == [(prod(dims), 1, 1)] and not read_start and not write_start:
            self._words += [library.COPY, buffers[1], buffers[0], prod(dims) * size]
            self._steps += 1
            self.cost += machine.RECIPE_STEP_NS + prod(dims) * size * BYTE_NS
            return
        if len(loops) > MAX_RANK:
            raise NotCoveredError(f"a move of {len(loops)} dimensions")
        function = self._function(f"move_{size}")
        ns = prod(dims) * (0.5 + size * BYTE_NS)
        tasks = cost.tasks(ns, loops[0][0])
        numbers = [read_start, write_start, len(loops), tasks, *(n for loop in loops for n in loop)]
        self._call(function, tasks, buffers, numbers, ns)


class _RecordingWriter(_Writer):
    """Writer that notes the prebuilt function and the instruction of each call."""

    def __init__(self, module: HloModule, max_ns: float, suffix: str, *, exact: bool = True) -> None:
        super().__init__(module, max_ns, suffix, exact=exact)
        self.calls: list[tuple[int, Instruction]] = []

    def _call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        self.calls.append((function, self.current))
        super()._call(function, tasks, buffers, numbers, ns)


def _is_inexact(ins: Instruction) -> bool:
    """Return True if results of an instruction are rounded."""
    return ins.shape.dtype.kind in (Kind.FLOAT, Kind.COMPLEX)


def _check_folded(ins: Instruction) -> None:
    """Raise if an instruction on constants, which passes fold, would be rounded differently than in native code."""
    exact = _EXACT if ins.operands[0].shape.dtype.is_complex else _EXACT_REAL
    inexact = ins.opcode in OPCODES and ins.opcode not in exact
    if _is_inexact(ins.operands[0]) and (inexact or ins.opcode == "reduce"):
        raise NotCoveredError(f"{ins.opcode} of constants, which the passes fold")


def _check(ins: Instruction, opcode: str) -> None:
    """Raise if an instruction, or the opcode that stands for it, is unsupported."""
    shape = ins.shape
    if opcode not in _WRITERS or not shape.is_array or shape.is_dynamic or ins.control_predecessors:
        raise NotCoveredError(f"{ins.opcode} to {shape}")
    if shape.layout is not None and shape.layout != row_major(shape.rank):
        raise NotCoveredError(f"the layout of {shape}")
    if shape.dtype not in _TYPES or ins.attrs.get("type") == "TOTALORDER":
        raise NotCoveredError(f"{ins.opcode} to {shape}")


@cache
def _find_form(
    opcode: str, result: ElementType, types: tuple[ElementType, ...], direction: str, suffix: str
) -> tuple[int, float]:
    """Return the function of an element-wise opcode, and its time per element in ns."""
    form = Form(opcode, result, types, direction)
    if form.is_regular and form.name + suffix in library.numbers:
        return library.numbers[form.name + suffix], scalar.cost(opcode, types[0])
    raise NotCoveredError(f"{opcode} of {', '.join(map(str, types))} is not prebuilt")


def _align(nbytes: int) -> int:
    return max(machine.LINE_BYTES, -(-nbytes // machine.LINE_BYTES) * machine.LINE_BYTES)


def _strides(shape: Shape) -> list[int]:
    return _strides_of(shape.dims)


def _strides_of(dims: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a row-major array."""
    strides, step = [], 1
    for n in reversed(dims):
        strides.append(step)
        step *= n
    return strides[::-1]


def _merge_loops(
    dims: Sequence[int], read_strides: Sequence[int], write_strides: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return loops as (length, read stride, write stride), with unit loops removed and contiguous ones merged."""
    loops = [loop for loop in zip(dims, read_strides, write_strides, strict=True) if loop[0] > 1] or [(1, 1, 1)]
    merged = loops[:1]
    for _, (n, read_stride, write_stride) in pairwise(loops):
        m, outer_read, outer_write = merged[-1]
        if outer_read == n * read_stride and outer_write == n * write_stride:
            merged[-1] = (m * n, read_stride, write_stride)
        else:
            merged.append((n, read_stride, write_stride))
    return merged


_TYPES: Final = frozenset(TYPES)
_VIEWS: Final = frozenset({"reshape", "bitcast", "copy"})  # the same elements in the same order
_MOVES: Final = frozenset({"transpose", "broadcast", "reverse", "slice"})  # of equal elements: no operation
_UNIFORM_OF_UNIFORM: Final = OPCODES | _VIEWS | _MOVES
_WRITERS: Final[Mapping[str, Callable[[_Writer, Instruction], None]]] = {
    **dict.fromkeys(OPCODES, _Writer.elementwise),
    **dict.fromkeys(_VIEWS, _Writer.parameter),  # never called: they have the memory of their operands
    "parameter": _Writer.parameter, "constant": _Writer.constant, "iota": _Writer.iota,
    "transpose": _Writer.transpose, "broadcast": _Writer.broadcast, "reverse": _Writer.reverse,
    "slice": _Writer.slice, "concatenate": _Writer.concatenate, "pad": _Writer.pad, "reduce": _Writer.reduce,
    "reduce-window": _Writer.reduce_window, "dot": _Writer.dot,
}  # fmt: skip
