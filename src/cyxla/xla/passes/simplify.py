"""The passes that make a program smaller, repeated until none finds anything.

`pipeline` puts them together; each can be left out by name. `SIMPLIFY` is the list, in order.
"""

from __future__ import annotations

from typing import Final

from cyxla.xla.hlo import HloModule
from cyxla.xla.passes import (
    Pass,
    algebra,
    conditional_simplifier,
    constant_folding,
    cse,
    dce,
    reshape_mover,
    tuple_simplifier,
    while_simplifier,
    zero_sized,
)  # fmt: skip
from cyxla.xla.passes.pipeline import HloPassFix, HloPassPipeline, Settings

SIMPLIFY: Final[tuple[tuple[str, Pass], ...]] = (
    ("zero_sized", zero_sized.run),
    ("tuple_simplifier", tuple_simplifier.run),
    ("conditional_simplifier", conditional_simplifier.run),
    ("while_simplifier", while_simplifier.run),
    ("dce", dce.run),
    ("algebra", algebra.run),
    ("constant_folding", constant_folding.run),
    ("reshape_mover", reshape_mover.run),
    ("cse", cse.run),
    ("dce", dce.run),
)


def pipeline(settings: Settings | None = None) -> HloPassFix:
    """The passes of `SIMPLIFY`, run until none changes anything."""
    steps = HloPassPipeline("simplify", settings)
    for name, function in SIMPLIFY:
        steps.add(name, function)
    return HloPassFix(steps)


def run(module: HloModule) -> bool:
    """Simplify a module as the environment says."""
    return pipeline().run(module)
