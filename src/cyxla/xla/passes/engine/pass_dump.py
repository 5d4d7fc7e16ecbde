"""Dump of a module pass by pass: its text after each pass that changed it, and the rewrites that the pass made.

Each pass that changed the module has two files::

    03_simplify.algebra.hlo            the module after the pass
    03_simplify.algebra.rewrites.txt   its rewrites

A rewrite is shown by its rule and the instructions before (``-``) and after it: new ones (``+``), or one of the module
(``=``). Of a pass that states no rules, the second file shows the instructions that it removed, added or changed.

A large program is cut: see the constants `MAX_`. A file that is cut states it in its first line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.text.printer import Naming, instruction_to_text, print_order, printed_computations

MAX_REWRITES: Final = 1000  # rewrites of one pass that are shown
MAX_INSTRUCTIONS: Final = 50  # instructions on each side of a rewrite that are shown
MAX_LINE: Final = 400  # characters of an instruction in a rewrite
MAX_ELEMENTS: Final = 16  # elements of a constant in a rewrite; larger constants are shown as {...}
MAX_PROGRAM: Final = 8 << 20  # characters of the module in one file
MAX_FOLDER: Final = 256 << 20  # characters of all modules in one folder
DEPTH: Final = 2  # levels of operands shown with a replaced instruction: the depth of the deepest pattern

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def folder_of(root: str, module: HloModule) -> Path:
    """Return the dump folder of a module: its name and the first digits of its fingerprint."""
    name = _UNSAFE.sub("_", module.name)[:40].lstrip(".") or "module"
    return Path(root) / f"{name}.{module.fingerprint()[:16]}"


class PassDump:
    """Folder with the text of a module after each pass.

    Parameters
    ----------
    folder : Path
        Folder to write to, created if it is missing. Files that an earlier dump of passes left in it are removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("[0-9][0-9]_*.hlo", "[0-9][0-9]_*.rewrites.txt"):
            for stale in folder.glob(pattern):
                stale.unlink(missing_ok=True)
        self._files = self._num_written = 0
        self._last_operands: dict[
            Instruction, tuple[Instruction, ...]
        ] = {}  # instructions of the last file, their operands
        self._naming = Naming()
        self._rewrites: list[str] = []
        self._count = 0

    def start(self, module: HloModule) -> None:
        """Write the module before the first pass."""
        self._write_module("input", module)

    def note(self, old: Instruction, new: Instruction, rule: object) -> None:
        """Note one rewrite, before it is made."""
        self._count += 1
        if self._count > MAX_REWRITES:
            return
        after, inputs = self._instructions_after(new)
        before = _instructions_before(old, inputs)
        computation_name = self._naming.names.get(old.computation, old.computation.name)
        lines = [f"[{self._count}] {_rule_text(rule)}, in %{computation_name}"]
        lines += [*self._lines("-", before), *self._lines("=" if new in self._last_operands else "+", after)]
        self._rewrites.append("\n".join(lines) + "\n")
        self._last_operands.update((ins, ins.operands) for ins in after)

    def after(self, name: str, module: HloModule) -> None:
        """Write a module that a pass changed, and the rewrites since the last file."""
        title = f"{self._count} rewrite{'s' if self._count > 1 else ''}" if self._count else "no rewrites by rule"
        head = f"// {name}: {title}; names are those of {self._last}, new instructions have names of their own\n"
        if self._count > MAX_REWRITES:
            head = f"// cut: the first {MAX_REWRITES} rewrites are shown\n{head}"
        lines = self._rewrites if self._count else [self._difference(module)]
        path = self.folder / f"{self._files:02}_{name}.rewrites.txt"
        path.write_text("\n".join([head, *lines]), encoding="utf-8")
        self._write_module(name, module)

    def _write_module(self, name: str, module: HloModule) -> None:
        self._last = f"{self._files:02}_{name}.hlo"
        self._files += 1
        text = _truncate(module.to_text(), min(MAX_PROGRAM, max(0, MAX_FOLDER - self._num_written)))
        self._num_written += len(text)
        (self.folder / self._last).write_text(text, encoding="utf-8")
        computations = printed_computations(module)
        orders = {c: list(print_order(c, scheduled=module.config.is_scheduled)) for c in computations}
        self._naming = Naming()
        self._naming.assign(computations, orders)
        self._last_operands = {ins: ins.operands for order in orders.values() for ins in order}
        self._rewrites.clear()
        self._count = 0

    def _difference(self, module: HloModule) -> str:
        """Return the instructions that a pass removed, added or gave other operands, where it stated no rule."""
        now = dict.fromkeys(ins for c in module.computations.values() for ins in c.instructions)
        removed = [ins for ins in self._last_operands if ins not in now]
        changed = [ins for ins in now if ins in self._last_operands and self._last_operands[ins] != ins.operands]
        added = [ins for ins in now if ins not in self._last_operands]
        lines = [*self._lines("-", removed), *self._lines("+", [*changed, *added])]
        return "\n".join(["instructions removed (-), added or changed (+)", *lines]) + "\n"

    def _instructions_after(self, new: Instruction) -> tuple[list[Instruction], set[Instruction]]:
        """Return the instructions that a rewrite adds, operands first, and the older ones that these read."""
        if new in self._last_operands:
            return [new], {new}
        instructions: dict[Instruction, None] = {}
        inputs: set[Instruction] = set()
        stack = [new]
        while stack:
            ins = stack.pop()
            if ins in self._last_operands:
                inputs.add(ins)
            elif ins not in instructions:
                instructions[ins] = None
                stack += ins.operands
        return [ins for ins in new.computation.instructions if ins in instructions], inputs

    def _lines(self, sign: str, instructions: list[Instruction]) -> list[str]:
        lines = [f"  {sign} {self._text(ins)}" for ins in instructions[:MAX_INSTRUCTIONS]]
        num_omitted = len(instructions) - len(lines)
        return [*lines, f"  {sign} // cut: {num_omitted} more instructions"] if num_omitted else lines

    def _text(self, ins: Instruction) -> str:
        names = self._naming.names
        if ins not in names:
            self._naming.add(ins)
        if ins.opcode == "constant" and ins.shape.is_array and ins.shape.size > MAX_ELEMENTS:
            return f"%{names[ins]} = {ins.shape} constant({{...}})"
        text = instruction_to_text(ins, names)
        return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}.. // cut"


def _instructions_before(old: Instruction, inputs: set[Instruction]) -> list[Instruction]:
    """Return a replaced instruction behind those of its operands that its replacement does not read."""
    instructions: dict[Instruction, None] = {old: None}
    level = [old]
    for _ in range(DEPTH):
        level = [o for ins in level for o in ins.operands if o not in inputs and o.opcode != "parameter"]
        for ins in level:
            instructions.pop(ins, None)
            instructions[ins] = None
    return list(instructions)[::-1]


def _rule_text(rule: object) -> str:
    """Return the text of a rule; of a function, the first line of its docstring or its name."""
    if not callable(rule):
        return str(rule)
    words = rule.__doc__ or getattr(rule, "__name__", "").strip("_").replace("<lambda>", "rewrite")
    return words.split("\n")[0].strip().rstrip(".")


def _truncate(text: str, limit: int) -> str:
    """Return a program, or the lines of it that fit behind a line that states the cut."""
    if len(text) <= limit:
        return text
    end = text.rfind("\n", 0, limit) + 1
    return f"// cut: {end} of {len(text)} characters\n{text[:end]}"
