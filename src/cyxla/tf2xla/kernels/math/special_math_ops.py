"""Special functions, by series, or by HLO loops where the number of terms depends on data."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.core.framework.types import FLOATING
from cyxla.errors import ShapeError
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib import special, special_loops
from cyxla.xla.lib.special import in_f64
from cyxla.xla.lib.values import broadcast_to, in_f32, paired, sizes_of

_FLOATS = {"T": FLOATING}
_WIDE = {"T": FLOATING[2:]}


def _broadcasting(function: Callable[[XlaOp, XlaOp], XlaOp]) -> Callable[[XlaOp, XlaOp], XlaOp]:
    """Wrap a function of two broadcasting operands that computes in f64."""
    wide = in_f64(function)
    return lambda x, y: wide(*paired(x, y))


# fmt: off
lowering("BesselI0e",   in_f32(special.bessel_i0e),           types=_FLOATS)
lowering("BesselI1e",   in_f32(special.bessel_i1e),           types=_FLOATS)
lowering("Erfinv",      in_f32(special.erfinv),               types=_FLOATS)
lowering("Ndtri",       in_f32(special.ndtri),                types=_FLOATS)
lowering("Lgamma",      in_f64(special.lgamma),               types=_FLOATS)
lowering("Digamma",     in_f64(special.digamma),              types=_FLOATS)
lowering("Igamma",      _broadcasting(special_loops.igamma),        types=_FLOATS)
lowering("Igammac",     _broadcasting(special_loops.igammac),       types=_FLOATS)
lowering("IgammaGradA", _broadcasting(special_loops.igamma_grad_a), types=_WIDE)
lowering("Polygamma",   _broadcasting(special_loops.polygamma),     types=_WIDE)
lowering("Zeta",        _broadcasting(special_loops.zeta),          types=_WIDE)
# fmt: on


@lowering("Betainc", types=_WIDE)
def _betainc(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """Evaluate a continued fraction; the operands have one shape or are scalars."""
    shapes = {sizes_of(v) for v in (a, b, x)} - {()}
    if len(shapes) > 1:
        raise ShapeError(f"a, b and x must have one shape or be scalars: {sorted(map(list, shapes))}")
    sizes = shapes.pop() if shapes else ()
    return in_f64(special_loops.betainc)(*(broadcast_to(v, sizes) for v in (a, b, x)))
