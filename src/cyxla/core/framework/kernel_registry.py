"""Registry of kernels by op, device and label, and the selection of a kernel for a node."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.declarations.selective_registration import should_register_op_kernel
from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.environment.file_access import UNLIMITED, FileAccess
from cyxla.core.framework.kernel_def import KernelDef, MemoryType, Name
from cyxla.core.framework.loaders import loader
from cyxla.core.framework.node_def import NodeDef, validate_node_def
from cyxla.core.framework.node_properties import Ranges, resolve
from cyxla.core.framework.op_kernel import Factory, OpKernel, OpKernelConstruction, source_line
from cyxla.core.framework.registration_batch import Once, current_batch, directly, staged_for
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from cyxla.forking import new_lock

_LOG = logging.getLogger("cyxla.kernels")
DEFAULT_DEVICE = "DEFAULT"
LABEL_ATTR = "_kernel"


@dataclass(frozen=True, eq=False)
class KernelRegistration:
    """Description of a kernel, the name of its class or function, and its factory."""

    kernel_def: KernelDef
    class_name: str
    factory: Factory


class KernelRegistry:
    """Thread-safe registry of kernels by op, type of device and label; a key may have several kernels.

    Parameters
    ----------
    loader : callable, optional
        Function called once before the first lookup, to register a catalogue.
    on_miss : callable, optional
        Function called once at the first lookup that fails, to register the kernels of installed packages; other
        threads whose lookups fail wait for it.
    """

    rank = 2
    _global: KernelRegistry | None = None

    def __init__(self, loader: Callable[[], object] | None = None, on_miss: Callable[[], object] | None = None) -> None:
        self._on_miss = Once(on_miss)
        self._kernels: dict[tuple[str, str, str], list[KernelRegistration]] = {}
        self._by_op: dict[str, list[KernelRegistration]] = {}
        self._order: list[KernelRegistration] = []
        self.lock = new_lock()
        self._loader = loader

    @classmethod
    def global_(cls) -> KernelRegistry:
        """Return the global registry, which loads cyxla's kernels at the first lookup."""
        if KernelRegistry._global is None:
            registry = KernelRegistry(_load_catalogue, loader("packages"))
            OpRegistry.global_().add_validator(lambda ops: validate_kernel_registrations(ops, registry))
            KernelRegistry._global = registry
        return KernelRegistry._global

    # Registration

    def register(self, kernel_def: KernelDef, factory: Factory, class_name: str = "") -> None:
        """Add a kernel; `factory`, a class or function, constructs it from an `OpKernelConstruction`."""
        row = KernelRegistration(
            kernel_def, class_name or getattr(factory, "__name__", type(factory).__name__), factory
        )
        batch = current_batch()
        if batch is not None:
            batch.stage(self, list).append(row)
            return
        with self.lock:
            self.publish([row])

    def check_staged(self, staged: list[KernelRegistration]) -> None:
        """Accept any kernel: a key may have several."""

    def publish(self, staged: Iterable[KernelRegistration]) -> None:
        """Add staged kernels; called with the lock held."""
        for row in staged:
            kernel_def = row.kernel_def
            self._kernels.setdefault((kernel_def.op, kernel_def.device_type, kernel_def.label), []).append(row)
            self._by_op.setdefault(kernel_def.op, []).append(row)
            self._order.append(row)

    def load(self) -> None:
        """Load the catalogue if it is not loaded."""
        self._loaded()

    def keep_only(self, predicate: Callable[[KernelDef], bool]) -> None:
        """Remove the kernels that do not satisfy a predicate."""
        with self.lock:
            rows = list(self._order)
        # without the lock: the predicate may query other registries
        refused = [row for row in rows if not predicate(row.kernel_def)]
        with self.lock:
            for row in refused:
                self._remove(row)

    def _remove(self, row: KernelRegistration) -> None:
        kernel_def = row.kernel_def
        if row in self._order:  # another thread may have done so
            self._kernels[kernel_def.op, kernel_def.device_type, kernel_def.label].remove(row)
            self._by_op[kernel_def.op].remove(row)
            self._order.remove(row)

    def _staged(self) -> list[KernelRegistration]:
        """Return the kernels staged by this thread."""
        return [row for staged in staged_for(self) for row in staged]

    def _rows(self, op: str, device_type: str, label: str) -> list[KernelRegistration]:
        """Return the kernels of a key."""
        rows = list(self._kernels.get((op, device_type, label), ()))
        for row in self._staged():
            kernel_def = row.kernel_def
            if (kernel_def.op, kernel_def.device_type, kernel_def.label) == (op, device_type, label):
                rows.append(row)
        return rows

    def _loaded(self) -> None:
        # Outside of the lock: a thread that imports one of the catalogue's modules needs the lock too
        loader = self._loader
        if loader is not None:
            with directly():
                loader()
            self._loader = None

    # Choice

    def find_kernel_registration(
        self, device_type: str, op: str, attrs: Mapping[str, AttrValue], where: str = ""
    ) -> tuple[KernelRegistration | None, bool]:
        """Find the kernel of an op with given attributes on a type of device.

        Returns
        -------
        registration : KernelRegistration or None
            Match of the highest priority.
        was_attr_mismatch : bool
            True if there are kernels but their constraints exclude the attributes.

        Raises
        ------
        InvalidArgumentError
            Two kernels match with equal priority, or a constraint names an attribute that is absent or not a type.
        UnimplementedError
            A constraint allows no type.
        """
        self._loaded()
        label = attrs[LABEL_ATTR].value if LABEL_ATTR in attrs else ""
        registration, mismatch = self._best(self._rows(op, device_type, label), attrs, where)
        # Compilation devices have only the kernels registered for them
        if registration is None and not device_type.endswith("_JIT") and device_type != DEFAULT_DEVICE:
            registration, default_mismatch = self._best(self._rows(op, DEFAULT_DEVICE, label), attrs, where)
            mismatch = mismatch or default_mismatch
        return registration, mismatch and registration is None

    def _best(
        self, rows: list[KernelRegistration], attrs: Mapping[str, AttrValue], where: str
    ) -> tuple[KernelRegistration | None, bool]:
        matches = [row for row in rows if kernel_attrs_match(row.kernel_def, attrs)]
        if not matches:
            return None, bool(rows)
        matches.sort(key=lambda row: -row.kernel_def.priority)
        if len(matches) > 1 and matches[0].kernel_def.priority == matches[1].kernel_def.priority:
            first, second = matches[0].kernel_def, matches[1].kernel_def
            raise InvalidArgumentError(
                f"two kernels of the same priority match the node: '{first}' and '{second}'",
                where=where,
                hint="give one of them a higher priority or a stricter constraint",
            )
        return matches[0], False

    def find(self, device_type: str, node_def: NodeDef) -> KernelRegistration:
        """Return the kernel of a node on a type of device.

        Raises
        ------
        NotFoundError
            There is no such kernel; the message lists the kernels of the op.
        """
        where = f"node '{node_def.name}' ({node_def.op})"
        registration, mismatch = self.find_kernel_registration(device_type, node_def.op, node_def.attr, where)
        if registration is None and self._on_miss.is_due:
            self._on_miss()
            registration, mismatch = self.find_kernel_registration(device_type, node_def.op, node_def.attr, where)
        if registration is not None:
            return registration
        raise NotFoundError(
            self._miss(device_type, node_def, mismatch), node=node_def.name, op=node_def.op, where=where
        )

    def _miss(self, device_type: str, node_def: NodeDef, mismatch: bool) -> str:
        label = node_def.attr[LABEL_ATTR].value if LABEL_ATTR in node_def.attr else ""
        text = f"there is no kernel of {node_def.op} for {device_type} devices"
        text += f" with label '{label}'" if label else ""
        text += " compatible with the attributes of the node" if mismatch else ""
        if mismatch:
            types = {n: a.value for n, a in node_def.attr.items() if a.kind in ("type", "list") and n != LABEL_ATTR}
            text += f" ({', '.join(f'{n}={_text(v)}' for n, v in types.items())})"
        if device_type.endswith("_JIT"):
            return text
        return f"{text}.  Registered:\n{self.kernels_registered_for_op(node_def.op)}"

    def find_kernel_def(self, device_type: str, node_def: NodeDef) -> tuple[KernelDef, str]:
        """Return the description and class name of the kernel of a node on a type of device; raises as `find` does."""
        registration = self.find(device_type, node_def)
        return registration.kernel_def, registration.class_name

    def kernel_def_available(self, device_type: str, node_def: NodeDef) -> bool:
        """Return True if a node has a kernel on a type of device."""
        return self.find_kernel_registration(device_type, node_def.op, node_def.attr)[0] is not None

    def supported_device_types_for_node(self, device_types: Sequence[str], node_def: NodeDef) -> list[tuple[str, int]]:
        """Types of devices, of those given, that have a kernel for the node, with its priority; highest first."""
        rows = []
        for device_type in device_types:
            registration, _ = self.find_kernel_registration(device_type, node_def.op, node_def.attr)
            if registration is not None:
                rows.append((device_type, registration.kernel_def.priority))
        return sorted(rows, key=lambda row: -row[1])

    # Queries

    def get_all_registered_kernels(self) -> list[KernelDef]:
        """The descriptions of all kernels."""
        return self.get_filtered_registered_kernels(lambda _: True)

    def get_filtered_registered_kernels(self, predicate: Callable[[KernelDef], bool]) -> list[KernelDef]:
        """The descriptions of the kernels that a predicate accepts, by name of the op."""
        self._loaded()
        with self.lock:
            rows = [row for op in sorted(self._by_op) for row in self._by_op[op]]
        rows = sorted([*rows, *staged], key=lambda row: row.kernel_def.op) if (staged := self._staged()) else rows
        return [row.kernel_def for row in rows if predicate(row.kernel_def)]

    def registered_so_far(self) -> list[KernelDef]:
        """The descriptions of all kernels, the catalogue's only if it is loaded already."""
        with self.lock:
            return [row.kernel_def for row in (*self._order, *self._staged())]

    def get_registered_kernels_for_op(self, op: str) -> list[KernelDef]:
        """The descriptions of the kernels of an op."""
        return [row.kernel_def for row in self.registrations(op)]

    def registrations(self, op: str) -> list[KernelRegistration]:
        """Return the registrations of an op's kernels."""
        self._loaded()
        with self.lock:
            rows = list(self._by_op.get(op, ()))
        return rows + [row for row in self._staged() if row.kernel_def.op == op]

    def kernels_registered_for_op(self, op: str) -> str:
        """The kernels of an op, a line each."""
        lines = [f"  {kernel_def}" for kernel_def in self.get_registered_kernels_for_op(op)]
        return "\n".join(lines or ["  <no registered kernels>"])

    def log_all_registered_kernels(self) -> None:
        """Write a line per kernel to the log."""
        for kernel_def in self.get_all_registered_kernels():
            _LOG.info("OpKernel ('%s'): %s", kernel_def.op, kernel_def)


