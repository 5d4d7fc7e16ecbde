"""Emitter of convolution, channels last, with its epilogue: selects one of three kernels.

All kernels accumulate over the taps of the window and the input features in order, for any number of threads, and skip
padding.
"""

from __future__ import annotations

from functools import partial

from cyxla.xla.cpu.convolution.backward_filter import FilterConvolution
from cyxla.xla.cpu.convolution.rows import RowwiseConvolution
from cyxla.xla.cpu.convolution.sizes import Sizes
from cyxla.xla.cpu.convolution.tiles import TiledConvolution, fits
from cyxla.xla.cpu.dot import accumulators
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand.convolution import channels_last, images_last, is_gradient, is_packed


def _check(ins: Instruction) -> str | None:
    if is_packed(ins) or _is_images_last(ins):
        return None
    if ins.attrs["dim_labels"] != channels_last(ins.shape.rank - 2):
        return "its dimensions are not in the order that kernels take"
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    if accumulators.supports(types):
        return None
    return f"no product of {' and '.join(t.text for t in types[1:])} to {types[0]}"


def _is_images_last(ins: Instruction) -> bool:
    return bool(ins.attrs["dim_labels"] == images_last(ins.shape.rank - 2)) and is_gradient(ins, ins.shape.dtype)


fusible("convolution", check=_check)


@emits_group(GroupKind.CONVOLUTION)
def convolution(group: Group) -> Step:
    """Return the kernel of a convolution and its epilogue.

    Which of the three it is follows from the sizes alone: where sums are cut, and the signs of zeros, differ.
    """
    return variants.select(group, partial(_step, group), lambda: _kernel_choice(group)[1].axes())


def _step(group: Group, choice: variants.Choice) -> Step:
    """Return the step of a convolution for a choice of its parameters."""
    epilogue, chosen = _kernel_choice(group, choice)
    return epilogue.step(chosen.kernel())


def _kernel_choice(
    group: Group, choice: variants.Choice = variants.RULES
) -> tuple[Epilogue, FilterConvolution | TiledConvolution | RowwiseConvolution]:
    ins = group.root
    sizes = Sizes.of(ins)
    epilogue = Epilogue.of(group, sizes.features)
    if _is_images_last(ins):
        return epilogue, FilterConvolution(ins, sizes, epilogue, choice)
    kind = TiledConvolution if fits(sizes) else RowwiseConvolution
    return epilogue, kind(ins, sizes, epilogue, choice)
