"""Atomic batches of registrations.

While a thread loads a library, its registrations are staged: they are visible to this thread only. At the end all of
them are published in their registries at once, after an error none. Registrations of other threads are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident, local
from typing import Any, Protocol

from cyxla.forking import new_lock

LOADING = new_lock()  # shared by all registries, because loading the entries of one may query another


class Staging(Protocol):
    """A registry that takes part in batches."""

    rank: int  # locks are taken in this order
    lock: Any

    def check_staged(self, staged: Any) -> None:
        """Raise if the staged registrations are no longer valid; called with the lock held."""
        ...

    def publish(self, staged: Any) -> None:
        """Publish the staged registrations; called with the lock held."""
        ...


class Batch:
    """Registrations of one thread since it began a batch, by registry."""

    def __init__(self) -> None:
        self._staged: dict[Staging, Any] = {}

    def staged(self, registry: Staging) -> Any:
        """Registrations staged for a registry, or None."""
        return self._staged.get(registry)

    def stage(self, registry: Staging, create: Callable[[], Any]) -> Any:
        """Registrations staged for a registry; the container is made with the first."""
        if registry not in self._staged:
            self._staged[registry] = create()
        return self._staged[registry]

    def commit(self) -> None:
        """Let everything in.

        Raises
        ------
        AlreadyExistsError
            Another thread was faster; then nothing has entered.
        """
        order = sorted(self._staged, key=lambda registry: (registry.rank, id(registry)))
        with ExitStack() as locks:
            for registry in order:
                locks.enter_context(registry.lock)
            for registry in order:
                registry.check_staged(self._staged[registry])
            for registry in order:
                registry.publish(self._staged[registry])


class _Open(local):
    batches: tuple[Batch, ...] = ()


_open = _Open()


def current_batch() -> Batch | None:
    """The batch that this thread registers into, or None."""
    return _open.batches[-1] if _open.batches else None


def staged_for(registry: Staging) -> list[Any]:
    """Registrations that this thread has staged for a registry, the innermost batch last."""
    return [staged for batch in _open.batches if (staged := batch.staged(registry)) is not None]


@contextmanager
def batch() -> Iterator[Batch]:
    """Stage the registrations of this thread in the body, and publish them at the end."""
    new_batch, outer_batches = Batch(), _open.batches
    _open.batches = (*outer_batches, new_batch)
    try:
        yield new_batch
    finally:
        _open.batches = outer_batches
    new_batch.commit()


@contextmanager
def directly() -> Iterator[None]:
    """Let registrations in at once, also inside of a batch: they are not the library's."""
    before, _open.batches = _open.batches, ()
    try:
        yield
    finally:
        _open.batches = before


class Once:
    """A function that is called once; other threads wait until it has ended, the thread that runs it does not.

    Parameters
    ----------
    fn : function or None
        If it is interrupted, the next call tries again.
    """

    __slots__ = ("_caller", "_fn")

    def __init__(self, fn: Callable[[], object] | None) -> None:
        self._fn = fn
        self._caller = (
            0  # identifier of the running thread; after a fork, that of a thread that no longer exists is ignored
        )

    @property
    def is_due(self) -> bool:
        """True until the function has been called and has ended."""
        return self._fn is not None

    def __call__(self) -> None:
        """Call the function, unless that was done or is being done by this thread."""
        with LOADING:
            if self._fn is None or self._caller == get_ident():
                return
            self._caller = get_ident()
            try:
                with directly():
                    self._fn()
                self._fn = None
            finally:
                self._caller = 0
