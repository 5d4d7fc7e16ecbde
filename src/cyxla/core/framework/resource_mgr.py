"""Named things that outlive a step or belong to one: variables, tables, stacks."""

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
    """Base of everything a `ResourceMgr` holds."""

    def close(self) -> None:
        """Called once when the resource leaves its manager."""

    def debug_string(self) -> str:
        """What it is, in a line."""
        return type(self).__name__


R = TypeVar("R", bound=ResourceBase)


@dataclass(frozen=True)
class ResourceHandle:
    """A name for a resource, small enough to flow along edges.

    Parameters
    ----------
    device, container, name : str
        Where it lives.
    type_name : str
        The class of the resource.
    dtypes_and_shapes : tuple of (DataType, TensorShape)
        What the values in it look like, where that is known.
    resource : ResourceBase, optional
        The resource itself, for those that have no place in a manager and live as long as their handles.
    """

    device: str
    container: str
    name: str
    type_name: str
    dtypes_and_shapes: tuple[tuple[DataType, TensorShape], ...] = ()
    resource: ResourceBase | None = field(default=None, compare=False, repr=False)


def type_name(cls: type[ResourceBase]) -> str:
    """The name under which resources of this class are kept."""
    return cls.__name__


class ResourceMgr:
    """Resources by container, type and name; safe for any number of threads.

    Parameters
    ----------
    default_container : str
        Stands for the empty name of a container.

    Attributes
    ----------
    removals : int
        Grows when a resource is removed: what was found before may be another now.
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
            There is one of this type and name in the container.
        """
        key = (type_name(type(resource)), name)
        with self._lock:
            held = self._containers.setdefault(container or self.default_container, {})
            if key in held:
                raise AlreadyExistsError(f"there is a resource {self._text(container, *key)} already")
            held[key] = resource

    def lookup(self, container: str, name: str, cls: type[R]) -> R:
        """The resource of this type and name.

        Raises
        ------
        NotFoundError
            There is none.
        """
        found = self.find(container, name, cls)
        if found is None:
            raise NotFoundError(
                f"there is no resource {self._text(container, type_name(cls), name)}",
                hint="run what creates it first; it may also have been deleted",
            )
        return found

    def find(self, container: str, name: str, cls: type[R]) -> R | None:
        """The resource of this type and name, or None."""
        held = self._containers.get(container or self.default_container)
        return None if held is None else held.get((type_name(cls), name))  # type: ignore[return-value]

    def lookup_or_create(self, container: str, name: str, cls: type[R], make: Callable[[], R]) -> R:
        """The resource of this type and name, made by `make` if it is not there."""
        found = self.find(container, name, cls)
        if found is not None:
            return found
        with self._lock:
            found = self.find(container, name, cls)
            if found is None:
                found = make()
                self.create(container, name, found)
            return found

    def delete(self, container: str, name: str, kind: type[ResourceBase] | str) -> None:
        """Remove a resource, whose type is given by its class or by its name.

        Raises
        ------
        NotFoundError
            There is none.
        """
        kind_name = kind if isinstance(kind, str) else type_name(kind)
        with self._lock:
            held = self._containers.get(container or self.default_container, {})
            resource = held.pop((kind_name, name), None)
            self.removals += 1
        if resource is None:
            raise NotFoundError(f"there is no resource {self._text(container, kind_name, name)}")
        resource.close()

    def cleanup(self, container: str) -> None:
        """Drop a container with all it holds; one that is not there is fine."""
        with self._lock:
            dropped = self._containers.pop(container or self.default_container, {})
            self.removals += 1
        for resource in dropped.values():
            resource.close()

    def clear(self) -> None:
        """Drop every container."""
        for container in list(self._containers):
            self.cleanup(container)

    def __iter__(self) -> Iterator[tuple[str, str, str, ResourceBase]]:
        """Container, type, name and resource of all, in the order of their making."""
        with self._lock:
            rows = [(c, t, n, r) for c, held in self._containers.items() for (t, n), r in held.items()]
        return iter(rows)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._containers.values()))

    def debug_string(self) -> str:
        """One line per resource."""
        return "\n".join(f"{c} | {t} | {n} | {r.debug_string()}" for c, t, n, r in self)

    def _text(self, container: str, kind: str, name: str) -> str:
        return f"{container or self.default_container}/{name}/{kind}"


@dataclass(slots=True)
class ScopedStepContainer:
    """The container of what lives for one step only."""

    step_id: int
    resource_manager: ResourceMgr
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or f"__per_step_{self.step_id}"

    def close(self) -> None:
        """Drop what the step made."""
        self.resource_manager.cleanup(self.name)
