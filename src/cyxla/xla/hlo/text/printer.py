"""Printer of HLO text.

The text depends on the program alone: computations are printed callees first, instructions after their operands, and
names are numbered in that order. Printing a parsed text again therefore does not change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cyxla.xla.hlo.attributes import EntryLayout
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.opcode import Attr, default_comparison
from cyxla.xla.hlo.text.attributes import COMMON, kind_of
from cyxla.xla.hlo.text.header import header_text, stack_frames_text
from cyxla.xla.hlo.text.lexer import KEYWORDS, quote
from cyxla.xla.hlo.text.literals import literal_text
from cyxla.xla.hlo.text.spellings import CALL_PRINT_ORDER

_ALWAYS = {("broadcast", "dimensions"), ("dot", "lhs_contracting_dims"), ("dot", "rhs_contracting_dims")}
_ALWAYS |= {("topk", "largest")}
_ALWAYS |= {(f"all-{op}", "replica_groups") for op in ("reduce", "reduce-start", "gather", "gather-start", "to-all")}
_ALWAYS |= {("reduce-scatter", "replica_groups")}
_HIDDEN = {("parameter", "parameter_number"), ("constant", "literal")}
_SUFFIX = re.compile(r"(?:\.[0-9]+)+$")
_FORBIDDEN = re.compile(r"[^\w.\-]", re.ASCII)
_BEFORE_METADATA = tuple(COMMON)[: tuple(COMMON).index("metadata")]
_AFTER_METADATA = tuple(COMMON)[tuple(COMMON).index("metadata") + 1 :]

Names = Mapping[Instruction | Computation, str]


def to_text(module: HloModule) -> str:
    """Return the text of a module.

    Parameters
    ----------
    module : HloModule
        A module with an entry computation.

    Returns
    -------
    str
        HLO text that `parse_module` reads as an equal module.
    """
    computations, orders, names = _assign_names(module)
    entry = module.entry
    layout = module.config.entry_layout or EntryLayout(tuple(p.shape for p in entry.parameters), entry.root.shape)
    name = _clean(module.name)
    parts = [header_text(f"_{name}" if name in ("", *KEYWORDS) else name, module.config, layout), "\n\n"]
    parts += [stack_frames_text(module.config.stack_frames)]
    parts += ["\n\n".join(_computation_text(c, orders[c], names, c is entry) for c in computations), "\n"]
    return "".join(parts)


def names_of(module: HloModule) -> Names:
    """Return the names of instructions and computations in the text of a module."""
    return _assign_names(module)[2]


def _assign_names(module: HloModule) -> tuple[list[Computation], dict[Computation, list[Instruction]], Names]:
    computations = printed_computations(module)
    orders = {c: list(print_order(c, scheduled=module.config.is_scheduled)) for c in computations}
    return computations, orders, Naming().assign(computations, orders)


def printed_computations(module: HloModule) -> list[Computation]:
    """Return the computations in print order, without those that the async shorthand replaces."""
    order = all_computations(module)
    swallowed = {c for comp in order for i in comp.instructions if wrapped_root(i) is not None for c in i.called}
    return [c for c in order if c not in swallowed]


def all_computations(module: HloModule) -> list[Computation]:
    """Return the computations, callees first, the entry last; the order depends on the program alone."""
    callees = {c for comp in module.computations.values() for i in comp.instructions for c in i.called}
    starts = [c for c in module.computations.values() if c not in callees and c is not module.entry]
    order: dict[Computation, None] = {}
    for start in (*starts, module.entry):
        _callees_first(start, order)
    return list(order)


def _callees_first(start: Computation, order: dict[Computation, None]) -> None:
    stack = [(start, _callees(start))]
    while stack:
        comp, rest = stack[-1]
        following = next((c for c in rest if c not in order), None)
        if following is not None:
            stack.append((following, _callees(following)))
            continue
        stack.pop()
        order[comp] = None


def _callees(comp: Computation) -> Iterator[Computation]:
    return (c for ins in print_order(comp) for c in ins.called)


def print_order(comp: Computation, *, scheduled: bool = False) -> Iterable[Instruction]:
    """Return the instructions in print order: the schedule, if there is one, else an order by data flow alone."""
    if scheduled:
        return list(comp.instructions)
    needed = {p for i in comp.instructions for p in i.control_predecessors}
    unused = [i for i in comp.instructions if not i.users and i not in needed]
    done: dict[Instruction, None] = {}
    for start in (*comp.parameters, comp.root, *unused, *comp.instructions):
        _operands_first(start, done)
    return done


def _operands_first(start: Instruction, done: dict[Instruction, None]) -> None:
    stack = [start]
    while stack:
        ins = stack[-1]
        if ins in done:
            stack.pop()
            continue
        before = [p for p in (*ins.operands, *ins.control_predecessors) if p not in done]
        if before:
            stack += reversed(before)
        else:
            done[stack.pop()] = None


def wrapped_root(ins: Instruction) -> Instruction | None:
    """Return the operation that an async-start wraps if ``<op>-start`` can express it."""
    if ins.opcode != "async-start" or len(ins.called) != 1 or ins.attrs["output_to_operand_aliasing"]:
        return None
    comp = ins.called[0]
    root = comp.root
    is_identity = all(o.opcode == "parameter" and o.attrs["parameter_number"] == i for i, o in enumerate(root.operands))
    only_wrapped = is_identity and len(comp.instructions) == len(root.operands) + 1 == len(ins.operands) + 1
    same = comp.execution_thread == ins.attrs["async_execution_thread"].removeprefix("main")
    same_shape = (
        ins.shape.is_tuple and len(ins.shape.elements) > 1 and ins.shape.elements[1].to_text() == root.shape.to_text()
    )
    return root if only_wrapped and same and same_shape and root.opcode not in _NO_SUGAR and not root.extras else None


_MAX_CHAIN = 1_000  # updates between start and done; longer chains are printed without shorthand
# `copy-start` and the like are opcodes of their own.
_NO_SUGAR = {"parameter", "constant", "async-start", "async-update", "async-done"}
_NO_SUGAR |= {"all-reduce", "all-gather", "collective-permute", "copy", "send", "recv"}


class Naming:
    """Unique names: the suggested name without its number, and a number if that is taken."""

    def __init__(self) -> None:
        self.names: dict[Instruction | Computation, str] = {}
        self._counts: dict[str, int] = {}  # of the names of instructions

    def assign(self, computations: list[Computation], orders: Mapping[Computation, list[Instruction]]) -> Names:
        """Name computations and their instructions in the given order."""
        counts: dict[str, int] = {}
        for comp in computations:
            self.names[comp] = self._next(comp.name or "computation", counts)
        for comp in computations:
            for ins in orders[comp]:
                self.add(ins)
        return self.names

    def add(self, ins: Instruction) -> None:
        """Name one more instruction."""
        self.names[ins] = self._next(ins.name or ins.opcode, self._counts)

    @staticmethod
    def _next(wish: str, counts: dict[str, int]) -> str:
        base = _clean(_SUFFIX.sub("", wish)) or _clean(wish).strip(".") or "_"
        if not (base[0].isalpha() or base[0] == "_"):  # required of names in XLA
            base = f"_{base}"
        n = counts.get(base, 0)
        counts[base] = n + 1
        return f"{base}.{n}" if n else base


def _clean(name: str) -> str:
    """Return a name with underscores for characters that names in text must not have."""
    return _FORBIDDEN.sub("_", name)


def _computation_text(comp: Computation, order: list[Instruction], names: Names, entry: bool) -> str:
    parameters = ", ".join(
        (f"/*index={i}*/" if i and i % 5 == 0 else "") + f"{names[p]}: {p.shape}" for i, p in enumerate(comp.parameters)
    )
    lines = [f"{'ENTRY ' if entry else ''}%{names[comp]} ({parameters}) -> {comp.root.shape} {{"]
    lines += [f"  {'ROOT ' if i is comp.root else ''}{instruction_to_text(i, names)}" for i in order]
    lines.append("}" + (f", execution_thread={quote(comp.execution_thread)}" if comp.execution_thread else ""))
    return "\n".join(lines)


def instruction_to_text(ins: Instruction, names: Names | None = None) -> str:
    """Return the text of one instruction, without ROOT.

    Parameters
    ----------
    ins : Instruction
        The instruction to print.
    names : mapping, optional
        Names of instructions and computations; their suggested names by default.
    """
    name_of = names if names is not None else {}
    wrapped = wrapped_root(ins)
    printed = wrapped if wrapped is not None else ins
    arguments = _arguments(ins, name_of)
    parts = [f"%{_name(ins, name_of)} = {ins.shape.to_text()} {_opcode(ins, wrapped)}({arguments})"]
    if wrapped is not None and ins.attrs["async_execution_thread"]:
        parts.append(f"async_execution_thread={kind_of('string').write(ins.attrs['async_execution_thread'])}")
    parts += [
        f"{a.name}={kind_of(a.kind).write(printed.attrs[a.name])}" for a in printed.row.attrs if _is_printed(printed, a)
    ]
    parts += _calls(printed, name_of)
    parts += _common_attributes(ins, name_of)
    return ", ".join(parts)


def _name(value: Instruction | Computation, names: Names) -> str:
    name = names.get(value)
    if name is not None:
        return name
    return _clean(value.name) or (value.opcode if isinstance(value, Instruction) else "computation")


def _opcode(ins: Instruction, wrapped: Instruction | None) -> str:
    if wrapped is not None:
        return f"{wrapped.opcode}-start"
    if ins.opcode in ("async-update", "async-done"):
        start = _chain_start(ins)
        root = wrapped_root(start) if start is not None else None
        if root is not None:
            return f"{root.opcode}{ins.opcode.removeprefix('async')}"
    return ins.opcode


def _chain_start(ins: Instruction) -> Instruction | None:
    for _ in range(_MAX_CHAIN):
        if ins.opcode not in ("async-update", "async-done"):
            break
        ins = ins.operands[0]
    return ins if ins.opcode == "async-start" else None


def _arguments(ins: Instruction, names: Names) -> str:
    if ins.opcode == "parameter":
        return str(ins.attrs["parameter_number"])
    if ins.opcode == "constant":
        return literal_text(ins.attrs["literal"])
    return ", ".join(f"%{_name(o, names)}" for o in ins.operands)


def _is_printed(ins: Instruction, attr: Attr) -> bool:
    if (ins.opcode, attr.name) in _HIDDEN:
        return False
    value = ins.attrs[attr.name]
    if ins.opcode == "compare" and attr.name == "type":
        return bool(value != default_comparison(ins.operands[0].shape.dtype))
    if value is None or (attr.kind == "window" and not value):
        return False
    return attr.required or (ins.opcode, attr.name) in _ALWAYS or bool(value != attr.default)


def _calls(ins: Instruction, names: Names) -> list[str]:
    row = ins.row
    computations = [f"%{_name(c, names)}" for c in ins.called]
    if not computations:
        return []
    if ins.opcode == "conditional" and len(computations) == 2 and ins.operands[0].shape.dtype.text == "pred":
        return [f"true_computation={computations[0]}", f"false_computation={computations[1]}"]
    if row.many_calls:
        return [f"{row.calls[0]}={{{', '.join(computations)}}}"]
    by_name = dict(zip(row.calls, computations, strict=False))
    return [f"{n}={by_name[n]}" for n in CALL_PRINT_ORDER.get(row.name, row.calls) if n in by_name]


def _common_attributes(ins: Instruction, names: Names) -> list[str]:
    parts = [f"{n}={COMMON[n].write(ins.extras[n])}" for n in _BEFORE_METADATA if n in ins.extras]
    if ins.control_predecessors:
        before = ", ".join(f"%{_name(p, names)}" for p in ins.control_predecessors)
        parts.append(f"control-predecessors={{{before}}}")
    if ins.metadata:
        parts.append(f"metadata={COMMON['metadata'].write(ins.metadata)}")
    parts += [f"{n}={COMMON[n].write(ins.extras[n])}" for n in _AFTER_METADATA if n in ins.extras]
    return parts
