"""Rules for reductions and contractions that need no summation.

Before::

    b = f32[4,8] broadcast(f32[4] x), dimensions={0}
    m = f32[4] reduce(b, lowest), dimensions={1}, to_apply=max
    s = s32[] reduce(f, zero), dimensions={0}, to_apply=add      // f = s32[3] reduce(y, zero), dimensions={1}, to_apply=add

After::

    m = f32[4] maximum(broadcast(lowest), x)
    s = s32[] reduce(y, zero), dimensions={0,1}, to_apply=add

A sum may be taken in any order, so merged reductions of floats count as exact; reductions of floats below 32 bits round
at every step and are not merged.
"""

# ruff: noqa: E501  a rule is a line

from __future__ import annotations

from math import prod
from typing import Final

from cyxla.types import ElementType
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.engine.pattern import Match, Var, attr, full, is_number, op, special
from cyxla.xla.passes.engine.rewrite import Rule, rule
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.algebra_movement import unit_map

x, y, v, w = Var("x"), Var("y"), Var("v"), Var("w")
p, q = attr("p"), attr("q")
IDEMPOTENT: Final = frozenset({"maximum", "minimum", "and", "or"})
#: Identity elements by opcode.
_IDENTITIES: Final[dict[str, float | str]] = {
    "add": 0,
    "multiply": 1,
    "maximum": "lowest",
    "minimum": "highest",
    "and": "ones",
    "or": 0,
    "xor": 0,
}


def _combiner(ins: Instruction) -> str:
    """Return the commutative opcode that a reduction combines with; an empty string for any other computation."""
    body = ins.called[0]
    root, parameters = body.root, body.parameters
    if len(ins.operands) != 2 or root.opcode not in _IDENTITIES or any(i.shape is not root.shape for i in parameters):
        return ""
    return root.opcode if set(root.operands) == set(parameters) else ""


def associative(name: str, dtype: ElementType) -> bool:
    """Return True if elements may be combined in any order."""
    if dtype.is_complex or name not in _IDENTITIES:
        return False
    return not dtype.is_float or dtype.bits >= 32 or name in IDEMPOTENT


def is_identity(ins: Instruction, name: str) -> bool:
    """Return True if this is the identity of the combiner; for sums of floats, zero of either sign."""
    dtype, identity = ins.shape.dtype, _IDENTITIES[name]
    value = special(identity, dtype) if isinstance(identity, str) else identity
    return value is not None and is_number(ins, value)


def _reduce(m: Match, source: Instruction, dims: tuple[int, ...]) -> Instruction:
    """Write the same reduction of another operand."""
    ins = m.root
    attrs = {**ins.attrs, "dimensions": dims}
    called: tuple[Computation, ...] = ins.called
    return ins.computation.add("reduce", (source, m.w), attrs, shape=ins.shape.logical, called=called)


def _is_noop(m: Match) -> bool:
    return not m.q and bool(m.x.shape.compatible(m.root.shape))


def _reduce_unit_dims(m: Match) -> Instruction | None:
    """the combiner of the initial value and x, if all reduced dimensions have size 1.."""
    name = _combiner(m.root)
    if not name or not m.q or any(m.x.shape.dims[d] != 1 for d in m.q):
        return None
    write = Writer(m.root.computation)
    shape = m.root.shape.logical
    return write.op(name, write.broadcast(m.w, shape), write.reshape(m.x, shape.dims))


def _reduce_broadcast(m: Match) -> Instruction | None:
    """the combiner of the initial value and x, if the reduced elements are copies.."""
    name = _combiner(m.root)
    if name not in IDEMPOTENT or not m.q or any(d in m.p for d in m.q) or m.root.operands[0].shape.size == 0:
        return None
    kept_dims = [d for d in range(m.root.operands[0].shape.rank) if d not in m.q]
    write, shape = Writer(m.root.computation), m.root.shape.logical
    broadcasted = _broadcast(write, m.x, [kept_dims.index(d) for d in m.p], m)
    return write.op(name, write.broadcast(m.w, shape), broadcasted)


