"""Which ops compile for which backends, and how that becomes kernels of the common registry.

An XLA kernel is registered for all backends or for some. `XlaOpRegistry.register_compilation_kernels` makes, of each
registration and each backend, a `KernelDef` of the backend's compilation device: what the backend can hold, cut down
to what the op allows and the registration asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from cyxla.core.framework.batch import current_batch, directly, staged_for
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.kernel_def import KernelDef
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.op_kernel import AsyncOpKernel
from cyxla.core.framework.types import (
    COMPLEX,
    FLOAT8,
    FLOATING,
    HANDLES,
    INT4,
    INTEGRAL,
    DataType,
)
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from cyxla.forking import new_lock
from cyxla.xla.service import load_entry_points

Factory = Callable[..., Any]
OpFilter = Callable[[KernelDef], bool]

XLA_CPU_JIT, XLA_INTERPRETER_JIT = "XLA_CPU_JIT", "XLA_INTERPRETER_JIT"
CLASS_NAME = "XlaJitOp"

_QUANTIZED = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)  # of 16 bits: nothing compiles them
CPU_ALL_TYPES = (*FLOATING, *COMPLEX, *INTEGRAL, *_QUANTIZED, DataType.DT_BOOL, *FLOAT8, *INT4)
EXEC_ALL_TYPES = CPU_ALL_TYPES  # what the interpreter holds


@dataclass(frozen=True)
class XlaBackend:
    """A compilation device.

    Parameters
    ----------
    name : str
        Its type, such as ``"XLA_CPU_JIT"``.
    types : tuple of DataType
        What it can hold.
    op_filter : callable, optional
        ``op_filter(kernel_def) -> bool``: leaves out a kernel; it may also change the description.
    """

    name: str
    types: tuple[DataType, ...]
    op_filter: OpFilter | None = None


@dataclass
class XlaOpRegistration:
    """An XLA kernel: see `XlaOpRegistrationBuilder`."""

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


_AGREE = (
    "compilation_only", "allow_resource_types", "allow_variant_types", "allow_string_type",
    "compile_time_constant_inputs", "is_metadata_op",
)  # fmt: skip


class XlaOpRegistrationBuilder:
    """A chain that describes an XLA kernel.

    Examples
    --------
    >>> chain = XlaOpRegistrationBuilder("Reshape").compile_time_constant_input("shape")
    >>> chain.build(object).compile_time_constant_inputs
    ('shape',)
    """

    def __init__(self, name: str) -> None:
        self._registration = XlaOpRegistration(name, object)

    def device(self, *devices: str) -> XlaOpRegistrationBuilder:
        """Only for these compilation devices; all of them by default."""
        self._registration.devices = (*(self._registration.devices or ()), *devices)
        return self

    def type_constraint(self, attr: str, types: Iterable[DataType]) -> XlaOpRegistrationBuilder:
        """Only for these types of an attribute."""
        self._registration.constraints[attr] = tuple(types)
        return self

    def compilation_only(self) -> XlaOpRegistrationBuilder:
        """Only inside of a compiled region, never for an op placed on an XLA device by itself."""
        self._registration.compilation_only = True
        return self

    def allow_resource_types(self) -> XlaOpRegistrationBuilder:
        """Type attributes may be resources too."""
        self._registration.allow_resource_types = True
        return self

    def allow_variant_types(self) -> XlaOpRegistrationBuilder:
        """Type attributes may be variants too."""
        self._registration.allow_variant_types = True
        return self

    def allow_string_type(self) -> XlaOpRegistrationBuilder:
        """Type attributes may be strings too."""
        self._registration.allow_string_type = True
        return self

    def compile_time_constant_input(self, name: str) -> XlaOpRegistrationBuilder:
        """An input whose value must be known while compiling."""
        known = self._registration.compile_time_constant_inputs
        self._registration.compile_time_constant_inputs = (*known, name)
        return self

    def is_metadata_op(self) -> XlaOpRegistrationBuilder:
        """Reads shapes and types of its inputs only."""
        self._registration.is_metadata_op = True
        return self

    def label(self, label: str) -> XlaOpRegistrationBuilder:
        """Chosen by the node's ``_kernel`` attribute."""
        self._registration.label = label
        return self

    def build(self, factory: Factory) -> XlaOpRegistration:
        """The registration of the class or function that makes the kernel."""
        self._registration.factory = factory
        return self._registration


