"""Values that loops, branches and functions hand on unchanged."""

from __future__ import annotations

from typing import Final

from cyxla.xla.stablehlo.function_order import Functions
from cyxla.xla.stablehlo.syntax import Operation, Region, Value

_IDENTITIES: Final = frozenset({"optimization_barrier", "sharding_constraint", "reshard"})
_BRANCHES: Final = frozenset({"if", "case"})
_CALLEE: Final = {"call": "callee", "composite": "decomposition"}
_MAX_DEPTH: Final = 64  # of loops, branches and functions in each other; what is nested deeper counts as changed


class Unchanged:
    """The values of a module to which others are equal, as far as its text shows.

    Parameters
    ----------
    functions : Functions
        Functions of the module.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._origins: dict[Value, Value] = {}

    def of_loop(self, op: Operation, number: int) -> bool:
        """Return True if the body of a ``while`` returns an element of its state as it came."""
        return self._is_kept(op, number, 0)

    def _is_kept(self, op: Operation, number: int, depth: int) -> bool:
        body = op.regions[-1] if op.regions else None
        returned = _returned(body, number)
        if body is None or returned is None or number >= len(body.arguments):
            return False
        origin = self._origin(returned, depth + 1)
        return origin is body.arguments[number] or origin is self._origin(op.operands[number], depth + 1)

    def _origin(self, value: Value, depth: int) -> Value:
        """Return the earliest value that is equal to this one."""
        path = []
        while value not in self._origins:
            path.append(value)
            before = self._before(value, depth) if depth < _MAX_DEPTH else None
            if before is None:
                self._origins[value] = value
                break
            value = before
        origin = self._origins[value]
        self._origins.update(dict.fromkeys(path, origin))
        return origin

    def _before(self, value: Value, depth: int) -> Value | None:
        """Return a value that an operation hands on as its result."""
        op = value.owner
        if op is None:
            return None
        number = op.results.index(value)
        if op.kind in _BRANCHES:
            return self._of_branches(op, number, depth)
        if op.kind in _CALLEE:
            return self._of_function(op, number, depth)
        is_kept = op.kind in _IDENTITIES or (op.kind == "while" and self._is_kept(op, number, depth))
        return op.operands[number] if is_kept and number < len(op.operands) else None

    def _of_branches(self, op: Operation, number: int, depth: int) -> Value | None:
        """Return the value that all branches return."""
        returned = [_returned(region, number) for region in op.regions]
        origins = {None if v is None else self._origin(v, depth + 1) for v in returned}
        return origins.pop() if len(origins) == 1 else None

    def _of_function(self, op: Operation, number: int, depth: int) -> Value | None:
        """Return the operand of a call that the function returns."""
        function = self._functions.get(str(op.attributes.get(_CALLEE[op.kind], "")))
        body = None if function is None or not function.op.regions else function.body
        returned = _returned(body, number)
        if body is None or returned is None:
            return None
        origin = self._origin(returned, depth + 1)
        position = next((k for k, argument in enumerate(body.arguments) if argument is origin), len(op.operands))
        return op.operands[position] if position < len(op.operands) else None


def _returned(region: Region | None, number: int) -> Value | None:
    values = region.operations[-1].operands if region is not None and region.operations else []
    return values[number] if number < len(values) else None
