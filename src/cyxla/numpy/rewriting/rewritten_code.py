"""Rewritten code of functions: each is made once for all functions of the same code and kinds of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from cyxla.forking import new_lock
from cyxla.numpy.rewriting.syntax.names import Names
from cyxla.numpy.rewriting.syntax.scopes import NameOrigins
from cyxla.numpy.rewriting.syntax.source import WITHOUT_SOURCE, definition_of, innermost, scope_of
from cyxla.numpy.rewriting.syntax.transform import Transformer
from cyxla.numpy.rewriting.syntax.tree import walk
from cyxla.numpy.state.snapshot import names_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.user_program.user_frames import HOOKS

_codes: dict[Any, CodeType | None] = {}
#: Codes of functions that are defined in rewritten ones and were rewritten with them, by identity: equal code that
#: stands elsewhere, or was compiled from the file itself, has other enclosing functions.
_nested: dict[int, CodeType] = {}
_lock = new_lock()  # Python 3.11 counts the depth of a syntax tree for all threads together


def rewritten_code(function: FunctionType, key: Any) -> CodeType | None:
    """Return the rewritten code of a function, by the key of `code_key`; None if its source is not known."""
    with _lock:
        if key not in _codes:
            _codes[key] = _rewritten_code(function)
            _nested.update((id(nested), nested) for nested in _codes_in(_codes[key]))
    if _codes[key] is None:
        WITHOUT_SOURCE.add(function)
    return _codes[key]


def is_defined_by_trace(function: Any) -> bool:
    """Return True for a function whose definition is in the code of a rewritten one."""
    return isinstance(function, FunctionType) and id(function.__code__) in _nested


def code_key(function: FunctionType) -> Any:
    """Return a key of functions with the same rewritten code: it depends on the kinds of the values from outside."""
    code = function.__code__
    origins = NameOrigins(function, frozenset())
    kinds = tuple([origins.origin(name) for name in (*code.co_freevars, *names_of(code))])
    return code, code.co_filename, id(function.__globals__), kinds


def _codes_in(code: CodeType | None) -> Iterator[CodeType]:
    """Return the codes of the functions that a code defines."""
    for constant in () if code is None else code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


def _rewritten_code(function: FunctionType) -> CodeType | None:
    """Return the rewritten code of a function; None if its source is not known."""
    definition = definition_of(function)
    if definition is None:
        return None
    node, code = definition.node, function.__code__
    transformer = Transformer(NameOrigins(function, _own_names(node) - frozenset(code.co_freevars)))
    statement: ast.stmt
    if isinstance(node, ast.Lambda):
        transformer.lambda_(node)
        statement = ast.copy_location(ast.Return(node), node)
    else:
        if not transformer.function(node):
            return None
        node.decorator_list, node.returns = [], None
        _drop_defaults(node.args)
        statement = node
    names = (*code.co_freevars, HOOKS)
    module = compile(
        ast.fix_missing_locations(scope_of(statement, names)), code.co_filename, "exec", definition.flags,
        dont_inherit=True,
    )  # fmt: skip
    made = innermost(module, code.co_name)
    return made.replace(co_qualname=code.co_qualname) if made else None


def _drop_defaults(arguments: ast.arguments) -> None:
    """Drop annotations, and replace defaults, which the function has already."""
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for parameter in parameters:
        if parameter is not None:
            parameter.annotation = None


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)


def _own_names(node: ast.AST) -> Names:
    """Return all names that a function, or one defined in it, binds and does not declare global."""
    found: set[str] = set()
    declared: set[str] = set()
    for n in walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            found.add(n.id)
        elif isinstance(n, ast.arg):
            found.add(n.arg)
        elif isinstance(n, _NAMED) and n is not node and n.name:
            found.add(n.name)
        elif isinstance(n, ast.alias):
            found.add((n.asname or n.name).partition(".")[0])
        elif isinstance(n, ast.Global):
            declared.update(n.names)
    return frozenset(found - declared)


hooks.is_defined_by_trace = is_defined_by_trace
