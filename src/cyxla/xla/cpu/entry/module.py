"""C of a planned module: the distinct kernels, and the entry that calls them."""

from __future__ import annotations

from cyxla.records import dataclass
from cyxla.xla.cpu.c.outline import outline_functions
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.entry.control_flow import DEFINITIONS, ControlWriter
from cyxla.xla.cpu.entry.kernel_timers import Meter
from cyxla.xla.cpu.entry.launch_tables import short_tests
from cyxla.xla.cpu.entry.recipe import recipe
from cyxla.xla.cpu.kernel.hlo_quotes import head, with_quotes
from cyxla.xla.cpu.kernel.kernel import Kernel
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.native import split_units
from cyxla.xla.cpu.plan.nodes import Plan

SIGNATURE = "(void *const *bufs, int64_t begin, int64_t end)"
MAX_INLINED_KERNELS = 8  # distinct kernels up to which gcc may inline them into the entry


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
        Steps that run in place of the units if all kernels are prebuilt.
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
        Plan of the entry computation.
    buffers : Buffers
        Buffers of the plan.
    seed : int
        Seed of the random numbers.
    profile : bool
        True if every call of a kernel is measured.
    """
    names: dict[str, str] = {}
    kernels: dict[str, Kernel] = {}
    definitions: dict[str, str] = {}
    for step in plan.steps():
        if step.kernel.code not in names:
            name = names[step.kernel.code] = f"k{len(names)}"
            kernels[name] = step.kernel
            definitions[name] = head(step) + outline_functions(with_quotes(step)).replace("KERNEL", name)
    functions = plan.functions()
    meter = Meter(list(plan.steps()), len(functions)) if profile else None
    control = ControlWriter(buffers, lambda kernel: names[kernel.code], functions, seed, meter)
    entry = control.entry(plan)
    tests = short_tests(kernels, is_inlined=len(kernels) <= MAX_INLINED_KERNELS)
    calls = "\n".join([*([meter.definitions] if meter else []), tests, *control.helper_functions, entry])
    entry_size = len(calls) - control.table_size
    count = split_units.unit_count(entry_size + sum(map(split_units.code_size, names)))
    texts = _one_unit(definitions, calls) if count == 1 else _many_units(definitions, calls, entry_size, count)
    return Source(tuple(texts), tuple(kernels.items()), None if profile else recipe(plan, buffers))


def _one_unit(definitions: dict[str, str], calls: str) -> list[str]:
    noinline = "__attribute__((noinline)) " if len(definitions) > MAX_INLINED_KERNELS else ""
    prototypes = (
        "".join(f"{noinline}static cyx_status {name}{SIGNATURE};\n" for name in definitions) if noinline else ""
    )
    return [_with_prelude("\n".join([DEFINITIONS + "CYX_LIBRARY\n" + prototypes, *definitions.values(), calls]))]


def _many_units(definitions: dict[str, str], calls: str, entry_size: int, count: int) -> list[str]:
    """Return the entry in the first unit, and kernels and separable functions distributed by their compile cost."""
    kernel_parts = [split_units.split_kernel(k, name, text) for k, (name, text) in enumerate(definitions.items())]
    parts = [part for of_kernel in kernel_parts for part in of_kernel]
    first, *others = split_units.distribute(entry_size, parts, count)
    prototypes = "".join(f"cyx_status {name}{SIGNATURE};\n" for name in definitions)
    header = DEFINITIONS + "CYX_LIBRARY\n" + prototypes
    return [
        _with_prelude("\n".join([header, *_texts(first), calls])),
        *(_with_prelude("\n".join(_texts(o))) for o in others),
    ]


def _texts(parts: list[split_units.Part]) -> list[str]:
    """Return the texts of a unit, with types that its parts share once."""
    complete = {
        part.order[0] for part in parts if part.order[1] == 0
    }  # kernels whose text, with the types, is in this unit
    texts: dict[str, None] = {}
    for part in parts:
        if part.order[0] not in complete and part.types:
            texts[part.types] = None
        texts[part.text] = None
    return list(texts)


def _with_prelude(body: str) -> str:
    return prelude(body) + body
