"""Fold scales and shifts around a product with known weights into the weights.

Before, where w, s, m and b are known (s, m and b may be broadcast over the other dimensions)::

    c = f32[8,14,14,64] convolution(x, w), dim_labels=b01f_01io->b01f
    ROOT r = f32[8,14,14,64] add(multiply(subtract(c, m), s), b)

After, where the last operand of both lines depends on known values only::

    c = f32[8,14,14,64] convolution(x, multiply(w, s))
    ROOT r = f32[8,14,14,64] add(c, subtract(b, multiply(m, s)))

Likewise before a dot, with scale and shift along the contracted dimension: dot(x * s + b, w) becomes
dot(x, s * w) + dot(b, w).

The results round differently, and are wrong if a weight times its scale leaves the range of its type: the caller has to
check the products. So this is not part of compilation, but of fixing arguments; see `prologue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.expand.dot import DotDims
from cyxla.xla.passes.specialise.known_values import Known, KnownWriter

_TYPES: Final = (ElementType.F32, ElementType.F64)
_AFFINE: Final = frozenset({"add", "subtract", "multiply", "divide", "negate"})
_MOVES: Final = frozenset({"reshape", "transpose"})
_Dims = tuple[int, ...]


def run(module: HloModule, known: Known) -> bool:
    """Fold in every computation; instructions that are written for known values are added to them."""
    changed = False
    for computation in module.post_order():
        for ins in list(computation.instructions):
            if ins not in computation.instructions:
                continue  # rewritten together with another
            while (new := _fold_before(ins, known)) is not None:
                ins, changed = new, True
            product = _Product.of(ins, known)
            if product is not None and (ins.users or ins.is_root):
                changed |= _fold_after(product, known)
    return changed


@dataclass(frozen=True)
class _Product:
    """A dot or convolution with known weights.

    Attributes
    ----------
    side : int
        Operand number of the weights.
    features : tuple of int
        Dimensions of the result that are dimensions of the weights.
    weight_dims : tuple of int
        The corresponding dimensions of the weights.
    """

    ins: Instruction
    side: int
    features: _Dims
    weight_dims: _Dims

    @staticmethod
    def of(ins: Instruction, known: Known) -> _Product | None:
        if ins.opcode not in ("dot", "convolution") or ins in known or ins.shape.dtype not in _TYPES:
            return None
        known_operands = [n for n, o in enumerate(ins.operands) if o in known]
        if len(known_operands) != 1 or any(o.shape.dtype is not ins.shape.dtype for o in ins.operands):
            return None
        if ins.opcode == "dot":
            return _Product(ins, known_operands[0], *_dot_features(ins, known_operands[0]))
        dims = ins.attrs["dim_labels"]
        return (
            _Product(ins, 1, (dims.output_feature,), (dims.kernel_output_feature,)) if known_operands == [1] else None
        )

    @property
    def weights(self) -> Instruction:
        return self.ins.operands[self.side]


def _dot_features(ins: Instruction, side: int) -> tuple[_Dims, _Dims]:
    dims = DotDims.of(ins)
    batch, free = (dims.lhs_batch, dims.lhs_free) if side == 0 else (dims.rhs_batch, dims.rhs_free)
    first = len(batch) + (len(dims.lhs_free) if side else 0)
    return (*range(len(batch)), *range(first, first + len(free))), (*batch, *free)


def _remove(ins: Instruction) -> None:
    """Remove an instruction that has lost its users, and operands that only it used."""
    stack = [ins]
    while stack:
        ins = stack.pop()
        if ins.users or ins.is_root or ins.opcode == "parameter" or ins not in ins.computation.instructions:
            continue
        if not ins.control_predecessors and not ins.has_side_effect:
            ins.computation.remove(ins)
            stack.extend(ins.operands)


# --- after a product ---


@dataclass
class _Affine:
    """A chain on a product p that computes p * scale + shift, both along its features."""

    write: KnownWriter
    end: Instruction  # the last instruction of the chain
    features: _Dims  # of the end
    scale: Instruction | None = None
    shift: Instruction | None = None
    shifts: int = 0
    moves: list[Instruction] = field(default_factory=list)  # reshapes and transposes before the end

    def extend(self, user: Instruction, at: Instruction, features: _Dims) -> bool:
        """Add an instruction to the chain if it fits, and return True if so."""
        if user.opcode == "negate":
            sizes = [user.shape.dims[d] for d in features]
            return self._scale("multiply", self.write.splat(-1, user.shape.with_dims(sizes)))
        if len(user.operands) != 2 or user.operands[0] is user.operands[1]:
            return False
        side = user.operands.index(at)
        other = user.operands[1 - side]
        if other not in self.write.known or (user.opcode == "divide" and side == 1):
            return False
        vector = self.write.vector(other, features)
        if vector is None:
            return False
        if user.opcode in ("multiply", "divide"):
            return self._scale(user.opcode, vector)
        return self._shift(user.opcode, vector, negated=user.opcode == "subtract" and side == 1)

    def _scale(self, opcode: str, vector: Instruction) -> bool:
        if self.scale is None and opcode == "multiply":
            self.scale = vector
        else:
            self.scale = self.write.op(opcode, self.scale or self.write.splat(1, vector.shape), vector)
        if self.shift is not None:
            self.shift = self.write.op(opcode, self.shift, vector)
        return True

    def _shift(self, opcode: str, vector: Instruction, *, negated: bool) -> bool:
        if negated:  # vector - chain
            scale = self.scale
            self.scale = self.write.splat(-1, vector.shape) if scale is None else self.write.op("negate", scale)
            self.shift = vector if self.shift is None else self.write.op("subtract", vector, self.shift)
        elif self.shift is None:
            self.shift = self.write.op("negate", vector) if opcode == "subtract" else vector
        else:
            self.shift = self.write.op(opcode, self.shift, vector)
        self.shifts += 1
        return True


def _fold_after(product: _Product, known: Known) -> bool:
    ins = product.ins
    write = KnownWriter(ins.computation, known)
    chain = _follow(product, write)
    if chain.end is ins or (chain.scale is None and chain.shifts < 2):
        return False
    computed = [i for i in (chain.scale, chain.shift) if i is not None]
    if not any(known.depends(i) for i in (*computed, product.weights)):
        return False
    weights = product.weights
    if chain.scale is not None:
        wide = write.broadcast_known(chain.scale, weights.shape, product.weight_dims)
        weights = write.op("multiply", weights, wide)
    operands = [weights if n == product.side else o for n, o in enumerate(ins.operands)]
    new = copy_instruction(ins, ins.computation, operands)
    for move in chain.moves:
        new = copy_instruction(move, ins.computation, [new])
    if chain.shift is not None:
        wide = write.broadcast_known(chain.shift, chain.end.shape, chain.features)
        new = Writer(ins.computation).op("add", new, wide)
    ins.computation.replace_all_uses(chain.end, new)
    _remove(chain.end)
    return True


def _follow(product: _Product, write: KnownWriter) -> _Affine:
    """Follow a product as long as its only user scales, shifts or moves it."""
    at, features = product.ins, product.features
    chain, moves = _Affine(write, at, features), list[Instruction]()
    while len(at.users) == 1 and not at.is_root:
        user = next(iter(at.users))
        if user.control_predecessors:
            break
        if user.opcode in _MOVES:
            new_dims = _dims_after_move(user, features)
            if new_dims is None:
                break
            features = new_dims
            moves.append(user)
        elif user.opcode in _AFFINE and chain.extend(user, at, features):
            chain.end, chain.features, chain.moves = user, features, list(moves)
        else:
            break
        at = user
    return chain


def _dims_after_move(move: Instruction, features: _Dims) -> _Dims | None:
    """Return the dimensions of the features after a transpose or reshape, or None if it splits or merges them."""
    if move.opcode == "transpose":
        order = move.attrs["dimensions"]
        return tuple(order.index(d) for d in features)
    before, after = move.operands[0].shape.dims, move.shape.dims
    if 0 in before:
        return None
    dims = []
    for d in features:
        dim = _same_dim(before, d, after)
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def _same_dim(before: Sequence[int], d: int, after: Sequence[int]) -> int | None:
    """Return the dimension of `after` with the same size and the same number of inner elements."""
    inner = _product(before[d + 1 :])
    return next((k for k, n in enumerate(after) if n == before[d] and _product(after[k + 1 :]) == inner), None)


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total


# --- before a dot ---


def _fold_before(ins: Instruction, known: Known) -> Instruction | None:
    """Fold arithmetic on a dot's other operand into the weights, for all users of it, and return the new dot."""
    product = _Product.of(ins, known) if ins.opcode == "dot" and (ins.users or ins.is_root) else None
    if product is None:
        return None
    source = ins.operands[1 - product.side]
    if source.opcode not in ("add", "subtract", "multiply", "divide") or source.is_root or source.control_predecessors:
        return None
    readers = [_Product.of(u, known) for u in source.users]
    write = KnownWriter(ins.computation, known)
    plans = [None if r is None else _plan_before(r, source, write) for r in readers]
    if any(p is None for p in plans):
        return None
    first: Instruction | None = None
    for reader, vector in zip(readers, plans, strict=True):
        assert reader is not None
        assert vector is not None
        new, result = _rewrite_before(reader, source, vector, write)
        ins.computation.replace_all_uses(reader.ins, result)
        _remove(reader.ins)
        first = new if reader.ins is ins else first
    return first


