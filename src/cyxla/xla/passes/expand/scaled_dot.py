"""Expand scaled-dot into a dot of scaled operands.

Before::

    ROOT d = f32[8,4] scaled-dot(f8e4m3fn[8,64] a, f8e4m3fn[64,4] b, f8e8m0fnu[8,2] scale_a, f8e8m0fnu[2,4] scale_b),
      lhs_contracting_dims={1}, rhs_contracting_dims={0}

After::

    blocks = f64[8,2,32] broadcast(f64[8,2] convert(scale_a)), dimensions={0,1}
    x = f64[8,64] multiply(convert(a), f64[8,64] reshape(blocks))
    y = f64[64,4] multiply(convert(b), ..)
    d = f64[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[8,4] convert(d)

Products and sums are in double precision, as in the evaluator: a scale may exceed the range of f32 that the result has.
"""

from __future__ import annotations

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each

_DIMS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")


def run(module: HloModule) -> bool:
    """Expand scaled-dot."""
    return rewrite_each(module, {"scaled-dot": _scaled_dot})


def _scaled_dot(ins: Instruction) -> Instruction | None:
    result = ins.shape.dtype
    if any(o.shape.is_dynamic or (o.shape.dtype.is_complex and not result.is_complex) for o in ins.operands):
        return None
    write = Writer(ins.computation)
    wide = ElementType.C128 if result.is_complex else ElementType.F64
    lhs, rhs, *scales = ins.operands
    operands = [_scaled(write, x, scale, wide) for x, scale in zip((lhs, rhs), (*scales, None), strict=False)]
    if result.is_integer:
        wide = ElementType.S64
        operands = [write.convert(x, wide) for x in operands]
    attrs = {name: tuple(ins.attrs[name]) for name in _DIMS}
    product = ins.computation.add("dot", operands, attrs, shape=ins.shape.logical.with_dtype(wide))
    if result is ElementType.PRED:
        return write.compare("NE", product, write.full(0, product.shape))
    return write.convert(product, result)


def _scaled(write: Writer, x: Instruction, scale: Instruction | None, wide: ElementType) -> Instruction:
    """Return an operand in a wide type, multiplied by its scale."""
    wide_x = write.convert(x, wide)
    if scale is None or not x.shape.size:
        return wide_x
    factor = write.convert(scale, wide)
    if scale.shape.size == 1:
        return write.op("multiply", wide_x, write.broadcast(write.reshape(factor, ()), wide_x.shape.logical))
    counts = scale.shape.dims
    blocks = [part for n, m in zip(counts, x.shape.dims, strict=True) for part in (n, m // n)]
    repeated = write.broadcast(factor, Shape.array(wide, blocks), range(0, len(blocks), 2))
    return write.op("multiply", wide_x, write.reshape(repeated, x.shape.dims))
