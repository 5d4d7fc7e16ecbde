"""A compilation unit of HLO: computations, one of them the entry."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Protocol

from cyxla.errors import FailedPreconditionError, InvalidArgumentError
from cyxla.records import dataclass
from cyxla.xla.hlo.attributes import BufferDonor, EntryLayout, FrontendAttributes, InputOutputAlias
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction


@dataclass
class ModuleConfig:
    """Contents of the module line of HLO text, except the name."""

    entry_layout: EntryLayout | None = None
    input_output_alias: tuple[InputOutputAlias, ...] = ()
    buffer_donor: tuple[BufferDonor, ...] = ()
    is_scheduled: bool = False
    replica_count: int = 1
    num_partitions: int = 1
    frontend_attributes: FrontendAttributes = ()
    alias_passthrough_params: bool = False
    allow_spmd_sharding_propagation_to_parameters: tuple[bool, ...] = ()
    allow_spmd_sharding_propagation_to_output: tuple[bool, ...] = ()
    origin_recovery_table: str = ""
    debug_attributes: str = ""
    stack_frames: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())  # (table name, its lines), verbatim


class HloModule:
    """A named set of computations.

    Attributes
    ----------
    name : str
        Name of the module.
    computations : dict of str to Computation
        Computations by name, callees before callers.
    entry : Computation
        The computation that runs first. Reading it before it is set raises `FailedPreconditionError`.
    config : ModuleConfig
        Layouts, aliases and the other module attributes.
    custom_call_locations : dict of str to str
        Source locations of custom calls in the text that was read, the first one of each target; for error messages.
    """

    _functions: ClassVar[ModuleFunctions]  # set by `implement_methods`

    __slots__ = ("__weakref__", "_entry", "computations", "config", "custom_call_locations", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.computations: dict[str, Computation] = {}
        self._entry: Computation | None = None
        self.config = ModuleConfig()
        self.custom_call_locations: dict[str, str] = {}

    @property
    def entry(self) -> Computation:
        """The entry computation."""
        if self._entry is None:
            raise FailedPreconditionError(f"module {self.name} has no entry computation")
        return self._entry

    @entry.setter
    def entry(self, computation: Computation) -> None:
        self._entry = computation

    def new_computation(self, name: str) -> Computation:
        """Add an empty computation; a name that is taken gets a suffix."""
        unique, n = name, 0
        while unique in self.computations:
            n += 1
            unique = f"{name}.{n}"
        return self.add_computation(Computation(unique))

    def add_computation(self, computation: Computation) -> Computation:
        """Add an existing computation.

        Raises
        ------
        InvalidArgumentError
            The name is taken.
        """
        if computation.name in self.computations:
            raise InvalidArgumentError(f"module {self.name} has a computation {computation.name} already")
        self.computations[computation.name] = computation
        computation.module = self
        return computation

    def post_order(self) -> list[Computation]:
        """Return the computations that the entry reaches, callees first, the entry last.

        Raises
        ------
        InvalidArgumentError
            A computation calls itself.
        """
        return computations_post_order(self.entry)

    @property
    def instruction_count(self) -> int:
        """Number of instructions in all computations."""
        return sum(len(c.instructions) for c in self.computations.values())

    @property
    def parameters(self) -> list[Instruction]:
        """Parameters of the entry computation by number."""
        return self.entry.parameters

    @staticmethod
    def from_text(text: str) -> HloModule:
        """Read HLO text; see `cyxla.xla.hlo.parse_module`."""
        return HloModule._functions.parse_module(text)

    def to_text(self) -> str:
        """Return HLO text that parses to an equal module."""
        return self._functions.to_text(self)

    @staticmethod
    def from_proto(data: bytes) -> HloModule:
        """Read a serialised HloModuleProto (or HloProto)."""
        return HloModule._functions.from_proto(data)

    def to_proto(self) -> bytes:
        """Serialise as HloModuleProto."""
        return self._functions.to_proto(self)

    def verify(self) -> None:
        """Check every rule of HLO; the first violation raises."""
        self._functions.verify(self)

    def fingerprint(self) -> str:
        """Return 32 hex digits, equal for equal programs, whatever their names and metadata."""
        return self._functions.fingerprint(self)

    def __repr__(self) -> str:
        return f"HloModule({self.name}, {len(self.computations)} computations, {self.instruction_count} instructions)"


class ModuleFunctions(Protocol):
    """Functions behind methods of `HloModule`, whose modules build on this one."""

    def parse_module(self, text: str, /) -> HloModule:
        """Read HLO text."""

    def to_text(self, module: HloModule, /) -> str:
        """Return HLO text."""

    def from_proto(self, data: bytes, /) -> HloModule:
        """Read a serialised proto."""

    def to_proto(self, module: HloModule, /) -> bytes:
        """Serialise a module."""

    def verify(self, module: HloModule, /) -> None:
        """Check every rule of HLO."""

    def fingerprint(self, module: HloModule, /) -> str:
        """Return 32 hex digits that identify the program."""


def implement_methods(functions: ModuleFunctions) -> None:
    """Register the functions behind methods of `HloModule`."""
    HloModule._functions = functions


def computations_post_order(entry: Computation) -> list[Computation]:
    """Return the computations reached from `entry`, callees first.

    Raises
    ------
    InvalidArgumentError
        A computation calls itself.
    """
    order: dict[Computation, None] = {}
    open_: set[Computation] = set()
    stack = [entry]
    while stack:
        comp = stack[-1]
        if comp in order:
            stack.pop()
            continue
        called = {c: None for i in comp.instructions if i.called for c in i.called}
        before = [c for c in called if c not in order]
        if not before:
            order[stack.pop()] = None
            continue
        if comp in open_:
            raise InvalidArgumentError(f"computation {comp.name} calls itself, directly or through others")
        open_.add(comp)
        stack.extend(reversed(before))
    return list(order)