def _broadcast(write: Writer, source: Instruction, dims_in_result: list[int], m: Match) -> Instruction:
    if dims_in_result == list(range(m.root.shape.rank)):
        return source
    return write.op("broadcast", source, shape=m.root.shape.logical, dimensions=tuple(dims_in_result))


def _multiply_by_count(m: Match) -> Instruction | None:
    """x times the number of copies, for sums of integers.."""
    ins, wide = m.root, m.root.operands[0].shape
    if _combiner(ins) != "add" or not ins.shape.dtype.is_integer or not m.q or any(d in m.p for d in m.q):
        return None
    count, kept_dims = prod(wide.dims[d] for d in m.q), [d for d in range(wide.rank) if d not in m.q]
    write, shape = Writer(ins.computation), ins.shape.logical
    broadcasted = _broadcast(write, m.x, [kept_dims.index(d) for d in m.p], m)
    times = write.op("multiply", broadcasted, full(ins.computation, _wrapped(count, ins), shape))
    return write.op("add", times, write.broadcast(m.w, shape))


def _count_below(m: Match) -> Instruction | None:
    """x within [0, n] times the number of copies, for sums of bools that tell which of n indices are below x.."""
    ins, found = m.root, _compared_indices(m.y)
    if found is None or _combiner(ins) != "add" or not ins.shape.dtype.is_integer:
        return None
    dimension, size = found
    dims, write = m.y.shape.dims, Writer(ins.computation)
    if dimension not in m.q or not size.shape.dtype.is_integer or dims[dimension] - 1 > _highest(size.shape.dtype):
        return None
    zero, most = (write.constant(n, size.shape.dtype) for n in (0, min(dims[dimension], _highest(size.shape.dtype))))
    below = write.op("minimum", write.op("maximum", size, zero), most)
    each, copies = write.convert(below, ins.shape.dtype), prod(dims[d] for d in m.q if d != dimension)
    shape = ins.shape.logical
    times = write.op("multiply", write.broadcast(each, shape), full(ins.computation, _wrapped(copies, ins), shape))
    return write.op("add", times, write.broadcast(m.w, shape))


def _compared_indices(ins: Instruction) -> tuple[int, Instruction] | None:
    """Return the dimension whose indices are compared with a scalar above them, and the scalar; None otherwise."""
    if ins.opcode != "compare" or ins.attrs["direction"] not in ("LT", "GT"):
        return None
    indices, bound = ins.operands if ins.attrs["direction"] == "LT" else ins.operands[::-1]
    if indices.opcode != "iota" or bound.opcode != "broadcast" or bound.operands[0].shape.rank:
        return None
    return indices.attrs["iota_dimension"], bound.operands[0]


def _highest(dtype: ElementType) -> int:
    """Return the highest number of an integer type."""
    return (1 << (dtype.bits - dtype.is_signed)) - 1


def _wrapped(number: int, ins: Instruction) -> int:
    """Return a number as the integer type of an instruction has it."""
    bits, wrapped = ins.shape.dtype.bits, number % (1 << ins.shape.dtype.bits)
    return wrapped - (1 << bits) if ins.shape.dtype.is_signed and wrapped >= 1 << (bits - 1) else wrapped


def _merge_reductions(m: Match) -> Instruction | None:
    """one reduction of all dimensions, if both have the same combiner.."""
    outer, inner = m.root, m.root.operands[0]
    name, dtype = _combiner(outer), outer.shape.dtype
    if not name or name != _combiner(inner) or not associative(name, dtype) or not is_identity(m.v, name):
        return None
    if len(inner.users) > 1:
        return None
    kept_dims = [d for d in range(m.x.shape.rank) if d not in m.p]
    return _reduce(m, m.x, tuple(sorted((*m.p, *(kept_dims[d] for d in m.q)))))


def _reduce_transposed(m: Match) -> Instruction | None:
    """reduce of x, if the remaining dimensions keep their order.."""
    name = _combiner(m.root)
    kept_dims = [m.p[d] for d in range(len(m.p)) if d not in m.q]
    if not associative(name, m.root.shape.dtype) or kept_dims != sorted(kept_dims):
        return None
    return _reduce(m, m.x, tuple(sorted(m.p[d] for d in m.q)))


