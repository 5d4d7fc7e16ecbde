"""One function per op: ``raw_ops.MatMul(a=x, b=y)``.

On arrays a function computes immediately; under ``with graph.as_default():`` and on tensors of a graph it adds a node.
Hidden ops are in `cyxla.raw_ops.internal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any  # Any is the name of an op

from cyxla.core.framework.declarations.op_overrides import OpGenOverrideMap
from cyxla.core.framework.op_gen import OpNamespace

_namespaces = {False: OpNamespace(), True: OpNamespace(hidden=True)}


def use_overrides(overrides: OpGenOverrideMap | None) -> None:
    """Regenerate the functions with other overrides; None removes all overrides."""
    if overrides is not None:
        overrides.unknown()
    _namespaces.update({hidden: OpNamespace(overrides=overrides, hidden=hidden) for hidden in (False, True)})


def __getattr__(name: str) -> Callable[..., _Any]:
    try:
        return getattr(_namespaces[False], name)  # type: ignore[no-any-return]
    except AttributeError:
        raise AttributeError(f"module 'cyxla.raw_ops' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*dir(_namespaces[False]), "internal", "use_overrides"]
