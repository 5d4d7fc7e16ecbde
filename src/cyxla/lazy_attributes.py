"""Attributes of packages that are imported on first use, so that a package is imported quickly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a package, which imports an attribute and keeps it.

    Parameters
    ----------
    package : str
        Name of the package.
    names : mapping of str to str
        Module of each name; one that begins with a dot is part of the package.
    modules : mapping of str to str, optional
        Attributes that are modules, with the names of these.
    """
    modules = modules or {}

    def get(name: str) -> Any:
        if name in modules:
            value: Any = import_module(modules[name], package)
        elif name in names:
            value = getattr(import_module(names[name], package), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)  # replaces a submodule of the same name, too
        return value

    return get
