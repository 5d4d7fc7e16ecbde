"""The rows of all opcodes, by family; importing the package fills the registry."""

from cyxla.xla.hlo.ops import (
    collective,
    contraction,
    control,
    data_movement,
    elementwise,
    functional,
    gather_scatter,
    host,
)

__all__ = [
    "collective",
    "contraction",
    "control",
    "data_movement",
    "elementwise",
    "functional",
    "gather_scatter",
    "host",
]
