"""Kernels with variants: those of a program, and programs of one of them alone."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.kernel.values import FORWARDING
from cyxla.xla.cpu.kernel.variants import Axes, Choice, Observer, key_of
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_instruction

#: Opcodes that a program of one kernel repeats although the kernel does not compute them.
_REPEATED = FORWARDING | {"constant"}


@dataclass(frozen=True)
class Site:
    """Kernel with variants.

    Attributes
    ----------
    key : str
        Digest of the C of the kernel of the rules, which holds sizes, types, strides and epilogue.
    group : Group
        Instructions that it computes.
    axes : mapping
        Parameters with the values to try.
    """

    key: str
    group: Group
    axes: Axes

    @property
    def label(self) -> str:
        """Opcode and shapes of the product or convolution, for people."""
        root = self.group.root
        operands = ", ".join(str(o.shape.static) for o in root.operands)
        return f"{root.opcode}({operands}) to {root.shape.static}"


def collector(sites: dict[str, Site], min_ns: float) -> Observer:
    """Return an observer that adds kernels with variants to `sites`, and changes none.

    Parameters
    ----------
    sites : dict
        Sites by key, to which those of the program are added.
    min_ns : float
        Least estimated time of a kernel.
    """

    def collect(group: Group, default: Step, make: Callable[[Choice], Step], axes: Callable[[], Axes]) -> Step:
        key = key_of(default.kernel)
        if default.kernel.cost >= min_ns and key not in sites:
            found = {name: tuple(values) for name, values in axes().items() if values}
            if found:
                sites[key] = Site(key, group, found)
        return default

    return collect


def alone(group: Group) -> HloModule:
    """Return a program of the instructions of a group alone, with parameters for what they read."""
    module = HloModule("trial")
    module.entry = entry = module.new_computation("main")
    copies: dict[Instruction, Instruction] = {}

    def copy(ins: Instruction) -> Instruction:
        if ins not in copies:
            is_repeated = ins in group.instructions or ins.opcode in _REPEATED
            copies[ins] = copy_instruction(ins, entry, list(map(copy, ins.operands))) if is_repeated else _input(ins)
        return copies[ins]

    def _input(ins: Instruction) -> Instruction:
        number = len(entry.parameters)
        return entry.add("parameter", (), {"parameter_number": number}, shape=ins.shape, name=f"p{number}")

    outputs = [copy(o) for o in group.outputs]
    entry.root = outputs[0] if len(outputs) == 1 else _tuple_of(entry, outputs)
    entry.changed.clear()
    return module


def _tuple_of(entry: Computation, outputs: list[Instruction]) -> Instruction:
    return entry.add("tuple", outputs, shape=Shape.tuple([o.shape for o in outputs]), name="outputs")
