"""Named resources."""

import threading

import pytest

from cyxla.core.framework import ResourceBase, ResourceHandle, ResourceMgr
from cyxla.errors import AlreadyExistsError, NotFoundError


class Thing(ResourceBase):
    """A resource."""


class Other(ResourceBase):
    """Another, which counts how often it was closed."""

    closed = 0

    def close(self):
        """Count."""
        Other.closed += 1


def test_create_find_delete():
    """Create twice is code 6, missing code 5."""
    manager, thing = ResourceMgr(), Thing()
    manager.create("", "a", thing)
    assert manager.lookup("localhost", "a", Thing) is thing
    with pytest.raises(AlreadyExistsError, match="localhost/a/Thing already"):
        manager.create("localhost", "a", Thing())
    manager.create("", "a", Other())  # of another type
    manager.create("c", "a", Thing())  # in another container
    assert len(manager) == 3
    manager.delete("", "a", Thing)
    for use in (manager.lookup, manager.delete):
        with pytest.raises(NotFoundError, match="there is no resource localhost/a/Thing"):
            use("", "a", Thing)
    assert manager.find("", "a", Thing) is None
    assert "c | Thing | a | Thing" in manager.debug_string()


def test_a_container_is_dropped_as_a_whole():
    manager, before = ResourceMgr(), Other.closed
    for name in "abc":
        manager.create("step", name, Other())
    manager.create("", "kept", Thing())
    manager.cleanup("step")
    manager.cleanup("never there")
    assert Other.closed == before + 3
    assert [name for _, _, name, _ in manager] == ["kept"]
    manager.clear()
    assert len(manager) == 0


def test_threads_create_one_resource():
    manager, made = ResourceMgr(), []

    def make():
        made.append(1)
        return Thing()

    found = []
    work = lambda: found.append(manager.lookup_or_create("", "x", Thing, make))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, found))) == 1


def test_handles_are_values():
    handle = ResourceHandle("/cpu:0", "c", "n", "Thing")
    assert handle == ResourceHandle("/cpu:0", "c", "n", "Thing", (), Thing())
    assert hash(handle) == hash(ResourceHandle("/cpu:0", "c", "n", "Thing"))
