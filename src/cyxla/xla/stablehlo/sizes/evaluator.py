"""Values of sizes that loops, branches and calls compute from sizes that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from cyxla.records import dataclass
from cyxla.xla.evaluator.constant_evaluator import ConstantEvaluator
from cyxla.xla.hlo import Computation, Instruction

MAX_STEPS: Final = 1 << 15  # instructions that are looked at for one loop, branch or call: about 0.5 s
_LEAST_STEPS: Final = MAX_STEPS >> 5  # the same, once a module has had too many that came to nothing
_QUICK_STEPS: Final = MAX_STEPS >> 5  # the same, where no size depends on it
_MAX_ELEMENTS: Final = 1024  # of values inside of it, which are sizes

Rule: TypeAlias = "Callable[[Instruction, list[Any], Budget], Any]"


@dataclass
class Budget:
    """Number of instructions inside of called computations that may still be looked at.

    Attributes
    ----------
    left : int
        The number.
    follows_loops : bool
        True if loops are followed, else branches and calls alone.
    """

    left: int = MAX_STEPS
    follows_loops: bool = True


class Allowance:
    """Budgets of the loops, branches and calls of one module; those in vain leave less to the others."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def budget(self) -> Budget:
        """Return the budget of a loop, a branch or a call."""
        return Budget(max(self._left, _LEAST_STEPS))

    def charge(self, steps: int) -> None:
        """Count instructions that were looked at in vain."""
        self._left -= steps


class QuickAllowance(Allowance):
    """Budgets where no size depends on what is evaluated: they are small, and loops are not followed."""

    def budget(self) -> Budget:
        """Return the budget of a loop, a branch or a call."""
        return Budget(_QUICK_STEPS, follows_loops=False)


class SizeEvaluator(ConstantEvaluator):
    """Evaluator of constant instructions that follows loops, branches and calls.

    Tuples may be known in part: they are Python tuples with None for each unknown element.

    Parameters
    ----------
    computation : Computation, optional
        A called computation.
    arguments : sequence, optional
        Values of its parameters, None for unknown ones.
    budget : Budget, optional
        Budget that it shares with others.
    allowance : Allowance, optional
        Source of budgets, if it has none of its own.

    Attributes
    ----------
    has_given_up : bool
        True if a value is unknown because its computation takes too long.
    """

    def __init__(
        self,
        computation: Computation | None = None,
        arguments: Sequence[Any] = (),
        budget: Budget | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        super().__init__()
        self._allowance = allowance or Allowance()
        self._budget, self.has_given_up = budget, False
        if computation is not None:
            self._values.update(zip(computation.parameters, arguments, strict=True))

    def _needs_all(self, ins: Instruction) -> bool:
        return ins.opcode not in _IN_PART

    def _is_unknown(self, ins: Instruction) -> bool:
        if ins.opcode not in _IN_PART and super()._is_unknown(ins):
            return True
        if self._budget is None:
            return False
        self._budget.left -= 1
        return self._budget.left < 0 or (ins.shape.is_array and ins.shape.size > _MAX_ELEMENTS)

    def _evaluate(self, ins: Instruction) -> Any:
        operands = [self._values[x] for x in ins.operands]
        rule = _IN_PART.get(ins.opcode)
        if rule is not None:
            return rule(ins, operands, self._budget) if self._budget is not None else self._follow(rule, ins, operands)
        return None if any(map(_is_partial, operands)) else super()._evaluate(ins)

    def _follow(self, rule: Rule, ins: Instruction, operands: list[Any]) -> Any:
        """Return the value of an instruction that may call others, within a budget of its own."""
        budget = self._allowance.budget()
        steps = budget.left
        value = rule(ins, operands, budget)
        if budget.left <= 0:
            self.has_given_up = True
        if value is None or budget.left <= 0:
            self._allowance.charge(steps - budget.left)
        return value


def _is_partial(value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and any(map(_is_partial, value)))


def _result(computation: Computation, arguments: Sequence[Any], budget: Budget) -> Any:
    """Return the result of a computation, in part or None if it depends on what is unknown."""
    return SizeEvaluator(computation, arguments, budget).result(computation.root)


def _element(ins: Instruction, operands: list[Any], budget: Budget) -> Any:
    return None if operands[0] is None else operands[0][ins.attrs["index"]]


def _call(ins: Instruction, operands: list[Any], budget: Budget) -> Any:
    return _result(ins.called[0], operands, budget)


def _conditional(ins: Instruction, operands: list[Any], budget: Budget) -> Any:
    selector, last = operands[0], len(ins.called) - 1
    if selector is None:
        return None
    number = int(not selector) if selector.dtype == np.bool_ else int(selector)
    number = number if 0 <= number <= last else last
    return _result(ins.called[number], [operands[number + 1]], budget)


def _while(ins: Instruction, operands: list[Any], budget: Budget) -> Any:
    """Return the state after a loop; elements that are unknown after one iteration as before it stay so."""
    body, condition = ins.called
    state, before = operands[0], None
    while budget.follows_loops and budget.left > 0:
        goes_on = _result(condition, [state], budget)
        if goes_on is None:
            return None
        if not goes_on:
            return state
        known = _known(state)
        state = _next_state(body, state, known if known == before else None, budget)
        before = known
    return None


def _known(state: Any) -> tuple[bool, ...] | None:
    """Return for each element of a tuple whether something of it is known; None for other states."""
    return tuple(x is not None for x in state) if isinstance(state, tuple) else None


def _next_state(body: Computation, state: Any, wanted: tuple[bool, ...] | None, budget: Budget) -> Any:
    """Return the state after an iteration, of which only some elements may be wanted."""
    if wanted is None or body.root.opcode != "tuple":
        return _result(body, [state], budget)
    values = SizeEvaluator(body, [state], budget)
    return tuple(
        [values.result(x) if is_wanted else None for x, is_wanted in zip(body.root.operands, wanted, strict=True)]
    )


_IN_PART: Final[dict[str, Rule]] = {
    "call": _call,
    "conditional": _conditional,
    "get-tuple-element": _element,
    "opt-barrier": lambda ins, operands, budget: operands[0],
    "tuple": lambda ins, operands, budget: tuple(operands),
    "while": _while,
}
