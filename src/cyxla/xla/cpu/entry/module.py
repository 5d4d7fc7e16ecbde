"""C of a planned module: the distinct kernels, and the entry that calls them."""

from __future__ import annotations

from dataclasses import dataclass

from cyxla.xla.cpu.c.outline import outline_functions
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.entry.control_flow import DEFINITIONS, ControlWriter
from cyxla.xla.cpu.entry.meter import Meter
from cyxla.xla.cpu.entry.recipe import recipe
from cyxla.xla.cpu.kernel.kernel import Kernel
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.native import split_units
from cyxla.xla.cpu.plan.nodes import Plan

SIGNATURE = "(void *const *bufs, int64_t begin, int64_t end)"
MAX_INLINED_KERNELS = 8  # distinct kernels; above, gcc is kept from copying kernels into the entry


@dataclass(frozen=True)
class Source:
    """The C of a module.

    Attributes
    ----------
    units : tuple of str
        Self-contained texts; the first holds the entry.
    kernels : tuple of (str, Kernel)
        The distinct kernels by C name, in the order of their first use.
    recipe : bytes or None
        What runs in place of the units if all kernels are prebuilt.
    """

    units: tuple[str, ...]
    kernels: tuple[tuple[str, Kernel], ...]
    recipe: bytes | None = None

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
    count = split_units.unit_count(len(calls) + sum(map(len, names)))
    texts = _one_unit(kernels, calls) if count == 1 else _many_units(kernels, calls, count)
    return Source(tuple(texts), tuple(kernels.items()), None if profile else recipe(plan, buffers))


def _definition(name: str, kernel: Kernel) -> str:
    return outline_functions(kernel.text).replace("KERNEL", name)


def _one_unit(kernels: dict[str, Kernel], calls: str) -> list[str]:
    apart = "__attribute__((noinline)) " if len(kernels) > MAX_INLINED_KERNELS else ""
    prototypes = "".join(f"{apart}static cyx_status {name}{SIGNATURE};\n" for name in kernels) if apart else ""
    body = "\n".join([DEFINITIONS + "CYX_LIBRARY\n" + prototypes, *(_definition(*k) for k in kernels.items()), calls])
    return [_complete(body)]


def _many_units(kernels: dict[str, Kernel], calls: str, count: int) -> list[str]:
    """The entry in the first unit; kernels, and functions that can stand apart, where there is least to do."""
    parts = [part for k, (name, kernel) in enumerate(kernels.items()) for part in _parts(k, name, kernel)]
    first, *others = split_units.distribute(len(calls), parts, count)
    prototypes = "".join(f"cyx_status {name}{SIGNATURE};\n" for name in kernels)
    head = DEFINITIONS + "CYX_LIBRARY\n" + prototypes
    return [_complete("\n".join([head, *_texts(first), calls])), *(_complete("\n".join(_texts(o))) for o in others)]


def _parts(number: int, name: str, kernel: Kernel) -> list[split_units.Part]:
    return split_units.split_kernel(number, name, _definition(name, kernel))


def _texts(parts: list[split_units.Part]) -> list[str]:
    """The texts of a unit; types that its parts share, once."""
    whole = {part.order[0] for part in parts if part.order[1] == 0}  # these have their types with them
    texts: dict[str, None] = {}
    for part in parts:
        if part.order[0] not in whole and part.types:
            texts[part.types] = None
        texts[part.text] = None
    return list(texts)


def _complete(body: str) -> str:
    return prelude(body) + body