def _reduce_reshaped(m: Match) -> Instruction | None:
    """reduce of x, if the reshape only adds or drops dimensions of size 1.."""
    name, inner = _combiner(m.root), m.root.operands[0].shape
    dims_in_result = unit_map(inner.dims, m.x.shape.dims)
    if not associative(name, m.root.shape.dtype) or dims_in_result is None:
        return None
    dims = tuple(dims_in_result[d] for d in m.q if d in dims_in_result)  # the others have size 1
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
    """zeros, if a contracted dimension has size 0.."""
    lhs, dims = m.root.operands[0].shape, m.root.attrs["lhs_contracting_dims"]
    if all(lhs.dims[d] for d in dims):
        return None
    return Writer(m.root.computation).full(0, m.root.shape)


def _outer_product(m: Match) -> Instruction | None:
    """multiply of broadcasts, if every contracted dimension has size 1.."""
    ins, attrs = m.root, m.root.attrs
    lhs, rhs = m.x.shape, m.y.shape
    if lhs.dtype is not ins.shape.dtype or rhs.dtype is not ins.shape.dtype:
        return None
    if any(lhs.dims[d] != 1 for d in attrs["lhs_contracting_dims"]):
        return None
    batch = len(attrs["lhs_batch_dims"])
    left = _result_dims(lhs.rank, attrs["lhs_batch_dims"], attrs["lhs_contracting_dims"], batch)
    right = _result_dims(
        rhs.rank, attrs["rhs_batch_dims"], attrs["rhs_contracting_dims"], ins.shape.rank - _free(rhs.rank, attrs)
    )
    write = Writer(ins.computation)
    return write.op(
        "multiply", _broadcast_to_result(write, m.x, left, ins), _broadcast_to_result(write, m.y, right, ins)
    )


def _free(rank: int, attrs: dict[str, tuple[int, ...]]) -> int:
    return rank - len(attrs["rhs_batch_dims"]) - len(attrs["rhs_contracting_dims"])


def _result_dims(rank: int, batch: tuple[int, ...], contracted: tuple[int, ...], first: int) -> dict[int, int]:
    """Map the dimensions of an operand to those of the result, without the contracted ones."""
    free = [d for d in range(rank) if d not in batch and d not in contracted]
    return {**{d: n for n, d in enumerate(batch)}, **{d: first + n for n, d in enumerate(free)}}


def _broadcast_to_result(
    write: Writer, source: Instruction, dims_in_result: dict[int, int], ins: Instruction
) -> Instruction:
    kept_dims = sorted(dims_in_result)
    narrow = write.reshape(source, [source.shape.dims[d] for d in kept_dims])
    dims = tuple(dims_in_result[d] for d in kept_dims)
    if dims == tuple(range(ins.shape.rank)) and narrow.shape.dims == ins.shape.dims:
        return narrow
    return write.op("broadcast", narrow, shape=ins.shape.logical, dimensions=dims)


def _exact_product(m: Match) -> bool:
    return bool(m.root.shape.dtype.is_integer)


# fmt: off
#     pattern                                                       becomes          only if
REDUCTIONS: Final[list[Rule]] = [
    rule(op("reduce", x, w, dimensions=q),                          x,               when=_is_noop),
    rule(op("reduce", x, w, dimensions=q),                          _reduce_unit_dims),
    rule(op("reduce", op("broadcast", x, dimensions=p), w, dimensions=q), _reduce_broadcast),
    rule(op("reduce", op("broadcast", x, dimensions=p), w, dimensions=q), _multiply_by_count),
    rule(op("reduce", op("convert", y), w, dimensions=q),           _count_below),
    rule(op("reduce", op("reduce", x, v, dimensions=p), w, dimensions=q), _merge_reductions),
    rule(op("reduce", op("transpose", x, dimensions=p), w, dimensions=q), _reduce_transposed),
    rule(op("reduce", op("reshape", x), w, dimensions=q),           _reduce_reshaped),
    rule(op("dot", x, y),                                           _empty_dot),
    rule(op("dot", x, y),                                           _outer_product,  when=_exact_product),
    rule(op("dot", x, y),                                           _outer_product,  when=lambda m: not _exact_product(m), exact=False),
]
# fmt: on
