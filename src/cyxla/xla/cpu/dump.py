"""Dump of a compilation into the folder that CYXLA_DUMP names: passes, plan, buffers, C, and the time of each stage.

Each program has a folder, named by its module and its fingerprint. docs/debugging.md lists the files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla import config
from cyxla.xla.hlo import HloModule

if TYPE_CHECKING:
    from cyxla.xla.cpu.kernel.kernel import Kernel
    from cyxla.xla.cpu.memory.buffers import Buffers
    from cyxla.xla.passes.engine.observer import Observer
    from cyxla.xla.service.explanation import Explanation


class Dump:
    """Dump of one compilation; without a folder, every method does nothing.

    Parameters
    ----------
    module : HloModule, optional
        Program as given; without it, nothing is written.
    """

    def __init__(self, module: HloModule | None = None) -> None:
        root = config.get("DUMP") if module is not None else ""
        self.folder: Path | None = None
        self.passes: Observer | None = None
        self.seconds: dict[str, float] = {}
        if root and module is not None:
            from cyxla.xla.passes.engine.pass_dump import PassDump, folder_of  # most programs are not dumped

            self.folder = folder_of(root, module)
            self.passes = PassDump(self.folder)
            for pattern in ("unit*.c", "k*.loops.txt"):
                for stale in self.folder.glob(pattern):
                    stale.unlink(missing_ok=True)

    @property
    def active(self) -> bool:
        """True if anything is written."""
        return self.folder is not None

    def text(self, name: str, content: str) -> None:
        """Write one file."""
        if self.folder is not None:
            (self.folder / name).write_text(content, encoding="utf-8")

    def buffers(self, buffers: Buffers) -> None:
        """Write the location of every array."""
        if self.folder is not None:
            lines = [f"arena {buffers.arena_bytes} bytes"]
            lines += [
                f"{p.kind:8} {p.at:10} {v.shape.nbytes:12} {v.instruction!r} {v.index}"
                for v, p in buffers.locations.items()
            ]
            self.text("buffers.txt", "\n".join(lines) + "\n")

    def loops(self, kernels: Iterable[tuple[str, Kernel]], module: HloModule) -> None:
        """Write the loop IR of each kernel; names of instructions are those in the text of the module."""
        if self.folder is not None:
            from cyxla.xla.hlo.text.printer import names_of  # most programs are not dumped

            names = names_of(module)
            for name, kernel in kernels:
                if kernel.loops:
                    self.text(f"{name}.loops.txt", "\n".join(listing.text(names) for listing in kernel.loops))

    def explanation(self, explanation: Explanation) -> None:
        """Write the explanation for people and for tools."""
        self.text("explain.txt", f"{explanation}\n")
        self.text("explain.json", json.dumps(explanation.as_dict(), indent=2) + "\n")

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Measure the time of a stage."""
        start = time.perf_counter()
        yield
        self.note(stage, time.perf_counter() - start)

    def note(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage, or of a unit in the C compiler."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        if self.folder is not None:
            self.text("seconds.json", json.dumps(self.seconds, indent=2) + "\n")
