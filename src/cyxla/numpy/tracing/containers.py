"""Containers of arrays (pytrees): nested tuples, lists, dicts, dataclasses and None, flattened and rebuilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import Any, NamedTuple

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS
from cyxla.numpy.tracing.user_program.texts import PLACEHOLDER, TracedText


def complete_lists(values: Sequence[Any]) -> None:
    """Make the elements of the lists among values that make them late, which C looks for in their memory."""
    for value in values:
        if isinstance(value, list) and type(value) is not list and hasattr(value, "materialize"):
            value.materialize()


class Kind(NamedTuple):
    """Functions that flatten and rebuild one kind of container.

    Attributes
    ----------
    parts : callable
        Function from a container to its children in order.
    key : callable
        Function from a container to its static part, equal for containers of the same structure.
    paths : callable
        Function from a container to the access path of each child, such as ``.x`` or ``[0]``.
    build : callable
        Function from the key and the children to the container.
    """

    parts: Callable[[Any], Sequence[Any]]
    key: Callable[[Any], Any]
    paths: Callable[[Any], Sequence[str]]
    build: Callable[[Any, Sequence[Any]], Any]


def _index_paths(value: Sequence[Any]) -> list[str]:
    return [f"[{k}]" for k in range(len(value))]


def _build_dataclass(key: tuple[type, tuple[str, ...]], parts: Sequence[Any]) -> Any:
    """Build a dataclass from its fields without running __init__, which may compute."""
    instance: Any = object.__new__(key[0])
    for name, part in zip(key[1], parts, strict=True):
        object.__setattr__(instance, name, part)
    return instance


def _build_mapping(key: tuple[type, Any, tuple[Any, ...]], parts: Sequence[Any]) -> Any:
    pairs = dict(zip(key[2], parts, strict=True))  # not an iterator of pairs, which a Counter would count
    made = key[0](pairs) if key[1] is None else key[0](key[1], pairs)
    if tuple(made) != key[2] or any(made[k] is not v for k, v in pairs.items()):
        raise _refused_mapping(key[0], "has other items than the dict that it is made of")
    return made


def _mapping_key(value: Any) -> tuple[type, Any, tuple[Any, ...]]:
    kind = type(value)
    attributes = value.__dict__ if kind.__dictoffset__ else None
    if attributes and attributes is not value:  # that of a dict whose attributes are its items holds nothing else
        raise _refused_mapping(kind, "has attributes besides its items")
    if isinstance(kind.__setitem__, FunctionType):
        raise _refused_mapping(kind, "has a __setitem__ of its own")
    return kind, value.default_factory if isinstance(value, defaultdict) else None, tuple(value)


def _refused_mapping(kind: type, reason: str) -> UnimplementedError:
    return UnimplementedError(f"a {kind.__name__} is passed or returned, which {reason}", hint="use a dict")


def field_names(value: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass."""
    return tuple(f.name for f in fields(value))


NONE = Kind(lambda v: (), lambda v: None, lambda v: (), lambda key, parts: None)
TUPLE = Kind(lambda v: v, len, _index_paths, lambda key, parts: tuple(parts))
LIST = Kind(lambda v: v, len, _index_paths, lambda key, parts: list(parts))
DICT = Kind(
    lambda v: list(v.values()), tuple, lambda v: [f"[{k!r}]" for k in v],
    lambda key, parts: dict(zip(key, parts, strict=True)),
)  # fmt: skip
MAPPING = Kind(  # subclasses of dict
    lambda v: list(v.values()), _mapping_key,
    lambda v: [f"[{k!r}]" for k in v], _build_mapping,
)  # fmt: skip
NAMED = Kind(lambda v: v, type, lambda v: [f".{n}" for n in v._fields], lambda key, parts: key(*parts))
DATACLASS = Kind(
    lambda v: [getattr(v, n) for n in field_names(v)], lambda v: (type(v), field_names(v)),
    lambda v: [f".{n}" for n in field_names(v)], _build_dataclass,
)  # fmt: skip
STATIC = Kind(lambda v: (), lambda v: _to_original(v), lambda v: (), lambda key, parts: key)  # static values
ARGUMENT = Kind(lambda v: (), lambda v: v.number, lambda v: (), lambda key, parts: key)  # a result that is an argument
_BUILTIN_KINDS: dict[type, Kind] = {type(None): NONE, tuple: TUPLE, list: LIST, dict: DICT}


