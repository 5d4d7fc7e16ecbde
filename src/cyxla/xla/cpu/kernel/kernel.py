"""Kernels, and the steps that call them, as emitters return them to the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.cpu.c.quote_comments import without_quotes
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.service.refusal import Refusal

if TYPE_CHECKING:
    from cyxla.xla.cpu.kernel.groups import Group

STATE_BYTES = 64  # u64 each: the global state, lower half first; the seed; number of blocks that `rng` has drawn

#: Names of instructions and computations in the text of a module.
Names = Mapping[Instruction | Computation, str]


class Listing(Protocol):
    """Loop IR that a part of a kernel was made from."""

    def text(self, names: Names) -> str:
        """Return the text of the loop IR, for a dump."""
        ...

    def refusals(self) -> Iterator[Refusal]:
        """Yield the reasons for which it is not vectorised, for an explanation."""
        ...


@dataclass(frozen=True)
class Value:
    """Array in memory: one leaf of the result of an instruction that computes something.

    Attributes
    ----------
    instruction : Instruction
        Defining instruction; never one that only forwards its operands (tuple, get-tuple-element, reshape, copy ..).
    index : tuple of int
        Shape index of the leaf in a tuple-shaped result; () for an array.
    """

    instruction: Instruction
    index: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        """Static array shape of the leaf."""
        return self.instruction.shape.subshape(self.index).static


@dataclass(frozen=True)
class PrebuiltCall:
    """Call of a prebuilt function that makes up a whole kernel.

    Attributes
    ----------
    name : str
        Name of the function (see `kernel.prebuilt_calls`).
    numbers : tuple of int
        Integer arguments, which the function reads from ``CYX_NUMBERS(bufs)``: sizes, strides and the like.
    """

    name: str
    numbers: tuple[int, ...]


class KernelKind(StrEnum):
    """Kinds of kernels, as explanations and profiles name them."""

    BUNDLE = "bundle"
    """Small kernels that do not depend on each other."""
    C_CALL = "c call"
    CHOLESKY = "cholesky"
    COMPACTION = "compaction"
    CONVOLUTION = "convolution"
    DOT = "dot"
    FFT = "fft"
    HOST_TRANSFER = "host transfer"
    """Infeed, outfeed, send or recv."""
    LANE_LOOP = "lane loop"
    """A whole while loop in which each block of elements runs through all iterations."""
    LAPACK = "lapack"
    LOOP = "loop"
    """Element-wise instructions."""
    LOOP_NEST = "loop nest"
    """A whole while loop with its arrays in memory, and the loops and branches inside it."""
    LU = "lu"
    PRODUCTS = "products"
    """Products of one matrix with several vectors, which is read once."""
    PYTHON = "python (slow)"
    QR = "qr"
    REDUCE = "reduce"
    REDUCE_WINDOW = "reduce-window"
    REFLECTORS = "reflectors"
    """Product of Householder reflectors."""
    RNG = "rng"
    ROW = "row"
    """Several passes over each row."""
    SCAN = "scan"
    SCATTER = "scatter"
    SELECT_AND_SCATTER = "select-and-scatter"
    SMALL_LOOP = "small loop"
    """A whole while loop with the state in locals."""
    SORT = "sort"
    TOPK = "topk"
    TRIANGULAR_SOLVE = "triangular-solve"


@dataclass(frozen=True)
class Kernel:
    """C function that computes arrays from arrays.

    Attributes
    ----------
    text : str
        C definition, named ``KERNEL``: ``static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)``,
        which runs tasks [begin, end). Helpers and tables beside it are named ``KERNEL_..``. Nothing in the text depends
        on names or on the number of other kernels, so equal work gives equal text and is compiled once.
    tasks : int
        Number of independent tasks, fixed by the shapes.
    cost : float
        Estimated time of all tasks on one core, in ns.
    scratch : int
        Size in bytes of a scratch buffer, which comes after the writes; 64-byte aligned, shared by all tasks.
    kind : KernelKind
        Kind, for explanations and profiles.
    phases : int
        Number of times that all tasks run; a phase starts when the last task of the one before has ended. With more
        than one, the phase's number is an int64_t in one more buffer after the scratch.
    call : PrebuiltCall or None
        Call of a prebuilt function, if the text does nothing else.
    loops : tuple of Listing
        Loop IR that the text was made from, for dumps and explanations.
    short : str
        C of a condition on ``bufs`` under which one thread runs all tasks soonest; empty if sizes at run time do not
        change the work.
    refusals : tuple of Refusal
        Optimisations that the emitter did not apply, besides those that `loops` tell of.
    tuned : str
        Key of the measurements that decided on the variant (see `autotune`); empty if the rules did.
    """

    text: str
    tasks: int = 1
    cost: float = 0.0
    scratch: int = 0
    kind: KernelKind = KernelKind.LOOP
    phases: int = 1
    call: PrebuiltCall | None = None
    short: str = ""
    loops: tuple[Listing, ...] = field(default=(), compare=False, repr=False)
    refusals: tuple[Refusal, ...] = field(default=(), compare=False, repr=False)
    tuned: str = field(default="", compare=False, repr=False)

    @cached_property
    def code(self) -> str:
        """C without quotes of HLO; equal code is compiled once."""
        return without_quotes(self.text)


@dataclass(frozen=True)
class Step:
    """Kernel with its arrays: ``bufs`` holds the reads, the writes, the scratch, the phase, then the functions.

    Attributes
    ----------
    reads, writes : tuple of Value
        Arrays in the order of the kernel's buffers.
    in_place : tuple of (int, int)
        Pairs (write, read) that may share one buffer if the read value dies here.
    must_alias : tuple of (int, int)
        Pairs (write, read) that share one buffer; the planner copies the read value first unless it dies here.
    functions : tuple of str or Instruction
        Functions the kernel calls: those of `calls.host_functions` by name, or the custom calls and host transfers that
        Python runs.
    state : bool
        True if the last of ``bufs`` is the state of the random numbers (`STATE_BYTES`), one for all kernels of a call.
    context : bool
        True if the last of ``bufs`` is the `cyx_ctx` of the call: the kernel has one task, runs long and polls.
    offsets : tuple of int
        Offsets in bytes at which the reads begin that the kernel gets; empty if all are 0. Kernels that differ in the
        positions of their operands alone have equal text.
    groups : tuple of Group
        Groups of instructions that the step computes, or takes part in computing; for explanations.
    """

    kernel: Kernel
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    in_place: tuple[tuple[int, int], ...] = field(default=())
    must_alias: tuple[tuple[int, int], ...] = field(default=())
    functions: tuple[str | Instruction, ...] = field(default=())
    state: bool = False
    context: bool = False
    offsets: tuple[int, ...] = field(default=())
    groups: tuple[Group, ...] = field(default=(), compare=False, repr=False)

    def offsets_of(self, count: int) -> tuple[int, ...]:
        """Return the offsets in bytes of the first `count` buffers of the kernel; those after the reads are 0."""
        return (*self.offsets, *[0] * (count - len(self.offsets)))
