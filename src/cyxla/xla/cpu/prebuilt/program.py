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
from cyxla.xla.cpu.kernel.sum_order import MAX_UNBLOCKED_ROW, MIN_ROW_LENGTH, PART_NS
from cyxla.xla.cpu.native.library import Library
from cyxla.xla.cpu.prebuilt.forms import BLOCK, LANED, MOST_RANK, OPCODES, TYPES, Form
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
MOST_COUNTED: Final = 1 << 24  # bytes of an iota, which becomes a constant
# Rounded once or not at all, so that it makes no difference who computes them: the passes may do so for constants.
_EXACT: Final = frozenset({"add", "subtract", "negate", "compare", "select", "convert", "real", "imag", "complex"})
_EXACT_REAL: Final = _EXACT | {
    "multiply", "divide", "abs", "sign", "sqrt", "floor", "ceil", "maximum", "minimum", "clamp", "is-finite",
    "round-nearest-afz", "round-nearest-even",
}  # fmt: skip


class NotCoveredError(Exception):
    """Refusal of a program that prebuilt functions cannot run; the text is the reason."""


class PrebuiltExecutable(CpuExecutable):
    """Executable of platform cpu that calls only prebuilt functions."""

    tier = "kernels"

    def bind(self, arguments: Mapping[int | str, Any]) -> CpuExecutable:
        """Fix some arguments; see `Executable.bind`. The program is not specialised."""
        fixed = self._checked_arguments(arguments)
        return self.with_fixed(self._bound | {k: private_copy(v) for k, v in fixed.items()}) if fixed else self

    def explanation(self) -> Explanation:
        """Return one kernel for each prebuilt function and shape."""
        from cyxla.xla.service.explanation import Explanation, instruction_reports

        writer = _RecordingWriter(self._module, inf, prebuilt_numbers.suffix() or "")
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
    module: HloModule, options: CompileOptions, most_ns: float, kind: type[PrebuiltExecutable] = PrebuiltExecutable
) -> PrebuiltExecutable:
    """Return the executable of a program.

    Parameters
    ----------
    module : HloModule
        Verified module.
    options : CompileOptions
        Options as for native code.
    most_ns : float
        Limit of the estimated time of a call in ns.
    kind : type
        Class of the executable.

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
    writer = _Writer(module, most_ns, suffix)
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

    def __init__(self, module: HloModule, most_ns: float, suffix: str) -> None:
        self.module, self.most_ns, self._suffix = module, most_ns, suffix
        self.current = module.entry.root  # instruction that is written
        self.cost, self.arena_bytes = 0.0, 0
        self.constants: list[tuple[Shape, np.ndarray[Any, Any]]] = []
        root = module.entry.root
        several = root.opcode == "tuple"
        self.results = list(root.operands) if several else [root]
        self.order = [ins for ins in module.entry.post_order() if ins is not root or not several]
        self.source: dict[Instruction, Instruction] = {}  # whose memory an instruction's elements are in
        self.single: set[Instruction] = set()  # whose elements are all the one that is in memory
        self.known: set[Instruction] = set()  # that may be constants once the passes have run
        self.place: dict[Instruction, int] = {}  # of sources
        self.wanted: dict[Instruction, int] = {}  # sources that are results -> their buffer
        self._words: list[int] = []
        self._steps = 0
        self._free: dict[int, list[int]] = {}
        self._first_constant = len(module.parameters) + len(self.results)

    def write(self) -> None:
        """Write the steps of all instructions."""
        dying = self._survey()
        for at, ins in enumerate(self.order):
            if self.source[ins] is ins:
                self.current = ins
                _WRITERS[ins.opcode](self, ins)
                if self.cost > self.most_ns:
                    raise NotCoveredError(f"more than {self.most_ns:.0f} ns of work")
            for source in dying.get(at, ()):
                place = self.place.get(source, 1)
                if not place & 1:
                    self._free.setdefault(self._room(source), []).append(place)
        taken: set[Instruction] = set()
        for number, leaf in enumerate(self.results):
            source = self.source[leaf]
            if source not in self.wanted or source in taken or not self._is_whole(leaf):
                self._copy_out(leaf, 2 * (len(self.module.parameters) + number) + 1)
            taken.add(source)

    @property
    def recipe(self) -> bytes:
        """Return the encoded steps."""
        return library.recipe(self._words, self._steps)

    def _survey(self) -> dict[int, list[Instruction]]:
        """Find aliases, scalars, and the instruction after which each buffer is free."""
        last: dict[Instruction, int] = {}
        for at, ins in enumerate(self.order):
            _check(ins)
            operands = ins.operands
            spread = bool(operands) and ins.opcode in _SPREADABLE and self.single.issuperset(operands)
            if spread or ins.shape.size == 1:
                self.single.add(ins)
            same = ins.opcode in _SAME or (spread and ins.opcode in _MOVES)
            self.source[ins] = self.source[operands[0]] if same else ins
            if self._may_be_constant(ins):
                self.known.add(ins)
            if operands and self.known.issuperset(operands):
                _check_folded(ins)
            for o in operands:
                last[self.source[o]] = at
        for number, leaf in enumerate(self.results):
            source = self.source[leaf]
            last[source] = len(self.order)
            if self._is_whole(leaf) and source.opcode not in ("parameter", "constant", "iota"):
                self.wanted.setdefault(source, 2 * (len(self.module.parameters) + number) + 1)
        dying: dict[int, list[Instruction]] = {}
        for source, at in last.items():
            dying.setdefault(at, []).append(source)
        return dying

    def _is_whole(self, ins: Instruction) -> bool:
        """Return True if every element of a value is in memory."""
        return ins not in self.single or ins.shape.size == 1

    def _may_be_constant(self, ins: Instruction) -> bool:
        """Return True unless it is certain that passes cannot fold an instruction."""
        operands, opcode, known = ins.operands, ins.opcode, self.known
        if not operands:
            return opcode != "parameter"
        if known.issuperset(operands):
            return True
        if opcode in ("concatenate", "pad"):  # of which a slice may take one part alone
            return not known.isdisjoint(operands)
        if opcode == "select":
            arms = operands[1:]
            return known.issuperset(arms) or (operands[0] in known and not known.isdisjoint(arms))
        if opcode == "reduce":
            return operands[0] in known or not operands[0].shape.size
        if len(operands) == 1 or (_is_inexact(operands[0]) and opcode != "compare"):
            return False
        kinds = {o.opcode for o in operands}
        equal = (len(kinds) == 1 and "parameter" not in kinds) or len({self.source[o] for o in operands}) == 1
        return equal or not (_is_inexact(operands[0]) or known.isdisjoint(operands))

    # --- memory ------------------------------------------------------------------------------------------------------

    def _new(self, ins: Instruction) -> int:
        """Allocate a buffer for the result of an instruction; return its index."""
        place = self.wanted.get(ins)
        if place is None:
            place = self._temporary(self._room(ins))
        self.place[ins] = place
        return place

    def _room(self, ins: Instruction) -> int:
        """Return the size in bytes of the result of an instruction."""
        return machine.LINE_BYTES if ins in self.single else _aligned(ins.shape.nbytes)

    def _temporary(self, room: int) -> int:
        free = self._free.get(room)
        if free:
            return free.pop()
        at = self.arena_bytes
        self.arena_bytes += room
        return 2 * at

    def _constant(self, shape: Shape, array: np.ndarray[Any, Any]) -> int:
        self.constants.append((shape, array))
        return 2 * (self._first_constant + len(self.constants) - 1) + 1

    def _function(self, name: str) -> int:
        found = library.numbers.get(name + self._suffix)
        if found is None:
            raise NotCoveredError(f"{name} is not prebuilt")
        return found

    # --- steps -------------------------------------------------------------------------------------------------------

    def _call(self, function: int, tasks: int, places: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        self._words += [library.CALL, function, tasks, 1, len(places), *places, len(numbers), *numbers]
        self._steps += 1
        self.cost += machine.RECIPE_STEP_NS + ns

    def parameter(self, ins: Instruction) -> None:
        """Use the buffer of the caller."""
        self.place[ins] = 2 * int(ins.attrs["parameter_number"]) + 1

    def constant(self, ins: Instruction) -> None:
        """Add a constant buffer."""
        self.place[ins] = self._constant(ins.shape, np.ascontiguousarray(ins.attrs["literal"].array))

    def iota(self, ins: Instruction) -> None:
        """Add the numbers as a constant buffer."""
        shape, axis = ins.shape, ins.attrs["iota_dimension"]
        if shape.nbytes > MOST_COUNTED:
            raise NotCoveredError(f"an iota of {shape.nbytes} bytes")
        counted = np.arange(shape.dims[axis]).astype(shape.dtype.numpy_dtype)
        along = [-1 if d == axis else 1 for d in range(len(shape.dims))]
        self.cost += shape.nbytes * BYTE_NS
        self.place[ins] = self._constant(
            shape, np.ascontiguousarray(np.broadcast_to(counted.reshape(along), shape.dims))
        )

    def elementwise(self, ins: Instruction) -> None:
        """Call a function of `prebuilt.elementwise`."""
        operands, opcode, source, place = ins.operands, ins.opcode, self.source, self.place
        types = tuple([o.shape.dtype for o in operands])
        function, ns = _form(opcode, ins.shape.dtype, types, ins.attrs.get("direction", ""), self._suffix)
        if opcode == "power" and operands[1] in self.known:
            raise NotCoveredError("powers that the passes multiply out")
        steps = [0 if o in self.single else 1 for o in operands]
        count = 1 if ins in self.single else ins.shape.size
        places = [place[source[o]] for o in operands]
        places.append(self._new(ins))
        if count:
            tasks = -(-count // TASK)
            self._call(function, tasks, places, (count, TASK, *steps), ns * max(count, BLOCK))

    def transpose(self, ins: Instruction) -> None:
        """Move with permuted strides."""
        (operand,), order = ins.operands, ins.attrs["dimensions"]
        strides = _strides(operand.shape)
        self._move_all(ins, operand, [strides[d] for d in order])

    def broadcast(self, ins: Instruction) -> None:
        """Move with zero strides."""
        (operand,), places = ins.operands, ins.attrs["dimensions"]
        strides = [0] * len(ins.shape.dims)
        for d, stride in zip(places, _strides(operand.shape), strict=True):
            strides[d] = stride
        self._move_all(ins, operand, strides)

    def reverse(self, ins: Instruction) -> None:
        """Move with negative strides."""
        (operand,), gone = ins.operands, ins.attrs["dimensions"]
        strides, first = _strides(operand.shape), 0
        for d in gone:
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
        place, at = self._new(ins), 0
        for operand in ins.operands:
            self._move((self._read(operand), place), ins.shape.dtype.itemsize, operand.shape.dims,
                       self._steps_of(operand), strides, 0, at * strides[axis])  # fmt: skip
            at += operand.shape.dims[axis]

    def pad(self, ins: Instruction) -> None:
        """Fill with the padding value, then move the operand."""
        operand, around = ins.operands
        place, size, strides = self._new(ins), ins.shape.dtype.itemsize, _strides(ins.shape)
        zeros = [0] * len(strides)
        self._move((self._read(around), place), size, ins.shape.dims, zeros, strides)
        own, dims, steps, first, to = self._steps_of(operand), [], [], 0, 0
        for n, whole, pad, stride, out in zip(
            operand.shape.dims, ins.shape.dims, ins.attrs["padding"], own, strides, strict=True
        ):
            apart = pad.interior + 1
            begin = max(0, -(pad.low // apart))  # the first element that is not cut off: a ceiling
            end = min(n, (whole - 1 - pad.low) // apart + 1)
            dims.append(max(0, end - begin))
            steps.append(out * apart)
            first += begin * stride
            to += (pad.low + begin * apart) * out
        if prod(dims):
            self._move((self._read(operand), place), size, dims, own, steps, first, to)

    def reduce(self, ins: Instruction) -> None:
        """Call a function of `prebuilt.reductions`."""
        gone, dtype = ins.attrs["dimensions"], ins.shape.dtype
        if len(ins.operands) != 2 or not gone:
            raise NotCoveredError("a reduction of several arrays, or along no dimension")
        operand, start = ins.operands
        if _is_inexact(ins) and combiner(ins.called[0]) in LANED:
            self._check_sum(ins)
        function = self._function(f"reduce_{combiner(ins.called[0])}_{dtype}")
        dims = operand.shape.dims
        order = [d for d in range(len(dims)) if d not in gone]
        before = next((k for k, d in enumerate(order) if d > min(gone)), len(order))
        order[before:before] = sorted(gone)
        strides, read = self._steps_of(operand), self._read(operand)
        if order != list(range(len(dims))) or not self._is_whole(operand):
            turned = self._temporary(_aligned(operand.shape.nbytes))
            sorted_dims = [dims[d] for d in order]
            self._move(
                (read, turned), dtype.itemsize, sorted_dims, [strides[d] for d in order], _strides_of(sorted_dims)
            )
            read = turned
        sizes = [prod(dims[d] for d in some) for some in (order[:before], gone, order[before + len(gone) :])]
        places = (read, self._read(start), self._new(ins))
        if ins.shape.size:
            self._call(function, 1, places, sizes, operand.shape.size * scalar.cost("maximum", dtype) * 4)

    def _check_sum(self, ins: Instruction) -> None:
        """Raise unless native code sums in the order of the elements, lane by lane."""
        operand, gone = ins.operands[0], ins.attrs["dimensions"]
        dims = operand.shape.dims
        row, kept = prod(dims[d] for d in gone), prod(dims) // max(1, prod(dims[d] for d in gone))
        if not 0 < row <= MAX_UNBLOCKED_ROW or (
            len(gone) < len(dims) and (gone != (len(dims) - 1,) or row < MIN_ROW_LENGTH)
        ):
            raise NotCoveredError("a sum of floats that is not along short rows")
        if row * kept * self._element_ns > PART_NS:
            raise NotCoveredError("a sum of floats that may be cut into parts")
        seen, stack = {operand}, [operand]
        while stack:
            found = stack.pop()
            if found in self.single or found.opcode in ("parameter", "constant", "iota"):
                continue
            if found.opcode == "broadcast" and len(gone) == 1 < len(dims) and found.operands[0].shape.rank <= 1:
                continue
            if found.opcode not in OPCODES:
                raise NotCoveredError(f"a sum of floats behind {found.opcode}")
            new = [o for o in found.operands if o not in seen]
            seen.update(new)
            stack += new

    @cached_property
    def _element_ns(self) -> float:
        """Return the total time per element of all operations in ns."""
        return cost.element_ns(self.order) + cost.memory_ns(8 * len(self.module.parameters))

    # --- moves -------------------------------------------------------------------------------------------------------

    def _read(self, operand: Instruction) -> int:
        return self.place[self.source[operand]]

    def _steps_of(self, operand: Instruction) -> list[int]:
        return [0] * len(operand.shape.dims) if operand in self.single else _strides(operand.shape)

    def _move_all(self, ins: Instruction, operand: Instruction, strides: Sequence[int], first: int = 0) -> None:
        places = (self._read(operand), self._new(ins))
        self._move(places, ins.shape.dtype.itemsize, ins.shape.dims, strides, _strides(ins.shape), first)

    def _copy_out(self, leaf: Instruction, place: int) -> None:
        dims = leaf.shape.dims
        self._move((self._read(leaf), place), leaf.shape.dtype.itemsize, dims, self._steps_of(leaf), _strides_of(dims))

    def _move(
        self, places: Sequence[int], size: int, dims: Sequence[int], read: Sequence[int], written: Sequence[int],
        first: int = 0, to: int = 0,
    ) -> None:  # fmt: skip
        if 0 in dims:
            return
        loops = _joined(dims, read, written)
        if loops == [(prod(dims), 1, 1)] and not first and not to:
            self._words += [library.COPY, places[1], places[0], prod(dims) * size]
            self._steps += 1
            self.cost += machine.RECIPE_STEP_NS + prod(dims) * size * BYTE_NS
            return
        if len(loops) > MOST_RANK:
            raise NotCoveredError(f"a move of {len(loops)} dimensions")
        function = self._function(f"move_{size}")
        numbers = [first, to, len(loops), *(n for loop in loops for n in loop)]
        self._call(function, 1, places, numbers, prod(dims) * (0.5 + size * BYTE_NS))


class _RecordingWriter(_Writer):
    """Writer that notes the prebuilt function and the instruction of each call."""

    def __init__(self, module: HloModule, most_ns: float, suffix: str) -> None:
        super().__init__(module, most_ns, suffix)
        self.calls: list[tuple[int, Instruction]] = []

    def _call(self, function: int, tasks: int, places: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        self.calls.append((function, self.current))
        super()._call(function, tasks, places, numbers, ns)


def _is_inexact(ins: Instruction) -> bool:
    """Return True if results of an instruction are rounded."""
    return ins.shape.dtype.kind in (Kind.FLOAT, Kind.COMPLEX)


def _check_folded(ins: Instruction) -> None:
    """Raise if an instruction on constants, which passes fold, would be rounded differently than in native code."""
    exact = _EXACT if ins.operands[0].shape.dtype.is_complex else _EXACT_REAL
    inexact = ins.opcode in OPCODES and ins.opcode not in exact
    if _is_inexact(ins.operands[0]) and (inexact or ins.opcode == "reduce"):
        raise NotCoveredError(f"{ins.opcode} of constants, which the passes fold")


def _check(ins: Instruction) -> None:
    """Raise if an instruction is unsupported."""
    shape = ins.shape
    if ins.opcode not in _WRITERS or not shape.is_array or shape.is_dynamic or ins.control_predecessors:
        raise NotCoveredError(f"{ins.opcode} to {shape}")
    if shape.layout is not None and shape.layout != row_major(shape.rank):
        raise NotCoveredError(f"the layout of {shape}")
    if shape.dtype not in _TYPES or ins.attrs.get("type") == "TOTALORDER":
        raise NotCoveredError(f"{ins.opcode} to {shape}")


@cache
def _form(
    opcode: str, result: ElementType, types: tuple[ElementType, ...], direction: str, suffix: str
) -> tuple[int, float]:
    """Return the function of an element-wise opcode, and its time per element in ns."""
    form = Form(opcode, result, types, direction)
    if form.is_regular and form.name + suffix in library.numbers:
        return library.numbers[form.name + suffix], scalar.cost(opcode, types[0])
    raise NotCoveredError(f"{opcode} of {', '.join(map(str, types))} is not prebuilt")


def _aligned(nbytes: int) -> int:
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


def _joined(dims: Sequence[int], read: Sequence[int], written: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return loops as (length, read stride, write stride), with unit loops removed and contiguous ones merged."""
    loops = [loop for loop in zip(dims, read, written, strict=True) if loop[0] > 1] or [(1, 1, 1)]
    joined = loops[:1]
    for _, (n, r, w) in pairwise(loops):
        m, outer_r, outer_w = joined[-1]
        if outer_r == n * r and outer_w == n * w:
            joined[-1] = (m * n, r, w)
        else:
            joined.append((n, r, w))
    return joined


_TYPES: Final = frozenset(TYPES)
_SAME: Final = frozenset({"reshape", "bitcast", "copy"})  # the same elements in the same order
_MOVES: Final = frozenset({"transpose", "broadcast", "reverse", "slice"})  # of one element for all: nothing to do
_SPREADABLE: Final = OPCODES | _SAME | _MOVES
_WRITERS: Final[Mapping[str, Callable[[_Writer, Instruction], None]]] = {
    **dict.fromkeys(OPCODES, _Writer.elementwise),
    **dict.fromkeys(_SAME, _Writer.parameter),  # never called: they have the memory of their operands
    "parameter": _Writer.parameter, "constant": _Writer.constant, "iota": _Writer.iota,
    "transpose": _Writer.transpose, "broadcast": _Writer.broadcast, "reverse": _Writer.reverse,
    "slice": _Writer.slice, "concatenate": _Writer.concatenate, "pad": _Writer.pad, "reduce": _Writer.reduce,
}  # fmt: skip
