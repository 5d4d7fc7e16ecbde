"""Removal of jumps: `break`, `continue` and `return` become flags, and branches on them.

for x in xs:                            stop = False
if x > 3:                           for x in xs:             # ends when `stop` is set
break                               if x > 3:
total += x                                  stop = True
else:
total += x
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field
from typing import cast

from cyxla.numpy.rewriting.syntax import build
from cyxla.numpy.rewriting.syntax.names import has_own, own_nodes
from cyxla.records import dataclass

RETURNED, VALUE = "_cyxla_returned", "_cyxla_value"
_JUMPS = (ast.Return, ast.Break, ast.Continue)


@dataclass
class Block:
    """Statements without jumps.

    Attributes
    ----------
    statements : list of ast.stmt
        Statements.
    flags : set of str
        Flags that they may set.
    ends : bool
        True if each path through them sets a flag.
    """

    statements: list[ast.stmt] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    ends: bool = False


def remove_jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function, whose only return is the last statement, and whose loops have no `else`."""
    loops = [n for n in own_nodes(body) if isinstance(n, (ast.For, ast.While))]
    for loop in loops:
        if isinstance(loop, ast.While) and has_own([loop.test], (ast.NamedExpr,)):
            _move_test(loop)
    if not has_own(body, _JUMPS) and not any(loop.orelse for loop in loops):
        return list(body)
    if isinstance(body[-1], ast.Return) and not has_own(body[:-1], (ast.Return,)):
        return [*_Remover().block(body[:-1]).statements, body[-1]]
    returns = [n for n in own_nodes(body) if isinstance(n, ast.Return)]
    gives_value = not all(map(_is_nothing, returns))
    block = _Remover(gives_value).block(body)
    if not returns:
        return block.statements
    last = body[-1]
    if not gives_value:
        start = build.located([build.assign(RETURNED, build.constant(False))], body[0])
        return _with_docstring_first([*start, *block.statements])
    start = [
        build.assign(RETURNED, build.constant(False)),
        build.assign(VALUE, build.hook("unbound", build.constant(VALUE))),
    ]
    flag = build.constant(True) if block.ends else build.name(RETURNED)
    end = ast.Return(build.hook("returned", flag, build.name(VALUE)))
    statements = [*build.located(start, body[0]), *block.statements, *build.located([end], last)]
    return _with_docstring_first(statements)


def _is_nothing(s: ast.Return) -> bool:
    return s.value is None or (isinstance(s.value, ast.Constant) and s.value.value is None)


def _move_test(s: ast.While) -> None:
    """Move the condition of a loop into its body, as one that binds names which the loop hands over."""
    leave = ast.If(build.not_(s.test), [*s.orelse, ast.Break()], [])
    s.body, s.orelse = [*build.located([leave], s.test), *s.body], []
    s.test = cast(ast.expr, build.located_expr(build.constant(True), s.test))


def _with_docstring_first(statements: list[ast.stmt]) -> list[ast.stmt]:
    for k, s in enumerate(statements):
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str) and k < 3:
            return [s, *statements[:k], *statements[k + 1 :]]
    return statements


