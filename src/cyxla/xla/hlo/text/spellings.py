"""Spellings in HLO text that differ from the opcode rows: async shorthand, attributes of called computations."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import OPCODES, Opcode

# opcode -> further names of its called computations, besides the row's
CALL_ALIASES = {
    "conditional": ("true_computation", "false_computation"),
    "custom-call": ("to_apply", "calls"),
    "async-update": ("calls",),  # older text names the computation in the whole chain
    "async-done": ("calls",),
}
OPTIONAL_CALLS = ("custom-call",)
# opcode -> print order of its called computations, if that is not the row's
CALL_PRINT_ORDER = {"while": ("condition", "body")}
IGNORED_ATTRIBUTES = {"async-update": ("async_execution_thread",), "async-done": ("async_execution_thread",)}
# attributes of ``<op>-start`` that belong to async-start -> their kinds
ASYNC_ATTRIBUTES = {"async_execution_thread": "string", "output_to_operand_aliasing": "aliasing"}
# attributes without a field of their own -> the only values that the parser accepts
IGNORED_VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "collective-broadcast": {"has_dynamic_root": ("false",)},
    "convolution": {"convolution_kind": ("unset", "fprop")},
}
_STAGES = ("start", "update", "done")


def split_async(opcode: str) -> tuple[str, str]:
    """Return stage and wrapped opcode of ``<op>-start`` and the like; empty strings for any other name."""
    wrapped, dash, stage = opcode.rpartition("-")
    if dash and stage in _STAGES and wrapped in OPCODES and opcode not in OPCODES:
        return stage, wrapped
    return "", ""


def call_names(row: Opcode) -> tuple[str, ...]:
    """Return the attribute names of called computations in text."""
    return (*row.calls, *CALL_ALIASES.get(row.name, ()))
