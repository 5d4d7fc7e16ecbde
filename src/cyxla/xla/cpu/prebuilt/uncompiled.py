"""Execution without a C compiler: on prebuilt kernels where possible, else by the evaluator.

Executables say what is `missing` where NumPy itself would be faster than either. The first program of a process that is
evaluated warns.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.native.compiler_search import COMPILER_HINT, NO_COMPILER
from cyxla.xla.cpu.native.library import Library
from cyxla.xla.cpu.prebuilt.extremes import find_searches, is_quick, needed
from cyxla.xla.cpu.prebuilt.program import NotCoveredError, PrebuiltExecutable, prebuilt_program
from cyxla.xla.cpu.run.executable import CpuExecutable, Manifest
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.compaction_signature import is_pure_compaction
from cyxla.xla.service import CompileOptions, Executable
from cyxla.xla.service.evaluated_executable import EvaluatedExecutable

if TYPE_CHECKING:
    from cyxla.xla.service.explanation import Explanation

#: A program with anything else in it, or longer than this, is not worth planning: it has kernels that are not prebuilt.
_PREBUILT: Final = frozenset({
    "parameter", "tuple", "get-tuple-element", "reshape", "bitcast", "copy", "transpose",
    "dot", "convolution", "fft", "sort", "topk",
})  # fmt: skip
_LONGEST: Final = 100
#: Opcodes that cost nothing, or little beside any other.
_FREE: Final = frozenset({
    "parameter", "constant", "iota", "broadcast", "tuple", "get-tuple-element", "reshape", "bitcast", "copy", "slice",
    "transpose", "convert",
})  # fmt: skip


def without_compiler(module: HloModule, options: CompileOptions, *, warn: bool = True) -> Executable:
    """Return the executable of a program if there is no C compiler.

    Parameters
    ----------
    module : HloModule
        Verified module.
    options : CompileOptions
        Options as for native code.
    warn : bool
        Whether to warn here of a program that will be evaluated; its first call warns otherwise.
    """
    executable, lowered = _kernels(module, options) or (_steps(module, options), module)
    if executable is None and warn:
        _warn()
    if executable is not None and _is_faster_in_numpy(lowered):
        executable.missing = UnimplementedError(f"{NO_COMPILER}, and NumPy is faster than the prebuilt kernels")
    return executable or UncompiledExecutable(module, options)


def _is_faster_in_numpy(module: HloModule) -> bool:
    """Return whether NumPy's own functions are faster: for sorts, indices of extremes, and single large products."""
    order, root = list(module.entry.post_order()), module.entry.root
    searches = find_searches(order)
    costly = list(filter(_is_costly, needed(order, [root], searches)))
    is_product = len(costly) == 1 and _is_large_product(costly[0])
    is_search = not all(map(is_quick, searches.values())) or any(map(_finds_index, costly))
    return is_product or is_search or any(i.opcode == "sort" for i in costly)


def _is_large_product(ins: Instruction) -> bool:
    if ins.opcode != "dot":
        return False
    from cyxla.xla.cpu.prebuilt.small_products import is_small

    return not is_small(ins)


def _is_costly(ins: Instruction) -> bool:
    return ins.opcode not in _FREE


def _finds_index(ins: Instruction) -> bool:
    """Return whether a reduction finds the first index of a condition, as that of an extreme is found."""
    selected = ins.operands[0] if ins.opcode == "reduce" else None
    return selected is not None and selected.opcode == "select" and any(o.opcode == "iota" for o in selected.operands)


def _steps(module: HloModule, options: CompileOptions) -> PrebuiltExecutable | None:
    try:
        return prebuilt_program(module, options, inf, SteppedExecutable, exact=False)
    except NotCoveredError:
        return None


def _is_prebuilt(ins: Instruction) -> bool:
    return (ins.opcode in _PREBUILT or is_pure_compaction(ins)) and not ins.shape.is_dynamic


def _kernels(module: HloModule, options: CompileOptions) -> tuple[PrebuiltExecutable, HloModule] | None:
    """Return the executable of a program that needs nothing but prebuilt kernels, and the program after the passes."""
    instructions = module.entry.instructions
    if (
        len(instructions) > _LONGEST
        or not all(map(_is_prebuilt, instructions))
        or not any(map(_is_costly, instructions))
    ):
        return None
    from cyxla.xla.cpu.dump import Dump
    from cyxla.xla.cpu.lowering import emit, run_passes

    try:
        lowered = run_passes(module, options, Dump(module))
        with prebuilt_calls.any_cost():
            planned, buffers, source = emit(lowered, options)
    except UnimplementedError:
        return None  # the evaluator knows more types
    if source.recipe is None:
        return None
    manifest = Manifest.of(module, planned, buffers)
    constants = [c.array.reshape(-1).view(np.uint8).data for c in buffers.constants]
    return PlannedExecutable(module, Library.from_bytes(source.recipe), manifest, constants, options), lowered


class SteppedExecutable(PrebuiltExecutable):
    """Executable of operations that are all prebuilt."""

    exact = False

    def explain(self) -> str:
        """Describe the execution of the program, and ways to make it faster."""
        return f"{NO_COMPILER}: {super().explain()}\nfor native code, {COMPILER_HINT}"

    @property
    def c_source(self) -> str:
        """Raise UnimplementedError: there is no generated C."""
        raise UnimplementedError(NO_COMPILER, hint=COMPILER_HINT)


class PlannedExecutable(PrebuiltExecutable):
    """Executable of a planned program whose kernels are all prebuilt."""

    def explanation(self) -> Explanation:
        """Return the kernels of the plan."""
        return replace(CpuExecutable.explanation(self), tier=self.tier)

    def explain(self) -> str:
        """Describe the execution of the program."""
        return f"{NO_COMPILER}: not for this program, whose kernels are prebuilt\n{self.explanation()}"


class UncompiledExecutable(EvaluatedExecutable):
    """Executable of platform cpu that runs in the evaluator for lack of a C compiler."""

    platform, missing = "cpu", UnimplementedError(NO_COMPILER, hint=COMPILER_HINT)

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Evaluate; see `Executable`."""
        _warn()
        return super().__call__(*args, out=out)

    def explain(self) -> str:
        """Describe the execution of the program, and ways to make it faster."""
        return f"{NO_COMPILER}: {super().explain()}\nfor native code, {COMPILER_HINT}"

    @property
    def c_source(self) -> str:
        """Raise UnimplementedError: there is no generated C."""
        raise UnimplementedError(NO_COMPILER, hint=COMPILER_HINT)


@cache  # once in a process, whatever the filters of warnings say
def _warn() -> None:
    warnings.warn(
        f"{NO_COMPILER}: programs of platform cpu are evaluated on NumPy, which is far slower; {COMPILER_HINT}",
        RuntimeWarning,
        stacklevel=2,
    )
