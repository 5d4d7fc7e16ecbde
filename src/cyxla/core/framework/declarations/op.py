"""Registries of ops, and the functions that register ops.

A registry is initially *deferred*: registrations are pending until the first query, and are then added all at once or
not at all. Afterwards it is *immediate*: an invalid registration raises at once. Registrations of a library that is
being loaded are staged for the loading thread: see `cyxla.core.framework.registration_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from inspect import cleandoc
from typing import Any, Protocol, TypeVar

from cyxla.config import similar
from cyxla.core.framework.declarations.op_def import FLAGS, OpDef, summarize_op_def, validate_op_def
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder, OpRegistrationData, ShapeFn
from cyxla.core.framework.loaders import loader
from cyxla.core.framework.registration_batch import Once, current_batch, directly, staged_for
from cyxla.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from cyxla.forking import new_lock

OpRegistrationDataFactory = Callable[[], OpRegistrationData]
Watcher = Callable[["OpError | None", OpDef], "OpError | None"]
F = TypeVar("F", bound=ShapeFn)


class OpRegistryInterface(Protocol):
    """Interface of objects that look up ops."""

    def look_up(self, name: str) -> OpRegistrationData:
        """Return the op of a name; raise NotFoundError if there is none."""
        ...


class OpRegistry:
    """Registry of ops by name.

    Parameters
    ----------
    catalogue : function, optional
        Function called before the first query, to register the built-in ops.
    on_miss : function, optional
        Function called once, at the first lookup that fails, to register the ops of installed packages; other threads
        whose lookups fail wait for it.
    """

    rank = 1

    def __init__(
        self, catalogue: Callable[[], None] | None = None, on_miss: Callable[[], object] | None = None
    ) -> None:
        self._catalogue, self._on_miss = catalogue, Once(on_miss)
        self.lock = new_lock()
        self._ops: dict[str, OpRegistrationData] = {}
        self._queue: list[OpRegistrationDataFactory] = []
        self._watcher: Watcher | None = None
        self._validators: list[Callable[[OpRegistry], None]] = []
        self._validated = False
        self._selection: frozenset[str] | None = None
        self.initialized = False

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> OpRegistry:
        """Return the global registry; the catalogue is added at the first query."""
        return OpRegistry(loader("ops"), loader("packages"))

    # Registering

    def register(self, factory: OpRegistrationDataFactory) -> None:
        """Register the result of a function: now or, in deferred mode, at the next query.

        Raises
        ------
        InvalidArgumentError
            The declaration is invalid (in immediate mode).
        AlreadyExistsError
            There is already an op of that name (in immediate mode).
        """
        batch = current_batch()
        if batch is not None:
            with self.lock:
                self._stage(factory, batch.stage(self, dict))
            return
        with self.lock:
            if not self.initialized:
                self._queue.append(factory)
                return
            staged: dict[str, OpRegistrationData] = {}
            self._stage(factory, staged)
            self._ops |= staged

    def defer_registrations(self) -> None:
        """Return to deferred mode; registered ops stay visible."""
        with self.lock:
            self.initialized = False

    def clear_deferred_registrations(self) -> None:
        """Discard pending registrations."""
        with self.lock:
            self._queue.clear()

    def process_registrations(self) -> OpError | None:
        """Add pending registrations and leave deferred mode.

        Returns
        -------
        OpError or None
            First error; in this case nothing was added, and the mode is unchanged.
        """
        try:
            self._flush()
        except OpError as e:
            return e
        return None

    def _flush(self) -> None:
        if self.initialized:
            return
        # The catalogue is imported outside of the lock: a thread that imports one of its modules needs the lock too.
        catalogue = self._catalogue
        if catalogue is not None:
            with directly():
                catalogue()
            self._catalogue = None
        with self.lock:
            if not self.initialized:
                staged: dict[str, OpRegistrationData] = {}
                for factory in self._queue:
                    self._stage(factory, staged)
                self._ops |= staged
                self._queue.clear()
                self.initialized = True
        self._validate()

    def _stage(self, factory: OpRegistrationDataFactory, staged: dict[str, OpRegistrationData]) -> None:
        """Make one registration, call the watcher, and stage it."""
        error: OpError | None = None
        data: OpRegistrationData | None = None
        try:
            data = factory()
            if not isinstance(getattr(factory, "__self__", None), OpDefBuilder):  # checked by its own `finalize`
                validate_op_def(data.op_def)
            if data.op_def.name in self._ops or data.op_def.name in staged or self._staged(data.op_def.name):
                raise AlreadyExistsError(f"op {data.op_def.name} is already registered")
        except OpError as e:
            error = e
        if self._watcher is not None:
            error = self._watcher(error, data.op_def if data else OpDef(""))
        if error is not None:
            raise error
        if data is not None and data.op_def.name not in self._ops:
            staged.setdefault(data.op_def.name, data)

    def _staged(self, name: str) -> OpRegistrationData | None:
        """Return an op staged by this thread, or None."""
        return next((staged[name] for staged in staged_for(self) if name in staged), None)

    def check_staged(self, staged: dict[str, OpRegistrationData]) -> None:
        """Raise if a staged op was registered by another thread in the meantime."""
        for name in staged:
            if name in self._ops:
                raise AlreadyExistsError(
                    f"op {name} is already registered", hint="another thread has just registered it"
                )

    def publish(self, staged: dict[str, OpRegistrationData]) -> None:
        """Add the ops of a batch."""
        self._ops |= staged

    # Watching and validating

    def set_watcher(self, watcher: Watcher | None) -> None:
        """Set a function that receives the outcome of each registration and may replace it.

        Raises
        ------
        AlreadyExistsError
            A watcher is already set; None removes it.
        """
        with self.lock:
            if watcher is not None and self._watcher is not None:
                raise AlreadyExistsError("the registry already has a watcher", hint="call set_watcher(None) first")
            self._watcher = watcher

    def add_validator(self, validator: Callable[[OpRegistry], None]) -> None:
        """Add a function that checks the registry once it is filled by the first query, or at once if it is."""
        with self.lock:
            if not self._validated:
                self._validators.append(validator)
                return
        validator(self)

    def _validate(self) -> None:
        with self.lock:
            validators, self._validators = ([], self._validators) if self._validated else (self._validators, [])
            self._validated = True
        for validator in validators:
            validator(self)

    # Selecting

    def select(self, names: Iterable[str] | None) -> None:
        """Restrict registrations to ops of these names and system ops; None lifts the restriction.

        Raises
        ------
        FailedPreconditionError
            The registry has been queried already.
        """
        with self.lock:
            if self.initialized:
                raise FailedPreconditionError("ops must be selected before the first query of the registry")
            self._selection = None if names is None else frozenset(names)

    def selects(self, name: str) -> bool:
        """Return True if the selection includes an op."""
        return self._selection is None or name in self._selection

    # Asking

    def look_up(self, name: str) -> OpRegistrationData:
        """Return the op of a name.

        Raises
        ------
        NotFoundError
            There is no such op; the hint has similar names.
        """
        if not self.initialized:
            self._flush()
        data = self._ops.get(name) or self._staged(name)
        if data is None and self._on_miss.is_due:
            self._on_miss()
            data = self._ops.get(name)
        if data is None:
            hint = similar(name, self._ops) or "import the module that declares it first"
            raise NotFoundError(f"op type not registered: {name!r}", hint=hint)
        return data

    def look_up_op_def(self, name: str) -> OpDef:
        """Return the declaration of an op.

        Raises
        ------
        NotFoundError
            There is no such op.
        """
        return self.look_up(name).op_def

    def __contains__(self, name: str) -> bool:
        self._flush()
        return name in self._ops or self._staged(name) is not None

    def get_registered_ops(self) -> list[OpDef]:
        """Return all declarations in the order of registration."""
        return [data.op_def for data in self.get_op_registration_data()]

    def get_op_registration_data(self) -> list[OpRegistrationData]:
        """Return all declarations with their shape functions in the order of registration."""
        self._flush()
        with self.lock:
            return [*self._ops.values(), *(data for staged in staged_for(self) for data in staged.values())]

    def export(self, include_internal: bool = False) -> list[OpDef]:
        """Return all declarations sorted by name; internal ones, which begin with ``_``, on request."""
        ops = sorted(self.get_registered_ops(), key=lambda op_def: op_def.name)
        return [op_def for op_def in ops if include_internal or not op_def.name.startswith("_")]

    def debug_string(self, include_internal: bool = False) -> str:
        """Return one line for each op: name, signature, attributes, flags."""
        return "".join(summarize_op_def(op_def) + "\n" for op_def in self.export(include_internal))


class OpListOpRegistry:
    """Immutable registry of a list of ops without shape functions.

    Parameters
    ----------
    op_list : iterable of OpDef
        Declarations; `cyxla.core.framework.protos.messages` reads ``OpList`` messages.
    """

    def __init__(self, op_list: Iterable[OpDef]) -> None:
        self._ops = {op_def.name: OpRegistrationData(op_def) for op_def in op_list}

    def look_up(self, name: str) -> OpRegistrationData:
        """Return the op of a name.

        Raises
        ------
        NotFoundError
            There is no such op.
        """
        if name not in self._ops:
            raise NotFoundError(f"op type not in the list: {name!r}")
        return self._ops[name]

    def look_up_op_def(self, name: str) -> OpDef:
        """Return the declaration of an op; raise NotFoundError if there is none."""
        return self.look_up(name).op_def


def register_op(builder: OpDefBuilder, *, system: bool = False, registry: OpRegistry | None = None) -> None:
    """Register the op of a builder.

    Parameters
    ----------
    builder : OpDefBuilder
        Builder of the declaration.
    system : bool
        True if the op is registered under any selection.
    registry : OpRegistry, optional
        Registry to add to; the global one by default.
    """
    registry = OpRegistry.global_() if registry is None else registry
    if system or registry.selects(builder.name):
        registry.register(builder.finalize)


class _Unset:
    """Marker of a shape function that follows as decorated function."""


_UNSET = _Unset()


def op(
    name: str,
    signature: str,
    *attrs: str,
    shape: ShapeFn | _Unset | None = _UNSET,
    doc: str = "",
    stateful: bool = False,
    commutative: bool = False,
    aggregate: bool = False,
    allows_uninitialized_input: bool = False,
    distributed: bool = False,
    deprecated: tuple[int, str] | None = None,
    system: bool = False,
    registry: OpRegistry | None = None,
) -> Any:
    """Declare an op.

    Parameters
    ----------
    name : str
        Name in CamelCase; internal names begin with ``_``.
    signature : str
        ``"x: T, ys: N * T -> z: T"``; either side may be empty.
    *attrs : str
        ``"T: {float, double}"``, ``"N: int >= 1"``, ``"axis: int = 0"``.
    shape : function or None, optional
        Shape function; with it (or None) the op is registered at once, without it a decorator for the shape function
        is returned, whose docstring documents the op.
    doc : str, optional
        Summary line, description, then ``name: text`` for arguments and attributes.
    stateful, commutative, aggregate, allows_uninitialized_input, distributed : bool
        Flags of `OpDef`.
    deprecated : (int, str), optional
        First version of graphs that refuse the op, and the reason.
    system : bool
        True if the op is registered under any selection.
    registry : OpRegistry, optional
        Registry to add to; the global one by default.

    Examples
    --------
    >>> fresh = OpRegistry()
    >>> op("Negate2", "x: T -> y: T", "T: numbertype", shape=None, registry=fresh)
    >>> fresh.look_up_op_def("Negate2").output_arg[0].name
    'y'
    """
    builder = OpDefBuilder(name)
    builder._attrs += attrs
    _read_signature(builder, signature)
    flag_values = (commutative, aggregate, stateful, allows_uninitialized_input, distributed)
    for flag, is_set in zip(FLAGS, flag_values, strict=True):
        if is_set:
            builder.set_flag(flag)
    if deprecated:
        builder.deprecated(*deprecated)
    if doc:
        builder.doc(doc)
    if not isinstance(shape, _Unset):
        register_op(builder.set_shape_fn(shape), system=system, registry=registry)
        return None

    def declare(fn: F) -> F:
        if not doc and fn.__doc__:
            builder.doc(cleandoc(fn.__doc__))
        register_op(builder.set_shape_fn(fn), system=system, registry=registry)
        return fn

    return declare


def _read_signature(builder: OpDefBuilder, signature: str) -> None:
    inputs, arrow, outputs = signature.partition("->")
    if not arrow:
        raise InvalidArgumentError(f"the signature {signature!r} of op {builder.name} has no '->'")
    builder._inputs += _arguments(inputs)
    builder._outputs += _arguments(outputs)


def _arguments(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []
