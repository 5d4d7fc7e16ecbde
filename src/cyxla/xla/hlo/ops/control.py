"""Opcodes that call computations or order execution."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import VARIADIC, opcode, opt, req

# fmt: off
opcode("call",            VARIADIC, calls=("to_apply",), attrs=(opt("is_composite", "bool", False),))
opcode("while",           1, calls=("body", "condition"))
opcode("conditional",     (1, None), calls=("branch_computations",), many_calls=True)  # pred form: (true, false)
opcode("fusion",          VARIADIC, calls=("calls",), attrs=(
    req("kind", "enum:kLoop,kInput,kOutput,kCustom"), opt("output_to_operand_aliasing", "aliasing", ())))
opcode("custom-call",     VARIADIC, calls=("called_computations",), many_calls=True, attrs=(
    req("custom_call_target", "string"), opt("window", "window"), opt("dim_labels", "dim_labels"), opt("feature_group_count", "int", 1),
    opt("batch_group_count", "int", 1), opt("operand_layout_constraints", "shapes"), opt("custom_call_has_side_effect", "bool", False),
    opt("literal", "literal"), opt("output_to_operand_aliasing", "aliasing", ()), opt("padding_type", "enum:PADDING_INVALID,PADDING_VALID,PADDING_SAME"),
    opt("schedule", "enum:SCHEDULE_NONE,SCHEDULE_LATEST,SCHEDULE_EARLIEST", "SCHEDULE_NONE"),
    opt("api_version", "enum:API_VERSION_UNSPECIFIED,API_VERSION_ORIGINAL,API_VERSION_STATUS_RETURNING,API_VERSION_STATUS_RETURNING_UNIFIED,API_VERSION_TYPED_FFI",
        "API_VERSION_ORIGINAL"), opt("operand_precision", "precision", ())))
# An async chain is kept as start, update, done around the computation it wraps; text prints the short form.
opcode("async-start",     VARIADIC, calls=("calls",), attrs=(opt("async_execution_thread", "string", ""),))
opcode("async-update",    1)
opcode("async-done",      1)
opcode("after-all",       VARIADIC)
opcode("add-dependency",  2)
opcode("domain",          1, attrs=(req("domain", "domain"),))
# fmt: on
_ = req
