"""Source of a function: the node of its definition, with the positions that it has in its file."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import linecache
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import lru_cache, partial, reduce
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

from cyxla.numpy.rewriting.syntax.tree import children, walk

Function = ast.FunctionDef | ast.Lambda
_OF_CALLS = frozenset({"PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "CACHE"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL"}
_MOST_SKIPPED = 64  # bytes of instructions that are not compared before one that is
WITHOUT_SOURCE: WeakSet[FunctionType] = WeakSet()  # functions that could not be rewritten
FUTURE_FLAGS = reduce(int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names), 0)


class Definition(NamedTuple):
    """Definition of a function.

    Attributes
    ----------
    node : ast.FunctionDef or ast.Lambda
        Node, which may be changed.
    flags : int
        Flags of ``from __future__`` imports with which it was compiled.
    """

    node: Function
    flags: int


def lacks_source(function: Any) -> bool:
    """Return True for a function that could not be rewritten, since its source is not known."""
    return isinstance(function, FunctionType) and function in WITHOUT_SOURCE


def definition_of(function: FunctionType) -> Definition | None:
    """Return the definition of a function; None if there is no source, or not that of its code."""
    code = function.__code__
    flags = code.co_flags & FUTURE_FLAGS
    modules = [n for n in code.co_names if isinstance(function.__globals__.get(n), ModuleType)]
    node = _node_of(code, flags, modules)
    if node is None:
        linecache.checkcache(code.co_filename)  # the file may have been written and imported again
        node = _node_of(code, flags, modules)
    return None if node is None else Definition(_without_annotations(node), flags)


def _node_of(code: CodeType, flags: int, modules: Sequence[str]) -> Function | None:
    """Return the definition in the file of a function that compiles to its code; None if there is none."""
    nodes = map(partial(_with_private_names, code=code), _candidates(code))
    return next((n for n in nodes if same_code(n, code, flags, modules)), None)


def _candidates(code: CodeType) -> list[Function]:
    """Return the definitions that begin at the line of a function."""
    if code.co_name == "<lambda>":
        text = "".join(linecache.getlines(code.co_filename))
        return [deepcopy(node) for node in _lambdas(text).get(code.co_firstlineno, ())]
    tree = _parsed(code)
    nodes = () if tree is None else walk(tree)
    return [n for n in nodes if isinstance(n, ast.FunctionDef) and _matches(n, code)]


def _with_private_names(node: Function, code: CodeType) -> Function:
    """Give a definition the names that private ones, as ``self.__x``, have in its class."""
    parts = code.co_qualname.split(".")
    classes = [a for a, b in pairwise(parts) if "<locals>" not in (a, b)]
    prefix = f"_{classes[-1].lstrip('_')}" if classes and classes[-1].strip("_") else ""
    pending: list[ast.AST] = [node] if prefix else []
    while pending:
        part = pending.pop()
        for field in ("id", "attr", "arg", "name"):
            value = getattr(part, field, None)
            if isinstance(value, str) and value.startswith("__") and not value.endswith("__") and part is not node:
                setattr(part, field, prefix + value)
        pending.extend(c for c in children(part) if not isinstance(c, ast.ClassDef))
    return node


def _without_annotations(node: Function) -> Function:
    """Make plain assignments of those with annotations, which functions never evaluate."""
    for part in _parts_of_functions(node):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(part, field, None)
            if isinstance(block, list):
                block[:] = [_plain_assignment(s) if isinstance(s, ast.AnnAssign) and s.value else s for s in block]
    return node


def _parts_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all inside it, except for classes, whose annotations are their fields."""
    yield node
    for child in children(node):
        if not isinstance(child, ast.ClassDef):
            yield from _parts_of_functions(child)


def _plain_assignment(node: ast.AnnAssign) -> ast.Assign:
    assert node.value is not None
    return ast.copy_location(ast.Assign([node.target], node.value), node)


def _parsed(code: CodeType) -> ast.Module | None:
    """Parse the block of lines that holds a function, at the positions of its file."""
    lines = linecache.getlines(code.co_filename)
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines):
        return None
    tree = _parsed_block("".join(_indented_block(lines[first:], _last_line(code) - first)), first)
    if tree is not None:
        return tree
    try:
        block = inspect.getblock(lines[first:])  # whose tokens take long to find
    except (SyntaxError, IndentationError):
        return None
    return _parsed_block("".join(block), first)


def _last_line(code: CodeType) -> int:
    """Return the number of the last line with code of a function, or of one inside it."""
    ends = [place[1] for place in code.co_positions() if place[1] is not None]
    return max([code.co_firstlineno, *ends, *(_last_line(c) for c in code.co_consts if isinstance(c, CodeType))])


def _indented_block(lines: list[str], count: int) -> list[str]:
    """Return the first lines, at least `count` of them, up to the next that is indented like the first."""
    first = _indentation(lines[0])
    end = count
    while end < len(lines) and (_is_blank(lines[end]) or _indentation(lines[end]) > first):
        end += 1
    return lines[:end]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_blank(line: str) -> bool:
    return line.lstrip()[:1] in ("", "#")


