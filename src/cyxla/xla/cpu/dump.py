"""Writes what the compiler made of a program into the folder that CYXLA_DUMP names.

One folder a program, named by its fingerprint: ``00_input.hlo``, a numbered file after every pass that changed
something, the C of each unit, ``buffers.txt`` with the place of every array, ``explain.txt`` with the kernels,
``seconds.json`` with the time of each stage and of each unit in the compiler.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla import config
from cyxla.xla.hlo import HloModule

if TYPE_CHECKING:
    from cyxla.xla.cpu.memory.buffers import Buffers


class Dump:
    """Writes to a folder, or to nowhere.

    Parameters
    ----------
    module : HloModule
        The program as given.
    """

    def __init__(self, module: HloModule) -> None:
        named = config.get("DUMP")
        self.folder = Path(named) / module.fingerprint()[:16] if named else None
        self.count = 0
        self.seconds: dict[str, float] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def active(self) -> bool:
        """Whether anything is written."""
        return self.folder is not None

    def hlo(self, stage: str, module: HloModule) -> None:
        """A program between two passes."""
        if self.folder is not None:
            self.text(f"{self.count:02}_{stage}.hlo", module.to_text())
            self.count += 1

    def text(self, name: str, content: str) -> None:
        """One file."""
        if self.folder is not None:
            (self.folder / name).write_text(content, encoding="utf-8")

    def buffers(self, buffers: Buffers) -> None:
        """The place of every array."""
        if self.folder is not None:
            lines = [f"arena {buffers.arena_bytes} bytes"]
            lines += [
                f"{p.kind:8} {p.at:10} {v.shape.nbytes:12} {v.instruction!r} {v.index}"
                for v, p in buffers.locations.items()
            ]
            self.text("buffers.txt", "\n".join(lines) + "\n")

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage takes."""
        start = time.perf_counter()
        yield
        self.note(stage, time.perf_counter() - start)

    def note(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage, or of a unit in the compiler."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        if self.folder is not None:
            self.text("seconds.json", json.dumps(self.seconds, indent=2) + "\n")
