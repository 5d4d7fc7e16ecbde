"""Opcodes that apply a computation to elements: map, reductions, scan, sort."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import ANY, REAL, opcode, opt, req

# fmt: off
opcode("map",                (1, None), calls=("to_apply",), attrs=(req("dimensions", "dims"),))
opcode("reduce",             (2, None), calls=("to_apply",), attrs=(req("dimensions", "dims"),))
opcode("reduce-window",      (2, None), calls=("to_apply",), attrs=(opt("window", "window", ()),))
opcode("select-and-scatter", 3, calls=("select", "scatter"), attrs=(opt("window", "window", ()),))
opcode("scan",               (1, None), calls=("to_apply",), attrs=(
    req("dimensions", "dims"), req("num_carries", "int"), opt("is_reverse", "bool", False), opt("is_associative", "tristate")))
opcode("sort",               (1, None), calls=("to_apply",), attrs=(req("dimensions", "dims"), opt("is_stable", "bool", False)))
opcode("topk",               1, accepts=REAL, attrs=(req("k", "int"), opt("largest", "bool", True)))
# fmt: on
_ = ANY
