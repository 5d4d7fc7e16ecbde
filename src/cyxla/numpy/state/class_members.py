"""Members of the user's classes, such as methods and properties, which a program depends on."""

from __future__ import annotations

import sys
from typing import Any

from cyxla._native.dispatch import ClassGuard
from cyxla.numpy.tracing.hooks import hooks

_Members = dict[type, dict[str, Any]]


def class_guard(kind: type) -> ClassGuard | None:
    """Return the guard of a class: a program must not run once a method of it or of a base is another one.

    Attributes that hold data have guards of their own.

    Parameters
    ----------
    kind : type
        Class.

    Returns
    -------
    ClassGuard or None
        None if no base is a class of the user from outside of the function.
    """
    known = _members_of(kind)
    return ClassGuard(kind, lambda: _are_same(_members_of(kind), known)) if known else None


def is_of_library(kind: type) -> bool:
    """Return True for a class of Python, of NumPy or of this package, which stays as it is."""
    return is_library_name(kind.__module__)


def is_library_name(module: str) -> bool:
    """Return True for the name of a module whose functions and classes stay as they are."""
    package = module.partition(".")[0]
    return package in sys.stdlib_module_names or package in ("numpy", "scipy", "cyxla")


def _members_of(kind: type) -> _Members:
    found = {base: _own_members(base) for base in kind.__mro__ if not is_of_library(base)}
    return {base: members for base, members in found.items() if members}


def _own_members(kind: type) -> dict[str, Any]:
    return {n: v for n, v in hooks.members_of(kind).items() if callable(v) or hasattr(type(v), "__get__")}


def _are_same(found: _Members, known: _Members) -> bool:
    return list(found) == list(known) and all(_are_same_members(found[base], known[base]) for base in known)


def _are_same_members(found: dict[str, Any], known: dict[str, Any]) -> bool:
    return found.keys() == known.keys() and all(found[name] is value for name, value in known.items())
