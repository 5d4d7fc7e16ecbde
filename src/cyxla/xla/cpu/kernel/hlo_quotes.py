"""Quotes of HLO in generated C: opcodes, shapes and numbers of the kernel's own, never names or strings of a program.

A kernel begins with a list of its instructions; a statement that computes one ends with its quote::

    const float v3 = (v1 + v2);  /* %1 = f32[64,256] add(p0, %0) */

``p0`` is an array that the kernel reads, ``r0`` one that it writes, ``%0`` an instruction of the kernel; the text of
the loop IR (`loops.loop_text`) has the same names. Kernels of one heavy instruction have quotes where they begin, and
where their arrays are declared (`with_quotes`). Equal kernels have equal quotes, and kernels that differ by their
quotes alone are one (`c.quote_comments.without_quotes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.temporaries import is_temporary
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, is_forwarding, leaves, resolve
from cyxla.xla.hlo import Instruction

MAX_LINES = 60  # instructions in the list of a kernel
MAX_ARRAYS = 16  # arrays in a list
_LEAVES = frozenset({"parameter", "constant"})
_COMMENT = re.compile(r"/\*.*?\*/")
_DEFINITION = "static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {"
_LOOPS = frozenset({KernelKind.SMALL_LOOP, KernelKind.LANE_LOOP, KernelKind.LOOP_NEST})
_HEAVY = frozenset({"dot", "convolution", "single"})  # kinds of groups; their module imports this one
_NONE: Mapping[Any, int] = {}


def number_instructions(instructions: Iterable[Instruction]) -> dict[Instruction, int]:
    """Number instructions, each loop and branch followed by the instructions inside it."""
    numbers: dict[Instruction, int] = {}
    for ins in instructions:
        numbers[ins] = len(numbers)
        for computation in ins.called if ins.opcode in CONTROL_FLOW else ():
            inner = (i for i in computation.post_order() if i.opcode not in _LEAVES and not is_forwarding(i))
            first = len(numbers)
            numbers.update((i, first + n) for i, n in number_instructions(inner).items())
    return numbers


def quote(
    ins: Instruction, numbers: Mapping[Instruction, int], slots: Mapping[Value, int], *, attributes: bool = False
) -> str:
    """Return the text of an instruction.

    Parameters
    ----------
    ins : Instruction
        Instruction with a number.
    numbers : mapping of Instruction to int
        Numbers of the instructions that the kernel computes.
    slots : mapping of Value to int
        Numbers of the arrays that it reads.
    attributes : bool
        True to append the attributes that are numbers or keywords of HLO.
    """
    operands = ", ".join([_operand(o, numbers, slots) for o in ins.operands])
    rest = _attributes(ins) if attributes else ""
    shape = str(ins.shape.static)
    if ins.shape.is_tuple:
        shape = _COMMENT.sub("", shape)  # it counts its elements in comments, which C does not nest
    return f"%{numbers[ins]} = {shape} {ins.opcode}({operands}){rest}"


def head(step: Step) -> str:
    """Return the comment above a kernel: the arrays it reads, its instructions, and the arrays it writes."""
    lines: list[str] = []
    slots = {v: n for n, v in enumerate(step.reads)} if len(step.groups) == 1 else _NONE
    for group in step.groups:
        lines += [quote(i, group.numbers, slots, attributes=True) for i in list(group.numbers)[:MAX_LINES]]
        omitted = len(group.numbers) - MAX_LINES
        lines += [f".. {omitted} more"] if omitted > 0 else []
    if not lines:
        return ""
    if any(map(is_temporary, step.reads)):
        lines.insert(0, "last part: combines the results of the first")
    first, last = _arrays("reads", "p", step.reads), _arrays("writes", "r", step.writes)
    return "/* HLO\n" + "".join(f" * {line}\n" for line in [first, *lines, last]) + " */\n"


def with_quotes(step: Step) -> str:
    """Return the C of a kernel, with quotes where that of a heavy instruction begins and declares its arrays.

    Loops quote their instructions statement by statement, and are returned as they are.
    """
    text, group = step.kernel.text, step.groups[0] if len(step.groups) == 1 else None
    if group is None or group.kind not in _HEAVY or step.kernel.kind in _LOOPS:
        return text
    root, slots = group.root, {v: n for n, v in enumerate(step.reads)}
    text = text.replace(_DEFINITION, f"{_DEFINITION}  /* {quote(root, group.numbers, slots)} */")
    for n, value in enumerate(step.reads):
        positions = [k for k, o in enumerate(root.operands) if value in leaves(o)]
        if positions:
            operand = f"operand{'s' if len(positions) > 1 else ''} {', '.join(map(str, positions))}"
            text = _quoted(text, f"p{n} = bufs[{n}];", f"%{group.numbers[root]}: {operand}, {value.shape}")
    for n, value in enumerate(step.writes):
        if value.instruction in group.numbers:
            stored = quote(value.instruction, group.numbers, slots)
            text = _quoted(text, f"r{n} = bufs[{len(step.reads) + n}];", stored)
    return text


def _quoted(text: str, declaration: str, note: str) -> str:
    return text.replace(declaration, f"{declaration}  /* {note} */")


def _arrays(title: str, letter: str, values: Sequence[Value]) -> str:
    omitted = f", .. {len(values) - MAX_ARRAYS} more" if len(values) > MAX_ARRAYS else ""
    return f"{title} " + ", ".join(f"{letter}{n} {v.shape}" for n, v in enumerate(values[:MAX_ARRAYS])) + omitted


def _operand(operand: Instruction, numbers: Mapping[Instruction, int], slots: Mapping[Value, int]) -> str:
    number = numbers.get(operand)
    if number is not None and operand.shape.is_array:
        return f"%{number}"
    if not operand.shape.is_array:
        return f"({', '.join(_value(v, numbers, slots) for v in leaves(operand)[:MAX_ARRAYS])})"
    return _value(resolve(operand), numbers, slots)


def _value(value: Value, numbers: Mapping[Instruction, int], slots: Mapping[Value, int]) -> str:
    ins = value.instruction
    if ins in numbers:
        return f"%{numbers[ins]}" + "".join(f".{i}" for i in value.index)
    if value in slots:
        return f"p{slots[value]}"
    if ins.opcode == "constant" and ins.shape.is_array and ins.shape.size == 1:
        return str(ins.attrs["literal"].array.reshape(-1)[0].item())
    if ins.opcode == "parameter" and value.index:  # element of a loop's state
        return "parameter" + "".join(f".{i}" for i in value.index)
    return str(value.shape)


def _attributes(ins: Instruction) -> str:
    texts = []
    for attr in ins.row.attrs:
        value = ins.attrs[attr.name]
        if value is None or value == () or value in (attr.default, "FLOAT", "SIGNED", "UNSIGNED"):
            continue
        if isinstance(value, str):
            text = value if attr.kind.startswith("enum:") and value in attr.kind[5:].split(",") else None
        else:
            text = _number_text(value)
        if text is not None:
            texts.append(f", {attr.name}={text}")
    return "".join(texts)


def _number_text(value: Any) -> str | None:
    """Return the text of numbers and tuples of numbers; None for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, tuple):
        return None
    parts = [_number_text(v) for v in value]
    return None if None in parts else f"{{{','.join(p for p in parts if p is not None)}}}"
