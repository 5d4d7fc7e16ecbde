"""Names of a function: those that statements bind and read, and those that are live after a statement."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from cyxla.numpy.rewriting.syntax.tree import children, walk

Names = frozenset[str]
NONE: Names = frozenset()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def read_names(node: ast.AST | None) -> Names:
    """Return the names that an expression or statement reads, those of functions defined in it included."""
    if node is None:
        return NONE
    return frozenset(n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def bound_names(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that statements bind in their own scope."""
    found: set[str] = set()
    for node in nodes:
        _add_bound(node, found)
    return frozenset(found)


def _add_bound(node: ast.AST, found: set[str]) -> None:
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.add(node.name)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):
        found.update(n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr))
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        found.update((a.asname or a.name).partition(".")[0] for a in node.names)
    if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    if isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    for child in children(node):
        _add_bound(child, found)


def outer_names(body: Sequence[ast.stmt]) -> Names:
    """Return the names that a function declares as global or nonlocal."""
    return frozenset(name for s in own_nodes(body) if isinstance(s, (ast.Global, ast.Nonlocal)) for name in s.names)


def captured_names(body: Sequence[ast.stmt]) -> Names:
    """Return the names that functions defined in a body read: they may be read whenever these are called."""
    functions = [n for s in body for n in walk(s) if isinstance(n, (ast.FunctionDef, ast.Lambda, ast.ClassDef))]
    return frozenset(name for f in functions for name in read_names(f))


def parameter_names(arguments: ast.arguments) -> Names:
    """Return the names of a function's parameters."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    variadic = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return frozenset(a.arg for a in (*named, *variadic))


def own_nodes(body: Sequence[ast.AST]) -> Iterable[ast.AST]:
    """Return the nodes of a body outside of the functions and classes defined in it."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending.extend(children(node))


def has_own(body: Sequence[ast.AST], kinds: tuple[type[ast.AST], ...]) -> bool:
    """Return True if a body has a node of some classes, outside of the functions defined in it."""
    return any(isinstance(n, kinds) for n in own_nodes(body))


def appended_list(statement: ast.stmt) -> str | None:
    """Return the name of the list of ``name.append(value)``; None for other statements."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        return None
    is_append = isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    return call.func.value.id if is_append and isinstance(call.func.value, ast.Name) else None  # type: ignore[attr-defined]


def appends_of(loop: ast.For | ast.While) -> dict[str, list[ast.stmt]]:
    """Return the statements ``name.append(value)`` of a loop by name."""
    found: dict[str, list[ast.stmt]] = {}
    pending: list[ast.AST] = list(loop.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt) and (name := appended_list(node)) is not None:
            found.setdefault(name, []).append(node)
        elif not isinstance(node, (*_SCOPES, ast.Try)):
            pending.extend(children(node))
    return found


def lengths_and_items(loop: ast.While) -> Counter[str]:
    """Return how often a loop reads ``len(name)``, ``name[index]`` or the truth of ``name``, by name."""
    parts: list[ast.AST] = []
    for node in walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
            parts += node.args[:1]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            parts += [] if isinstance(node.slice, ast.Slice) else [node.value]
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            parts += _operands_of_test(node.test)
    return Counter(part.id for part in parts if isinstance(part, ast.Name))


def _operands_of_test(test: ast.expr) -> list[ast.expr]:
    """Return the expressions of which a condition reads the truth."""
    if isinstance(test, ast.BoolOp):
        return [operand for value in test.values for operand in _operands_of_test(value)]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _operands_of_test(test.operand)
    return [test]


def written_elements(loop: ast.For | ast.While) -> set[str]:
    """Return the names of lists or arrays of which a loop writes single elements."""
    stored = [n for n in walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return {
        n.value.id for n in stored if isinstance(n.value, ast.Name) and not isinstance(n.slice, (ast.Slice, ast.Tuple))
    }


def indexed_rows(loop: ast.For | ast.While) -> set[str]:
    """Return the names of lists of lists of which a loop reads or writes single elements, as in ``name[i][j] = x``.

    Those that it reads at known rows alone may stay lists.
    """
    items = [n for n in walk(loop) if isinstance(n, ast.Subscript)]
    rows = [(n.value, isinstance(n.ctx, ast.Store)) for n in items if isinstance(n.value, ast.Subscript)]
    found = [
        row.value
        for row, is_stored in rows
        if not isinstance(row.slice, (ast.Slice, ast.Tuple) if is_stored else (ast.Slice, ast.Tuple, ast.Constant))
    ]
    return {v.id for v in found if isinstance(v, ast.Name)}


def root_of(node: ast.expr) -> ast.expr:
    """Return the expression whose attributes and items an expression reads: `a` for ``a.b[0].c``."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def written_root(node: ast.Subscript | ast.AugAssign | ast.Call) -> ast.Name | None:
    """Return the name of the object that an expression may write to."""
    target: ast.expr
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _WRITING_METHODS:
            return None
        target = node.func.value
    elif isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node.ctx, ast.Load):
        return None
    else:
        target = node
    root = root_of(target)
    return root if isinstance(root, ast.Name) else None


