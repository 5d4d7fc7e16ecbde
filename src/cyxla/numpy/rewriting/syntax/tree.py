"""Nodes of syntax trees: like `ast.iter_child_nodes` and `ast.walk`, without generators, in half the time."""

from __future__ import annotations

import ast


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes in the fields of a node, but for its context, `ast.Load` or the like."""
    found: list[ast.AST] = []
    for name in node._fields:
        if name == "ctx":
            continue
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all inside it, each level after the one above."""
    found = [node]
    for part in found:  # which grows
        found += children(part)
    return found