class XlaOpRegistry:
    """XLA kernels by op, and backends.

    Parameters
    ----------
    loader : callable, optional
        Registers what comes with cyxla, when the registry is first asked.
    """

    rank = 0
    _global: XlaOpRegistry | None = None
    _global_lock = new_lock()

    def __init__(self, loader: Callable[[], object] | None = None) -> None:
        self._ops: dict[str, list[XlaOpRegistration]] = {}
        self._backends: dict[str, XlaBackend] = {}
        self._made: WeakKeyDictionary[KernelRegistry, dict[tuple[int, str], KernelDef | None]] = WeakKeyDictionary()
        self._loader, self.lock = loader, new_lock()

    @classmethod
    def global_(cls) -> XlaOpRegistry:
        """The registry of this process."""
        with cls._global_lock:
            if cls._global is None:
                cls._global = XlaOpRegistry(_load_kernels)
                cls._global.register_backend(XLA_CPU_JIT, CPU_ALL_TYPES)
                cls._global.register_backend(XLA_INTERPRETER_JIT, EXEC_ALL_TYPES)
            return cls._global

    # Backends

    def register_backend(self, name: str, types: Iterable[DataType], op_filter: OpFilter | None = None) -> None:
        """Add a compilation device.

        Raises
        ------
        AlreadyExistsError
            There is one of that name.
        """
        with self.lock:
            if name in self._backends:
                raise AlreadyExistsError(f"the XLA backend {name} is registered already")
            self._backends[name] = XlaBackend(name, tuple(types), op_filter)

    def is_backend_registered(self, name: str) -> bool:
        """Whether there is a backend of that name."""
        return name in self._backends

    def backend_names(self) -> list[str]:
        """Names of the backends, sorted."""
        return sorted(self._backends)

    # Kernels

    def register(self, registration: XlaOpRegistration) -> None:
        """Add an XLA kernel.

        Raises
        ------
        InvalidArgumentError
            It does not agree with another one of the op, or is asynchronous.
        """
        if isinstance(registration.factory, type) and issubclass(registration.factory, AsyncOpKernel):
            raise InvalidArgumentError(
                f"the XLA kernel of {registration.name} is an AsyncOpKernel, which compiled code cannot wait for",
                hint="derive it from XlaOpKernel",
            )
        with self.lock:
            batch = current_batch()
            known = self._ops.get(registration.name, []) if batch else self._ops.setdefault(registration.name, [])
            staged = self._staged(registration.name)
            for other in (*known, *staged):
                self._check_compatible(other, registration)
            (known if batch is None else batch.stage(self, list)).append(registration)

    def _staged(self, op: str) -> list[XlaOpRegistration]:
        """The kernels of an op that this thread has staged; the common registry gets them when they are let in."""
        return [row for staged in staged_for(self) for row in staged if row.name == op]

    def check_staged(self, staged: list[XlaOpRegistration]) -> None:
        """Raise if a kernel that a batch brings does not agree with those that are there by now."""
        for row in staged:
            for other in self._ops.get(row.name, ()):
                self._check_compatible(other, row)

    def publish(self, staged: list[XlaOpRegistration]) -> None:
        """Let in the kernels of a batch."""
        for row in staged:
            self._ops.setdefault(row.name, []).append(row)

    @staticmethod
    def _check_compatible(a: XlaOpRegistration, b: XlaOpRegistration) -> None:
        """Registrations of one op and label must agree in all but devices and types, and share no device."""
        if a.label != b.label:
            return
        for name in _AGREE:
            if getattr(a, name) != getattr(b, name):
                raise InvalidArgumentError(
                    f"registrations of {a.name} differ in {name}: {getattr(a, name)} and {getattr(b, name)}"
                )
        if a.devices is None and b.devices is None:
            raise InvalidArgumentError(f"two registrations of {a.name} are for every device")
        shared = sorted(set(a.devices or ()) & set(b.devices or ()))
        if shared:
            raise InvalidArgumentError(f"two registrations of {a.name} are for {', '.join(shared)}")

    def registrations(self, op: str) -> list[XlaOpRegistration]:
        """Registrations of an op, in order."""
        self._load()
        with self.lock:
            return [*self._ops.get(op, ()), *self._staged(op)]

    def get_all_registered_ops(self) -> list[str]:
        """Sorted names of the ops that have an XLA kernel for any device."""
        self._load()
        return sorted(self._ops)

    def is_metadata_op(self, op: str) -> bool:
        """Whether an op reads only shapes and types."""
        return any(r.is_metadata_op for r in self.registrations(op))

    def compile_time_constant_input_names(self, op: str) -> tuple[str, ...]:
        """Names of the inputs that must be known while compiling."""
        found = self.registrations(op)
        return found[0].compile_time_constant_inputs if found else ()

    def compile_time_constant_inputs(
        self, op_def: OpDef, ranges: Any, override: Sequence[str] | None = None
    ) -> list[int]:
        """Positions of the inputs of a node that must be known while compiling.

        Parameters
        ----------
        ranges : mapping of str to range
            Where each argument's values stand.
        override : sequence of str, optional
            What the node's ``_XlaCompileTimeConstantInputs`` says instead.
        """
        names = self.compile_time_constant_input_names(op_def.name) if override is None else override
        return sorted(i for name in names if name in ranges for i in ranges[name])

    # The common registry

    def register_compilation_kernels(self, kernels: KernelRegistry | None = None, ops: OpRegistry | None = None) -> int:
        """Make kernels of the common registry of whatever was added since the last call; returns how many."""
        self._load()
        target = KernelRegistry.global_() if kernels is None else kernels
        declared = OpRegistry.global_() if ops is None else ops
        with directly(), self.lock:
            done = self._made.setdefault(target, {})
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
        """Kernels of one op for one backend: those that are for it alone, and what they leave to the others."""
        made = 0
        own = {r.label for r in self._ops[name] if backend.name in (r.devices or ())}
        for registration in self._ops[name]:
            key = (id(registration), backend.name)
            if not (backend.name in (registration.devices or ()) or registration.devices is None):
                continue
            if registration.devices is None and registration.label in own:
                _withdraw(target, done.get(key))  # made before the one for this backend came
                done[key] = None
            elif key not in done:
                done[key] = kernel_def = kernel_def_for(registration, backend, ops.look_up_op_def(name))
                if kernel_def is not None:
                    target.register(kernel_def, registration.factory, CLASS_NAME)
                    made += 1
        return made

    def device_kernels(
        self, backend: str, kernels: KernelRegistry | None = None, *, compilation_only: bool = True
    ) -> list[KernelDef]:
        """Kernels of a compilation device in the common registry.

        Parameters
        ----------
        backend : str
            Its type.
        kernels : KernelRegistry, optional
            The global one by default.
        compilation_only : bool
            Also those that are only for the inside of compiled regions.

        Raises
        ------
        NotFoundError
            There is no such backend.
        """
        self.register_compilation_kernels(kernels)
        if backend not in self._backends:
            raise NotFoundError(f"there is no XLA backend {backend}", hint=f"there are {', '.join(self._backends)}")
        target = KernelRegistry.global_() if kernels is None else kernels
        left_out = set() if compilation_only else {op for op, rows in self._ops.items() if rows[0].compilation_only}
        return target.get_filtered_registered_kernels(lambda k: k.device_type == backend and k.op not in left_out)

    def _load(self) -> None:
        # Outside of the lock: a thread that imports one of the catalogue's modules needs the lock too
        loader = self._loader
        if loader is not None:
            with directly():
                loader()
            self._loader = None


