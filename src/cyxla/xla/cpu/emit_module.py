"""A planned module as C: the distinct kernels, and the entry that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cyxla.xla.cpu.buffers import Buffers
from cyxla.xla.cpu.build import MAX_JOBS
from cyxla.xla.cpu.emit_control import DEFINITIONS, ControlWriter
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.cpu.nodes import Plan
from cyxla.xla.cpu.prelude import prelude
from cyxla.xla.cpu.profile import Meter

SIGNATURE = "(void *const *bufs, int64_t begin, int64_t end)"
SPLIT_ABOVE = 40  # distinct kernels in one unit; above, several compilers share the work
SPLIT_LENGTH = 64_000  # characters of kernels in one unit, likewise
INLINE_UP_TO = 8  # distinct kernels; above, gcc is kept from copying kernels into the entry


@dataclass(frozen=True)
class Source:
    """The C of a module.

    Attributes
    ----------
    units : tuple of str
        Self-contained texts; the first holds the entry.
    kernels : tuple of (str, Kernel)
        The distinct kernels by C name, in the order of their first use.
    """

    units: tuple[str, ...]
    kernels: tuple[tuple[str, Kernel], ...]

    @property
    def text(self) -> str:
        """All units, one after the other."""
        return "\n".join(self.units)


def emit_module(plan: Plan, buffers: Buffers, seed: int = 0, *, profile: bool = False) -> Source:
    """Write the C of a module.

    Parameters
    ----------
    plan : Plan
        Of the entry computation.
    buffers : Buffers
        Its memory.
    seed : int
        Start of the random numbers.
    profile : bool
        Measure every call of a kernel.
    """
    names: dict[str, str] = {}
    kernels: dict[str, Kernel] = {}
    for step in plan.steps():
        if step.kernel.text not in names:
            name = names[step.kernel.text] = f"k{len(names)}"
            kernels[name] = step.kernel
    functions = plan.functions()
    meter = Meter(list(plan.steps()), len(functions)) if profile else None
    control = ControlWriter(buffers, lambda kernel: names[kernel.text], functions, seed, meter)
    entry = control.entry(plan)
    calls = "\n".join([*([meter.definitions] if meter else []), *control.parts, entry])
    length = sum(len(text) for text in names)
    pieces = min(max(-(-len(kernels) // SPLIT_ABOVE), -(-length // SPLIT_LENGTH)), MAX_JOBS, max(len(kernels), 1))
    texts = _one_unit(kernels, calls) if pieces <= 1 else _many_units(kernels, calls, pieces)
    return Source(tuple(texts), tuple(kernels.items()))


def _definition(name: str, kernel: Kernel) -> str:
    return kernel.text.replace("KERNEL", name)


def _one_unit(kernels: dict[str, Kernel], calls: str) -> list[str]:
    apart = "__attribute__((noinline)) " if len(kernels) > INLINE_UP_TO else ""
    prototypes = "".join(f"{apart}static cyx_status {name}{SIGNATURE};\n" for name in kernels) if apart else ""
    body = "\n".join([DEFINITIONS + "CYX_LIBRARY\n" + prototypes, *(_definition(*k) for k in kernels.items()), calls])
    return [_complete(body)]


def _many_units(kernels: dict[str, Kernel], calls: str, pieces: int) -> list[str]:
    """The entry in one unit, the kernels dealt out by the length of their text."""
    prototypes = "".join(f"cyx_status {name}{SIGNATURE};\n" for name in kernels)
    first = _complete("\n".join([DEFINITIONS + "CYX_LIBRARY\n" + prototypes, calls]))
    piles: list[list[str]] = [[] for _ in range(pieces)]
    sizes = [0] * pieces
    for name in sorted(kernels, key=lambda n: -len(kernels[n].text)):  # stable: equal lengths stay in order
        smallest = sizes.index(min(sizes))
        piles[smallest].append(name)
        sizes[smallest] += len(kernels[name].text)
    return [first, *(_complete(_external(kernels, sorted(pile, key=lambda n: int(n[1:])))) for pile in piles if pile)]


def _external(kernels: dict[str, Kernel], names: Sequence[str]) -> str:
    return "\n".join(_definition(n, kernels[n]).replace(f"static cyx_status {n}(", f"cyx_status {n}(") for n in names)


def _complete(body: str) -> str:
    return prelude(body) + body
