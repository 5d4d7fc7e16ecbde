"""Run NumPy's own tests through `cyxla.jit`: python .ci/numpy_suite.py [--short] [FILE ...].

The tests are those of the installed NumPy. Every call that one makes of a function that cyxla knows is made through
`cyxla.jit` as well (`jitted_numpy.py`), and the test goes on with what that gave. A test that fails so, but passes with
NumPy's results, differs; the differences that are known and why stand in `numpy_suite.json`. Anything else, a test that
hangs, or one that ends its process, makes the exit status 1.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KNOWN = HERE / "numpy_suite.json"
FILES = {
    "_core": "test_multiarray test_umath test_umath_complex test_ufunc test_numeric test_einsum test_item_selection "
    "test_half test_function_base test_shape_base test_scalarmath test_nep50_promotions test_indexerrors "
    "test_regression test_indexing test_mem_overlap test_umath_accuracy",
    "lib": "test_function_base test_nanfunctions test_arraypad test_arraysetops test_histograms test_index_tricks "
    "test_packbits test_polynomial test_shape_base test_stride_tricks test_twodim_base test_type_check "
    "test_ufunclike test_regression test_array_utils",
    "linalg": "test_linalg test_regression",
    "fft": "test_pocketfft test_helper",
}  # the longest first
SHORT = {
    "_core": "test_einsum test_item_selection test_half test_numeric",
    "lib": "test_nanfunctions test_arraypad test_arraysetops test_index_tricks test_polynomial test_type_check "
    "test_twodim_base",
    "linalg": "test_regression",
    "fft": "test_helper",
}
SHORT_CALLS = 6
MOST_DEATHS = 10  # of the process that runs a file
ALWAYS_WRONG = ("value", "dtype", "shape")  # kinds of differences between calls that are nobody's choice


@dataclass
class Outcome:
    """How the tests of a file ended.

    Attributes
    ----------
    tests : dict of str to dict
        What `jitted_numpy` wrote down, by test.
    differing : dict of str to str
        Tests that pass with NumPy's results but not with those of `cyxla.jit`, and why.
    """

    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    differing: dict[str, str] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        """How many tests ended so."""
        return sum(t["outcome"] == outcome for t in self.tests.values())


def numpy_folder() -> Path:
    """Where NumPy is installed."""
    found = importlib.util.find_spec("numpy")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def test_files(table: dict[str, str], wanted: list[str]) -> list[Path]:
    """The files of a table, or those that are named on the command line."""
    every = [numpy_folder() / part / "tests" / f"{name}.py" for part, names in table.items() for name in names.split()]
    chosen = [f for f in every if not wanted or any(fnmatch.fnmatch(_label(f), f"*{w}*") for w in wanted)]
    missing = [f for f in chosen if not f.exists()]
    if missing:
        raise SystemExit(f"this NumPy comes without {', '.join(map(str, missing))}")
    return chosen


def _label(file: Path) -> str:
    return f"{file.parent.parent.name}/{file.stem}"


def run(file: Path, options: argparse.Namespace) -> Outcome:
    """Run the tests of a file, and those that fail once more with NumPy's results."""
    found = Outcome(_run(file, options, "strict", None))
    failed = [name for name, t in found.tests.items() if t["outcome"] in ("failed", "died")]
    control = _run(file, options, "plain", failed) if failed else {}
    for name in failed:
        if control.get(name, {}).get("outcome") == "passed" or name == file.name:
            found.differing[name] = found.tests[name]["why"]
    print(f"{_label(file)}: {found.count('passed')} pass, {len(found.differing)} differ", file=sys.stderr, flush=True)
    return found


def save(found: dict[Path, Outcome], file: str) -> None:
    """Write down what is known so far."""
    made = {_label(f): {"tests": o.tests, "differing": o.differing} for f, o in found.items()}
    Path(file).write_text(json.dumps(made, indent=1))


def _run(file: Path, options: argparse.Namespace, mode: str, only: list[str] | None) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        tests: dict[str, dict[str, Any]] = {}
        for _ in range(MOST_DEATHS):
            before = len(tests)
            code = _process(file, options, mode, only, list(tests), results)
            tests, under_way = _read(results)
            if under_way is not None:
                tests[under_way] = _dead(f"the process ended with {code}")
            elif code in (0, 1, 5) or len(tests) == before:
                if code not in (0, 1, 5):
                    tests[file.name] = _dead(f"pytest ended with {code}")
                break
            results.write_text("".join(json.dumps({"end": n, **t}) + "\n" for n, t in tests.items()))
        return tests


def _dead(why: str) -> dict[str, Any]:
    return {"outcome": "died", "why": why, "counts": {}, "notes": []}