def _text(value: Any) -> str:
    if isinstance(value, DataType):
        return value.name
    return str([_text(v) for v in value]) if isinstance(value, tuple) else str(value)


def _load_catalogue() -> None:
    error = OpRegistry.global_().process_registrations()  # first: selecting ops also selects kernels
    if error is not None:
        raise error
    loader("kernels")()
    loader("dynamic_kernels")()
    kernels = KernelRegistry.global_()
    kernels.keep_only(lambda kernel_def: should_register_op_kernel(kernel_def.op))
    validate_kernel_registrations(OpRegistry.global_(), kernels)


def register_kernel_builder(chain: Name, factory: Factory, registry: KernelRegistry | None = None) -> None:
    """Register a factory (a subclass of `OpKernel`, or a function of the construction) under a chain."""
    (registry or KernelRegistry.global_()).register(chain.build(), factory)


def kernel_attrs_match(kernel_def: KernelDef, attrs: Mapping[str, AttrValue]) -> bool:
    """Return True if the attributes of a node satisfy the constraints of a kernel.

    Raises
    ------
    InvalidArgumentError
        A constraint names an attribute that is absent or is not a type or list of types.
    UnimplementedError
        A constraint allows no type.
    """
    for name, allowed in kernel_def.constraints.items():
        if not allowed:
            raise UnimplementedError(
                f"a kernel of {kernel_def.op} matches no type: its constraint on '{name}' is empty"
            )
        attr = attrs.get(name)
        if attr is None:
            raise InvalidArgumentError(
                f"OpKernel '{kernel_def.op}' has constraint on attr '{name}' not in NodeDef", hint=f"declare '{name}'"
            )
        if not all(value in allowed for value in _types_in(kernel_def, name, attr)):
            return False
    return True


