"""Fuzzing: python tests/fuzz.py hlo stablehlo --seconds 60 --seed 1 --keep findings; see docs/reliability.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

os.environ.setdefault("CYXLA_TIER", "native")
os.environ.setdefault("CYXLA_TRACEBACK", "full")

from fuzzing.kinds import KINDS
from fuzzing.minimise import minimised
from fuzzing.supervisor import hunt
from fuzzing.worker import Finding


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["all"], metavar="KIND", help=f"all, or some of {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, default=60, help="time of all kinds together")
    parser.add_argument("--count", type=int, help="inputs of each kind, instead of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--deep", type=float, help="part of the inputs that are also compiled for the cpu and run")
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="folders of more files to mutate")
    parser.add_argument("--keep", type=Path, help="folder for findings")
    parser.add_argument("--same", type=int, default=3, help="findings of one place that are printed and kept")
    parser.add_argument("--minimise", type=float, default=30, help="seconds for making a finding small; 0 is not to")
    parser.add_argument("--replay", type=Path, nargs="*", help="files of inputs to try again, of the one kind named")
    return parser.parse_args()


def chosen(names: list[str]) -> list[str]:
    for name in names:
        if name not in KINDS and name != "all":
            sys.exit(f"there is no kind {name!r}; want all, or some of {', '.join(KINDS)}")
    return list(KINDS) if "all" in names else names


def report(name: str, findings: list[Finding], options: argparse.Namespace) -> None:
    """Print findings, make them small, and keep them as files: the input, and beside it how it ended."""
    kind, seen = KINDS[name](), Counter()
    kind.prepare(options.corpus)
    for finding in findings:
        seen[finding.signature] += 1
        if seen[finding.signature] > options.same:
            continue
        print(f"{finding.label} in {finding.place}: {name}, seed {options.seed}, input {finding.index}", flush=True)
        if seen[finding.signature] > 1:
            small = finding.data
        else:
            small = minimised(kind, finding, options.minimise) if options.minimise and finding.data else finding.data
            print(small.decode("utf-8", "backslashreplace")[:2000], finding.detail[-2000:], sep="\n", flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{name}-{options.seed}-{finding.index}"
            path.with_suffix(kind.suffix).write_bytes(small)
            path.with_suffix(".whole" + kind.suffix).write_bytes(finding.data)
            path.with_suffix(".txt").write_text(f"{finding.label}\n{finding.place}\n{finding.detail}")
    for signature, times in seen.items():
        print(f"{times} x {': '.join(signature)}")


def replay(name: str, paths: list[Path]) -> bool:
    """Try inputs in this process: errors are seen as they are raised."""
    kind = KINDS[name]()
    for path in paths:
        print(path, flush=True)
        kind.attempt(path.read_bytes(), True, print)
    return False


def main() -> int:
    options = arguments()
    names = chosen(options.kinds)
    if options.replay is not None:
        return replay(names[0], options.replay)
    failed = False
    for name in names:
        kind = KINDS[name]()
        kind.prepare(options.corpus)
        seconds = float("inf") if options.count else options.seconds / len(names)
        tally = hunt(kind, options.seed, seconds, count=options.count, deep=options.deep, first=options.first)
        print(tally, flush=True)
        report(name, tally.findings, options)
        failed = failed or bool(tally.findings)
    return failed


if __name__ == "__main__":
    sys.exit(main())
