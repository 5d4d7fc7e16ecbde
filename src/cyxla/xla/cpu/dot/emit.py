"""Emitter of dot with its epilogue: selects the kernel.

* f32 and f64: register tiles (`dot.tiles`); for few rows and a right operand that is contiguous along the contracted
  dimension, inner products (`dot.inner_products`); for few rows and a large right operand with contiguous columns, sums
  of weighted rows (`dot.row_combination`);
* integers, predicates and complex numbers: rows of accumulators (`dot.plain`).

Element-wise users of the dot are computed on its results (`loops.epilogue`).
"""

from __future__ import annotations

from functools import partial

from cyxla.types import ElementType
from cyxla.xla.cpu.dot.inner_products import InnerProducts, runs_along_k
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import ROWS
from cyxla.xla.cpu.dot.plain import check_plain, plain_dot
from cyxla.xla.cpu.dot.product import Output, Product, is_symmetric, panel_width
from cyxla.xla.cpu.dot.row_combination import RowCombination, is_row_combination
from cyxla.xla.cpu.dot.tiles import TiledProduct
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand.dot import has_kernel_order

__all__ = ["ROWS", "dot", "panel_width"]


def _check(ins: Instruction) -> str | None:
    if not has_kernel_order(ins):
        return "its dimensions are not in the order that kernels take"
    return None if is_tiled(ins) else check_plain(ins)


def is_tiled(ins: Instruction) -> bool:
    """Return whether a dot is a product of floats of one type."""
    types = {ins.shape.dtype, *(o.shape.dtype for o in ins.operands)}
    return len(types) == 1 and types <= {ElementType.F32, ElementType.F64}


fusible("dot", check=_check)


@emits_group(GroupKind.DOT)
def dot(group: Group) -> Step:
    """Return the kernel of a dot and its epilogue."""
    if not is_tiled(group.root):
        product = Product.of(group.root)
        return plain_dot(group, (product.batch, product.m, product.n, product.k), product.lhs, product.rhs)
    return variants.select(group, partial(step_of, group), lambda: kernel_choice(group)[1].axes())


def step_of(group: Group, choice: variants.Choice) -> Step:
    """Return the step of a product of floats for a choice of its parameters."""
    output, chosen = kernel_choice(group, choice)
    return output.epilogue.step(chosen.kernel())


def kernel_choice(
    group: Group, choice: variants.Choice = variants.RULES
) -> tuple[Output, InnerProducts | RowCombination | TiledProduct]:
    """Return the output and the kernel of a product of floats."""
    ins = group.root
    product = Product.of(ins)
    epilogue = Epilogue(group, product.m if product.n == 1 else product.n)
    left, right = epilogue.operands
    live = LiveProduct.of(group, epilogue.arrays)
    if product.n == 1 and product.m > 1:
        product, live, left, right = product.swapped, live.swapped, right, left
    output = Output(epilogue, left, right, is_symmetric(ins))
    return output, _select_kernel(product)(product, output, live, choice)


def stops_early(ins: Instruction) -> bool:
    """Return whether the kernel of a dot can leave out the last terms of all sums; one contracted dimension is long."""
    if (
        ins.shape.dtype.is_complex
        or sum(ins.operands[0].shape.dims[d] > 1 for d in ins.attrs["lhs_contracting_dims"]) != 1
    ):
        return False
    product = Product.of(ins)
    return not product.panel and 0 not in (product.batch, product.m, product.n, product.k)


def _select_kernel(product: Product) -> type[InnerProducts | RowCombination | TiledProduct]:
    if runs_along_k(product):
        return InnerProducts
    return RowCombination if is_row_combination(product) else TiledProduct
