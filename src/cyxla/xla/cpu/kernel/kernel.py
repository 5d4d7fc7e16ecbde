"""Kernels, and the steps that call them: what emitters hand to the planner."""

from __future__ import annotations

from dataclasses import dataclass, field

from cyxla.types import Shape
from cyxla.xla.hlo import Instruction

STATE_BYTES = 64  # u64 each: the global state, lower half first; the seed; how many blocks `rng` has drawn


@dataclass(frozen=True)
class Value:
    """An array that lives in memory: one leaf of the result of an instruction that computes something.

    Attributes
    ----------
    instruction : Instruction
        Who defines it; never one that only passes on what it reads (tuple, get-tuple-element, reshape, copy ..).
    index : tuple of int
        Which leaf of a tuple-shaped result.
    """

    instruction: Instruction
    index: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        """Static array shape of the leaf."""
        return self.instruction.shape.subshape(self.index).static


@dataclass(frozen=True)
class PrebuiltCall:
    """A prebuilt function that is all of a kernel.

    Attributes
    ----------
    name : str
        The function (see `kernel.prebuilt_calls`).
    numbers : tuple of int
        What it reads from ``CYX_NUMBERS(bufs)``.
    """

    name: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One C function.

    Attributes
    ----------
    text : str
        Its definition, named ``KERNEL``: ``static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)``,
        which runs tasks [begin, end). Helpers and tables beside it are named ``KERNEL_..``. Nothing in the text depends
        on names or on the number of other kernels, so equal work gives equal text and is compiled once.
    tasks : int
        Number of independent tasks, fixed by the shapes.
    cost : float
        Estimated time of all tasks on one core, in ns.
    scratch : int
        Bytes of scratch memory in one more buffer after the writes; 64-byte aligned, shared by all tasks.
    kind : str
        What sort of kernel, for people: loop, reduce, dot ..
    phases : int
        How often all tasks run; a phase starts when the last task of the one before has ended. With more than one,
        its number is an int64_t in one more buffer after the scratch.
    call : PrebuiltCall or None
        The prebuilt function that the text calls, if it does nothing else.
    """

    text: str
    tasks: int = 1
    cost: float = 0.0
    scratch: int = 0
    kind: str = "loop"
    phases: int = 1
    call: PrebuiltCall | None = None


@dataclass(frozen=True)
class Step:
    """A kernel and its arrays: ``bufs`` holds the reads, the writes, the scratch, the phase, then the functions.

    Attributes
    ----------
    reads, writes : tuple of Value
        In the order of the kernel's buffers.
    in_place : tuple of (int, int)
        Pairs (write, read): these two may be one buffer if the read value dies here.
    must_alias : tuple of (int, int)
        Pairs (write, read): these two are one buffer; the planner copies the read value first unless it dies here.
    functions : tuple of str or Instruction
        What the kernel calls: functions of `calls.host_functions` by name, or the custom calls that Python runs.
    state : bool
        The last of ``bufs`` is the state of the random numbers, of `STATE_BYTES`, one for all kernels of a call.
    context : bool
        The last of ``bufs`` is the `cyx_ctx` of the call, of a kernel of one task: it takes long and polls.
    """

    kernel: Kernel
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    in_place: tuple[tuple[int, int], ...] = field(default=())
    must_alias: tuple[tuple[int, int], ...] = field(default=())
    functions: tuple[str | Instruction, ...] = field(default=())
    state: bool = False
    context: bool = False
