"""Registry of XLA kernels, and their registration as kernels of compilation devices.

An XLA kernel is registered for all backends or for some. `XlaOpRegistry.register_compilation_kernels` makes a
`KernelDef` for each registration and backend, whose types are those of the backend, restricted to those of the op
and of the registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.kernel_def import KernelDef
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.loaders import loader
from cyxla.core.framework.op_kernel import AsyncOpKernel
from cyxla.core.framework.plugins.xla_kernels import XLA_KERNELS
from cyxla.core.framework.registration_batch import current_batch, directly, staged_for
from cyxla.core.framework.types import HANDLES, DataType
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from cyxla.forking import new_lock
from cyxla.tf2xla.xla_backends import (
    CPU_ALL_TYPES,
    EXEC_ALL_TYPES,
    XLA_CPU_JIT,
    XLA_INTERPRETER_JIT,
    OpFilter,
    XlaBackend,
    cpu_op_filter,
    exec_op_filter,
)
from cyxla.xla.service import load_entry_points

Factory = Callable[..., Any]

CLASS_NAME = "XlaJitOp"


@dataclass
class XlaOpRegistration:
    """Registration of an XLA kernel; see `XlaOpRegistrationBuilder`."""

    name: str
    factory: Factory
    devices: tuple[str, ...] | None = None
    constraints: dict[str, tuple[DataType, ...]] = field(default_factory=dict)
    compilation_only: bool = False
    allow_resource_types: bool = False
    allow_variant_types: bool = False
    allow_string_type: bool = False
    compile_time_constant_inputs: tuple[str, ...] = ()
    is_metadata_op: bool = False
    label: str = ""


_MUST_AGREE = (
    "compilation_only", "allow_resource_types", "allow_variant_types", "allow_string_type",
    "compile_time_constant_inputs", "is_metadata_op",
)  # fmt: skip


class XlaOpRegistrationBuilder:
    """Fluent builder of a registration.

    Examples
    --------
    >>> chain = XlaOpRegistrationBuilder("Reshape").compile_time_constant_input("shape")
    >>> chain.build(object).compile_time_constant_inputs
    ('shape',)
    """

    def __init__(self, name: str) -> None:
        self._registration = XlaOpRegistration(name, object)

    def device(self, *devices: str) -> XlaOpRegistrationBuilder:
        """Restrict the kernel to these compilation devices; by default it is for all."""
        self._registration.devices = (*(self._registration.devices or ()), *devices)
        return self

    def type_constraint(self, attr: str, types: Iterable[DataType]) -> XlaOpRegistrationBuilder:
        """Restrict a type attribute to these types."""
        self._registration.constraints[attr] = tuple(types)
        return self

    def compilation_only(self) -> XlaOpRegistrationBuilder:
        """Restrict the kernel to compiled regions, excluding ops placed on an XLA device individually."""
        self._registration.compilation_only = True
        return self

    def allow_resource_types(self) -> XlaOpRegistrationBuilder:
        """Allow resources as type attributes."""
        self._registration.allow_resource_types = True
        return self

    def allow_variant_types(self) -> XlaOpRegistrationBuilder:
        """Allow variants as type attributes."""
        self._registration.allow_variant_types = True
        return self

    def allow_string_type(self) -> XlaOpRegistrationBuilder:
        """Allow strings as type attributes."""
        self._registration.allow_string_type = True
        return self

    def compile_time_constant_input(self, name: str) -> XlaOpRegistrationBuilder:
        """Require an input to be a compile-time constant."""
        constant_inputs = self._registration.compile_time_constant_inputs
        self._registration.compile_time_constant_inputs = (*constant_inputs, name)
        return self

    def is_metadata_op(self) -> XlaOpRegistrationBuilder:
        """Declare that the op reads only shapes and types of its inputs."""
        self._registration.is_metadata_op = True
        return self

    def label(self, label: str) -> XlaOpRegistrationBuilder:
        """Set the label by which a node's ``_kernel`` attribute selects the kernel."""
        self._registration.label = label
        return self

    def build(self, factory: Factory) -> XlaOpRegistration:
        """Return the registration with the class or function that makes the kernel."""
        self._registration.factory = factory
        return self._registration


