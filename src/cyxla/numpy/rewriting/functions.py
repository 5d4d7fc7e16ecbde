"""Rewritten functions: each is made once, and has the globals, defaults and closure of the original."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import wraps
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from cyxla.forking import new_lock
from cyxla.numpy.rewriting.hooks import Hooks
from cyxla.numpy.rewriting.syntax.names import Names
from cyxla.numpy.rewriting.syntax.plain_code import is_plain
from cyxla.numpy.rewriting.syntax.scopes import NameOrigins, Origin, has_python_code, package_of
from cyxla.numpy.rewriting.syntax.source import WITHOUT_SOURCE, definition_of, innermost, lacks_source, scope_of
from cyxla.numpy.rewriting.syntax.transform import Transformer
from cyxla.numpy.state.names import guard_functions, guard_names
from cyxla.numpy.state.scope import Scope, outside_values
from cyxla.numpy.state.snapshot import Snapshot, names_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.user_program.user_frames import HOOKS

_rewritten: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()
_kinds: WeakKeyDictionary[FunctionType, tuple[Origin, ...]] = WeakKeyDictionary()  # of names, as it was rewritten
_codes: dict[Any, CodeType | None] = {}
#: Codes of functions that are defined in rewritten ones and were rewritten with them, by identity: equal code that
#: stands elsewhere, or was compiled from the file itself, has other enclosing functions.
_nested: dict[int, CodeType] = {}
_lock = new_lock()  # Python 3.11 counts the depth of a syntax tree for all threads together


def rewritten(function: Any) -> Any:
    """Return a function whose statements also work on traced values; others, and those without source, as they are."""
    if isinstance(function, MethodType):
        made = rewritten(function.__func__)
        return function if made is function.__func__ else MethodType(made, function.__self__)
    if not has_python_code(function) or id(function.__code__) in _nested:
        return function
    made = _rewritten.get(function)
    if made is None:
        made = _rewritten[function] = _rewrite(function)
        _rewritten[made] = made
    return made


def rewritten_anew(function: Any) -> Any:
    """Return what `rewritten` returns, made anew if a name in the function has another kind of value than before."""
    if isinstance(function, FunctionType) and function in _kinds and _kinds[function] != _key(function)[-1]:
        _rewritten.pop(function, None)
    return rewritten(function)


def recorded(function: Any) -> Any:
    """Return the function to call for one that a traced function calls; what one without source changes is watched."""
    outside = outside_values()
    if outside is None or not isinstance(function, FunctionType):
        return rewritten(function)
    made = outside.functions.get(function)
    if made is None:
        made = outside.functions[function] = rewritten_anew(function)
        guard_functions(outside, function)
        watch_defaults(function)
    if not lacks_source(function):
        return made

    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        objects = [v for v in (*args, *kwargs.values()) if outside.is_outside(v)]
        key = (id(function), *map(id, objects))
        if key not in outside.watched:
            outside.watched[key] = Snapshot(function, [("an argument", v) for v in objects])
            guard_names(outside, function, objects)
        return function(*args, **kwargs)

    return watched


def watch_defaults(function: FunctionType) -> None:
    """Watch the defaults of a function that is called while another one is traced, unless that has defined it."""
    outside = outside_values()
    if outside is not None and id(function.__code__) not in _nested:
        outside.watch_defaults(function)


def _rewrite(function: FunctionType) -> FunctionType:
    key = _key(function)
    _kinds[function] = key[-1]
    if is_plain(function):
        return function
    code = function.__code__
    with _lock:
        if key not in _codes:
            _codes[key] = _rewritten_code(function)
            _nested.update((id(nested), nested) for nested in _codes_in(_codes[key]))
    new = _codes[key]
    if new is None:
        WITHOUT_SOURCE.add(function)
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HOOKS] = CellType(Hooks(Scope(function), recorded, package_of(function)))
    closure = tuple([cells[name] for name in new.co_freevars])
    made = FunctionType(new, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made


def _codes_in(code: CodeType | None) -> Iterator[CodeType]:
    """Return the codes of the functions that a code defines."""
    for constant in () if code is None else code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


def _key(function: FunctionType) -> Any:
    """Return a key of functions with the same rewritten code: it depends on the kinds of the values from outside."""
    code = function.__code__
    origins = NameOrigins(function, frozenset())
    kinds = tuple([origins.origin(name) for name in (*code.co_freevars, *names_of(code))])
    return code, code.co_filename, id(function.__globals__), kinds


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
    for n in ast.walk(node):
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


hooks.rewritten = rewritten
