"""Reads of variables that may be unbound and that no operation follows, such as those of a list's elements.

Operations on the value of an unbound variable raise Python's error by themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from cyxla.numpy.rewriting.syntax.names import Names
from cyxla.numpy.rewriting.syntax.tree import walk
from cyxla.numpy.tracing.user_program.user_frames import HOOKS


def reads_to_check(body: Sequence[ast.stmt], live_at_start: Names, parameters: Names) -> frozenset[ast.Name]:
    """Return the names that are handed on and whose variables may be unbound.

    Parameters
    ----------
    body : sequence of ast.stmt
        Statements of a function.
    live_at_start : frozenset of str
        Names that it may read before they are bound.
    parameters : frozenset of str
        Names of its parameters.
    """
    nodes = [n for s in body for n in walk(s)]
    deleted = {t.id for n in nodes if isinstance(n, ast.Delete) for t in n.targets if isinstance(t, ast.Name)}
    unsure = {n for n in (live_at_start - parameters) | deleted if not n.startswith(HOOKS)}
    if not unsure:
        return frozenset()
    return frozenset(
        part
        for n in nodes
        for part in _handed_on(n)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in unsure
    )


def _handed_on(node: ast.AST) -> Iterable[ast.expr | None]:
    """Return the parts of an expression whose values it holds, passes or compares by identity."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return node.elts
    if isinstance(node, ast.Dict):
        return (*node.keys, *node.values)
    if isinstance(node, ast.Call):
        return (*node.args, *[k.value for k in node.keywords])
    if isinstance(node, ast.IfExp):
        return (node.body, node.orelse)
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Compare):
        return (node.left, *node.comparators)
    return ()