class XlaOpRegistry:
    """Registry of XLA kernels and backends.

    Parameters
    ----------
    loader : callable, optional
        Function that registers the built-in kernels, called at the first query.
    """

    rank = 0
    _global: XlaOpRegistry | None = None
    _global_lock = new_lock()

    def __init__(self, loader: Callable[[], object] | None = None) -> None:
        self._ops: dict[str, list[XlaOpRegistration]] = {}
        self._backends: dict[str, XlaBackend] = {}
        self._registered: WeakKeyDictionary[KernelRegistry, dict[tuple[int, str], KernelDef | None]] = (
            WeakKeyDictionary()
        )
        self._loader, self.lock = loader, new_lock()

    @classmethod
    def global_(cls) -> XlaOpRegistry:
        """Return the global registry."""
        with cls._global_lock:
            if cls._global is None:
                cls._global = XlaOpRegistry(_load_kernels)
                cls._global.register_backend(XLA_CPU_JIT, CPU_ALL_TYPES, cpu_op_filter)
                cls._global.register_backend(XLA_INTERPRETER_JIT, EXEC_ALL_TYPES, exec_op_filter)
            return cls._global

    # Backends

    def register_backend(self, name: str, types: Iterable[DataType], op_filter: OpFilter | None = None) -> None:
        """Register a compilation device.

        Raises
        ------
        AlreadyExistsError
            A backend of that name exists.
        """
        with self.lock:
            if name in self._backends:
                raise AlreadyExistsError(f"the XLA backend {name} is already registered")
            self._backends[name] = XlaBackend(name, tuple(types), op_filter)

    def is_backend_registered(self, name: str) -> bool:
        """Return whether a backend is registered."""
        return name in self._backends

    def backend_names(self) -> list[str]:
        """Return the sorted names of the backends."""
        return sorted(self._backends)

    # Kernels

    def register(self, registration: XlaOpRegistration) -> None:
        """Register an XLA kernel.

        Raises
        ------
        InvalidArgumentError
            The registration conflicts with another one of the op, or is asynchronous.
        """
        if isinstance(registration.factory, type) and issubclass(registration.factory, AsyncOpKernel):
            raise InvalidArgumentError(
                f"the XLA kernel of {registration.name} is an AsyncOpKernel, which compiled code cannot wait for",
                hint="derive it from XlaOpKernel",
            )
        with self.lock:
            batch = current_batch()
            registrations = (
                self._ops.get(registration.name, []) if batch else self._ops.setdefault(registration.name, [])
            )
            staged = self._staged(registration.name)
            for other in (*registrations, *staged):
                self._check_compatible(other, registration)
            (registrations if batch is None else batch.stage(self, list)).append(registration)

    def _staged(self, op: str) -> list[XlaOpRegistration]:
        """Return the kernels of an op that this thread has staged, which are published to the kernel registry later."""
        return [row for staged in staged_for(self) for row in staged if row.name == op]

    def check_staged(self, staged: list[XlaOpRegistration]) -> None:
        """Raise if a staged kernel conflicts with those published meanwhile."""
        for row in staged:
            for other in self._ops.get(row.name, ()):
                self._check_compatible(other, row)

    def publish(self, staged: list[XlaOpRegistration]) -> None:
        """Publish staged kernels."""
        for row in staged:
            self._ops.setdefault(row.name, []).append(row)

    @staticmethod
    def _check_compatible(a: XlaOpRegistration, b: XlaOpRegistration) -> None:
        """Check that registrations of one op and label agree except for devices and types, and share no device."""
        if a.label != b.label:
            return
        for name in _MUST_AGREE:
            if getattr(a, name) != getattr(b, name):
                raise InvalidArgumentError(
                    f"registrations of {a.name} differ in {name}: {getattr(a, name)} and {getattr(b, name)}"
                )
        if a.devices is None and b.devices is None:
            raise InvalidArgumentError(f"two registrations of {a.name} are for every device")
        common_devices = sorted(set(a.devices or ()) & set(b.devices or ()))
        if common_devices:
            raise InvalidArgumentError(f"two registrations of {a.name} are for {', '.join(common_devices)}")

    def registrations(self, op: str) -> list[XlaOpRegistration]:
        """Return the registrations of an op, in order."""
        self._load()
        with self.lock:
            return [*self._ops.get(op, ()), *self._staged(op)]

    def get_all_registered_ops(self) -> list[str]:
        """Return the sorted names of ops that have an XLA kernel on any device."""
        self._load()
        return sorted(self._ops)

    def is_metadata_op(self, op: str) -> bool:
        """Return whether an op reads shapes and types only."""
        return any(r.is_metadata_op for r in self.registrations(op))

    def compile_time_constant_input_names(self, op: str) -> tuple[str, ...]:
        """Return the names of inputs that must be compile-time constants."""
        registrations = self.registrations(op)
        return registrations[0].compile_time_constant_inputs if registrations else ()

    def compile_time_constant_inputs(
        self, op_def: OpDef, ranges: Any, override: Sequence[str] | None = None
    ) -> list[int]:
        """Return the indices of a node's inputs that must be compile-time constants.

        Parameters
        ----------
        ranges : mapping of str to range
            Ranges of indices by argument.
        override : sequence of str, optional
            Names of the node's attribute ``_XlaCompileTimeConstantInputs``, which replace the registered ones.
        """
        names = self.compile_time_constant_input_names(op_def.name) if override is None else override
        return sorted(i for name in names if name in ranges for i in ranges[name])

    # Kernel registry

    def register_compilation_kernels(self, kernels: KernelRegistry | None = None, ops: OpRegistry | None = None) -> int:
        """Register kernels for all registrations since the last call, and return their number."""
        self._load()
        target = KernelRegistry.global_() if kernels is None else kernels
        declared = OpRegistry.global_() if ops is None else ops
        with directly(), self.lock:
            done = self._registered.setdefault(target, {})
            return sum(
                self._register_op(backend, name, target, done, declared)
                for backend in self._backends.values()
                for name in sorted(self._ops)
            )

    def _register_op(
        self,
        backend: XlaBackend,
        name: str,
        target: KernelRegistry,
        done: dict[tuple[int, str], KernelDef | None],
        ops: OpRegistry,
    ) -> int:
        """Register kernels of one op for one backend, preferring registrations for that backend only."""
        count = 0
        labels = {r.label for r in self._ops[name] if backend.name in (r.devices or ())}
        for registration in self._ops[name]:
            key = (id(registration), backend.name)
            if not (backend.name in (registration.devices or ()) or registration.devices is None):
                continue
            if registration.devices is None and registration.label in labels:
                _withdraw(target, done.get(key))  # registered before the specific one
                done[key] = None
            elif key not in done:
                done[key] = kernel_def = kernel_def_for(registration, backend, ops.look_up_op_def(name))
                if kernel_def is not None:
                    target.register(kernel_def, registration.factory, CLASS_NAME)
                    count += 1
        return count

    def device_kernels(
        self, backend: str, kernels: KernelRegistry | None = None, *, compilation_only: bool = True
    ) -> list[KernelDef]:
        """Return the kernels of a compilation device in the kernel registry.

        Parameters
        ----------
        backend : str
            Name of the device type.
        kernels : KernelRegistry, optional
            Kernel registry; the global one by default.
        compilation_only : bool
            True to include kernels restricted to compiled regions.

        Raises
        ------
        NotFoundError
            The backend does not exist.
        """
        self.register_compilation_kernels(kernels)
        if backend not in self._backends:
            raise NotFoundError(f"unknown XLA backend {backend}", hint=f"there are {', '.join(self._backends)}")
        target = KernelRegistry.global_() if kernels is None else kernels
        left_out = set() if compilation_only else {op for op, rows in self._ops.items() if rows[0].compilation_only}
        return target.get_filtered_registered_kernels(lambda k: k.device_type == backend and k.op not in left_out)

    def _load(self) -> None:
        # Not under the lock: another thread may hold the import lock of a kernel module and wait for this one
        loader = self._loader
        if loader is not None:
            with directly():
                loader()
            self._loader = None
        if self is XlaOpRegistry._global and XLA_KERNELS.pending:
            with directly():
                _load_plugin_kernels()


