"""Steps of small products."""

from __future__ import annotations

from cyxla.xla.cpu.prebuilt.buffers import align
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.recipe_writer import RecipeWriter
from cyxla.xla.hlo import Instruction


def dot(writer: RecipeWriter, ins: Instruction) -> None:
    """Call the prebuilt kernel of a small product."""
    if writer.survey.exact:
        raise NotCoveredError(f"dot to {ins.shape}")
    from cyxla.xla.cpu.prebuilt.small_products import is_small, step_of

    if not is_small(ins):
        raise NotCoveredError(f"dot to {ins.shape}, which is not small")
    step = step_of(ins)
    call = step.kernel.call
    reads = [v.instruction for v in step.reads]
    if call is None or step.kernel.phases > 1 or not all(map(writer.survey.is_materialised, reads)):
        raise NotCoveredError("a product without a prebuilt kernel")
    buffers = [*map(writer.buffers.of, reads), writer.buffers.allocate(ins)]
    if step.kernel.scratch:
        buffers.append(writer.buffers.temporary(align(step.kernel.scratch)))
    writer.call(writer.function(call.name), step.kernel.tasks, buffers, call.numbers, step.kernel.cost)
