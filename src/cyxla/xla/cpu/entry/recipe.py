"""Recipes: the steps of a program as numbers, if all its kernels are prebuilt, so that no compiler is needed.

``src/native/recipe.h`` defines the numbers and runs them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cyxla._native import kernels as library
from cyxla.xla.cpu.entry.launch_tables import first_buffer, kernel_locations
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.memory.buffers import Buffers, Copy
from cyxla.xla.cpu.memory.locations import Location, MemoryKind
from cyxla.xla.cpu.plan.nodes import KernelNode, Plan

MAX_BUFFERS: Final = 31  # buffers of one kernel


def recipe(plan: Plan, buffers: Buffers) -> bytes | None:
    """Return the recipe of an entry's plan; None if some of its steps need C."""
    if not all(isinstance(node, KernelNode) and _is_call(node) for node in plan.nodes):
        return None
    if any(copy.part is not None for copy in buffers.copies.get((plan, "return", 0), ())):
        return None  # the size of such a copy is known at run time
    steps: list[list[int]] = []
    for node in plan.nodes:
        assert isinstance(node, KernelNode)
        steps += _copies(buffers, buffers.copies.get((node, "before", 0), ()))
        if any(v.shape.nbytes for v in node.step.writes):
            steps.append(_call(buffers, node))
    steps += _copies(buffers, buffers.copies.get((plan, "return", 0), ()))
    return library.recipe([word for step in steps for word in step], len(steps))


def _is_call(node: KernelNode) -> bool:
    step = node.step
    buffers = len(step.reads) + len(step.writes) + 2
    return step.kernel.call is not None and not (
        step.offsets or step.functions or step.state or step.context or buffers > MAX_BUFFERS
    )


def _call(buffers: Buffers, node: KernelNode) -> list[int]:
    kernel = node.step.kernel
    assert kernel.call is not None
    function = prebuilt_calls.number(kernel.call.name)
    assert function is not None
    buffer_numbers = [_buffer_number(buffers, location) for location in kernel_locations(buffers, node)]
    numbers = kernel.call.numbers
    return [
        library.CALL,
        function,
        kernel.tasks,
        kernel.phases,
        len(buffer_numbers),
        *buffer_numbers,
        len(numbers),
        *numbers,
    ]


def _copies(buffers: Buffers, copies: Iterable[Copy]) -> list[list[int]]:
    return [
        [library.COPY, _buffer_number(buffers, c.target), _buffer_number(buffers, c.source), c.nbytes] for c in copies
    ]


def _buffer_number(buffers: Buffers, location: Location) -> int:
    return (
        2 * location.at
        if location.kind is MemoryKind.ARENA
        else 2 * (first_buffer(buffers, location) + location.at) + 1
    )