def _parsed_block(text: str, first: int) -> ast.Module | None:
    is_indented = text[:1].isspace()
    try:
        tree = ast.parse("if 1:\n" + text if is_indented else text)
    except (SyntaxError, ValueError):
        return None
    return ast.increment_lineno(tree, first - is_indented)


@lru_cache(maxsize=16)
def _lambdas(text: str) -> dict[int, list[ast.Lambda]]:
    """Return the lambdas of a file, which may begin in the middle of a statement, by their lines."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, list[ast.Lambda]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
    return found


def _matches(node: ast.FunctionDef, code: CodeType) -> bool:
    first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
    return node.name == code.co_name and first == code.co_firstlineno


def same_code(node: Function, code: CodeType, flags: int, modules: Sequence[str] = ()) -> bool:
    """Return True if a definition compiles to a function's code: the file may have changed since it was imported.

    Parameters
    ----------
    node : ast.FunctionDef or ast.Lambda
        Definition.
    code : CodeType
        Code.
    flags : int
        Flags of ``from __future__`` imports with which it was compiled.
    modules : sequence of str
        Global names of modules, which the file probably imports: calls of their functions have other instructions.
    """
    compiled = _compiled(node, code, flags, modules)
    if compiled is None or compiled.co_varnames[: compiled.co_argcount] != code.co_varnames[: code.co_argcount]:
        return False
    if isinstance(node, ast.Lambda) and _extent(compiled) != _extent(code):
        return False
    return _names(compiled) == _names(code) and _have_same_instructions(compiled, code)


def _names(code: CodeType) -> tuple[object, ...]:
    constants = [_text(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_names, set(code.co_freevars), constants


def _text(constant: object) -> str:
    """Return a text that tells constants apart, also ``0.0`` and ``-0.0``; sets have no order."""
    return str(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)


def _have_same_instructions(one: CodeType, other: CodeType) -> bool:
    """Return True if two codes, and those of functions inside them, have the same instructions.

    Calls of attributes of a name that the file imports have others than those of other names: instructions are compared
    without those that differ, which takes long.
    """
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (one, other)]
    if len(inner[0]) != len(inner[1]) or not all(map(_have_same_instructions, *inner)):
        return False
    return one.co_code == other.co_code or _instructions(one) == _instructions(other)


def _instructions(code: CodeType) -> list[tuple[str, object]]:
    """Return the instructions of a code, with the numbers of those that jumps lead to."""
    found = [i for i in dis.get_instructions(code) if i.opname not in _OF_CALLS]
    offsets = {i.offset: k for k, i in enumerate(found)}
    return [(_ALIKE.get(i.opname, i.opname), _argument(i, offsets)) for i in found]


def _argument(instruction: dis.Instruction, offsets: dict[int, int]) -> object:
    value = instruction.argval
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        return next((offsets[k] for k in range(value, value + _MOST_SKIPPED, 2) if k in offsets), None)
    return None if isinstance(value, CodeType) else _text(value)  # codes are compared one by one


def _extent(code: CodeType) -> tuple[object, object]:
    """Return the first and the last place of a lambda's instructions in its file.

    The instructions in between depend on the module: calls of functions of imported modules have others.
    """
    places = [p for p in code.co_positions() if p[3]]
    return min([p[::2] for p in places], default=None), max([p[1::2] for p in places], default=None)


def _compiled(node: Function, code: CodeType, flags: int, modules: Sequence[str]) -> CodeType | None:
    """Compile a definition alone, in a scope that has its free variables."""
    inner: ast.stmt
    if isinstance(node, ast.Lambda):
        inner = ast.copy_location(ast.Return(node), node)
    else:
        fields: dict[str, Any] = {**_fields(node), "decorator_list": [], "returns": None}
        inner = ast.FunctionDef(**fields)
    outer = scope_of(inner, code.co_freevars)
    if modules:
        outer.body.append(ast.copy_location(ast.Import([ast.alias(name) for name in modules]), inner))
    try:
        module = compile(ast.fix_missing_locations(outer), code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return innermost(module, code.co_name)


def _fields(node: ast.AST) -> dict[str, object]:
    names = (*node._fields, *node._attributes)
    return {name: getattr(node, name) for name in names if hasattr(node, name)}


def scope_of(statement: ast.stmt, names: tuple[str, ...]) -> ast.Module:
    """Return a module with a function whose parameters are the free variables of a statement in it."""
    parameters = [ast.arg(name) for name in names]
    arguments = ast.arguments([], parameters, None, [], [], None, [])
    own = getattr(statement, "name", "")
    is_global = own and own not in names  # to itself, as in the module
    scope = ast.FunctionDef("scope", arguments, [*([ast.Global([own])] if is_global else []), statement], [], None)
    ast.copy_location(scope, statement)
    return ast.Module([scope], [])


def innermost(module: CodeType, name: str) -> CodeType | None:
    """Return the code of a function in the scope made by `scope_of`."""
    scope = next(c for c in module.co_consts if isinstance(c, CodeType))
    return next((c for c in scope.co_consts if isinstance(c, CodeType) and c.co_name == name), None)
