"""Emitter of fft: transforms over one dimension after the other, each a stage that runs in blocks of lines.

Lines of the last dimension are short or long. A panel transforms as many short ones at once as a vector has lanes; long
ones are transformed one at a time, as products of two lengths or as convolutions. Lines along another dimension are
columns of an array, and neighbours share a panel. A real transform of even length is a complex one of half of it.

The C is the same for all programs and comes prebuilt (`prebuilt.fft`); its operations are planned here.
"""

from __future__ import annotations

from math import log2, prod

import numpy as np

from cyxla.types import Literal, Shape
from cyxla.xla.cpu.emitters import emits, emits_live
from cyxla.xla.cpu.fft.live_lines import LiveLines
from cyxla.xla.cpu.fft.plan import Plan
from cyxla.xla.cpu.fft.stages import Columns, FftKind, Rows, Stage, last_dimension
from cyxla.xla.cpu.fft.templates import STACK_BYTES, VECTOR_BYTES, fft_text
from cyxla.xla.cpu.kernel import cost, machine, shared_kernel
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import describe, strides
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.hlo import Instruction

# Lines of 64 to 16,384 points take 1.2 to 1.3 times the estimate (SPR, see `kernel.machine`).
_LEVEL_NS = 0.01  # ns per byte of a point, for each halving of the length
# Bound on the scratch of all tasks, if they are more than `FEW_TASKS` and it is not on their stacks.
MAX_SCRATCH_BYTES = 2 * machine.L3_BYTES
FEW_TASKS = 16
MIN_UNIT_ROWS = 16  # lines of the last dimension in a unit that fill the lanes of vectors
_UNITS = 1  # place of the number of units in a plan; that of the lines of a stage comes second in its record
MAX_UNIT_BYTES = machine.L2_BYTES // 2  # size up to which one task transforms all dimensions, in the cache


@emits("fft")
def fft(ins: Instruction) -> list[Step]:
    """Emit a transform: a kernel for each dimension, or one for all dimensions of many small transforms."""
    return _Transform(ins).steps()


@emits_live("fft")
def live_fft(group: Group) -> list[Step]:
    """Emit a transform of which leading lines matter."""
    ins = group.root
    return _Transform(ins, LiveLines(tuple(group.live[0]), ins.shape.dims[0]) if 0 in group.live else None).steps()


def _without_computation(opcode: str, shape: Shape, ins: Instruction, **attrs: object) -> Value:
    """Return the result of an instruction in no computation: an array between two kernels, or a constant."""
    instruction = object.__new__(Instruction)
    instruction.opcode, instruction.shape, instruction.operands, instruction.attrs = opcode, shape, (), attrs
    instruction.called, instruction.computation, instruction.name, instruction.metadata = (), ins.computation, "", ()
    instruction.extras, instruction.users, instruction.control_predecessors = {}, {}, ()
    return Value(instruction)


