"""Opcodes that make arrays or move their elements about."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import INTEGER, NUMBER, PRED, VARIADIC, opcode, opt, req

# fmt: off
opcode("parameter",              0, attrs=(req("parameter_number", "int"),))
opcode("constant",               0, attrs=(req("literal", "literal"),))
opcode("iota",                   0, accepts=NUMBER, attrs=(req("iota_dimension", "int"),))
opcode("broadcast",              1, attrs=(opt("dimensions", "dims", ()),))
opcode("reshape",                1, attrs=(opt("inferred_dimension", "int"),))
opcode("dynamic-reshape",        (1, None))
opcode("bitcast",                1)
opcode("bitcast-convert",        1, elementwise=False)
opcode("transpose",              1, attrs=(req("dimensions", "dims"),))
opcode("reverse",                1, attrs=(req("dimensions", "dims"),))
opcode("slice",                  1, attrs=(req("slice", "slice"),))
opcode("pad",                    2, attrs=(req("padding", "padding"),))
opcode("concatenate",            (1, None), attrs=(req("dimensions", "dims"),))
opcode("dynamic-slice",          (1, None), attrs=(req("dynamic_slice_sizes", "dims"),))
opcode("dynamic-update-slice",   (2, None))
opcode("gather",                 2, attrs=(
    req("offset_dims", "dims"), req("collapsed_slice_dims", "dims"), req("start_index_map", "dims"),
    opt("operand_batching_dims", "dims", ()), opt("start_indices_batching_dims", "dims", ()),
    req("index_vector_dim", "int"), req("slice_sizes", "dims"), opt("indices_are_sorted", "bool", False)))
opcode("scatter",                (3, None), calls=("to_apply",), attrs=(
    req("update_window_dims", "dims"), req("inserted_window_dims", "dims"), req("scatter_dims_to_operand_dims", "dims"),
    opt("input_batching_dims", "dims", ()), opt("scatter_indices_batching_dims", "dims", ()),
    req("index_vector_dim", "int"), opt("indices_are_sorted", "bool", False), opt("unique_indices", "bool", False)))
opcode("get-tuple-element",      1, attrs=(req("index", "int"),))
opcode("tuple",                  VARIADIC)
opcode("get-dimension-size",     1, attrs=(req("dimensions", "dims"),))
opcode("set-dimension-size",     2, attrs=(req("dimensions", "dims"),))
opcode("copy",                   1, attrs=(opt("cross_program_prefetch_index", "int"),))
opcode("copy-start",             1, attrs=(opt("cross_program_prefetch_index", "int"),))
opcode("copy-done",              1)
opcode("opt-barrier",            1)
# fmt: on
_ = (INTEGER, PRED)