def _types_in(kernel_def: KernelDef, name: str, attr: AttrValue) -> tuple[DataType, ...]:
    if attr.kind == "type":
        return (attr.value,)
    if attr.kind == "list(type)" or (attr.kind == "list" and not attr.value):
        return tuple(attr.value)
    raise InvalidArgumentError(
        f"KernelDef for op {kernel_def.op} has constraint on attr '{name}' that has type '{attr.kind}', "
        "not 'type' or 'list(type)'"
    )


def memory_types_for_node(
    kernel_def: KernelDef, op_def: OpDef, inputs: Ranges, outputs: Ranges
) -> tuple[tuple[MemoryType, ...], tuple[MemoryType, ...]]:
    """Return the memory types of a node's inputs and outputs for a kernel.

    Raises
    ------
    InvalidArgumentError
        The kernel names an argument that the op does not have.
    """
    unknown = [name for name in kernel_def.host_memory if name not in inputs and name not in outputs]
    if unknown:
        raise InvalidArgumentError(
            f"host memory is requested for an argument that {op_def.name} does not have: {unknown}",
            hint="use the names of the op's inputs and outputs",
        )
    host = frozenset(kernel_def.host_memory)
    return _memory_types(inputs, host), _memory_types(outputs, host)


def _memory_types(ranges: Ranges, host: frozenset[str]) -> tuple[MemoryType, ...]:
    return tuple(
        MemoryType.HOST if name in host else MemoryType.DEVICE for name, indices in ranges.items() for _ in indices
    )


