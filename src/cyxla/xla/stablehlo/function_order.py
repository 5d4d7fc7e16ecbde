"""The functions of a module, in the order in which they are built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cyxla.errors import HloParseError, InvalidArgumentError, UnimplementedError
from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.stablehlo.attributes import Symbol
from cyxla.xla.stablehlo.lexer import Lexer
from cyxla.xla.stablehlo.syntax import Operation, Region
from cyxla.xla.stablehlo.types import FunctionType

_CALLS = ("callee", "decomposition", "called_computations")
_MIN_RESPECIALISED = 1 << 12  # operations that may be specialised again in any program


@dataclass(slots=True, eq=False)
class Function:
    """A function of the module.

    Attributes
    ----------
    name : str
        Name, without ``@``.
    op : Operation
        The operation ``func.func``.
    type : FunctionType
        Types of arguments and results.
    calls : list of str
        Names of the functions that it calls.
    is_dynamic : bool
        True if a size in it depends on its arguments.
    size : int
        Number of operations.
    """

    name: str
    op: Operation
    type: FunctionType
    calls: list[str] = field(default_factory=list)
    is_dynamic: bool = False
    size: int = 0

    @property
    def body(self) -> Region:
        """The region with the operations.

        Raises
        ------
        UnimplementedError
            The function has a declaration only.
        """
        if not self.op.regions:
            raise UnimplementedError(f"function @{self.name} has no body", hint="export the module as a whole")
        return self.op.regions[0]

    @property
    def is_private(self) -> bool:
        """True if only other functions may call it."""
        return self.op.attributes.get("sym_visibility") in ("private", "nested")


class Functions:
    """The functions of one module.

    Parameters
    ----------
    lexer : Lexer
        Lexer of the text, for the line of an error.
    """

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._all: dict[str, Function] = {}

    def add(self, op: Operation) -> None:
        """Add a ``func.func``."""
        name, type_ = op.attributes.get("sym_name"), op.attributes.get("function_type")
        if not isinstance(name, str) or not isinstance(type_, FunctionType):
            raise self._lexer.error("a function needs a name and a type", op.at)
        if name in self._all:
            raise self._lexer.error(f"a second function called @{name[:60]}", op.at)
        function = Function(name, op, type_)
        if op.regions:
            parameters = [a.type for a in op.regions[0].arguments]
            if tuple(parameters) != type_.inputs:
                raise self._lexer.error(f"the parameters of the body of @{name[:60]} do not match its type", op.at)
        for inner in walk(op):
            function.size += 1
            function.calls += (s for key in _CALLS for s in _symbols(inner.attributes.get(key)))
            function.is_dynamic = function.is_dynamic or any(_is_dynamic(v.type) for v in inner.results)
        function.is_dynamic = function.is_dynamic or any(map(_is_dynamic, type_.inputs + type_.results))
        self._all[name] = function

    @property
    def max_respecialised(self) -> int:
        """Limit of operations in repeated specialisations: enough to specialise each function once for every call."""
        calls = sum(len(f.calls) for f in self._all.values())
        return _MIN_RESPECIALISED + calls * sum(f.size for f in self._all.values())

    def find(self, name: str) -> Function:
        """Return the function of a name.

        Raises
        ------
        InvalidArgumentError
            There is no such function.
        """
        function = self._all.get(name)
        if function is None:
            raise InvalidArgumentError(f"there is no function @{name[:60]}")
        return function

    def get(self, name: str) -> Function | None:
        """Return the function of a name, or None."""
        return self._all.get(name)

    def entry(self) -> Function:
        """Return ``@main``, or the only public function."""
        if "main" in self._all:
            return self._all["main"]
        public = [f for f in self._all.values() if not f.is_private]
        if len(public) == 1:
            return public[0]
        if len(self._all) == 1:
            return next(iter(self._all.values()))
        raise self._no_entry()

    def _no_entry(self) -> HloParseError:
        if not self._all:
            return self._lexer.error("expected a function, found the end")
        return self._lexer.error(f"none of the {len(self._all)} functions is @main")

    def in_order(self, entry: Function) -> list[Function]:
        """Return the functions that the entry needs, callees first, the entry last.

        Raises
        ------
        InvalidArgumentError
            A function calls itself.
        """
        order: dict[str, Function] = {}
        open_: set[str] = set()
        stack = [entry]
        while stack:
            function = stack[-1]
            if function.name in order:
                stack.pop()
                continue
            before = [n for n in dict.fromkeys(function.calls) if n in self._all and n not in order]
            if not before:
                order[function.name] = stack.pop()
                continue
            if function.name in open_:
                raise InvalidArgumentError(f"function @{function.name[:60]} calls itself, directly or through others")
            open_.add(function.name)
            stack.extend(self._all[n] for n in reversed(before))
        return list(order.values())


def walk(op: Operation) -> Iterator[Operation]:
    """Yield the operations in the regions of an operation, at any depth."""
    stack = [*op.regions]
    while stack:
        for inner in stack.pop().operations:
            yield inner
            stack += inner.regions


def _symbols(value: Any) -> list[str]:
    if isinstance(value, Symbol):
        return [str(value)]
    return [str(v) for v in value if isinstance(v, Symbol)] if isinstance(value, list) else []


def _is_dynamic(shape: Shape) -> bool:
    return UNBOUNDED in shape.dims or (shape.is_tuple and shape.is_dynamic and any(map(_is_dynamic, shape.elements)))
