"""Containers of arguments and results, as the extension module knows them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cyxla.aot.program import Fixed, Program
from cyxla.aot.wheel.runtime.calls import ATTRIBUTES, DICT, FIXED, LIST, RECORD, SIZED, TUPLE
from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing import containers
from cyxla.numpy.tracing.arrays.sized_array import SIZED as SIZED_KIND
from cyxla.numpy.tracing.containers import Kind, kind_of

_LITERALS: Final = (type(None), bool, int, float, complex, str, bytes)
_SEQUENCES: Final[dict[Kind, tuple[int, str]]] = {
    containers.TUPLE: (TUPLE, "tuple"), containers.LIST: (LIST, "list"), containers.NAMED: (TUPLE, "tuple"),
}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """Class of a result that is a named tuple or a dataclass; the wheel has one of the same name and fields.

    Attributes
    ----------
    name : str
        Name of the class.
    fields : tuple of str
        Names of its fields.
    is_tuple : bool
        Whether it is a named tuple.
    """

    name: str
    fields: tuple[str, ...]
    is_tuple: bool


@dataclass(frozen=True)
class Signature:
    """Parameters and result of a function of a wheel.

    Attributes
    ----------
    names : tuple of str
        Names of the parameters, identifiers of Python.
    trees : tuple
        Tree of each parameter; see `cyxla.aot.wheel.runtime.calls`.
    result : object
        Tree of the result. A class is a `Record` in it.
    records : tuple of Record
        Classes in the result.
    """

    names: tuple[str, ...]
    trees: tuple[Any, ...]
    result: Any
    records: tuple[Record, ...]

    @property
    def finishes(self) -> bool:
        """True if the result has containers that Python code builds."""
        return _has(self.result, (RECORD, SIZED))


def signature(program: Program) -> Signature:
    """Return the parameters and the result of a program.

    Raises
    ------
    UnimplementedError
        A container is of a class that the wheel does not have.
    """
    given = zip(program.parameters, program.argument_trees, strict=True)
    taken = [(name, _argument(tree, name)) for name, tree in given if _holds_arrays(tree)]
    if sorted(k for _, tree in taken for k in _leaves(tree)) != list(range(len(program.arguments))):
        raise UnimplementedError(f"{program.name} has arguments of bounded size, which functions of wheels do not take")
    records: dict[str, Record] = {}
    result = _result(_without_variables(program), program.name, records)
    result = _with_sizes(result, _sizes(program))
    return Signature(
        tuple(identifiers([name for name, _ in taken])),
        tuple([tree for _, tree in taken]),
        result,
        tuple(records.values()),
    )


def _argument(value: Any, path: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Fixed):
        return _fixed(value.value, path)
    kind = kind_of(value)
    if kind is containers.NONE or kind is None:
        return _fixed(value, path)
    parts = list(zip(kind.parts(value), kind.paths(value), strict=True))
    children = tuple([_argument(part, path + step) for part, step in parts])
    if kind in _SEQUENCES:
        number, name = _SEQUENCES[kind]
        return (number, (), children, f"a {name} of {len(children)}")
    if kind is containers.DATACLASS:
        fields = containers.field_names(value)
        return (ATTRIBUTES, fields, children, f"an object with {', '.join(fields)}")
    if isinstance(value, dict):
        return (DICT, _literals(tuple(value), path), children, f"a dict with {_shortened(value)}")
    raise UnimplementedError(f"argument {path} of a wheel: a {type(value).__name__}")


def _result(value: Any, path: str, records: dict[str, Record]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    kind = kind_of(value)
    if kind is containers.NONE or kind is None:
        return _fixed(value, path)
    parts = list(zip(kind.parts(value), kind.paths(value), strict=True))
    children = tuple([_result(part, path + step, records) for part, step in parts])
    if kind is SIZED_KIND:
        return (SIZED, tuple(kind.key(value)), children, "an array of run-time size")
    if kind is containers.DICT:
        return (DICT, _literals(tuple(value), path), children, f"a dict with {_shortened(value)}")
    if kind in (containers.NAMED, containers.DATACLASS):
        return _record(value, children, path, records)
    if kind in _SEQUENCES:
        number, name = _SEQUENCES[kind]
        return (number, (), children, f"a {name} of {len(children)}")
    raise UnimplementedError(f"result {path} of a wheel: a {type(value).__name__}", hint="return a dict or a tuple")


def _record(value: Any, children: tuple[Any, ...], path: str, records: dict[str, Record]) -> Any:
    is_tuple = isinstance(value, tuple)
    fields = tuple(value._fields) if is_tuple else containers.field_names(value)
    record = Record(type(value).__name__, fields, is_tuple)
    if records.setdefault(record.name, record) != record or not record.name.isidentifier():
        raise UnimplementedError(f"result {path} of a wheel: two classes are called {record.name}")
    return (RECORD, (record, fields), children, f"a {record.name}")


def _fixed(value: Any, path: str) -> Any:
    return (FIXED, _literals(value, path), (), repr(value))


def _literals(value: Any, path: str) -> Any:
    """Return a value that is written as a literal.

    Raises
    ------
    UnimplementedError
        It is not.
    """
    if type(value) is tuple:
        return tuple([_literals(part, path) for part in value])
    if type(value) not in _LITERALS or (type(value) in (float, complex) and repr(value).strip("-(") in ("nan", "inf")):
        raise UnimplementedError(
            f"{path} has a static {type(value).__name__}, which a wheel does not hold", hint="use numbers and strings"
        )
    return value


def _shortened(keys: Sequence[Any] | dict[Any, Any]) -> str:
    names = [repr(k) for k in keys]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "..."])


def _without_variables(program: Program) -> Any:
    """Return the result without the new values of a graph's variables, which are written to the arguments."""
    tree, written = program.result_tree, set(program.written.values())
    if not isinstance(tree, tuple) or not any(isinstance(part, int) and part in written for part in tree):
        return tree
    fetched = tuple([part for part in tree if not isinstance(part, int) or part not in written])
    return fetched[0] if len(fetched) == 1 else fetched


