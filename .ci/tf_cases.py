"""Run graphs whose results TensorFlow recorded: python .ci/tf_cases.py RUNNER.

Right answers and the codes of errors both count; what TensorFlow itself cannot compile does not. The runner starts a
process for each folder of cases; here two processes take them all, by its own function, in a tenth of the time.
"""

import json
import signal
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from runner import load

# (folder beside the runner, jit, platform, least part that must pass)
CHECKS = [
    ("cases", "off", "cpu", 1.0),
    *(("models", jit, "cpu", 1.0) for jit in ("off", "auto", "on")),
]
LIMIT = 240  # seconds for a folder: one that hangs ends its process, and with it the check


def results(runner: Path, jit: str, platform: str, folder: Path) -> dict[str, tuple[str, str]]:
    """Status and detail of each case of a folder."""
    signal.alarm(LIMIT)
    with tempfile.NamedTemporaryFile() as report:
        options = {"worker": str(folder), "jit": jit, "platform": platform, "json": report.name}
        load(runner).worker(Namespace(**options, module="cyxla", skip=0))
        first, *lines = map(json.loads, Path(report.name).read_text().splitlines())
    signal.alarm(0)
    found = {name: (status, detail) for name, status, detail, _ in (line for line in lines if line[0] != "#start")}
    return {name: found.get(name, ("error", "no result")) for name in first[1]}


def check(pool: ProcessPoolExecutor, runner: Path, folder: str, jit: str, platform: str, least: float) -> bool:
    """Run, report, judge."""
    folders = sorted(path.parent for path in runner.parent.glob(f"{folder}/*/cases.json"))
    counts: Counter[str] = Counter()
    for where, found in zip(folders, pool.map(partial(results, runner, jit, platform), folders), strict=True):
        counts.update(status for status, _ in found.values())
        for name, (status, detail) in found.items():
            if status not in ("pass", "na"):
                print(f"{folder} jit={jit} {where.name}/{name}: {status} {detail}")
    asked = counts.total() - counts["na"]
    print(f"{folder} jit={jit} platform={platform}: {counts['pass']} of {asked} passed, {counts['na']} not applicable")
    return bool(asked) and counts["pass"] >= least * asked


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        verdicts = [check(pool, Path(sys.argv[1]).resolve(), *each) for each in CHECKS]
    sys.exit(not all(verdicts))
