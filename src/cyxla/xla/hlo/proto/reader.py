"""Conversion of HloModuleProto (or HloProto) bytes to modules.

Ids serve as keys only; computations and instructions may come in any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cyxla.errors import DataLossError, InvalidArgumentError, NotFoundError
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import BufferDonor, EntryLayout, FrontendAttributes, InputOutputAlias
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.opcode import Opcode, lookup
from cyxla.xla.hlo.proto.attributes import codec
from cyxla.xla.hlo.proto.schema import escaped, messages, text
from cyxla.xla.hlo.proto.values import read_metadata, read_shape, read_sharding
from cyxla.xla.hlo.text.lexer import quote
from cyxla.xla.hlo.text.spellings import IGNORED_ATTRIBUTES

T = TypeVar("T")
_ALIAS_KINDS = {0: "may-alias", 1: "may-alias", 2: "must-alias"}


def from_proto(data: bytes | bytearray | memoryview) -> HloModule:
    """Read a serialised HloModuleProto, or the module of an HloProto.

    Parameters
    ----------
    data : bytes
        The serialised message.

    Returns
    -------
    HloModule
        The module; result shapes are not checked, see `cyxla.xla.hlo.verifier`.

    Raises
    ------
    DataLossError
        The bytes are not such a message.
    InvalidArgumentError
        The message is not a module: ids without a target, cycles, missing or unknown attributes.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"a serialised HLO module is bytes, not {type(data).__name__}")
    try:
        return _Reader(_decode(bytes(data))).read()
    except RecursionError:
        raise InvalidArgumentError("the module is nested too deep") from None


def _decode(data: bytes) -> Any:
    module = _parse("HloModuleProto", data)
    if module is not None and (module.entry_computation_name or module.id or module.HasField("host_program_shape")):
        return module
    if module is not None and module.entry_computation_id:
        return module
    outer = _parse("HloProto", data)
    if outer is not None and outer.HasField("hlo_module") and outer.hlo_module.computations:
        return outer.hlo_module
    if module is None or not module.computations:
        raise DataLossError(f"{len(data)} bytes are not a serialised HloModuleProto")
    return module