def _leaves(tree: Any) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for child in tree[2] for leaf in _leaves(child)]


def _sizes(program: Program) -> dict[int, tuple[int, ...]]:
    """Return the dimensions of bounded size of each result that has some; their sizes are the next results."""
    found, number = {}, 0
    for shape in program.module.entry.root.shape.leaves():
        dims = tuple([d for d, is_dynamic in enumerate(shape.dynamic) if is_dynamic])
        if dims:
            found[number] = dims
        number += 1 + len(dims)
    return found


def _with_sizes(tree: Any, sizes: Mapping[int, tuple[int, ...]]) -> Any:
    """Return a tree in which results of bounded size are cut to their size."""
    if isinstance(tree, int):
        dims = sizes.get(tree)
        if dims is None:
            return tree
        return (SIZED, dims, (tree, *range(tree + 1, tree + 1 + len(dims))), "an array of bounded size")
    kind, keys, children, text = tree
    return (kind, keys, tuple([_with_sizes(child, sizes) for child in children]), text)


def _holds_arrays(tree: Any) -> bool:
    return any(isinstance(leaf, int) for leaf in containers.flatten(tree)[0])


def _has(tree: Any, kinds: tuple[int, ...]) -> bool:
    return not isinstance(tree, int) and (tree[0] in kinds or any(_has(child, kinds) for child in tree[2]))


def identifiers(texts: Sequence[str]) -> list[str]:
    """Return different identifiers of Python, made of texts."""
    found: dict[str, None] = {}
    for text in texts:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() else name
        name = f"{name}_" if keyword.iskeyword(name) else name
        unique, n = name, 1
        while unique in found:
            n += 1
            unique = f"{name}_{n}"
        found[unique] = None
    return list(found)
