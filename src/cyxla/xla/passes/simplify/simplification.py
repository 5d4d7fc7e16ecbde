"""Run the passes that make a program smaller to a fixed point.

`pipeline` assembles them; each can be disabled by name. `SIMPLIFY` is the list in order.
"""

from __future__ import annotations

from typing import Final

from cyxla.xla.hlo import HloModule
from cyxla.xla.passes import Pass
from cyxla.xla.passes.engine.local_pass import EachComputation, LocalPass
from cyxla.xla.passes.engine.on_demand import OnDemand
from cyxla.xla.passes.engine.pipeline import HloPassFix, HloPassPipeline, Settings
from cyxla.xla.passes.engine.rewrite import Again, RewritePass
from cyxla.xla.passes.simplify import (
    constant_folding,
    cse,
    dce,
    while_simplifier,
    window_simplifier,
    zero_sized,
)
from cyxla.xla.passes.simplify.algebra import algebra
from cyxla.xla.passes.simplify.reshape_mover import reshape_mover
from cyxla.xla.passes.simplify.tuple_simplifier import tuple_simplifier

SIMPLIFY: Final[tuple[tuple[str, Pass | RewritePass | EachComputation], ...]] = (
    ("zero_sized", EachComputation(zero_sized.run_computation)),
    ("tuple_simplifier", tuple_simplifier),
    ("conditional_simplifier", OnDemand("simplify.conditional_simplifier", "conditional")),
    ("while_simplifier", EachComputation(while_simplifier.run_computation)),
    ("window_simplifier", EachComputation(window_simplifier.run_computation)),
    ("algebra", algebra),
    ("constant_folding", EachComputation(constant_folding.run_computation)),
    ("reshape_mover", reshape_mover),
    ("cse", EachComputation(cse.run_computation)),
    ("dce", dce.run),
)


def pipeline(settings: Settings | None = None) -> HloPassFix:
    """Return a pipeline of the passes of `SIMPLIFY` that runs to a fixed point."""
    steps = HloPassPipeline("simplify", settings)
    for name, step in SIMPLIFY:
        if isinstance(step, RewritePass):
            steps.add(Again(step))
        elif isinstance(step, EachComputation):
            steps.add(LocalPass(name, step.function))
        else:
            steps.add(name, step)
    return HloPassFix(steps)


def run(module: HloModule, settings: Settings | None = None) -> bool:
    """Simplify a module; the default settings are those of the environment."""
    changed = pipeline(settings).run(module)
    for computation in module.computations.values():
        computation.changed.clear()
    return changed
