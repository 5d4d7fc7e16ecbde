"""Results of measurements, and their place in the disk cache: data by kernel, machine and version of the package."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from cyxla.records import dataclass
from cyxla.xla.cpu.autotune.sites import Site
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.kernel.variants import Axes, Choice
from cyxla.xla.cpu.native import library
from cyxla.xla.cpu.native.cache import DiskCache
from cyxla.xla.cpu.native.toolchain import Toolchain


@dataclass(frozen=True)
class Record:
    """Result of the measurements of a kernel.

    Attributes
    ----------
    kernel : str
        Key of the kernel of the rules.
    machine : str
        Processor, number of threads and instruction-set level.
    label : str
        Opcode and shapes, for people.
    choice : mapping of str to int
        Parameters that replace those of the rules; empty if none is faster.
    gain : float
        Time of the kernel of the rules in times of the one chosen, as confirmed; 1 without a choice.
    measured : int
        Number of variants that were measured.
    rejected : mapping of str to str
        Variants that were not measured, each with the reason.
    """

    kernel: str
    machine: str
    label: str
    choice: Choice
    gain: float
    measured: int
    rejected: Mapping[str, str]

    def __str__(self) -> str:
        by_reason: dict[str, list[str]] = {}
        for variant, reason in self.rejected.items():
            by_reason.setdefault(reason, []).append(variant)
        reasons = [f"; without {' | '.join(names)}: {reason}" for reason, names in by_reason.items()]
        return self._result + "".join(reasons)

    @property
    def _result(self) -> str:
        if self.choice:
            return f"{text_of(self.choice)}, {self.gain:.2f} times as fast as by the rules"
        return f"by the rules; none of {self.measured} variants is faster" if self.measured else "by the rules"


def text_of(choice: Choice) -> str:
    """Return the text of a choice for people."""
    return ", ".join(f"{name}={value}" for name, value in choice.items())


class Records:
    """Records of this machine in the disk cache.

    Parameters
    ----------
    disk : DiskCache or None
        Cache; without one, nothing is found and nothing is kept.
    tools : Toolchain
        C compiler; its keys also name the sources of this package.
    """

    def __init__(self, disk: DiskCache | None, tools: Toolchain) -> None:
        self.disk, self.tools, self.machine = disk, tools, machine_name()

    def get(self, site: Site) -> Record | None:
        """Return the record of a kernel; one that is damaged, or of another kernel or machine, is none."""
        entry = self.disk.get_module(self.key(site)) if self.disk is not None else None
        if entry is None or not _is_valid(entry.manifest, self.machine, site):
            return None
        return Record(**entry.manifest)

    def put(self, record: Record, site: Site) -> None:
        """Keep a record."""
        if self.disk is not None:
            self.disk.put_module(self.key(site), asdict(record), b"")

    def key(self, site: Site) -> str:
        """Return the key of the entry of a kernel."""
        return self.tools.module_key(site.key, f"autotune {self.machine}")


def _is_valid(data: Any, machine: str, site: Site) -> bool:
    """Return whether data are a record of a kernel on a machine, and its choice is among those of today."""
    fields = Record.__annotations__
    if not isinstance(data, dict) or data.keys() != fields.keys():
        return False
    kinds = {"choice": dict, "gain": float, "measured": int, "rejected": dict}
    if not all(isinstance(data[name], kinds.get(name, str)) for name in fields):
        return False
    is_ours = (data["kernel"], data["machine"]) == (site.key, machine)
    return is_ours and all(_is_offered(name, value, site.axes) for name, value in data["choice"].items())


def _is_offered(name: str, value: Any, axes: Axes) -> bool:
    return type(value) is int and value in axes.get(name, ())


def machine_name() -> str:
    """Return the processor, the number of threads and the instruction-set level."""
    return f"{_processor()}, {library.threads()} threads, {isa_level()}"


@cache
def _processor() -> str:
    """Return the name of the processor, with family, model and stepping where the name alone is vague."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(re.findall(r"^(model name|cpu family|model|stepping|cache size)\s*:\s*(.*)$", text, re.MULTILINE))
    return " ".join(facts.values()) or platform.machine()