def validate_kernel_registrations(ops: OpRegistry, kernels: KernelRegistry | None = None) -> None:
    """Check all kernels against the op declarations; called at the first lookup of an op.

    Raises
    ------
    InvalidArgumentError
        A kernel names a host-memory argument that its op does not have. Kernels of unknown ops are only logged.
    """
    for kernel_def in (kernels or KernelRegistry.global_()).registered_so_far():
        try:
            op_def = ops.look_up_op_def(kernel_def.op)
        except NotFoundError:
            _LOG.warning("OpKernel (%s: %s) for unknown op: %s", kernel_def.op, kernel_def, kernel_def.op)
            continue
        names = {arg.name for arg in (*op_def.input_arg, *op_def.output_arg)}
        for arg in kernel_def.host_memory:
            if arg not in names:
                raise InvalidArgumentError(
                    f"host memory is requested for an argument that {op_def.name} does not have: '{arg}'",
                    hint="use the names of the op's inputs and outputs",
                )


def create_op_kernel(
    device: DeviceBase,
    node_def: NodeDef,
    *,
    ops: Any = None,
    kernels: KernelRegistry | None = None,
    function_library: Any = None,
    graph_def_version: int = 0,
    file_access: FileAccess = UNLIMITED,
) -> OpKernel:
    """Construct the kernel of a node with complete attributes.

    Parameters
    ----------
    device : DeviceBase
        Device that the kernel runs on.
    node_def : NodeDef
        Definition of the node.
    ops, kernels : registries, optional
        Registries to look up in; the global ones by default.
    function_library : FunctionRuntime, optional
        Runtime of the functions that kernels call.
    graph_def_version : int
        Producer version of the graph.
    file_access : FileAccess
        Files that the constructor may access.

    Raises
    ------
    NotFoundError
        The op is unknown, or no kernel matches.
    InvalidArgumentError
        The node violates its declaration.
    OpError
        The constructor of the kernel failed.
    """
    op_def = (OpRegistry.global_() if ops is None else ops).look_up_op_def(node_def.op)
    validate_node_def(node_def, op_def)
    registration = (kernels or KernelRegistry.global_()).find(device.device_type, node_def)
    props = resolve(node_def, op_def)
    kernel_def = registration.kernel_def
    construction = OpKernelConstruction(
        device,
        props,
        kernel_def=kernel_def,
        function_library=function_library,
        graph_def_version=graph_def_version,
        memory_types=memory_types_for_node(kernel_def, op_def, props.input_ranges, props.output_ranges),
        file_access=file_access,
    )
    try:
        kernel = registration.factory(construction)
        if construction.status is not None:
            raise construction.status
    except OpError as error:
        error.node, error.op = error.node or node_def.name, error.op or node_def.op
        line = source_line(error)
        if line and not re.search(r"\.py:\d+$", error.where):
            error.where = (error.where or f"node '{node_def.name}' ({node_def.op})") + line
        raise
    return kernel
