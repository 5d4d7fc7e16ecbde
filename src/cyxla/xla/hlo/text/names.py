"""Names that HLO text uses beside those of the opcode rows: async sugar, spellings of called computations."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import OPCODES, Opcode

# opcode -> other spellings of its called computations, besides the row's own
OTHER_CALLS = {
    "conditional": ("true_computation", "false_computation"),
    "custom-call": ("to_apply", "calls"),
    "async-update": ("calls",),  # older text names the computation along the whole chain
    "async-done": ("calls",),
}
NOT_REQUIRED_CALLS = ("custom-call",)
# opcode -> order in which its called computations are printed, where that is not the row's
PRINTED_CALLS = {"while": ("condition", "body")}
IGNORED_ATTRIBUTES = {"async-update": ("async_execution_thread",), "async-done": ("async_execution_thread",)}
# attributes of ``<op>-start`` that are not the operation's -> their kinds
ASYNC_ATTRIBUTES = {"async_execution_thread": "string", "output_to_operand_aliasing": "aliasing"}
# attributes that say what is so anyway -> the words of those that do
SAYS_NOTHING: dict[str, dict[str, tuple[str, ...]]] = {
    "collective-broadcast": {"has_dynamic_root": ("false",)},
    "convolution": {"convolution_kind": ("unset", "fprop")},
}
_STAGES = ("start", "update", "done")


def split_async(opcode: str) -> tuple[str, str]:
    """The stage and the wrapped opcode of ``<op>-start`` and its like; nothing for any other name."""
    wrapped, dash, stage = opcode.rpartition("-")
    if dash and stage in _STAGES and wrapped in OPCODES and opcode not in OPCODES:
        return stage, wrapped
    return "", ""


def call_names(row: Opcode) -> tuple[str, ...]:
    """Attribute names under which text may name called computations."""
    return (*row.calls, *OTHER_CALLS.get(row.name, ()))