def _withdraw(kernels: KernelRegistry, old: KernelDef | None) -> None:
    if old is not None:
        kernels.keep_only(lambda kernel_def: kernel_def is not old)


def kernel_def_for(registration: XlaOpRegistration, backend: XlaBackend, op_def: OpDef) -> KernelDef | None:
    """Return the kernel of a registration on a backend; None if no type is left or the backend's filter drops it.

    Raises
    ------
    InvalidArgumentError
        A constraint names an attribute that the op does not have.
    """
    types = {attr.name: attr for attr in op_def.attr if attr.type in ("type", "list(type)")}
    for name in registration.constraints:
        if name not in types:
            raise InvalidArgumentError(
                f"the XLA kernel of {op_def.name} constrains {name}, which is not a type of the op"
            )
    constraints = {}
    for name, attr in types.items():
        allowed = set(attr.allowed) if attr.allowed else None
        allowed_types = [t for t in sorted(backend.types) if allowed is None or t in allowed]
        if name in registration.constraints:
            allowed_types = [t for t in allowed_types if t in registration.constraints[name]]
        for extra in _handle_types(registration):
            if allowed is None or extra in allowed:
                allowed_types.append(extra)
        if not allowed_types:
            return None
        constraints[name] = tuple(allowed_types)
    kernel_def = KernelDef(op_def.name, backend.name, constraints, (), registration.label, 0)
    if backend.op_filter is not None and not backend.op_filter(kernel_def):
        return None
    return kernel_def


def _handle_types(registration: XlaOpRegistration) -> list[DataType]:
    is_allowed = (registration.allow_resource_types, registration.allow_variant_types)
    extras = [t for t, is_type_allowed in zip(HANDLES, is_allowed, strict=True) if is_type_allowed]
    return [*extras, *([DataType.DT_STRING] if registration.allow_string_type else [])]


def register_xla_op(
    chain: XlaOpRegistrationBuilder | str, factory: Factory, registry: XlaOpRegistry | None = None
) -> None:
    """Register a subclass of `XlaOpKernel`, or a function that makes one."""
    builder = XlaOpRegistrationBuilder(chain) if isinstance(chain, str) else chain
    (XlaOpRegistry.global_() if registry is None else registry).register(builder.build(factory))


def register_xla_backend(
    name: str, types: Iterable[DataType], op_filter: OpFilter | None = None, registry: XlaOpRegistry | None = None
) -> None:
    """Register a compilation device; see `XlaOpRegistry.register_backend`."""
    (XlaOpRegistry.global_() if registry is None else registry).register_backend(name, types, op_filter)


def _load_plugin_kernels() -> None:
    loader("plugin_xla_kernels")()


def _load_kernels() -> None:
    loader("xla_kernels")()
    load_entry_points()
