"""Eager execution: ``apply_op`` and ``cyxla.raw_ops`` on arrays, without a graph or a session.

Importing this module makes its context the default sink of `apply_op`, for calls without a current graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from cyxla.core.framework.apply import group_outputs, register_eager_sink, to_array
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.declarations.op_def_builder import OpRegistrationData
from cyxla.core.framework.function import FunctionDef, FunctionLibraryDefinition
from cyxla.core.framework.repeated_calls import RepeatedCall
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.device import DeviceSet
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry
from cyxla.core.runtime.engine import Engine
from cyxla.core.runtime.invoke import KernelCall
from cyxla.errors import OpError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
_MAX_CALLS = 4096  # cached kernels; the oldest is dropped first


class EagerContext:
    """A context that runs single ops; their resources live as long as the context.

    Parameters
    ----------
    devices : DeviceSet, optional
        Devices of the context; one CPU by default. Ops run on the first device; functions may request others.
    """

    def __init__(self, devices: DeviceSet | None = None) -> None:
        self.engine = Engine(devices or DeviceFactoryRegistry.global_().create_devices())
        self.library = FunctionLibraryDefinition(OpRegistry.global_())
        self._graph = Graph()
        self._graph.library = self.library
        self._calls: dict[Any, KernelCall] = {}
        self._repeated: dict[Hashable, RepeatedCall] = {}
        self._lock = new_lock()
        self._step = StepContext(
            self.engine.resource_manager, None, None, self.engine.functions(self.library), self.engine.submit
        )

    def look_up(self, op_name: str) -> OpRegistrationData:
        """Return the declaration of an op, or the signature of an added function."""
        return self.library.look_up(op_name)

    def add_function(self, function: FunctionDef) -> None:
        """Add a function that ops can call."""
        self.library.add(function)

    def constant(self, value: Any, dtype: DataType | None = None, name: str | None = None) -> Array:
        """Convert a value to an array."""
        del name
        data_type = dtype or as_data_type(np.asarray(value).dtype)
        return to_array(value, data_type)

    def create_op(
        self, registration: OpRegistrationData, inputs: list[Any], attrs: dict[str, AttrValue], name: str | None
    ) -> tuple[None, Sequence[Any]]:
        """Run an op; see `execute`."""
        return None, self.execute(registration, inputs, attrs, name)

    def execute(
        self,
        registration: OpRegistrationData,
        inputs: Sequence[Any],
        attrs: dict[str, AttrValue],
        name: str | None = None,
    ) -> list[Any]:
        """Run the kernel of an op with complete attributes, and return its outputs; list outputs are flattened.

        Raises
        ------
        InvalidArgumentError
            There is no kernel for these types.
        OpError
            The kernel failed.
        """
        call = self._kernel_call(registration, attrs, name or registration.op_def.name)
        with np.errstate(all="ignore"):
            return call(self._step, list(inputs))

    def _kernel_call(self, registration: OpRegistrationData, attrs: dict[str, AttrValue], name: str) -> KernelCall:
        """Return the cached kernel of an op and its attributes; stateful kernels are cached by name."""
        key = (registration.op_def.name, name if registration.op_def.is_stateful else "", frozenset(attrs.items()))
        call = self._calls.get(key)
        if call is None:
            node = Node(self._graph, 0, name, registration, dict(attrs))
            node.inputs = [self._source(k, dtype) for k, dtype in enumerate(node.input_types)]
            node.assigned_device = self.engine.default_device.name
            call = KernelCall(node, self.engine.kernel(node, keep=False))
            with self._lock:
                if len(self._calls) >= _MAX_CALLS:
                    del self._calls[next(iter(self._calls))]
                self._calls[key] = call
        return call

    def repeated_call(self, key: Hashable) -> RepeatedCall | None:
        """Return the call that was remembered under a key."""
        return self._repeated.get(key)

    def remember(
        self, key: Hashable, registration: OpRegistrationData, attrs: dict[str, AttrValue], names: tuple[str, ...]
    ) -> None:
        """Remember the kernel of a call, which then runs without any look at its attributes."""
        call, step = self._kernel_call(registration, attrs, registration.op_def.name), self._step
        results, on_arrays = registration.op_def.output_arg, call.on_arrays()
        is_list = any(arg.number_attr or arg.type_list_attr for arg in results)

        def run(inputs: list[Any]) -> Any:
            with np.errstate(all="ignore"):
                if on_arrays is not None and not is_list and step.stats_collector is None:
                    return on_arrays(*inputs)
                return group_outputs(results, attrs, None, call(step, inputs))

        with self._lock:
            if len(self._repeated) >= _MAX_CALLS:
                del self._repeated[next(iter(self._repeated))]
            self._repeated[key] = RepeatedCall(run, names)

    def _source(self, index: int, dtype: DataType) -> Tensor:
        """Return a tensor that stands for an input of the node."""
        attrs = {"T": AttrValue("type", dtype), "index": AttrValue("int", index)}
        return Node(self._graph, 0, f"input_{index}", self.library.look_up("_Arg"), attrs).outputs[0]

    def close(self) -> None:
        """Drop all resources and kernels."""
        self._calls.clear()
        self._repeated.clear()
        self._step.close()
        self.engine.close()


_current: ContextVar[EagerContext | None] = ContextVar("cyxla_eager_context", default=None)
_default: list[EagerContext] = []
_LOCK = new_lock()


def eager_context() -> EagerContext:
    """Return the current context: that of the innermost `use_context`, or that of the process."""
    context = _current.get()
    if context is not None:
        return context
    if not _default:
        with _LOCK:
            if not _default:
                _default.append(EagerContext())
    return _default[0]


@contextmanager
def use_context(context: EagerContext) -> Iterator[EagerContext]:
    """Run the ops of a ``with`` statement in another context."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


class _EagerSink:
    """The sink of `apply_op` that forwards each call to the current context."""

    def look_up(self, op_name: str) -> OpRegistrationData:
        return eager_context().look_up(op_name)

    def constant(self, value: Any, dtype: DataType | None = None, name: str | None = None) -> Array:
        return eager_context().constant(value, dtype, name)

    def create_op(
        self, registration: OpRegistrationData, inputs: list[Any], attrs: dict[str, AttrValue], name: str | None
    ) -> tuple[None, Sequence[Any]]:
        return eager_context().create_op(registration, inputs, attrs, name)

    def repeated_call(self, key: Hashable) -> RepeatedCall | None:
        return eager_context().repeated_call(key)

    def remember(
        self, key: Hashable, registration: OpRegistrationData, attrs: dict[str, AttrValue], names: tuple[str, ...]
    ) -> None:
        eager_context().remember(key, registration, attrs, names)


register_eager_sink(_EagerSink())


def execute(op_name: str, inputs: Sequence[Any], attrs: dict[str, AttrValue]) -> list[Any]:
    """Run an op by name on flat inputs with complete attributes, without inference of attributes."""
    context = eager_context()
    return context.execute(context.look_up(op_name), inputs, attrs)


__all__ = ["EagerContext", "OpError", "eager_context", "execute", "use_context"]
