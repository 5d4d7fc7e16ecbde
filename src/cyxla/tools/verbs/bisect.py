"""``cyxla bisect``: the pass, or else the instruction, that makes a platform's results wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from cyxla.tools.compare import difference, flatten
from cyxla.tools.programs import add_specs, read_module_and_inputs
from cyxla.xla.client import compile_program
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.observer import observed
from cyxla.xla.service import CompileOptions, compiler_for

MAX_RULES = 8  # rewrites of a pass that are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("file", help="HLO or StableHLO text, a .pb proto, or - for standard input")
    parser.add_argument("--input", action="append", default=[], metavar="FILE", help=".npy or .npz file with arguments")
    add_specs(parser)
    parser.add_argument("--platform", default="cpu", help="platform whose results are wrong (default cpu)")
    parser.add_argument("--seed", type=int, default=0, help="seed of random arguments")


def main(args: argparse.Namespace) -> int:
    """Run the verb; the status is 1 if the platform's results differ from the interpreter's."""
    module, inputs = read_module_and_inputs(args.file, args.spec, args.input, args.seed)
    executable = compile_program(module, platform=args.platform, cache=False)
    expected = flatten(evaluate(module, inputs))
    problem = _problem(flatten(executable(*inputs)), expected)
    if not problem:
        print(f"{args.platform} and the interpreter agree")
        return 0
    print(f"{args.platform} differs from the interpreter: {problem}")
    stages = _Stages()
    with observed(stages, clone(module)):
        optimized = compiler_for(args.platform).run_hlo_passes(module, CompileOptions.of({}))
    wrong = first_wrong(stages.found, inputs, expected)
    if wrong is not None:
        print(f"pass {wrong.name} changes the result: {_problem(flatten(evaluate(wrong.module, inputs)), expected)}")
        print("\n".join(f"  {rule}" for rule in wrong.rules))
        print(f"without it: disabled_passes=({wrong.name!r},)")
        return 1
    print("no pass changes the result: the code of some operation is at fault")
    found = first_wrong_instruction(optimized, inputs, args.platform)
    print(f"it is not seen in any instruction alone, only in several together: {optimized.name}" if found is None
          else f"first wrong instruction: {found[0]}\n  {found[1]}")  # fmt: skip
    return 1


class Stage(NamedTuple):
    """A program after a pass.

    Attributes
    ----------
    name : str
        Name of the pass.
    rules : tuple of str
        Rewrites that it made, as rule and instruction.
    module : HloModule
        Copy of the program.
    """

    name: str
    rules: tuple[str, ...]
    module: HloModule


class _Stages:
    """Observer of passes that keeps the program after each pass that changed it."""

    def __init__(self) -> None:
        self.found: list[Stage] = []
        self._rules: dict[str, None] = {}

    def start(self, module: HloModule) -> None:
        """Receive the module before the first pass."""

    def note(self, old: Instruction, new: Instruction, rule: object) -> None:
        """Receive a rewrite."""
        del new
        self._rules[f"{rule}: {old!r}"] = None

    def after(self, name: str, module: HloModule) -> None:
        """Receive the module after a pass that changed it."""
        rules = list(self._rules)
        more = [f"and {len(rules) - MAX_RULES} more"] if len(rules) > MAX_RULES else []
        self.found.append(Stage(name, (*rules[:MAX_RULES], *more), clone(module)))
        self._rules.clear()


def first_wrong(stages: Sequence[Stage], inputs: Sequence[Any], expected: Sequence[Any]) -> Stage | None:
    """Return the first stage whose program gives other results; None if the last one gives the same.

    The stages are bisected: those behind a wrong one are taken for wrong, too.
    """

    def is_wrong(stage: Stage) -> bool:
        return bool(_problem(flatten(evaluate(stage.module, inputs)), expected))

    if not stages or not is_wrong(stages[-1]):
        return None
    low, high = 0, len(stages) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(stages[middle]) else (middle + 1, high)
    return stages[low]


def first_wrong_instruction(module: HloModule, inputs: Sequence[Any], platform: str) -> tuple[str, str] | None:
    """Return the first instruction of the entry that a platform computes wrongly, and the difference; None without one.

    Each is computed with the instructions that it depends on, and without all others.
    """
    for ins in module.entry.post_order():
        if ins.opcode == "parameter" or not ins.shape.is_array or ins.has_side_effect:
            continue
        part = _up_to(module, ins)
        actual = compile_program(part, platform=platform, cache=False)(*inputs)
        problem = _problem(flatten(actual), flatten(evaluate(part, inputs)))
        if problem:
            return repr(ins), problem
    return None


def _up_to(module: HloModule, ins: Instruction) -> HloModule:
    """Return a program that computes one instruction of a program's entry."""
    root = module.entry.root
    module.entry.root = ins
    try:
        part = clone(module)
    finally:
        module.entry.root = root
    unused = [p for p in module.entry.parameters if not any(p.name == q.name for q in part.entry.parameters)]
    for parameter in unused:
        part.entry.add("parameter", (), dict(parameter.attrs), shape=parameter.shape, name=parameter.name)
    return part


def _problem(actual: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return a text about the first result that differs; empty if none does."""
    for k, (one, other) in enumerate(zip(actual, expected, strict=True)):
        problem = difference(one, other).problem
        if problem:
            return f"result {k}: {problem}"
    return ""
