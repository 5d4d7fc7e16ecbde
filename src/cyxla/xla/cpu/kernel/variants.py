"""Variants of a kernel: other sizes of tiles, panels and tasks that leave every bit of its results as it is.

Emitters choose these sizes by rules, from shapes alone. The emitter of a kernel that has others to offer goes through
`select`, which returns the kernel of the rules unless an observer decides otherwise; `autotune` has the observers.
What the order of a float sum depends on is never among the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, TypeAlias

from cyxla.hashing import blake2b
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.cost import MAX_TASKS
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, Step

#: Parameters by name with values in place of those of the rules.
Choice: TypeAlias = Mapping[str, int]
#: Parameters by name with the values to try; those of the rules are not among them.
Axes: TypeAlias = Mapping[str, Sequence[int]]
#: Function that returns the step of a group, from the default one, the function that makes others, and its parameters.
Observer: TypeAlias = Callable[[Group, Step, Callable[[Choice], Step], Callable[[], Axes]], Step]

RULES: Final[Choice] = {}
_MAX_LONG_TASK_NS = machine.UNINTERRUPTED_NS
#: Longest kernel that may become a single task: a longer one that wins so was measured while other programs had cores.
MAX_SERIAL_NS: Final = 10 * machine.TASK_NS

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


def select(group: Group, make: Callable[[Choice], Step], axes: Callable[[], Axes]) -> Step:
    """Return the step of a kernel that has variants: that of the rules, or what the observer decides.

    Parameters
    ----------
    group : Group
        Instructions that the kernel computes.
    make : callable
        Function that returns the step for a choice; all steps have the same reads and writes.
    axes : callable
        Function that returns the parameters, each with the values to try one by one.
    """
    observer = _observer.get()
    return make(RULES) if observer is None else observer(group, make(RULES), make, axes)


def is_observed() -> bool:
    """Return whether an observer decides on the kernels that are emitted."""
    return _observer.get() is not None


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Let an observer decide on all kernels with variants that are emitted meanwhile."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def key_of(kernel: Kernel) -> str:
    """Return the key of a kernel of the rules, a digest of its C: equal work has equal C."""
    return blake2b(kernel.code.encode(), digest_size=20).hexdigest()


@contextmanager
def chosen(choices: Mapping[str, Choice]) -> Iterator[None]:
    """Emit kernels by the choices for their keys, marked with these; without any choice, nothing changes."""
    if not choices:
        yield
        return

    def choose(group: Group, default: Step, make: Callable[[Choice], Step], axes: Callable[[], Axes]) -> Step:
        key = key_of(default.kernel)
        if key not in choices:
            return default
        step = make(choices[key]) if choices[key] else default
        return replace(step, kernel=replace(step.kernel, tuned=key))

    with observed(choose):
        yield


def other_tasks(tasks: int, units: int, ns: float) -> list[int]:
    """Return other numbers of tasks for a kernel of some units of work; none makes tasks too long to be cancelled."""
    counts = {1, 2, tasks // 4, 4 * tasks} - {0, tasks} - ({1} if ns > MAX_SERIAL_NS else set())
    most = min(units, MAX_TASKS)
    return sorted(c for c in counts if c <= most and (c > tasks or ns / c <= _MAX_LONG_TASK_NS))


def without(axes: Axes, default: Choice) -> Axes:
    """Return the axes without the values of the rules, and without those that are left with none."""
    others = {name: [v for v in dict.fromkeys(values) if v != default.get(name)] for name, values in axes.items()}
    return {name: values for name, values in others.items() if values}
