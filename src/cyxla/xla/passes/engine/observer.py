"""Observer of passes: it is told each instruction that is replaced, and each pass that changed the module.

Passes replace instructions through `replace`, which names the rule. Without an observer it does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from cyxla.xla.hlo import HloModule, Instruction


class Observer(Protocol):
    """Receiver of the events of passes; `pass_dump.PassDump` writes them to files."""

    def start(self, module: HloModule) -> None:
        """Receive the module before the first pass."""

    def note(self, old: Instruction, new: Instruction, rule: object) -> None:
        """Receive a rewrite before it is made: `new` takes the place of `old`; ``str(rule)`` names the rule."""

    def after(self, name: str, module: HloModule) -> None:
        """Receive the module after a pass that changed it."""


_CURRENT: ContextVar[Observer | None] = ContextVar("observer", default=None)


def current() -> Observer | None:
    """Return the observer of the passes that run in this context."""
    return _CURRENT.get()


def replace(old: Instruction, new: Instruction, rule: object) -> None:
    """Replace all uses of an instruction.

    Parameters
    ----------
    old, new : Instruction
        Instructions of one computation.
    rule : object
        Rule that is applied, for the observer.
    """
    observer = _CURRENT.get()
    if observer is not None:
        observer.note(old, new, rule)
    old.computation.replace_all_uses(old, new)


@contextmanager
def observed(observer: Observer | None, module: HloModule) -> Iterator[None]:
    """Have an observer, if there is one, watch the passes that run meanwhile on a module."""
    if observer is None:
        yield
        return
    observer.start(module)
    token = _CURRENT.set(observer)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def dumping(root: str, module: HloModule) -> Iterator[None]:
    """Dump the passes that run meanwhile below a root folder, unless there is an observer or no root is named."""
    if not root or _CURRENT.get() is not None:
        yield
        return
    from cyxla.xla.passes.engine.pass_dump import PassDump, folder_of  # most programs are not dumped

    with observed(PassDump(folder_of(root, module)), module):
        yield
