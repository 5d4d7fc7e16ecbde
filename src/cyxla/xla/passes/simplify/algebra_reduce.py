"""Rules for reductions and contractions that need not add anything up.

Before::

    b = f32[4,8] broadcast(f32[4] x), dimensions={0}
    m = f32[4] reduce(b, lowest), dimensions={1}, to_apply=max
    s = s32[] reduce(f, zero), dimensions={0}, to_apply=add      // f = s32[3] reduce(y, zero), dimensions={1}, to_apply=add

After::

    m = f32[4] maximum(broadcast(lowest), x)
    s = s32[] reduce(y, zero), dimensions={0,1}, to_apply=add

A sum may be taken in any order, so merged reductions of floats count as exact; those of floats below 32 bits round at
every step and are left alone.
"""

# ruff: noqa: E501  a rule is a line

from __future__ import annotations

from typing import Final

from cyxla.types import ElementType
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.engine.pattern import Match, Var, attr, full, is_number, op, special
from cyxla.xla.passes.engine.rewrite import Rule, rule
from cyxla.xla.passes.engine.writer import Writer
from cyxla.xla.passes.simplify.algebra_movement import unit_map

x, y, v, w = Var("x"), Var("y"), Var("v"), Var("w")
p, q = attr("p"), attr("q")
IDEMPOTENT: Final = frozenset({"maximum", "minimum", "and", "or"})
#: The number that changes nothing.
_NEUTRAL: Final[dict[str, float | str]] = {
    "add": 0,
    "multiply": 1,
    "maximum": "lowest",
    "minimum": "highest",
    "and": "ones",
    "or": 0,
    "xor": 0,
}


def _function(ins: Instruction) -> str:
    """The opcode that a reduction folds with, one that commutes; empty for anything more."""
    body = ins.called[0]
    root, parameters = body.root, body.parameters
    if len(ins.operands) != 2 or root.opcode not in _NEUTRAL or any(i.shape is not root.shape for i in parameters):
        return ""
    return root.opcode if set(root.operands) == set(parameters) else ""


def associative(name: str, dtype: ElementType) -> bool:
    """Whether elements may be folded in any order."""
    if dtype.is_complex or name not in _NEUTRAL:
        return False
    return not dtype.is_float or dtype.bits >= 32 or name in IDEMPOTENT


def is_neutral(ins: Instruction, name: str) -> bool:
    """Whether folding with this number changes nothing; for sums of floats either zero counts."""
    dtype, neutral = ins.shape.dtype, _NEUTRAL[name]
    value = special(neutral, dtype) if isinstance(neutral, str) else neutral
    return value is not None and is_number(ins, value)


def _reduce(m: Match, source: Instruction, dims: tuple[int, ...]) -> Instruction:
    """The same reduction of something else."""
    ins = m.root
    attrs = {**ins.attrs, "dimensions": dims}
    called: tuple[Computation, ...] = ins.called
    return ins.computation.add("reduce", (source, m.w), attrs, shape=ins.shape.logical, called=called)


def _nothing_folded(m: Match) -> bool:
    return not m.q and bool(m.x.shape.compatible(m.root.shape))


def _fold_ones(m: Match) -> Instruction | None:
    """Fold once, where every dimension that goes has size 1."""
    name = _function(m.root)
    if not name or not m.q or any(m.x.shape.dims[d] != 1 for d in m.q):
        return None
    write = Writer(m.root.computation)
    shape = m.root.shape.logical
    return write.op(name, write.broadcast(m.w, shape), write.reshape(m.x, shape.dims))


def _fold_copies(m: Match) -> Instruction | None:
    """Fold x itself once, where all that goes are copies of it."""
    name = _function(m.root)
    if name not in IDEMPOTENT or not m.q or any(d in m.p for d in m.q) or m.root.operands[0].shape.size == 0:
        return None
    kept = [d for d in range(m.root.operands[0].shape.rank) if d not in m.q]
    write, shape = Writer(m.root.computation), m.root.shape.logical
    spread = _spread(write, m.x, [kept.index(d) for d in m.p], m)
    return write.op(name, write.broadcast(m.w, shape), spread)


def _spread(write: Writer, source: Instruction, places: list[int], m: Match) -> Instruction:
    if places == list(range(m.root.shape.rank)):
        return source
    return write.op("broadcast", source, shape=m.root.shape.logical, dimensions=tuple(places))


def _count_copies(m: Match) -> Instruction | None:
    """Multiply by the number of copies, where integers are added up."""
    ins, wide = m.root, m.root.operands[0].shape
    if _function(ins) != "add" or not ins.shape.dtype.is_integer or not m.q or any(d in m.p for d in m.q):
        return None
    count, bits = 1, ins.shape.dtype.bits
    for d in m.q:
        count *= wide.dims[d]
    kept = [d for d in range(wide.rank) if d not in m.q]
    write, shape = Writer(ins.computation), ins.shape.logical
    wrapped = count % (1 << bits)
    wrapped -= (1 << bits) if ins.shape.dtype.is_signed and wrapped >= 1 << (bits - 1) else 0
    spread = _spread(write, m.x, [kept.index(d) for d in m.p], m)
    times = write.op("multiply", spread, full(ins.computation, wrapped, shape))
    return write.op("add", times, write.broadcast(m.w, shape))


