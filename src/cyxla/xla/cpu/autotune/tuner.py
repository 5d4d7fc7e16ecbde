"""Choice of variants for the heavy kernels of a program, from records or by measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cyxla.errors import OpError
from cyxla.xla.cpu.autotune.records import Record, Records
from cyxla.xla.cpu.autotune.search import Finding, search, unmeasured
from cyxla.xla.cpu.autotune.sites import Site, alone, collector
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.variants import Choice, key_of
from cyxla.xla.cpu.lowering import emit
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions, Executable

#: Function that compiles a program that went through all passes, with choices by keys of kernels.
BuildProgram = Callable[[HloModule, Mapping[str, Choice]], Executable]

MIN_NS = 100_000.0  # estimated time of a kernel that is worth measuring


def tune(module: HloModule, options: CompileOptions, records: Records, build: BuildProgram) -> dict[str, Record]:
    """Return a record for every heavy kernel of a program that has variants, by its key.

    Parameters
    ----------
    module : HloModule
        Program after all passes.
    options : CompileOptions
        Options of its compilation.
    records : Records
        Choices measured on this machine, to which new ones are added.
    build : callable
        Function that compiles programs of one kernel.
    """
    sites: dict[str, Site] = {}
    with variants.observed(collector(sites, MIN_NS)):
        emit(module, options)
    return {key: records.get(site) or _measured(site, records, build) for key, site in sites.items()}


def _measured(site: Site, records: Records, build: BuildProgram) -> Record:
    """Measure the variants of a kernel and keep the result."""
    finding = _search(site, build)
    record = Record(
        site.key, records.machine, site.label, finding.choice, finding.gain, finding.measured, finding.rejected
    )
    records.put(record, site)
    return record


def _search(site: Site, build: BuildProgram) -> Finding:
    if site.group.live or site.group.stops:
        return unmeasured("its sizes are known at run time")
    module = alone(site.group)
    try:
        if not _is_kernel(module, site.key):
            return unmeasured("it is another kernel by itself")
        return search(lambda choice: build(module, {site.key: choice}), site.axes)
    except OpError as error:
        return unmeasured(error.message.partition("\n")[0])
    except MemoryError:
        return unmeasured("there is no memory for its arguments")


def _is_kernel(module: HloModule, key: str) -> bool:
    """Return whether a program is nothing but the kernel of a key."""
    plan, _, _ = emit(module)
    return [key_of(step.kernel) for step in plan.steps()] == [key]
