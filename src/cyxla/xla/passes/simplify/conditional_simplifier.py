"""Replace conditionals by the branch that is known to run, or by selects of two small branches; drop unused results.

Before::

    yes { a = f32[] parameter(0) ROOT r = f32[] negate(a) }
    no  { ROOT b = f32[] parameter(0) }
    ENTRY main {
      p = pred[] parameter(0)
      x = f32[] parameter(1)
      ROOT r = f32[] conditional(p, x, x), true_computation=yes, false_computation=no
    }

After::

    ENTRY main {
      p = pred[] parameter(0)
      x = f32[] parameter(1)
      n = f32[] negate(x)
      ROOT r = f32[] select(p, n, x)
    }
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body, copy_instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.pattern import uniform_value
from cyxla.xla.passes.engine.rewrite_helpers import Writer

MAX_INSTRUCTIONS: Final = 8  # of a branch that is computed unconditionally
MAX_ELEMENTS: Final = 64  # of its largest array
_FREE: Final = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "broadcast", "reshape", "iota", "copy"}
)


def run(module: HloModule) -> bool:
    """Replace conditionals that need no control flow."""
    changed = False
    for computation in module.post_order():
        for ins in [i for i in computation.instructions if i.opcode == "conditional"]:
            new = _simplify(ins)
            if new is None:
                continue
            replace(ins, new, _simplify)
            if ins.has_side_effect:  # which `dce` would keep
                computation.remove(ins)
            changed = True
    return changed


def _simplify(ins: Instruction) -> Instruction | None:
    if ins.control_predecessors or not (ins.users or ins.is_root or ins.has_side_effect):
        return None
    branch = _known_branch(ins)
    if branch is not None:
        new = copy_body(ins.called[branch], ins.computation, [ins.operands[branch + 1]])
        return new if new.shape.compatible(ins.shape) else None
    if len(ins.called) == 2 and all(map(_is_tiny, ins.called)) and _selectable(ins.shape):
        return _select(ins)
    used = _used_elements(ins)
    return _with_elements(ins, used) if len(used) < len(ins.shape.elements) else None


def _known_branch(ins: Instruction) -> int | None:
    """Return the index of the branch that always runs, or None."""
    last = len(ins.called) - 1
    if last == 0:
        return 0
    index = uniform_value(ins.operands[0])
    if index is None:
        return None
    number = int(index.reshape(()))
    if ins.operands[0].shape.dtype is ElementType.PRED:
        return 1 - number
    return number if 0 <= number <= last else last


def _is_tiny(branch: Computation) -> bool:
    if len(branch.instructions) > MAX_INSTRUCTIONS:
        return False
    return all(_is_cheap(i) for i in branch.instructions)


def _is_cheap(ins: Instruction) -> bool:
    is_free = ins.opcode in _FREE or (ins.row.elementwise and not ins.row.ulp)
    leaves = () if ins.opcode == "parameter" else ins.shape.leaves()
    is_small = all(s.size <= MAX_ELEMENTS or ins.opcode in ("tuple", "get-tuple-element") for s in leaves)
    return is_free and is_small and not ins.control_predecessors


def _selectable(shape: Shape) -> bool:
    parts = shape.elements if shape.is_tuple else (shape,)
    return all(p.is_array and not p.is_dynamic and p.size <= MAX_ELEMENTS for p in parts)


def _select(ins: Instruction) -> Instruction:
    write = Writer(ins.computation)
    predicate = ins.operands[0]
    first, second = (copy_body(c, ins.computation, [x]) for c, x in zip(ins.called, ins.operands[1:], strict=True))
    if predicate.shape.dtype is not ElementType.PRED:  # any other number than 0 runs the last branch
        zero = write.constant(0, predicate.shape.dtype)
        predicate = write.op("compare", predicate, zero, shape=Shape.array(ElementType.PRED), direction="EQ")
    if not ins.shape.is_tuple:
        return write.op("select", predicate, first, second, shape=ins.shape.logical)
    parts = []
    for n, shape in enumerate(ins.shape.elements):
        a, b = (write.op("get-tuple-element", t, shape=shape, index=n) for t in (first, second))
        parts.append(write.op("select", predicate, a, b, shape=shape.logical))
    return ins.computation.add("tuple", parts, shape=Shape.tuple([p.shape for p in parts]))


def _used_elements(ins: Instruction) -> list[int]:
    """Return the elements of the result that something reads; all of them if they cannot be told apart."""
    if not ins.shape.is_tuple or not all(s.is_array and not s.is_dynamic for s in ins.shape.elements):
        return list(range(len(ins.shape.elements)))
    if ins.is_root or any(u.opcode != "get-tuple-element" for u in ins.users):
        return list(range(len(ins.shape.elements)))
    return sorted({u.attrs["index"] for u in ins.users if u.users or u.is_root})


def _with_elements(ins: Instruction, used: list[int]) -> Instruction:
    """Return a tuple of the results of a conditional that computes only those that are used, and of zeros."""
    write, module = Writer(ins.computation), ins.computation.module
    assert module is not None
    kept = Shape.tuple([ins.shape.elements[n] for n in used])
    branches = []
    for branch in ins.called:
        target = module.new_computation(branch.name)
        target.execution_thread = branch.execution_thread
        (parameter,) = branch.parameters
        argument = target.add("parameter", (), {"parameter_number": 0}, shape=parameter.shape, name=parameter.name)
        results = _elements(copy_body(branch, target, [argument]), used)
        target.root = target.add("tuple", results, shape=kept)
        branches.append(target)
    new = copy_instruction(ins, ins.computation, ins.operands, called=branches, shape=kept)
    of_new = dict(zip(used, _elements(new, range(len(used))), strict=True))
    parts = [of_new[n] if n in of_new else write.full(0, shape) for n, shape in enumerate(ins.shape.elements)]
    return ins.computation.add("tuple", parts, shape=Shape.tuple([p.shape for p in parts]))


def _elements(source: Instruction, numbers: Iterable[int]) -> list[Instruction]:
    """Return some elements of a tuple."""
    if source.opcode == "tuple":
        return [source.operands[n] for n in numbers]
    write, shapes = Writer(source.computation), source.shape.elements
    return [write.op("get-tuple-element", source, shape=shapes[n], index=n) for n in numbers]