def _fold_at_once(m: Match) -> Instruction | None:
    """Fold all dimensions in one reduction, where both use one function."""
    outer, inner = m.root, m.root.operands[0]
    name, dtype = _function(outer), outer.shape.dtype
    if not name or name != _function(inner) or not associative(name, dtype) or not is_neutral(m.v, name):
        return None
    if len(inner.users) > 1:
        return None
    kept = [d for d in range(m.x.shape.rank) if d not in m.p]
    return _reduce(m, m.x, tuple(sorted((*m.p, *(kept[d] for d in m.q)))))


def _fold_transposed(m: Match) -> Instruction | None:
    """Fold x itself, where the dimensions that stay are in order."""
    name = _function(m.root)
    kept = [m.p[d] for d in range(len(m.p)) if d not in m.q]
    if not associative(name, m.root.shape.dtype) or kept != sorted(kept):
        return None
    return _reduce(m, m.x, tuple(sorted(m.p[d] for d in m.q)))


def _fold_reshaped(m: Match) -> Instruction | None:
    """Fold x itself, where the reshape only adds or drops dimensions of size 1."""
    name, inner = _function(m.root), m.root.operands[0].shape
    places = unit_map(inner.dims, m.x.shape.dims)
    if not associative(name, m.root.shape.dtype) or places is None:
        return None
    dims = tuple(places[d] for d in m.q if d in places)  # the others have size 1
    if not dims:
        return None
    rest = [n for d, n in enumerate(m.x.shape.dims) if d not in dims]
    attrs = {**m.root.attrs, "dimensions": dims}
    called: tuple[Computation, ...] = m.root.called
    shape = m.root.shape.with_dims(rest)
    new = m.root.computation.add("reduce", (m.x, m.w), attrs, shape=shape, called=called)
    return Writer(m.root.computation).reshape(new, m.root.shape.dims)


# --- contractions ---


def _empty_dot(m: Match) -> Instruction | None:
    """Write zeros, where nothing is added up."""
    lhs, dims = m.root.operands[0].shape, m.root.attrs["lhs_contracting_dims"]
    if all(lhs.dims[d] for d in dims):
        return None
    return Writer(m.root.computation).full(0, m.root.shape)


def _outer_product(m: Match) -> Instruction | None:
    """Multiply broadcasts, where every contracted dimension has size 1."""
    ins, attrs = m.root, m.root.attrs
    lhs, rhs = m.x.shape, m.y.shape
    if lhs.dtype is not ins.shape.dtype or rhs.dtype is not ins.shape.dtype:
        return None
    if any(lhs.dims[d] != 1 for d in attrs["lhs_contracting_dims"]):
        return None
    batch = len(attrs["lhs_batch_dims"])
    left = _places(lhs.rank, attrs["lhs_batch_dims"], attrs["lhs_contracting_dims"], batch)
    right = _places(
        rhs.rank, attrs["rhs_batch_dims"], attrs["rhs_contracting_dims"], ins.shape.rank - _free(rhs.rank, attrs)
    )
    write = Writer(ins.computation)
    return write.op("multiply", _laid_out(write, m.x, left, ins), _laid_out(write, m.y, right, ins))


def _free(rank: int, attrs: dict[str, tuple[int, ...]]) -> int:
    return rank - len(attrs["rhs_batch_dims"]) - len(attrs["rhs_contracting_dims"])


def _places(rank: int, batch: tuple[int, ...], contracted: tuple[int, ...], first: int) -> dict[int, int]:
    """Where each dimension of an operand lies in the result; contracted ones are missing."""
    free = [d for d in range(rank) if d not in batch and d not in contracted]
    return {**{d: n for n, d in enumerate(batch)}, **{d: first + n for n, d in enumerate(free)}}


def _laid_out(write: Writer, source: Instruction, places: dict[int, int], ins: Instruction) -> Instruction:
    kept = sorted(places)
    narrow = write.reshape(source, [source.shape.dims[d] for d in kept])
    dims = tuple(places[d] for d in kept)
    if dims == tuple(range(ins.shape.rank)) and narrow.shape.dims == ins.shape.dims:
        return narrow
    return write.op("broadcast", narrow, shape=ins.shape.logical, dimensions=dims)


def _exact_product(m: Match) -> bool:
    return bool(m.root.shape.dtype.is_integer)


# fmt: off
#     pattern                                                       becomes          only if
REDUCTIONS: Final[list[Rule]] = [
    rule(op("reduce", x, w, dimensions=q),                          x,               when=_nothing_folded),
    rule(op("reduce", x, w, dimensions=q),                          _fold_ones),
    rule(op("reduce", op("broadcast", x, dimensions=p), w, dimensions=q), _fold_copies),
    rule(op("reduce", op("broadcast", x, dimensions=p), w, dimensions=q), _count_copies),
    rule(op("reduce", op("reduce", x, v, dimensions=p), w, dimensions=q), _fold_at_once),
    rule(op("reduce", op("transpose", x, dimensions=p), w, dimensions=q), _fold_transposed),
    rule(op("reduce", op("reshape", x), w, dimensions=q),           _fold_reshaped),
    rule(op("dot", x, y),                                           _empty_dot),
    rule(op("dot", x, y),                                           _outer_product,  when=_exact_product),
    rule(op("dot", x, y),                                           _outer_product,  when=lambda m: not _exact_product(m), exact=False),
]
# fmt: on