_KINDS_BY_INSTANCE: dict[type, Callable[[Any], Kind]] = {}


def register_kind(cls: type, kind: Kind | Callable[[Any], Kind]) -> None:
    """Make instances of a class containers of a kind, or of the kind that a function of an instance tells."""
    if isinstance(kind, Kind):
        _BUILTIN_KINDS[cls] = kind
    else:
        _KINDS_BY_INSTANCE[cls] = kind


def _to_original(value: Any) -> Any:
    """Return NumPy's function for its substitute, and other values as they are, but for texts of traced values."""
    if isinstance(value, TracedText):
        value.refuse()
    if type(value) is str and PLACEHOLDER in value:  # C has made it of a traced text
        raise TraceError("a text is made of a traced value, which has no value while tracing")
    return NUMPY_ORIGINALS.get(value, value) if callable(value) else value


def kind_of(value: Any) -> Kind | None:
    """Return the kind of a container; None for a leaf."""
    kind = _BUILTIN_KINDS.get(type(value))
    if kind is not None:
        return kind
    if (choose := _KINDS_BY_INSTANCE.get(type(value))) is not None:
        return choose(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return NAMED
    if isinstance(value, dict):
        return MAPPING
    return DATACLASS if is_dataclass(value) and not isinstance(value, type) else None


@dataclass(frozen=True, slots=True)
class Tree:
    """Structure of a container without its leaves; hashable, and equal for containers of the same structure.

    Attributes
    ----------
    kind : Kind or None
        Kind of container; None for a leaf.
    key : object
        Static part of the container.
    children : tuple of Tree
        Structures of the children.
    """

    kind: Kind | None = None
    key: Any = None
    children: tuple[Tree, ...] = ()

    @property
    def count(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is None else sum(c.count for c in self.children)

    def build(self, leaves: Sequence[Any]) -> Any:
        """Build the container from its leaves."""
        return self.take(iter(leaves))

    def take(self, leaves: Iterator[Any]) -> Any:
        """Build the container from the next leaves of an iterator."""
        if self.kind is None:
            return next(leaves)
        return self.kind.build(self.key, [c.take(leaves) for c in self.children])


LEAF = Tree()


def flatten(value: Any, static_types: Any = ()) -> tuple[list[Any], Tree]:
    """Flatten a container.

    Parameters
    ----------
    value : object
        Container, or a leaf.
    static_types : tuple of type
        Types of values that are static parts of the tree instead of leaves.

    Returns
    -------
    leaves : list
        Leaves from left to right.
    tree : Tree
        Structure that rebuilds the container.
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, static_types)


def _flatten(value: Any, leaves: list[Any], static_types: Any) -> Tree:
    kind = STATIC if isinstance(value, static_types) else kind_of(value)
    if kind is None:
        leaves.append(value)
        return LEAF
    return Tree(kind, kind.key(value), tuple([_flatten(part, leaves, static_types) for part in kind.parts(value)]))


def paths(value: Any, prefix: str = "", static_types: Any = ()) -> list[str]:
    """Return the access path of each leaf of a container, such as ``[0]['w']``; `static_types` as for `flatten`."""
    kind = STATIC if isinstance(value, static_types) else kind_of(value)
    if kind is None:
        return [prefix]
    steps = zip(kind.paths(value), kind.parts(value), strict=True)
    return [path for step, part in steps for path in paths(part, prefix + step, static_types)]


def map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Map a function over the leaves of containers of the same structure."""
    leaves, tree = flatten(value)
    other_leaves = [flatten(o)[0] for o in others]
    return tree.build([function(*parts) for parts in zip(leaves, *other_leaves, strict=True)])