def _withdraw(kernels: KernelRegistry, old: KernelDef | None) -> None:
    if old is not None:
        kernels.keep_only(lambda kernel_def: kernel_def is not old)


def kernel_def_for(registration: XlaOpRegistration, backend: XlaBackend, op_def: OpDef) -> KernelDef | None:
    """The kernel that a registration is on a backend; None where no type is left, or the backend does not want it.

    Raises
    ------
    InvalidArgumentError
        A constraint is on an attribute that the op lacks.
    """
    types = {attr.name: attr for attr in op_def.attr if attr.type in ("type", "list(type)")}
    for name in registration.constraints:
        if name not in types:
            raise InvalidArgumentError(f"the XLA kernel of {op_def.name} constrains {name}, which is no type of the op")
    constraints = {}
    for name, attr in types.items():
        allowed = set(attr.allowed) if attr.allowed else None
        chosen = [t for t in sorted(backend.types) if allowed is None or t in allowed]
        if name in registration.constraints:
            chosen = [t for t in chosen if t in registration.constraints[name]]
        for extra in _extras(registration):
            if allowed is None or extra in allowed:
                chosen.append(extra)
        if not chosen:
            return None
        constraints[name] = tuple(chosen)
    kernel_def = KernelDef(op_def.name, backend.name, constraints, (), registration.label, 0)
    if backend.op_filter is not None and not backend.op_filter(kernel_def):
        return None
    return kernel_def


def _extras(registration: XlaOpRegistration) -> list[DataType]:
    wanted = (registration.allow_resource_types, registration.allow_variant_types)
    extras = [t for t, wants in zip(HANDLES, wanted, strict=True) if wants]
    return [*extras, *([DataType.DT_STRING] if registration.allow_string_type else [])]


def register_xla_op(
    chain: XlaOpRegistrationBuilder | str, factory: Factory, registry: XlaOpRegistry | None = None
) -> None:
    """Register a class of `XlaOpKernel`, or a function that makes one, under a chain."""
    builder = XlaOpRegistrationBuilder(chain) if isinstance(chain, str) else chain
    (XlaOpRegistry.global_() if registry is None else registry).register(builder.build(factory))


def register_xla_backend(
    name: str, types: Iterable[DataType], op_filter: OpFilter | None = None, registry: XlaOpRegistry | None = None
) -> None:
    """Declare a compilation device: see `XlaOpRegistry.register_backend`."""
    (XlaOpRegistry.global_() if registry is None else registry).register_backend(name, types, op_filter)


def _load_kernels() -> None:
    from importlib import import_module
    from pkgutil import iter_modules

    package = "cyxla.tf2xla.kernels"
    for name in sorted(module.name for module in iter_modules(import_module(package).__path__)):
        if name.endswith("_ops"):
            import_module(f"{package}.{name}")
    load_entry_points()