def _process(
    file: Path, options: argparse.Namespace, mode: str, only: list[str] | None, done: list[str], results: Path
) -> int:
    settings = {
        "mode": mode, "platform": options.platform, "calls": options.calls, "seconds": options.seconds,
        "texts": options.texts, "results": str(results), "only": only, "done": done,
    }  # fmt: skip
    folder = numpy_folder()
    paths = filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMPY_SUITE": json.dumps(settings), "PYTHONPATH": os.pathsep.join(paths)}
    command = [
        sys.executable, "-m", "pytest", "-p", "jitted_numpy", "-p", "no:cacheprovider", "-p", "no:xdist", "-q",
        "--tb=short", "-c", os.devnull, f"--rootdir={folder}", f"--confcutdir={folder}",
        "-k", options.select, str(file),
    ]  # fmt: skip
    log = results.with_name("log")
    with open(log, "w") as output:
        try:
            return subprocess.run(
                command, cwd=results.parent, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False,
                timeout=options.file_seconds, preexec_fn=lambda: _limit_memory(options.memory),
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return -9
        finally:
            if options.verbose:
                print(log.read_text()[-4000:], file=sys.stderr)


def _limit_memory(gigabytes: float) -> None:
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _read(results: Path) -> tuple[dict[str, dict[str, Any]], str | None]:
    """The tests that ended, and the one that did not."""
    tests: dict[str, dict[str, Any]] = {}
    under_way = None
    for text in results.read_text().splitlines():
        line = json.loads(text)
        if "begin" in line:
            under_way = line["begin"]
            continue
        name = line.pop("end")
        if tests.get(name, {}).get("outcome") != "failed":  # a test may pass and fail while it is torn down
            tests[name] = line
        under_way = None if name == under_way else under_way
    last = [json.loads(t) for t in results.read_text().splitlines()[-1:]]
    return tests, under_way if last and "begin" in last[0] else None


def reason(name: str, known: dict[str, str]) -> str | None:
    """Why a test differs, if that is known."""
    return next((why for pattern, why in known.items() if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))), None)


def report(found: dict[Path, Outcome], options: argparse.Namespace) -> int:
    """Print a table, write the results, judge."""
    known = {p: why for why, patterns in json.loads(KNOWN.read_text()).items() for p in patterns}
    counts: Counter[str] = Counter()
    print(f"{'file':28} {'pass':>6} {'skip':>5} {'differ':>6} {'known':>6} {'calls':>7} {'refused':>7}")
    new: dict[str, str] = {}
    for file, outcome in found.items():
        own = Counter(k for t in outcome.tests.values() for k, n in t["counts"].items() for _ in range(n))
        counts += own
        fresh = {n: why for n, why in outcome.differing.items() if reason(n, known) is None}
        new |= fresh
        compared = own.total() - own["other arguments"]
        print(
            f"{_label(file):28} {outcome.count('passed'):6} {outcome.count('skipped'):5} {len(outcome.differing):6} "
            f"{len(outcome.differing) - len(fresh):6} {compared:7} {own['refused']:7}"
        )
    print(", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    for name, why in new.items():
        print(f"NEW {name}\n    {why.splitlines()[-1] if why else ''}")
    passed = sum(o.count("passed") for o in found.values())
    differing = sum(len(o.differing) for o in found.values())
    print(f"{passed} tests pass, {differing} differ, {len(new)} of them are new")
    return int(bool(new) or not passed or not counts["same"])


def main() -> int:
    """Run all, report, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="parts of names, such as lib/test_histograms; all by default")
    parser.add_argument("--short", action="store_true", help="some of the files, and few calls of each test")
    parser.add_argument("--platform", default="interpreter", help="of cyxla.jit (interpreter)")
    parser.add_argument("--calls", type=int, default=None, help="of each test that go through cyxla.jit (300)")
    parser.add_argument("--seconds", type=float, default=60, help="that a test may take (60)")
    parser.add_argument("--file-seconds", type=float, default=3600, help="that the tests of a file may take (3600)")
    parser.add_argument("--memory", type=float, default=8, help="GB of addresses that a process may have (8)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--select", default="not slow", help="pytest's -k (not slow)")
    parser.add_argument("--json", help="a file for the results")
    parser.add_argument("--texts", action="store_true", help="judge the messages of errors, too")
    parser.add_argument("--verbose", action="store_true", help="show what pytest prints")
    options = parser.parse_args()
    if options.calls is None:
        options.calls = SHORT_CALLS if options.short else 300
    files = test_files(SHORT if options.short else FILES, options.files)
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run, file, options): file for file in files}
        found: dict[Path, Outcome] = {}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result()
            if options.json:
                save(found, options.json)
    return report({f: found[f] for f in files}, options)


if __name__ == "__main__":
    sys.exit(main())
