"""Iterators: a resource over anything that Python can iterate over, and the kernel that takes its next element."""

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
    """Elements of a Python iterable, each a sequence of components (or one bare component).

    Parameters
    ----------
    elements : iterable, optional
        Nothing can be taken until there is one; see `restart`.
    """

    def __init__(self, elements: Iterable[Any] | None = None) -> None:
        self._lock = new_lock()
        self._elements = None if elements is None else iter(elements)

    def restart(self, elements: Iterable[Any]) -> None:
        """Go on with the elements of another iterable."""
        with self._lock:
            self._elements = iter(elements)

    def take(self) -> Sequence[Any]:
        """The components of the next element.

        Raises
        ------
        OutOfRangeError
            There are no more.
        FailedPreconditionError
            There is no iterable yet.
        """
        with self._lock:
            if self._elements is None:
                raise FailedPreconditionError(
                    "the iterator has nothing to take elements from yet", hint="give it an iterable"
                )
            try:
                element = next(self._elements)
            except StopIteration:
                raise OutOfRangeError("the iterator has no more elements") from None
        return element if isinstance(element, (tuple, list)) else (element,)

    def debug_string(self) -> str:
        """Whether there is an iterable."""
        return f"Iterator {'uninitialized' if self._elements is None else 'ready'}"


@kernel("IteratorV2")
class IteratorHandleOp(OpKernel):
    """A handle of the iterator of a name; it is there, without elements, if nobody has made it."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Give the handle."""
        name = self.attrs["shared_name"] or self.name
        ctx.resource_manager.lookup_or_create(self.attrs["container"], name, IteratorResource, IteratorResource)
        facts = zip(self.attrs["output_types"], self.attrs["output_shapes"], strict=False)
        ctx.set_output(0, ctx.make_handle(self.attrs["container"], name, IteratorResource, facts))


@kernel(("IteratorGetNext", "IteratorGetNextSync"))
class IteratorGetNextOp(OpKernel):
    """The next element, component by component."""

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
        """Take an element, and check it against what the node declares."""
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
    """Forget an iterator."""
    ctx.delete_resource(0)
