"""Iterators: resources over Python iterables, and kernels that read their next element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.apply import to_array
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


class IteratorResource(ResourceBase):
    """Iterator over a Python iterable, whose elements are sequences of components or single components.

    Parameters
    ----------
    elements : iterable, optional
        Iterable to start with; without one, nothing can be read before `restart`.
    """

    def __init__(self, elements: Iterable[Any] | None = None) -> None:
        self._lock = new_lock()
        self._elements = None if elements is None else iter(elements)

    def restart(self, elements: Iterable[Any]) -> None:
        """Continue with the elements of another iterable."""
        with self._lock:
            self._elements = iter(elements)

    def take(self) -> Sequence[Any]:
        """Return the components of the next element.

        Raises
        ------
        OutOfRangeError
            The iterable is exhausted.
        FailedPreconditionError
            The iterator has no iterable yet.
        """
        with self._lock:
            if self._elements is None:
                raise FailedPreconditionError("the iterator has no dataset yet", hint="give it an iterable")
            try:
                element = next(self._elements)
            except StopIteration:
                raise OutOfRangeError("the iterator has no more elements") from None
        return element if isinstance(element, (tuple, list)) else (element,)

    def debug_string(self) -> str:
        """Return a text that says if the iterator has an iterable."""
        return f"Iterator {'uninitialized' if self._elements is None else 'ready'}"


@kernel("IteratorV2")
class IteratorHandleOp(OpKernel):
    """Kernel that outputs the handle of the iterator of a name; a missing one is created without elements."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Output the handle."""
        name = self.attrs["shared_name"] or self.name
        ctx.resource_manager.lookup_or_create(self.attrs["container"], name, IteratorResource, IteratorResource)
        facts = zip(self.attrs["output_types"], self.attrs["output_shapes"], strict=False)
        ctx.set_output(0, ctx.make_handle(self.attrs["container"], name, IteratorResource, facts))


@kernel(("IteratorGetNext", "IteratorGetNextSync"))
class IteratorGetNextOp(OpKernel):
    """Kernel that outputs the components of an iterator's next element."""

    is_expensive = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        shapes: tuple[TensorShape, ...] = construction.get_attr("output_shapes")
        construction.require(
            len(shapes) == len(self.output_types),
            f"{len(self.output_types)} output_types, but {len(shapes)} output_shapes",
        )
        self._facts = list(zip(self.output_types, shapes, strict=True))

    def compute(self, ctx: OpKernelContext) -> None:
        """Read an element and check it against the declared types and shapes."""
        components = ctx.lookup_resource(0, IteratorResource).take()
        if len(components) != len(self._facts):
            raise InvalidArgumentError(f"the element has {len(components)} components, {len(self._facts)} are declared")
        for k, (value, (dtype, shape)) in enumerate(zip(components, self._facts, strict=True)):
            ctx.set_output(k, _component(value, dtype, shape, k))


def _component(value: Any, dtype: DataType, shape: TensorShape, index: int) -> Array:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "SU" and value.dtype != dtype.numpy:
        raise InvalidArgumentError(f"component {index} is an array of {value.dtype}, but {dtype} is declared")
    array = to_array(value, dtype, f"component {index}")
    if not TensorShape(array.shape).is_compatible_with(shape):
        raise InvalidArgumentError(f"component {index} has shape {list(array.shape)}, but {shape} is declared")
    return array


@kernel("DeleteIterator")
def delete_iterator(ctx: OpKernelContext) -> None:
    """Delete an iterator."""
    ctx.delete_resource(0)
