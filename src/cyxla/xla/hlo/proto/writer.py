"""Conversion of modules to serialised HloModuleProto."""

from __future__ import annotations

import re
from typing import Any

from cyxla.errors import InvalidArgumentError
from cyxla.xla.hlo.attributes import EntryLayout, FrontendAttributes
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.proto.attributes import codec
from cyxla.xla.hlo.proto.schema import messages, raw, utf8
from cyxla.xla.hlo.proto.values import write_metadata, write_shape, write_sharding
from cyxla.xla.hlo.text.lexer import unescape
from cyxla.xla.hlo.text.printer import Naming, all_computations, print_order

_STATISTIC = re.compile(r"([\w.\-]+)=(-?(?:inf|nan|[0-9.eE+\-]+))")
_NUMBERED = re.compile(r'[0-9]+ (?:"((?:[^"\\]|\\.)*)"|\{([^{}]*)\})', re.DOTALL)
_FIELD = re.compile(r"(\w+)=(-?[0-9]{1,9})\b")


def to_proto(module: HloModule) -> bytes:
    """Serialise a module as HloModuleProto.

    Equal modules give equal bytes. Attributes without a field are dropped: `replica_count`, `num_partitions` ..

    Parameters
    ----------
    module : HloModule
        A module with an entry computation.
    """
    try:
        data: bytes = _Writer(module).write().SerializeToString(deterministic=True)
    except RecursionError:
        raise InvalidArgumentError("the module is nested too deep for a proto") from None
    except ValueError as e:  # protobuf's own errors: too deep, too large, a number that does not fit
        if isinstance(e, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"the module does not fit a proto: {e}") from None
    return data


class _Writer:
    """Writer of one module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.proto = messages()["HloModuleProto"]()
        self.order = all_computations(module)
        self.lists = {c: list(print_order(c, scheduled=module.config.is_scheduled)) for c in self.order}
        self.names = Naming().assign(self.order, self.lists)
        self.ids: dict[Computation, int] = {c: n for n, c in enumerate(self.order, 1)}
        self.numbers: dict[Instruction, int] = {
            i: (self.ids[c] << 32) | n for c in self.order for n, i in enumerate(self.lists[c])
        }

    def write(self) -> Any:
        """Return the message of the module."""
        module, proto = self.module, self.proto
        entry = module.entry
        proto.name, proto.id = utf8(module.name), 1
        proto.entry_computation_name, proto.entry_computation_id = utf8(self.names[entry]), self.ids[entry]
        layout = module.config.entry_layout or EntryLayout(tuple(p.shape for p in entry.parameters), entry.root.shape)
        self._program(proto.host_program_shape, entry, layout)
        for comp in self.order:
            self._computation(proto.computations.add(), comp)
        self._config()
        return proto

    def _program(self, p: Any, comp: Computation, layout: EntryLayout) -> None:
        for shape in layout.parameters:
            write_shape(p.parameters.add(), shape)
        write_shape(p.result, layout.result)
        p.parameter_names.extend(utf8(self.names[i]) for i in comp.parameters)

    def _config(self) -> None:
        config, proto = self.module.config, self.proto
        for a in config.input_output_alias:
            proto.input_output_alias.entries.add(
                output_shape_index=a.output_index,
                parameter_number=a.parameter,
                parameter_shape_index=a.parameter_index,
                kind=2 if a.kind == "must-alias" else 1,
            )
        for d in config.buffer_donor:
            proto.buffer_donor.entries.add(parameter_number=d.parameter, parameter_shape_index=d.parameter_index)
        if config.is_scheduled:
            for comp in self.order:
                sequence = proto.schedule.sequences.add(key=self.ids[comp])
                sequence.value.instruction_ids.extend(self.numbers[i] for i in self.lists[comp])
        _write_frontend(proto.frontend_attributes, config.frontend_attributes)
        _write_stack_frames(proto.stack_frame_index, config.stack_frames)

    def _computation(self, p: Any, comp: Computation) -> None:
        p.name, p.id, p.root_id = utf8(self.names[comp]), self.ids[comp], self.numbers[comp.root]
        p.is_fusion_computation = comp.is_fusion
        p.execution_thread = utf8(comp.execution_thread or "main")
        layout = EntryLayout(tuple(i.shape for i in comp.parameters), comp.root.shape)
        self._program(p.program_shape, comp, layout)
        for ins in self.lists[comp]:
            self._instruction(p.instructions.add(), ins)

    def _instruction(self, p: Any, ins: Instruction) -> None:
        p.name, p.opcode, p.id = utf8(self.names[ins]), utf8(ins.opcode), self.numbers[ins]
        write_shape(p.shape, ins.shape)
        write_metadata(p.metadata, ins.metadata)
        p.metadata.SetInParent()
        p.operand_ids.extend(self.numbers[o] for o in ins.operands)
        p.control_predecessor_ids.extend(self.numbers[o] for o in ins.control_predecessors)
        p.called_computation_ids.extend(self.ids[c] for c in ins.called)
        for attr in ins.row.attrs:
            value = ins.attrs[attr.name]
            if value is not None:
                codec(ins.opcode, attr.name).write(p, value)
        _write_extras(p, ins)


def _write_extras(p: Any, ins: Instruction) -> None:
    extras = ins.extras
    if "sharding" in extras:
        write_sharding(p.sharding, extras["sharding"])
    _write_frontend(p.frontend_attributes, extras.get("frontend_attributes", ()))
    p.backend_config = raw(extras.get("backend_config", ""))
    p.parameter_replication.replicated_at_leaf_buffers.extend(extras.get("parameter_replication", ()))
    if "statistics" in extras:
        _write_statistics(p.statistics_viz, extras["statistics"])


def _write_frontend(p: Any, attributes: FrontendAttributes) -> None:
    for key, value in attributes:
        p.map.add(key=utf8(key), value=utf8(value))


def _write_statistics(p: Any, statistics_text: str) -> None:
    for name, value in _STATISTIC.findall(statistics_text):
        try:
            if name == "visualizing_index":
                p.stat_index_to_visualize = int(value)
            else:
                p.statistics.add(stat_name=utf8(name), stat_val=float(value))
        except ValueError:
            raise InvalidArgumentError(f"statistics {name}={value[:40]} is not a number") from None
    p.SetInParent()


def _write_stack_frames(p: Any, tables: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    for name, lines in tables:
        for line in lines:
            m = _NUMBERED.fullmatch(line)
            if m is None:
                continue
            if m.group(1) is not None:
                _strings(p, name).append(utf8(unescape(m.group(1))))
                continue
            entry = (p.file_locations if name == "FileLocations" else p.stack_frames).add()
            for field, value in _FIELD.findall(m.group(2)):
                if hasattr(entry, field):
                    setattr(entry, field, int(value))


def _strings(p: Any, table: str) -> Any:
    return p.file_names if table == "FileNames" else p.function_names
