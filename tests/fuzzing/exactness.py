"""Which results of a program have settled bits, so that two platforms must agree on them."""

from __future__ import annotations

from collections.abc import Iterator

from support.hlo.random_programs import EXACT_BINARY, EXACT_UNARY

from cyxla.xla.hlo import HloModule, Instruction

MOVES = {
    "parameter", "constant", "iota", "broadcast", "reshape", "transpose", "slice", "pad", "concatenate", "reverse",
    "dynamic-slice", "dynamic-update-slice", "gather", "select", "clamp", "convert", "copy", "tuple",
    "get-tuple-element", "while", "conditional", "call", "fusion", "map", "optimization-barrier", "is-finite",
    "complex", "round-nearest-afz", "compare",
}  # fmt: skip
ARITHMETIC = {*EXACT_UNARY, *EXACT_BINARY}
COMBINING = {"reduce", "reduce-window", "scatter", "select-and-scatter"}
PRODUCTS = {"dot", "convolution"}
WHOLE = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}  # in any order the same, on integers
ORDERED = {"maximum", "minimum"}  # likewise on floats
COMPLEX = {"abs", "sign", "multiply", "divide", "maximum", "minimum"}  # rounded more than once


def settled(module: HloModule) -> list[bool]:
    """Whether each leaf of the result depends on exact operations alone."""
    root = module.entry.root
    parts = root.operands if root.opcode == "tuple" else [root]
    made = [part for part in parts for _ in part.shape.leaves()]
    known = {part: all(map(is_exact, behind(part))) for part in set(made)}
    return [known[part] for part in made]


def behind(root: Instruction) -> Iterator[Instruction]:
    """All instructions that a value depends on, those of called computations too."""
    seen, todo = set(), [root]
    while todo:
        ins = todo.pop()
        if ins not in seen:
            seen.add(ins)
            yield ins
            todo += ins.operands
            todo += [i for c in ins.called for i in c.instructions]


def is_exact(ins: Instruction) -> bool:
    """Whether an operation rounds in one way only."""
    types = [leaf.dtype for o in (ins, *ins.operands) for leaf in o.shape.leaves() if leaf.is_array]
    if ins.opcode in ARITHMETIC:
        return not (ins.opcode in COMPLEX and any(t.is_complex for t in types))
    if ins.opcode == "compare":
        return "TOTALORDER" not in str(ins.attrs.get("type"))
    if ins.opcode in MOVES:
        return True
    rounds = any(t.is_float or t.is_complex for t in types)
    if ins.opcode in COMBINING:
        return all(_is_free_of_order(c, rounds) for c in ins.called)
    return ins.opcode in PRODUCTS and not rounds


def _is_free_of_order(body, rounds: bool) -> bool:
    instructions = list(body.instructions)
    root = body.root
    known = ORDERED if rounds else WHOLE
    return len(instructions) == 3 and root.opcode in known and set(root.operands) == set(body.parameters)
