"""Resources of kernels in C."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from weakref import finalize

from cyxla.core.framework.resource_mgr import ResourceBase, ResourceMgr
from cyxla.errors import InvalidArgumentError


class NativeResource(ResourceBase):
    """A value of C in a resource manager.

    Its destructor is called when neither a manager nor a running kernel refers to it any more.

    Attributes
    ----------
    value : int or None
        Address of the value.
    """

    def __init__(self, value: int | None, destroy: Callable[[int | None], object] | None) -> None:
        self.value = value
        self._finalizer = finalize(self, destroy, value) if destroy else None
        if self._finalizer is not None:
            self._finalizer.atexit = False  # threads of the library may still run

    def disown(self) -> None:
        """Leave the value to its creator."""
        if self._finalizer is not None:
            self._finalizer.detach()


@cache
def resource_class(name: str) -> type[NativeResource]:
    """Return the class of the resources of a type, by which managers know them."""
    return type(name, (NativeResource,), {})


def lookup(manager: ResourceMgr, container: str, name: str, kind: str) -> NativeResource:
    """Return a resource.

    Raises
    ------
    NotFoundError
        There is none.
    InvalidArgumentError
        The type is that of a resource of Python.
    """
    return checked(manager.lookup(container, name, resource_class(kind)), kind)


def checked(resource: ResourceBase, kind: str) -> NativeResource:
    """Return a resource; raise InvalidArgumentError if it does not come from C."""
    if not isinstance(resource, NativeResource):
        raise InvalidArgumentError(
            f"the type '{kind}' is that of a resource of Python", hint="choose a name such as 'mylib.Counter'"
        )
    return resource