def _plan_before(reader: _Product, source: Instruction, write: KnownWriter) -> Instruction | None:
    """Return the known operand of `source` along the dimensions that `reader` contracts."""
    known = write.known
    x, y = source.operands
    if reader.ins.opcode != "dot" or (x in known) == (y in known):
        return None
    if x in known and source.opcode in ("divide", "subtract"):
        return None
    if not known.depends(x if x in known else y) and not known.depends(reader.weights):
        return None
    dims = DotDims.of(reader.ins)
    contracting = dims.lhs_contracting if reader.side == 1 else dims.rhs_contracting
    return write.vector(x if x in known else y, contracting)


def _rewrite_before(
    reader: _Product, source: Instruction, vector: Instruction, write: KnownWriter
) -> tuple[Instruction, Instruction]:
    """Return the new dot, and the replacement of the old one."""
    known, ins = write.known, reader.ins
    dims = DotDims.of(ins)
    along = dims.rhs_contracting if reader.side == 1 else dims.lhs_contracting
    x = next(o for o in source.operands if o not in known)
    weights, wide = reader.weights, write.broadcast_known(vector, reader.weights.shape, along)
    scales = source.opcode in ("multiply", "divide")
    scaled = write.op(source.opcode if scales else "multiply", weights, wide)
    operands = [x, x]
    operands[reader.side] = scaled if scales else weights
    new = copy_instruction(ins, ins.computation, operands)
    if scales:
        return new, new
    total = write.sum(scaled, along)
    known.learn(total.operands[1])
    known.learn(total)
    kept_dims = [d for d in range(weights.shape.rank) if d not in along]
    weight_dims = tuple(reader.features[reader.weight_dims.index(d)] for d in kept_dims)
    level = write.broadcast_known(total, ins.shape, weight_dims)
    return new, Writer(ins.computation).op(source.opcode, new, level)