def _parse(name: str, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    message = messages()[name]()
    try:
        message.ParseFromString(data)
    except (DecodeError, ValueError, OverflowError):
        return None
    return message


def _topological_order(items: dict[int, T], sources: Callable[[T], Iterable[int]], kind: str) -> list[int]:
    """Return the ids in topological order, otherwise in the given order."""
    done: dict[int, None] = {}
    for start in items:
        stack = [(start, iter(sources(items[start])))]
        open_ = {start}
        while stack:
            key, rest = stack[-1]
            following = next((k for k in rest if k not in done), None)
            if following is None:
                stack.pop()
                open_.discard(key)
                done[key] = None
                continue
            if following not in items:
                raise InvalidArgumentError(f"there is no {kind} with the id {following}")
            if following in open_:
                raise InvalidArgumentError(f"{kind} {following} depends on itself")
            open_.add(following)
            stack.append((following, iter(sources(items[following]))))
    return list(done)


class _Reader:
    """Reader of one module."""

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.module = HloModule(text(proto.name) or "_")
        self.computations: dict[int, Computation] = {}
        self.instructions: dict[int, dict[int, Instruction]] = {}  # by computation id

    def read(self) -> HloModule:
        """Read the module."""
        protos: dict[int, Any] = {}
        for c in self.proto.computations:
            if c.id in protos:
                raise InvalidArgumentError(f"two computations have the id {c.id}")
            protos[c.id] = c
        schedule = {s.key: list(s.value.instruction_ids) for s in self.proto.schedule.sequences}
        for key in _topological_order(
            protos, lambda c: [k for i in c.instructions for k in i.called_computation_ids], "computation"
        ):
            self.computations[key] = self._computation(protos[key], schedule.get(key))
        self._config(bool(schedule))
        self._entry(protos)
        return self.module

    def _entry(self, protos: dict[int, Any]) -> None:
        entry = self.computations.get(self.proto.entry_computation_id)
        if entry is None:
            name = text(self.proto.entry_computation_name)
            entry = next((self.computations[k] for k, p in protos.items() if name and text(p.name) == name), None)
        if entry is None:
            raise InvalidArgumentError(f"there is no entry computation with the id {self.proto.entry_computation_id}")
        self.module.entry = entry
        self._layout(entry)

    def _layout(self, entry: Computation) -> None:
        """Set the layouts of arguments and results if the message has them."""
        if not self.proto.HasField("host_program_shape"):
            return
        program = self.proto.host_program_shape
        parameters = tuple(read_shape(s) for s in program.parameters)
        stated = EntryLayout(parameters, read_shape(program.result))
        program_shapes = (*(p.shape for p in entry.parameters), entry.root.shape)
        layout_shapes = (*parameters, stated.result)
        if len(program_shapes) != len(layout_shapes) or any(
            not a.compatible(b) for a, b in zip(program_shapes, layout_shapes, strict=True)
        ):
            raise InvalidArgumentError("host_program_shape is not the shape of the entry computation")
        self.module.config.entry_layout = stated

    def _config(self, scheduled: bool) -> None:
        config, proto = self.module.config, self.proto
        config.is_scheduled = scheduled
        config.input_output_alias = tuple(
            InputOutputAlias(
                tuple(e.output_shape_index),
                e.parameter_number,
                tuple(e.parameter_shape_index),
                _ALIAS_KINDS.get(e.kind, "may-alias"),
            )
            for e in proto.input_output_alias.entries
        )
        donors = proto.buffer_donor.entries
        config.buffer_donor = tuple(BufferDonor(e.parameter_number, tuple(e.parameter_shape_index)) for e in donors)
        config.frontend_attributes = _frontend(proto.frontend_attributes)
        config.stack_frames = _stack_frames(proto.stack_frame_index)

    def _computation(self, proto: Any, schedule: list[int] | None) -> Computation:
        protos: dict[int, Any] = {}
        for i in proto.instructions:
            if i.id in protos:
                raise InvalidArgumentError(f"two instructions of {text(proto.name)} have the id {i.id}")
            protos[i.id] = i
        if schedule is not None:
            protos = _in_schedule(protos, schedule)
        computation = self.module.new_computation(text(proto.name) or "computation")
        thread = text(proto.execution_thread)
        computation.execution_thread = "" if thread == "main" else thread
        computation.is_fusion = proto.is_fusion_computation
        instructions: dict[int, Instruction] = {}
        order = _topological_order(protos, lambda i: (*i.operand_ids, *i.control_predecessor_ids), "instruction")
        for key in order:
            instructions[key] = self._instruction(computation, protos[key], instructions)
        if proto.root_id not in instructions:
            raise InvalidArgumentError(
                f"computation {computation.name} has no instruction with the root's id {proto.root_id}"
            )
        computation.root = instructions[proto.root_id]
        _check_parameters(computation)
        return computation

    def _instruction(self, computation: Computation, proto: Any, instructions: dict[int, Instruction]) -> Instruction:
        name = text(proto.opcode)
        try:
            row = lookup(name)
        except NotFoundError as e:
            raise InvalidArgumentError(e.message, hint=e.hint) from None
        operands = [instructions[k] for k in proto.operand_ids]
        low, high = row.arity
        if len(operands) < low or (high is not None and len(operands) > high):
            raise InvalidArgumentError(f"{name} with {len(operands)} operands", where=text(proto.name))
        shape = read_shape(proto.shape)
        attrs = _attributes(row, proto, tuple(o.shape for o in operands))
        if name == "constant" and attrs["literal"].shape is not shape.static:
            raise InvalidArgumentError(f"a constant of {shape} has a literal of {attrs['literal'].shape}")
        if name == "infeed" and len(shape.elements) != 2:
            raise InvalidArgumentError(f"the result of infeed is a tuple (data, token), not {shape}")
        return computation.add(
            name,
            operands,
            attrs,
            shape=shape,
            called=self._called_computations(row, proto),
            name=text(proto.name),
            metadata=read_metadata(proto.metadata),
            extras=_extras(proto),
            control_predecessors=[instructions[k] for k in proto.control_predecessor_ids],
        )

    def _called_computations(self, row: Opcode, proto: Any) -> tuple[Computation, ...]:
        if row.name in IGNORED_ATTRIBUTES:  # the async-start of the chain has it
            return ()
        called = tuple(self.computations[k] for k in proto.called_computation_ids)
        num_calls = len(row.calls)
        if (len(called) != num_calls) if not row.many_calls else (not called and row.name == "conditional"):
            raise InvalidArgumentError(f"{row.name} calls {len(called)} computations, not {num_calls}")
        return called


def _in_schedule(protos: dict[int, Any], schedule: list[int]) -> dict[int, Any]:
    if set(schedule) != set(protos) or len(schedule) != len(protos):
        raise InvalidArgumentError("a schedule does not name each instruction of its computation once")
    return {key: protos[key] for key in schedule}


def _check_parameters(computation: Computation) -> None:
    numbers = [p.attrs["parameter_number"] for p in computation.parameters]
    if numbers != list(range(len(numbers))):
        raise InvalidArgumentError(f"parameters of {computation.name} are not numbered 0 to {len(numbers) - 1}")


def _attributes(row: Opcode, proto: Any, operands: tuple[Shape, ...]) -> dict[str, Any]:
    attrs = {}
    for attr in row.attrs:
        value = codec(row.name, attr.name).read(proto, operands)
        if value is None and attr.name == "outfeed_shape":
            value = operands[0]
        if value is not None:
            attrs[attr.name] = value
        elif attr.required:
            raise InvalidArgumentError(f"{row.name} needs the attribute {attr.name}", where=text(proto.name))
    return attrs


def _extras(proto: Any) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if proto.HasField("sharding"):
        extras["sharding"] = read_sharding(proto.sharding)
    if proto.frontend_attributes.map:
        extras["frontend_attributes"] = _frontend(proto.frontend_attributes)
    if proto.backend_config:
        extras["backend_config"] = escaped(proto.backend_config)
    if proto.parameter_replication.replicated_at_leaf_buffers:
        extras["parameter_replication"] = tuple(proto.parameter_replication.replicated_at_leaf_buffers)
    if proto.statistics_viz.statistics:
        extras["statistics"] = _statistics(proto.statistics_viz)
    return extras


def _frontend(proto: Any) -> FrontendAttributes:
    return tuple(sorted({text(e.key): text(e.value) for e in proto.map}.items()))


_NOT_NAME = re.compile(r"[^\w.\-]", re.ASCII)


def _statistics(proto: Any) -> str:
    parts = [f"visualizing_index={proto.stat_index_to_visualize}"]
    parts += [f"{_NOT_NAME.sub('_', text(s.stat_name)) or '_'}={s.stat_val!r}" for s in proto.statistics]
    return "{" + ",".join(parts) + "}"


_LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
_FRAME = ("file_location_id", "parent_frame_id")


def _stack_frames(proto: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tables = (
        ("FileNames", [quote(text(n)) for n in proto.file_names]),
        ("FunctionNames", [quote(text(n)) for n in proto.function_names]),
        ("FileLocations", [_fields(p, _LOCATION) for p in proto.file_locations]),
        ("StackFrames", [_fields(p, _FRAME) for p in proto.stack_frames]),
    )
    if not any(lines for _, lines in tables):
        return ()
    return tuple((name, tuple(f"{i} {line}" for i, line in enumerate(lines, 1))) for name, lines in tables)


def _fields(proto: Any, names: tuple[str, ...]) -> str:
    return "{" + " ".join(f"{n}={getattr(proto, n)}" for n in names) + "}"
