"""Registry of the functions that evaluate opcodes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.xla.evaluator.values import Value
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.opcode import lookup

Request: TypeAlias = tuple[Computation, tuple[Value, ...]]
Steps: TypeAlias = Generator[Request, Value, Value]  # yields calls, is sent their results, returns a value
Handler: TypeAlias = Callable[..., Any]  # (evaluation, instruction, *operands) -> Value or Steps

EVALUATORS: dict[str, Handler] = {}


def evaluates(*opcodes: str) -> Callable[[Handler], Handler]:
    """Register a function that evaluates opcodes.

    The function takes the `Evaluation`, the instruction and the operands' values, and returns the value. One that calls
    computations (call, while, ..) is a generator: it yields ``(computation, arguments)``, is sent the result, and
    returns
    its own value, so that nesting does not use Python's stack.

    Raises
    ------
    AlreadyExistsError
        An opcode is already registered.
    """

    def register(handler: Handler) -> Handler:
        for name in opcodes:
            lookup(name)
            if name in EVALUATORS:
                raise AlreadyExistsError(f"opcode {name} is evaluated by two functions")
            EVALUATORS[name] = handler
        return handler

    return register


def handler_of(opcode: str) -> Handler:
    """Return the function that evaluates an opcode.

    Raises
    ------
    UnimplementedError
        The opcode has no function.
    """
    try:
        return EVALUATORS[opcode]
    except KeyError:
        raise UnimplementedError(f"the evaluator has no function for opcode {opcode}") from None
