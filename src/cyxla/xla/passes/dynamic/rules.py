"""All rules: their modules register them when they are imported."""

from cyxla.xla.passes.dynamic import (
    batch_norm,
    contraction,
    control,
    custom_calls,
    data_movement,
    elementwise,
    gather_scatter,
    linalg,
    reductions,
    reshape,
    scan,
    select_and_scatter,
    slices,
    sorting,
)
from cyxla.xla.passes.dynamic.padder import RULES

__all__ = [
    "RULES", "batch_norm", "contraction", "control", "custom_calls", "data_movement", "elementwise", "gather_scatter",
    "linalg", "reductions", "reshape", "scan", "select_and_scatter", "slices", "sorting",
]  # fmt: skip
