"""Initial state of a loop: the values that its variables have before it, in the types of its iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.numpy.control.carry import agreed_kind
from cyxla.numpy.rewriting.loops.plans import Learned, Plan, Variables, is_shared_array
from cyxla.numpy.rewriting.loops.slots import arrays_of, weak_class
from cyxla.numpy.rewriting.parts.parts import Leaves, like
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound, Unbound
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Kind, dtype_of, same_kind
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import XlaOp


def initial_values(variables: Variables, plan: Plan, entry: Sequence[Any]) -> dict[int, list[TracedArray]]:
    """Return the initial values of the variables that are carried as values, in the enclosing trace.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    plan : Plan
        Plan of the pass.
    entry : sequence
        Values of the variables before the loop.
    """
    found = ((k, _values_of(variables, plan, k, value)) for k, value in enumerate(entry))
    return {k: values for k, values in found if values is not None}


def note_unbound(variables: Variables, plan: Plan, k: int, value: Any) -> None:
    """Make it a part of the state whether a variable is unbound, if that depends on the run."""
    if variables.is_local(k) and any(isinstance(a, PossiblyUnbound) for a in arrays_of(value)):
        plan.maybe_unbound.add(k)


def unchecked_value(variables: Variables, k: int, array: TracedArray) -> XlaOp:
    """Return the value of an array of a variable, without a check that the variable is bound."""
    return array.unchecked_op if variables.is_local(k) else array.op


def _values_of(variables: Variables, plan: Plan, k: int, value: Any) -> list[TracedArray] | None:
    if k in variables.exits:
        return None
    note_unbound(variables, plan, k, value)
    learned = plan.learned.get(k)
    if isinstance(value, Unbound) or k not in variables.carried:
        return None if learned is None else _first_values(variables, k, learned, value)
    leaves = Leaves(value)
    if not leaves.arrays or _is_object(variables, plan, k, value):
        return None
    return [_adopted(variables, plan, k, j, a) for j, a in enumerate(leaves.arrays)]


def _is_object(variables: Variables, plan: Plan, k: int, value: Any) -> bool:
    if k in plan.as_value:
        return False
    is_array = is_shared_array(value) or isinstance(value, SizedArray)
    return is_array and (k in plan.as_object or k not in variables.rebound)


def _first_values(variables: Variables, k: int, learned: Learned, value: Any) -> list[TracedArray]:
    """Return the initial state of a variable that is bound in the body first: its value before, or zeros."""
    if not isinstance(value, Unbound):
        leaves = Leaves(value)
        if leaves.same_structure(learned.leaves):
            pairs = list(zip(leaves.arrays, learned.leaves.arrays, learned.kinds, strict=True))
            if all(a.shape == b.shape and _adopts(a.kind, kind) for a, b, kind in pairs):
                values = [_converted(_unchecked(variables, k, a), kind) for a, _, kind in pairs]
                return [like(b, value_of(v), v.weak) for v, (_, b, _) in zip(values, pairs, strict=True)]
    zeros = [
        as_traced(np.zeros(a.shape, dtype_of(k))) for a, k in zip(learned.leaves.arrays, learned.kinds, strict=True)
    ]
    return [
        like(p, value_of(z), weak_class(k)) for p, z, k in zip(learned.leaves.arrays, zeros, learned.kinds, strict=True)
    ]


def _adopted(variables: Variables, plan: Plan, k: int, j: int, array: TracedArray) -> TracedArray:
    kind = plan.kinds.get((k, j))
    value = _unchecked(variables, k, array)
    made = value if kind is None else _converted(value, kind)
    made.doubt = array.doubt
    made.rank0 = plan.ranks.get((k, j), made.rank0)
    return made


def _unchecked(variables: Variables, k: int, array: TracedArray) -> TracedArray:
    """Return an array of a variable, whether the variable is bound or not."""
    return like(array, require_current().capture(unchecked_value(variables, k, array)), array.weak)


def _converted(array: TracedArray, kind: Kind) -> TracedArray:
    return like(array, convert(value_of(array), dtype_of(kind)), weak_class(kind))


def _adopts(kind: Kind, other: Kind) -> bool:
    """Return True if a number becomes one of another type."""
    agreed = agreed_kind([kind, other])
    return agreed is not None and same_kind(agreed, other)
