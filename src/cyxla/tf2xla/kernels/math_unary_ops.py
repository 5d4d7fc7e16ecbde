"""Functions of one array, element by element."""

from __future__ import annotations

from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import functions as xla

lowering("Neg", lambda x: -x)
lowering("Exp", xla.exponential)