class _Transform:
    """A transform with its dimensions and types, and the lines that matter."""

    def __init__(self, ins: Instruction, live: LiveLines | None = None) -> None:
        self.ins, self.kind, self.live = ins, FftKind(ins.attrs["fft_type"]), live
        self.lengths = [int(n) for n in ins.attrs["fft_length"]]
        rank, operand = len(self.lengths), ins.operands[0].shape
        self.dims_in, self.dims_out = operand.dims[operand.rank - rank :], ins.shape.dims[ins.shape.rank - rank :]
        self.batch = prod(ins.shape.dims[: ins.shape.rank - rank])
        self.complex = ins.shape.dtype if ins.shape.dtype.is_complex else operand.dtype
        self.real = self.complex.real_part

    def steps(self) -> list[Step]:
        """Return the kernels with their operands and results."""
        read, result = resolve(self.ins.operands[0]), Value(self.ins)
        ns = self.batch * prod(self.lengths) * log2(max(prod(self.lengths), 2)) * _LEVEL_NS * self.complex.itemsize
        nbytes = prod(self.work_dims) * self.complex.itemsize
        in_units = cost.tasks(ns) < 4 * self.batch and nbytes <= MAX_UNIT_BYTES
        in_units = in_units and prod(self.dims_out[:-1]) >= MIN_UNIT_ROWS and len(self.lengths) > 1
        stages = self.stages(1, 0) if in_units else self.stages(self.batch, ns)
        if in_units or len(stages) == 1:
            return [self.step(read, result, stages, self.batch if in_units else 0, ns)]
        temporaries = [_without_computation("fft", self.shape_after(stage), self.ins) for stage in stages[:-1]]
        values = [read, *temporaries, result]
        return [self.step(values[k], values[k + 1], [stage], 0, ns / len(stages)) for k, stage in enumerate(stages)]

    def shape_after(self, stage: Stage) -> Shape:
        """Return the shape of the array between a stage and the next one."""
        points = prod(self.work_dims)
        if stage.width:
            points = points // self.work_dims[-1] * stage.width
        return Shape.array(self.complex, (self.batch, points))

    @property
    def work_dims(self) -> tuple[int, ...]:
        """Dimensions of the array in which all dimensions but perhaps the last are transformed."""
        return self.dims_in if self.kind is FftKind.IRFFT else self.dims_out

    def stages(self, batch: int, ns: float) -> list[Stage]:
        """Return the stages of a batch of transforms.

        Parameters
        ----------
        batch : int
            Number of transforms.
        ns : float
            Time that they take on one core; 0 if tasks do not share a transform.
        """
        inverse = self.kind in (FftKind.IFFT, FftKind.IRFFT)
        row = Rows(self.kind, self.lengths[-1], batch * prod(self.dims_out[:-1]))
        rows = last_dimension(row, ns / len(self.lengths)) if ns else [row]
        steps = strides(self.work_dims)
        columns: list[Stage] = [
            Columns(self.lengths[d], steps[d], batch * prod(self.work_dims[:d]), inverse)
            for d in range(len(self.lengths) - 2, -1, -1)
            if self.lengths[d] > 1
        ]
        return [*columns, *rows] if self.kind is FftKind.IRFFT else [*rows, *columns]

    def step(self, read: Value, write: Value, stages: list[Stage], units: int, ns: float) -> Step:
        """Return a kernel that does all stages of each unit or, without units, the blocks of the only stage."""
        plan = Plan(self.real, 7 + len(stages))
        records = [plan.add(k, lambda stage=stage: stage.record(plan)) for k, stage in enumerate(stages)]  # type: ignore[misc]
        tasks = cost.tasks(ns, units or stages[0].blocks(plan.lanes))
        nbytes = max(stage.scratch(plan) for stage in stages)
        array_offset = nbytes if units and self._needs_own_array(stages) else 0
        if array_offset:
            nbytes += -(-prod(self.work_dims) * self.complex.itemsize // VECTOR_BYTES) * VECTOR_BYTES
        on_stack = nbytes <= STACK_BYTES
        if not on_stack:
            tasks = min(tasks, max(FEW_TASKS, MAX_SCRATCH_BYTES // nbytes))
        table = self.constant(plan)
        numbers = [tasks, units, nbytes, array_offset, *self.sizes, len(stages), *records, *plan.numbers]
        note = describe(self.kind.lower(), self.ins.shape)
        template = Kernel(note, tasks, ns, 0 if on_stack else tasks * nbytes, KernelKind.FFT)
        name, buffers = f"fft_f{self.real.bits}", 3 if on_stack else 4
        in_place = ((0, 0),) if stages[0].in_place and len(stages) == 1 else ()
        if self.live is not None:
            at = _UNITS if units else records[0] + 1
            kernel = self.live.kernel(name, numbers, at, template, buffers, lambda: self.text(plan))
            return Step(kernel, (read, table, *self.live.values), (write,), in_place)
        kernel = shared_kernel.kernel(name, numbers, template, buffers, lambda: self.text(plan))
        return Step(kernel, (read, table), (write,), in_place)

    def constant(self, plan: Plan) -> Value:
        """Return the tables of a plan as a constant."""
        numbers = plan.tables.array(np.dtype(self.real.numpy_dtype))
        shape = Shape.array(self.real, numbers.shape)
        return _without_computation("constant", shape, self.ins, literal=Literal(numbers, shape))

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of real elements in the operand and in the result of one transform."""
        real_in, real_out = self.kind is FftKind.RFFT, self.kind is FftKind.IRFFT
        return prod(self.dims_in) * (2 - real_in), prod(self.dims_out) * (2 - real_out)

    def _needs_own_array(self, stages: list[Stage]) -> bool:
        """Return whether a unit needs an array of its own between two stages."""
        return self.kind is FftKind.IRFFT and len(stages) > 1

    def text(self, plan: Plan) -> str:
        """Return the C that a plan needs."""
        return fft_text(self.real.bits, frozenset(plan.radices), frozenset(plan.fixed), "KERNEL")
