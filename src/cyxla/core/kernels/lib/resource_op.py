"""Base class of kernels that create a named resource and output its handle."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from itertools import count
from typing import Any, ClassVar

import numpy as np

from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext, R
from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Ref

_NUMBERS = count()
_CONTAINER = re.compile(r"(?:[A-Za-z0-9.][A-Za-z0-9_.\-/]*)?")


class ResourceOp(OpKernel, ABC):
    """Kernel that creates a resource unless it exists, and outputs its handle, which may be a reference to strings.

    Subclasses name the class of the resource, create it, and check that an existing one is as the node declares.
    """

    resource_class: ClassVar[type[ResourceBase]]

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.container, shared_name = self.attrs["container"], self.attrs["shared_name"]
        construction.require(
            _CONTAINER.fullmatch(self.container), f"container contains invalid characters: {self.container}"
        )
        construction.require(
            not shared_name.startswith("_"), f"shared_name cannot start with '_':{shared_name}", hint="choose another"
        )
        # Without a shared name the resource belongs to this kernel alone; no shared name begins with an underscore
        self.resource_name = shared_name or f"_{next(_NUMBERS)}_{self.name}"
        self._verified: Any = None

    @abstractmethod
    def create(self) -> Any:
        """Create the resource."""

    def verify(self, resource: Any) -> None:
        """Raise InvalidArgumentError unless an existing resource is as the node declares."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Create or look up the resource, and output its handle."""
        resource = ctx.resource_manager.lookup_or_create(
            self.container, self.resource_name, self.resource_class, self._create
        )
        if resource is not self._verified:
            self.verify(resource)
            self._verified = resource
        if self.output_types[0] == DataType.DT_RESOURCE:
            ctx.set_output(0, ctx.make_handle(self.container, self.resource_name, self.resource_class))
            return
        container = self.container or ctx.resource_manager.default_container
        ctx.set_output_ref(0, Ref(DataType.DT_STRING, legacy_handle(container, self.resource_name), self.name))

    def _create(self) -> Any:
        self._verified = self.create()
        return self._verified


def legacy_handle(container: str, name: str) -> np.ndarray[Any, Any]:
    """Return the two strings that name a resource."""
    return np.array([container.encode(), name.encode()], np.object_)


def resource_of(ctx: OpKernelContext, cls: type[R]) -> R:
    """Return the resource that the first input names, which is a handle, or two strings or a reference to them.

    Raises
    ------
    NotFoundError
        The resource was not created yet, or was deleted.
    """
    if ctx.input_dtype(0) == DataType.DT_RESOURCE:
        return ctx.lookup_resource(0, cls)
    handle = ctx.input(0)
    ctx.require(
        handle is not None and handle.shape == (2,),
        f"Resource handle must have 2 elements, but had shape: {list(getattr(handle, 'shape', ()))}",
    )
    container, name = (text.decode("utf-8", "surrogateescape") for text in handle.tolist())
    return ctx.resource_manager.lookup(container, name, cls)
