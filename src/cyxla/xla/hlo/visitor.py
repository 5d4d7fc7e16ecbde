"""Dispatch over instructions by opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from cyxla.errors import UnimplementedError
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction


class Visitor:
    """Dispatch by opcode: a subclass names its methods ``handle_<opcode>``, with underscores for dashes.

    An opcode without a handler goes to `handle_default`.
    """

    _handlers: ClassVar[dict[str, Callable[[Any, Instruction], Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        handlers = {
            n[7:].replace("_", "-"): getattr(cls, n)
            for n in dir(cls)
            if n.startswith("handle_") and n != "handle_default"
        }
        cls._handlers = handlers

    def dispatch(self, ins: Instruction) -> Any:
        """Call the handler of one instruction."""
        handler = self._handlers.get(ins.opcode)
        return handler(self, ins) if handler is not None else self.handle_default(ins)

    def visit(self, computation: Computation) -> None:
        """Handle every instruction once, operands first."""
        for ins in computation.post_order():
            self.dispatch(ins)

    def handle_default(self, ins: Instruction) -> Any:
        """Handle an opcode that has no method of its own."""
        raise UnimplementedError(f"{type(self).__name__} does not handle {ins.opcode}", where=repr(ins))
