"""Check that cases give the same bits on 1, 2 and 8 threads, call after call: python .ci/same_bits.py RUNNER [FILTER].

RUNNER is the script beside a corpus of cases; FILTER a regular expression on their names.
"""

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from runner import load

import cyxla

THREADS = (1, 2, 8, 2, 1)


def nested(spec: Any, arrays: list[Any]) -> Any:
    """Arguments, where some are tuples of arrays, from their numbers."""
    return tuple(nested(s, arrays) for s in spec) if isinstance(spec, list) else arrays[spec]


def leaves(value: Any) -> Iterator[Any]:
    """The arrays of nested tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def bits(executable: cyxla.Executable, arguments: list[Any], threads: int) -> bytes:
    """All results as bytes."""
    cyxla.threads(threads)
    return b"".join(x.tobytes() for x in leaves(executable(*arguments)))


@cache
def opened(path: Path) -> Any:
    """The corpus beside a runner, once in each process."""
    return load(path).Corpus(str(path.parent))


def differs(path: Path, name: str) -> bool | None:
    """Whether the bits of a case depend on threads; None if it has no native code."""
    corpus = opened(path)
    case = corpus.cases[name]
    arrays, _ = corpus.arrays(case)
    arguments = [nested(s, arrays) for s in case["args"]] if case.get("args") else arrays
    try:
        executable = cyxla.compile(corpus.program(case, "text"))
    except cyxla.errors.UnimplementedError:
        return None
    return len({bits(executable, arguments, n) for n in THREADS}) > 1


def main(runner: str, wanted: str = "") -> int:
    """Run all, report, judge."""
    path = Path(runner).resolve()
    names = [name for name in opened(path).cases if re.search(wanted, name)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        verdicts = dict(zip(names, pool.map(partial(differs, path), names, chunksize=8), strict=True))
    wrong = [name for name, verdict in verdicts.items() if verdict]
    for name in wrong:
        print(f"DIFFERS {name}")
    lacking = sum(v is None for v in verdicts.values())
    print(f"{len(verdicts) - len(wrong) - lacking} the same, {len(wrong)} differ, {lacking} not implemented")
    return 1 if wrong or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
