"""Modules of compiled code that crash, rather than raise an error, where they get what is no array of NumPy."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

#: Names of such modules. Qhull's class frees what it has not made, if it was given another object than an array.
_CRASHING = ("scipy.spatial._qhull",)


class _PlainNumpy(ModuleType):
    """NumPy as it is while nothing is traced, whose functions refuse traced arrays."""

    def __getattr__(self, name: str) -> Any:
        return vars(np)[name] if name in vars(np) else getattr(np, name)


_PLAIN = _PlainNumpy("numpy")


def give_plain_numpy() -> None:
    """Give the modules that crash NumPy itself in the place of the module whose functions take traced arrays."""
    for name in _CRASHING:
        module = sys.modules.get(name)
        if module is not None and vars(module).get("np") is np:
            vars(module)["np"] = _PLAIN
