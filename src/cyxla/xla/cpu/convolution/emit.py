"""Emitter of convolution, channels last, with its epilogue: selects one of three kernels.

All kernels accumulate over the taps of the window and the input features in order, for any number of threads, and skip
padding.
"""

from __future__ import annotations

from cyxla.xla.cpu.convolution.backward_filter import filter_convolution
from cyxla.xla.cpu.convolution.rows import row_convolution
from cyxla.xla.cpu.convolution.sizes import Sizes
from cyxla.xla.cpu.convolution.tiles import fits, tiled_convolution
from cyxla.xla.cpu.dot import accumulators
from cyxla.xla.cpu.emitters import emits_group, fusible
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
    """Return the kernel of a convolution and its epilogue."""
    ins = group.root
    sizes = Sizes.of(ins)
    epilogue = Epilogue.of(group, sizes.features)
    form = filter_convolution if _is_images_last(ins) else tiled_convolution if fits(sizes) else row_convolution
    return form(ins, sizes, epilogue)
