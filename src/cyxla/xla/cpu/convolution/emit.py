"""Emitter of convolution, channels last, with its epilogue: selects one of three kernels.

All kernels accumulate over the taps of the window and the input features in order, for any number of threads, and skip
padding.
"""

from __future__ import annotations

from functools import partial

from cyxla.xla.cpu.convolution.backward_filter import FilterConvolution
from cyxla.xla.cpu.convolution.rows import MAX_CHAIN, RowwiseConvolution
from cyxla.xla.cpu.convolution.sizes import Sizes, vector_bytes
from cyxla.xla.cpu.convolution.tile_parameters import MAX_RANK
from cyxla.xla.cpu.convolution.tiles import MAX_BLOCK, TiledConvolution, fits, is_possible, leaves_input
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
    """Return the kernel of a convolution and its epilogue."""
    return variants.select(group, partial(_step, group), partial(_axes, group))


def _step(group: Group, choice: variants.Choice) -> Step:
    """Return the step of a convolution for a choice of its parameters."""
    epilogue, chosen = _kernel_choice(group, choice)
    return epilogue.step(chosen.kernel())


def _kernel_choice(
    group: Group, choice: variants.Choice
) -> tuple[Epilogue, FilterConvolution | TiledConvolution | RowwiseConvolution]:
    ins = group.root
    sizes = Sizes.of(ins)
    epilogue = Epilogue.of(group, sizes.features)
    if _is_images_last(ins):
        return epilogue, FilterConvolution(ins, sizes, epilogue, choice)
    kind = TiledConvolution if choice.get("tiled", fits(sizes)) else RowwiseConvolution
    return epilogue, kind(ins, sizes, epilogue, choice)


def _axes(group: Group) -> variants.Axes:
    """Return the parameters of the kernel, and the other kind of kernel if its sums are the same."""
    _, chosen = _kernel_choice(group, variants.RULES)
    if isinstance(chosen, FilterConvolution) or not _sums_alike(group.root):
        return chosen.axes()
    is_tiled = isinstance(chosen, TiledConvolution)
    return {"tiled": [int(not is_tiled)], **chosen.axes()} if is_tiled or is_possible(chosen.n) else chosen.axes()


def _sums_alike(ins: Instruction) -> bool:
    """Return True if tiles and rows add the same products in the same order.

    Tiles add zeros where a window leaves the input, which may turn -0 into 0; long sums are cut in different places;
    and features that do not fill a vector are added to a zero at the end.
    """
    n = Sizes.of(ins)
    is_plain = n.is_float and n.groups == 1 and not n.by_batch and not n.panel
    if not is_plain or len(n.space) > MAX_RANK or n.taps * n.depth > min(MAX_BLOCK, MAX_CHAIN):
        return False
    lanes = vector_bytes() // n.dtype.itemsize
    return n.features % lanes == 0 and not leaves_input(n)
