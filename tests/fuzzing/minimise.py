"""Makes inputs small: leaves out pieces as long as the finding stays the same."""

from __future__ import annotations

import time

from fuzzing.kind import Kind
from fuzzing.supervisor import Worker, scratch_folder
from fuzzing.worker import Finding


def minimised(kind: Kind, finding: Finding, seconds: float = 60.0, tries: int = 2000) -> bytes:
    """A smaller input with the same finding, or the same input."""
    deadline = time.monotonic() + seconds
    with scratch_folder() as scratch:
        worker = Worker(kind, 0, 1.0, scratch)

        def fails(data: bytes) -> bool:
            nonlocal tries
            tries -= 1
            worker.found.clear()
            worker.ask("try", data)
            return any(f.signature == finding.signature for f in worker.found)

        def is_over() -> bool:
            return tries <= 0 or time.monotonic() > deadline

        data = finding.data
        if not fails(data):
            worker.close()
            return data
        for grain in range(len(kind.cuts(data))):
            data = _without_parts(kind.cuts(data)[grain], fails, is_over)
        worker.close()
    return data


def _without_parts(pieces, fails, is_over) -> bytes:
    """Delta debugging: runs of pieces are left out, shorter and shorter ones."""
    size = max(1, len(pieces) // 2)
    while True:
        at = 0
        while at < len(pieces) and not is_over():
            rest = pieces[:at] + pieces[at + size :]
            if rest and fails(b"".join(rest)):
                pieces = rest
            else:
                at += size
        if size == 1 or is_over():
            return b"".join(pieces)
        size = max(1, size // 2)