_WRITING_METHODS = frozenset(
    ["add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "itemset", "partition", "pop",
     "popitem", "popleft", "put", "remove", "resize", "reverse", "setdefault", "sort", "update"]
)  # fmt: skip


def rebound_names(body: Sequence[ast.stmt]) -> Names:
    """Return the names that statements bind to new values, rather than to those of other names."""
    found: set[str] = set()
    for s in body:
        for n in walk(s):
            if isinstance(n, ast.Assign) and not _only_names(n.value):
                found |= bound_names(n.targets)
            elif isinstance(n, ast.For):
                found |= bound_names([n.target])
    return frozenset(found)


def _only_names(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(_only_names, node.elts))
    return isinstance(node, ast.Name)


class Liveness:
    """Names that are live around each branch and loop of a function without jumps.

    Attributes
    ----------
    after : dict of ast.stmt to frozenset of str
        Names that may be read after a statement before they are bound.
    before : dict of ast.stmt to frozenset of str
        The same at the start of a branch's parts together, and before the test of a loop.
    at_start : frozenset of str
        The same before the first statement.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self.before: dict[ast.stmt, Names] = {}
        self._always = captured_names(body)
        self.at_start = self.block(body, NONE)

    def block(self, body: Sequence[ast.stmt], after: Names) -> Names:
        """Return the names that are live before statements, given those after them."""
        live = after | self._always
        for statement in reversed(body):
            live = self._statement(statement, live)
        return live

    def _statement(self, s: ast.stmt, after: Names) -> Names:
        self.after[s] = after
        if isinstance(s, ast.If):
            before = self.block(s.body, after) | self.block(s.orelse, after)
            self.before[s] = before
            return before | read_names(s.test)
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, after)
        if isinstance(s, (ast.With, ast.AsyncWith)):
            inner = self.block(s.body, after)
            return inner - bound_names(s.items) | read_names(ast.Tuple([i.context_expr for i in s.items], ast.Load()))
        if isinstance(s, (ast.Try, ast.TryStar, ast.Match)):
            return self._any_order(s, after)
        if isinstance(s, ast.AugAssign):
            return after | read_names(s) | bound_names([s.target])
        if isinstance(s, ast.Return):
            return read_names(s) | self._always
        return after - self._certainly_bound(s) | read_names(s)

    @staticmethod
    def _certainly_bound(s: ast.stmt) -> Names:
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
        return bound_names([t for t in targets if isinstance(t, (ast.Name, ast.Tuple, ast.List))])

    def _loop(self, s: ast.For | ast.While, after: Names) -> Names:
        test = read_names(s.test) if isinstance(s, ast.While) else NONE
        targets = bound_names([s.target]) if isinstance(s, ast.For) else NONE
        head = after | test
        while True:
            grown = head | (self.block(s.body, head) - targets)
            if grown == head:
                break
            head = grown
        self.after[s], self.before[s] = after, head
        return head | (read_names(s.iter) if isinstance(s, ast.For) else NONE)

    def _any_order(self, s: ast.Try | ast.TryStar | ast.Match, after: Names) -> Names:
        """Handle a statement whose parts may end anywhere: nothing is bound for certain."""
        live = after | read_names(s) | bound_names([s])
        for body in _blocks(s):
            self.block(body, live)
        return live


def _blocks(s: ast.stmt) -> Iterable[list[ast.stmt]]:
    if isinstance(s, ast.Match):
        yield from (case.body for case in s.cases)
        return
    assert isinstance(s, (ast.Try, ast.TryStar))
    yield from (s.body, s.orelse, s.finalbody)
    yield from (h.body for h in s.handlers)
