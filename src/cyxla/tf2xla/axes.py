"""Reading operands that are known while compiling: dimensions and sizes."""

from __future__ import annotations

from cyxla.core.kernels.array_ops import axis_of, scalar_of, sizes_of

__all__ = ["axis_of", "scalar_of", "sizes_of"]
