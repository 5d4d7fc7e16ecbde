"""Construction of nodes of Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from cyxla.numpy.rewriting.syntax.tree import children
from cyxla.numpy.tracing.user_program.user_frames import HOOKS

S = TypeVar("S", bound=ast.stmt)


def name(text: str) -> ast.Name:
    """Return an expression that reads a name."""
    return ast.Name(text, ast.Load())


def constant(value: object) -> ast.Constant:
    """Return a constant."""
    return ast.Constant(value)  # type: ignore[arg-type]


def texts(values: Sequence[str]) -> ast.Tuple:
    """Return a tuple of strings."""
    return ast.Tuple([constant(v) for v in values], ast.Load())


def load_all(names: Sequence[str]) -> ast.Tuple:
    """Return a tuple of the values of names."""
    return ast.Tuple([name(n) for n in names], ast.Load())


def assign(target: str, value: ast.expr) -> ast.Assign:
    """Return an assignment to a name."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def assign_all(targets: Sequence[str], value: ast.expr) -> ast.stmt:
    """Return an assignment of a tuple to names; of an empty one, only its evaluation."""
    if not targets:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([ast.Name(t, ast.Store()) for t in targets], ast.Store())], value)


def method(owner: ast.expr, attribute: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a method."""
    return ast.Call(ast.Attribute(owner, attribute, ast.Load()), list(arguments), [])


def hook(attribute: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a hook."""
    return method(name(HOOKS), attribute, *arguments)


def thunk(value: ast.expr) -> ast.Lambda:
    """Return a function without parameters that evaluates an expression."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def not_(value: ast.expr) -> ast.UnaryOp:
    """Return the negation of a condition."""
    return ast.UnaryOp(ast.Not(), value)


def any_of(conditions: Sequence[ast.expr]) -> ast.expr:
    """Return the disjunction of conditions."""
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.Or(), list(conditions))


def all_of(conditions: Sequence[ast.expr]) -> ast.expr:
    """Return the conjunction of conditions."""
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), list(conditions))


def located(statements: Sequence[S], at: ast.AST) -> list[S]:
    """Give new statements, and the nodes in them that have none, the position of another one."""
    for s in statements:
        located_expr(s, at)
    return list(statements)


def located_expr(node: ast.AST, at: ast.AST) -> ast.AST:
    """Give a new node, and those in it that have none, the position of another one."""
    pending = [node]
    while pending:
        n = pending.pop()
        if "lineno" in n._attributes:
            if hasattr(n, "lineno"):
                continue  # of the user's program
            ast.copy_location(n, at)
        pending.extend(children(n))
    return node
