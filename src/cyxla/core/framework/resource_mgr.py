"""Named resources, such as variables, tables and stacks, that outlive a step or belong to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import AlreadyExistsError, NotFoundError
from cyxla.forking import new_lock

DEFAULT_CONTAINER = "localhost"


class ResourceBase:
    """Base class of the resources of a `ResourceMgr`."""

    def close(self) -> None:
        """Release the resource; called once when it is removed from its manager."""

    def debug_string(self) -> str:
        """Return a description in one line."""
        return type(self).__name__


R = TypeVar("R", bound=ResourceBase)


@dataclass(frozen=True)
class ResourceHandle:
    """Reference to a resource by name, passed along edges.

    Parameters
    ----------
    device, container, name : str
        Location and name of the resource.
    type_name : str
        Name of the class of the resource.
    dtypes_and_shapes : tuple of (DataType, TensorShape)
        Types and shapes of the values in the resource, if known.
    resource : ResourceBase, optional
        The resource itself, if it is not in a manager and lives as long as its handles.
    """

    device: str
    container: str
    name: str
    type_name: str
    dtypes_and_shapes: tuple[tuple[DataType, TensorShape], ...] = ()
    resource: ResourceBase | None = field(default=None, compare=False, repr=False)


def type_name(cls: type[ResourceBase]) -> str:
    """Return the type name of resources of a class."""
    return cls.__name__


class ResourceMgr:
    """Thread-safe table of resources by container, type and name.

    Parameters
    ----------
    default_container : str
        Name of the container that an empty name refers to.

    Attributes
    ----------
    removals : int
        Number of removals so far; if it changed, earlier lookups may be stale.
    """

    def __init__(self, default_container: str = DEFAULT_CONTAINER) -> None:
        self.default_container = default_container
        self._containers: dict[str, dict[tuple[str, str], ResourceBase]] = {}
        self._lock = new_lock()
        self.removals = 0

    def create(self, container: str, name: str, resource: ResourceBase) -> None:
        """Add a resource.

        Raises
        ------
        AlreadyExistsError
            The container has a resource of this type and name.
        """
        key = (type_name(type(resource)), name)
        with self._lock:
            resources = self._containers.setdefault(container or self.default_container, {})
            if key in resources:
                raise AlreadyExistsError(f"resource {self._text(container, *key)} already exists")
            resources[key] = resource

    def lookup(self, container: str, name: str, cls: type[R]) -> R:
        """Return the resource of a type and name.

        Raises
        ------
        NotFoundError
            There is no such resource.
        """
        resource = self.find(container, name, cls)
        if resource is None:
            raise NotFoundError(
                f"there is no resource {self._text(container, type_name(cls), name)}",
                hint="run the op that creates it first; it may also have been deleted",
            )
        return resource

    def find(self, container: str, name: str, cls: type[R]) -> R | None:
        """Return the resource of a type and name, or None."""
        resources = self._containers.get(container or self.default_container)
        return None if resources is None else resources.get((type_name(cls), name))  # type: ignore[return-value]

    def lookup_or_create(self, container: str, name: str, cls: type[R], create: Callable[[], R]) -> R:
        """Return the resource of a type and name, created by `create` if it does not exist."""
        resource = self.find(container, name, cls)
        if resource is not None:
            return resource
        with self._lock:
            resource = self.find(container, name, cls)
            if resource is None:
                resource = create()
                self.create(container, name, resource)
            return resource

    def delete(self, container: str, name: str, kind: type[ResourceBase] | str) -> None:
        """Remove a resource; its type is given by class or by name.

        Raises
        ------
        NotFoundError
            There is no such resource.
        """
        kind_name = kind if isinstance(kind, str) else type_name(kind)
        with self._lock:
            resources = self._containers.get(container or self.default_container, {})
            resource = resources.pop((kind_name, name), None)
            self.removals += 1
        if resource is None:
            raise NotFoundError(f"there is no resource {self._text(container, kind_name, name)}")
        resource.close()

    def cleanup(self, container: str) -> None:
        """Remove a container and its resources; a missing container is ignored."""
        with self._lock:
            resources = self._containers.pop(container or self.default_container, {})
            self.removals += 1
        for resource in resources.values():
            resource.close()

    def clear(self) -> None:
        """Remove all containers."""
        for container in list(self._containers):
            self.cleanup(container)

    def __iter__(self) -> Iterator[tuple[str, str, str, ResourceBase]]:
        """Iterate over (container, type, name, resource) in the order of creation."""
        with self._lock:
            rows = [(c, t, n, r) for c, resources in self._containers.items() for (t, n), r in resources.items()]
        return iter(rows)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._containers.values()))

    def debug_string(self) -> str:
        """Return one line for each resource."""
        return "\n".join(f"{c} | {t} | {n} | {r.debug_string()}" for c, t, n, r in self)

    def _text(self, container: str, kind: str, name: str) -> str:
        return f"{container or self.default_container}/{name}/{kind}"


@dataclass(slots=True)
class ScopedStepContainer:
    """Container of resources that live for one step."""

    step_id: int
    resource_manager: ResourceMgr
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or f"__per_step_{self.step_id}"

    def close(self) -> None:
        """Remove the resources of the step."""
        self.resource_manager.cleanup(self.name)
