"""Programs of element-wise operations and data movement as calls of prebuilt functions, without passes, plan and C.

Each instruction becomes a step of a recipe (see `entry.recipe`), or none if it is a view of its operand. This takes a
few microseconds for each instruction instead of a run of the C compiler, and results have the same bits as native code
because the functions contain the same expressions. Programs whose native code may compute differently are refused: sums
of floats whose order depends on fusion, and operations that passes fold or, such as powers, replace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cyxla._native import kernels as library
from cyxla.xla.cpu.kernel import prebuilt_numbers
from cyxla.xla.cpu.native.library import Library
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import OPCODES
from cyxla.xla.cpu.prebuilt.recipe_writer import RecipeWriter, RecordingWriter
from cyxla.xla.cpu.prebuilt.steps import elements, moves, products, reductions
from cyxla.xla.cpu.prebuilt.strided_operands import STRIDED
from cyxla.xla.cpu.prebuilt.survey import VIEWS, Survey
from cyxla.xla.cpu.run import signature
from cyxla.xla.cpu.run.executable import CpuExecutable, Manifest
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.bound_arguments import private_copy

if TYPE_CHECKING:
    from cyxla.xla.service.explanation import Explanation

__all__ = ["NotCoveredError", "PrebuiltExecutable", "prebuilt_program"]


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

        survey = Survey(self._module, _STEPS, exact=self.exact)
        writer = RecordingWriter(survey, prebuilt_numbers.suffix() or "")
        _write(writer, inf)
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
    writer = RecipeWriter(Survey(module, _STEPS, exact=exact), suffix)
    _write(writer, max_ns)
    manifest = Manifest(
        arena_bytes=writer.buffers.arena_bytes,
        cost=writer.cost,
        loops=False,
        constants=[signature.to_plain(shape) for shape, _ in writer.buffers.constants],
        functions=[],
        parameters=[signature.to_plain(p.shape) for p in module.parameters],
        result=signature.to_plain(module.entry.root.shape),
        longest=writer.cost,
    )
    constants = [array.reshape(-1).view(np.uint8).data for _, array in writer.buffers.constants]
    return kind(module, Library.from_bytes(writer.recipe()), manifest, constants, options)


def _write(writer: RecipeWriter, max_ns: float) -> None:
    """Write the steps of all instructions."""
    survey, buffers = writer.survey, writer.buffers
    source, searches, last_readers = survey.source, survey.searches, survey.last_readers
    for index, ins in enumerate(survey.order):
        if source[ins] is ins:
            writer.current = ins
            write = reductions.first_extreme if ins in searches else _STEPS[ins.opcode]
            write(writer, ins)
            if writer.cost > max_ns:
                raise NotCoveredError(f"more than {max_ns:.0f} ns of work")
        if index in last_readers:
            buffers.release(last_readers[index])
    stored: set[Instruction] = set()
    for number, leaf in enumerate(survey.results):
        if source[leaf] not in survey.stored or source[leaf] in stored or not survey.is_materialised(leaf):
            moves.copy_out(writer, leaf, buffers.result(number))
        stored.add(source[leaf])


_STEPS: Final[Mapping[str, Callable[[RecipeWriter, Instruction], None]]] = {
    **dict.fromkeys(OPCODES, elements.elementwise),
    **dict.fromkeys(VIEWS, elements.parameter),  # never called: they have the memory of their operands
    "parameter": elements.parameter,
    "constant": elements.constant,
    "iota": elements.iota,
    **dict.fromkeys(STRIDED, moves.strided),
    "concatenate": moves.concatenate,
    "pad": moves.pad,
    "reduce": reductions.reduce,
    "reduce-window": reductions.reduce_window,
    "dot": products.dot,
}
