"""The result of a builder: a finished, immutable computation."""

from __future__ import annotations

from typing import Any, NamedTuple

from cyxla.errors import FailedPreconditionError
from cyxla.types import Shape
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule, computations_post_order


class ProgramShape(NamedTuple):
    """The signature of a computation."""

    parameters: tuple[Shape, ...]
    parameter_names: tuple[str, ...]
    result: Shape

    def __str__(self) -> str:
        named_parameters = zip(self.parameter_names, self.parameters, strict=True)
        return f"({', '.join(f'{name}: {shape}' for name, shape in named_parameters)}) -> {self.result}"


class XlaComputation:
    """A finished program. Its module is private; callers get copies.

    Attributes
    ----------
    name : str
        Name of the entry computation.
    program_shape : ProgramShape
        The signature of the program.
    """

    __slots__ = ("__weakref__", "_module", "name", "program_shape")

    _module: HloModule
    name: str
    program_shape: ProgramShape

    def __init__(self, module: HloModule) -> None:
        copy = copy_module(module)
        parameters = copy.parameters
        shape = ProgramShape(
            tuple(p.shape for p in parameters),
            tuple(p.name or f"p{i}" for i, p in enumerate(parameters)),
            copy.entry.root.shape,
        )
        for key, value in (("_module", copy), ("name", copy.entry.name), ("program_shape", shape)):
            object.__setattr__(self, key, value)

    def __setattr__(self, key: str, value: Any) -> None:
        raise FailedPreconditionError(f"a finished computation cannot be changed: {key}")

    @property
    def opcodes(self) -> frozenset[str]:
        """Opcodes of all instructions."""
        return frozenset(i.opcode for c in self._module.post_order() for i in c.instructions)

    def module(self) -> HloModule:
        """Return a new module with the program."""
        return copy_module(self._module)

    def proto(self) -> bytes:
        """Serialise as HloModuleProto."""
        return self._module.to_proto()

    @staticmethod
    def from_proto(data: bytes) -> XlaComputation:
        """Read a serialised HloModuleProto."""
        return XlaComputation(HloModule.from_proto(data))

    def to_text(self) -> str:
        """Return HLO text of the whole module."""
        return self._module.to_text()

    def fingerprint(self) -> str:
        """Return 32 hex digits, equal for equal programs."""
        return self._module.fingerprint()

    def copy_into(self, module: HloModule) -> Computation:
        """Add copies of the computation and of its callees to another module."""
        return copy_computations(self._module.entry, module)

    def __reduce__(self) -> Any:
        return XlaComputation.from_proto, (self.proto(),)

    def __repr__(self) -> str:
        return f"XlaComputation({self.name}{self.program_shape})"


def copy_module(module: HloModule) -> HloModule:
    """Copy the computations that the entry reaches, and the configuration."""
    copy = HloModule(module.name)
    copy.entry = copy_computations(module.entry, copy)
    copy.config = module.config.__class__(**vars(module.config))
    return copy


def copy_computations(entry: Computation, module: HloModule) -> Computation:
    """Add copies of a computation and of its callees to a module; a name that is taken gets a suffix."""
    copies: dict[Computation, Computation] = {}
    for comp in computations_post_order(entry):
        copies[comp] = _copy(comp, module, copies)
    return copies[entry]


def _copy(comp: Computation, module: HloModule, copies: dict[Computation, Computation]) -> Computation:
    new = module.new_computation(comp.name)
    new.execution_thread, new.is_fusion = comp.execution_thread, comp.is_fusion
    twin: dict[Instruction, Instruction] = {}
    for ins in comp.post_order() if not _in_order(comp) else comp.instructions:
        twin[ins] = new.add(
            ins.opcode, [twin[o] for o in ins.operands], ins.attrs, shape=ins.shape, name=ins.name,
            called=[copies[c] for c in ins.called], metadata=ins.metadata, extras=ins.extras,
            control_predecessors=[twin[p] for p in ins.control_predecessors],
        )  # fmt: skip
    new.root = twin[comp.root]
    new.changed.clear()
    return new


def _in_order(comp: Computation) -> bool:
    visited: set[Instruction] = set()
    for ins in comp.instructions:
        if not (visited.issuperset(ins.operands) and visited.issuperset(ins.control_predecessors)):
            return False
        visited.add(ins)
    return True
