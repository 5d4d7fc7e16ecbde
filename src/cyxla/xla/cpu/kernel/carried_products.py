"""Loop-carried products of integers, which gcc's vectoriser must not touch.

gcc 12 takes ``x = x * x`` for a reduction, like ``x = x * y[k]``, runs partial products side by side, and so squares
too seldom. It checks whether both operands are the same value, but not through conversions between signed and unsigned,
nor among products it formed itself: it turns ``x * x * y * y`` into the square of ``x * y``. So no type and no form of
the expression is safe. `VECTORIZATION_BARRIER`, a statement in the body of the loop, is: it has no vector form.
Independent operations within one iteration still become vectors.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import is_forwarding, leaves, own_leaves
from cyxla.xla.hlo import Computation, Instruction

#: The statement, defined in ``include/cyxla/scalar.h``.
VECTORIZATION_BARRIER = "CYX_VECTORIZATION_BARRIER;"

_PRODUCTS = frozenset({"multiply", "dot", "convolution", "power"})
_INDEXED = frozenset({"dynamic-slice", "gather"})  # all operands but the first are indices


def loop_carries_product(body: Computation) -> bool:
    """Return whether an iteration of a loop multiplies two integers that both depend on earlier iterations.

    Induction variables do not count: their value is known without the iteration before.
    """
    parameters = [v for p in body.parameters for v in own_leaves(p)]
    pairs = zip(parameters, leaves(body.root), strict=True)
    return _multiplies(body, {p for p, r in pairs if p != r and not _is_counter(p, r)})


def combiner_carries_product(combiner: Computation) -> bool:
    """Return whether a combiner multiplies two integers that both depend on its accumulator."""
    parameters = [v for p in combiner.parameters for v in own_leaves(p)]
    return _multiplies(combiner, set(parameters[: len(parameters) // 2]))


def barrier_if(needed: bool) -> list[str]:
    """Return the lines of a `VECTORIZATION_BARRIER` if one is needed, else none."""
    return [VECTORIZATION_BARRIER] if needed else []


def _is_counter(parameter: Value, result: Value) -> bool:
    """Return whether a leaf of the loop state is an induction variable that grows by a constant."""
    ins = result.instruction
    if ins.opcode != "add":
        return False
    sides = [leaves(o)[0] for o in ins.operands]
    return parameter in sides and any(s.instruction.opcode == "constant" for s in sides)


def _multiplies(computation: Computation, changing: Container[Value]) -> bool:
    dependent: set[Instruction] = set()

    def depends(values: Iterable[Value]) -> bool:
        return any(v in changing or v.instruction in dependent for v in values)

    for ins in computation.post_order():
        if ins.opcode in ("parameter", "constant") or is_forwarding(ins):
            continue
        operands = ins.operands[:1] if ins.opcode in _INDEXED else ins.operands
        depends_on_state = [depends(leaves(o)) for o in operands]
        if not any(depends_on_state):
            continue
        dependent.add(ins)
        if ins.opcode in _PRODUCTS and all(depends_on_state) and ins.shape.dtype.is_integer:
            return True
        if any(_multiplies(c, {v for p in c.parameters for v in own_leaves(p)}) for c in ins.called):
            return True
    return False