class _Remover:
    def __init__(self, gives_value: bool = True) -> None:
        self._gives_value = gives_value  # whether a `return` gives one; the result is None otherwise
        self._loops: list[tuple[str, str]] = []  # flags of `break` and `continue` of the enclosing loops
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> Block:
        """Remove the jumps of a sequence of statements; those behind a jump run only if it was not made."""
        made = Block()
        for k, statement in enumerate(body):
            part = self._statement(statement)
            made.flags |= part.flags
            made.ends = part.ends
            rest = body[k + 1 :]
            made.statements.extend(part.statements)
            if part.ends and not (rest and isinstance(statement, ast.With)):  # which may suppress an exception
                return made
            if part.flags and rest:
                self._add_guarded(made, part, rest)
                return made
        return made

    def _add_guarded(self, made: Block, part: Block, rest: Sequence[ast.stmt]) -> None:
        """Add statements that run unless a flag was set: in the branch that sets none, if there is one."""
        remaining = self.block(rest)
        made.flags |= remaining.flags
        made.ends = remaining.ends
        last = part.statements[-1]
        sides = _sides(last)
        if sides is not None:
            sides.extend(remaining.statements)
            return
        test = build.not_(build.any_of([build.name(f) for f in sorted(part.flags)]))
        made.statements.extend(build.located([ast.If(test, remaining.statements, [])], rest[0]))

    def _statement(self, s: ast.stmt) -> Block:
        if isinstance(s, ast.Return):
            flags = [build.assign(RETURNED, build.constant(True))]
            if self._gives_value:
                flags.insert(0, build.assign(VALUE, s.value or build.constant(None)))
            return Block(build.located(flags, s), {RETURNED}, True)
        if isinstance(s, (ast.Break, ast.Continue)):
            flag = self._loops[-1][isinstance(s, ast.Continue)]
            return Block(build.located([build.assign(flag, build.constant(True))], s), {flag}, True)
        if isinstance(s, ast.If):
            return self._branch(s)
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s)
        if isinstance(s, (ast.With, ast.Try, ast.TryStar, ast.Match)):
            return self._compound(s)
        return Block([s], set(), isinstance(s, ast.Raise))

    def _branch(self, s: ast.If) -> Block:
        body, orelse = self.block(s.body), self.block(s.orelse)
        s.body, s.orelse = body.statements or [ast.Pass()], orelse.statements
        jumps = (bool(body.flags), bool(orelse.flags))
        vars(s)["side_jumps"] = jumps
        vars(s)["side_ends"] = (body.ends and jumps[0], orelse.ends and jumps[1])
        return Block([s], body.flags | orelse.flags, body.ends and orelse.ends)

    def _loop(self, s: ast.For | ast.While) -> Block:
        self._count += 1
        number = self._count
        stop, skip = f"_cyxla_break_{number}", f"_cyxla_continue_{number}"
        self._loops.append((stop, skip))
        body = self.block(s.body)
        self._loops.pop()
        exits = sorted(body.flags & {stop, RETURNED})
        s.body = body.statements
        if skip in body.flags:
            s.body = [*build.located([build.assign(skip, build.constant(False))], s.body[0]), *s.body]
        vars(s)["exits"] = exits
        made = Block(flags=body.flags & {RETURNED}, ends=exits == [RETURNED] and _is_endless(s))
        if stop in body.flags:
            made.statements.extend(build.located([build.assign(stop, build.constant(False))], s))
        made.statements.append(s)
        if exits and isinstance(s, ast.While):
            test = build.all_of([*[build.not_(build.name(f)) for f in exits], s.test])
            s.test = cast(ast.expr, build.located_expr(test, s.test))
        elif exits:
            _guard(cast(ast.For, s), exits, f"_cyxla_target_{number}")
        self._add_else(s, made, exits)
        return made

    def _add_else(self, s: ast.For | ast.While, made: Block, exits: list[str]) -> None:
        """Move the statements of a loop's `else` behind it."""
        if not s.orelse:
            return
        orelse = self.block(s.orelse)
        made.flags |= orelse.flags
        first, s.orelse = s.orelse[0], []
        if not exits:
            made.statements.extend(orelse.statements)
            return
        test = build.not_(build.any_of([build.name(f) for f in exits]))
        made.statements.extend(build.located([ast.If(test, orelse.statements, [])], first))

    def _compound(self, s: ast.With | ast.Try | ast.TryStar | ast.Match) -> Block:
        """Remove the jumps of the parts of a statement that is no branch on a value."""
        made = Block([s])
        parts = s.cases if isinstance(s, ast.Match) else s.handlers if not isinstance(s, ast.With) else []
        for part in parts:
            block = self.block(part.body)
            part.body, made.flags = block.statements or [ast.Pass()], made.flags | block.flags
        if isinstance(s, ast.Match):
            return made
        body = self.block(s.body)
        s.body, made.flags = body.statements or [ast.Pass()], made.flags | body.flags
        if isinstance(s, ast.With):
            made.ends = body.ends
            return made
        orelse, final = self.block(s.orelse), self.block(s.finalbody)
        s.orelse, s.finalbody = orelse.statements, final.statements
        if s.orelse and body.flags:
            test = build.not_(build.any_of([build.name(f) for f in sorted(body.flags)]))
            s.orelse = build.located([ast.If(test, s.orelse, [])], s.orelse[0])
        made.flags |= orelse.flags | final.flags
        return made


def _guard(s: ast.For, flags: Sequence[str], target: str) -> None:
    """Make iterations behind the last one do nothing: its targets keep their values."""
    bind = ast.Assign([s.target], build.name(target))
    unless = ast.If(build.not_(build.any_of([build.name(f) for f in flags])), [bind, *s.body], [])
    s.target, s.body = ast.Name(target, ast.Store()), build.located([unless], s.body[0])


def _is_endless(s: ast.stmt) -> bool:
    """Return True for ``while True``, behind which only its jumps lead."""
    return isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)


def _sides(s: ast.stmt) -> list[ast.stmt] | None:
    """Return the side of a branch that does not jump, if each path through the other side does."""
    facts = vars(s)
    if not isinstance(s, ast.If) or "side_ends" not in facts:
        return None
    (body_ends, orelse_ends), (body_jumps, orelse_jumps) = facts["side_ends"], facts["side_jumps"]
    if body_ends and not orelse_jumps:
        return s.orelse
    if orelse_ends and not body_jumps:
        return s.body
    return None
