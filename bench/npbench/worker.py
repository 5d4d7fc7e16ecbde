"""Process of one kernel: checks and times its versions, and appends what it finds to a file of JSON lines.

An event is written before and after each version, so that whoever waits knows which one crashed or took too long.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compare import difference
from kernels import Kernel

NUMBA = ("numba_n", "numba_np", "numba_npr")
CALLS = 3  # of ours before native code, each with arguments of its own
FEWEST_ROUNDS = 2
PAUSE = 0.05  # seconds before a timed call, in which the threads of a library that was called before go to sleep


class Worker:
    """One kernel, with what plain NumPy returned and wrote."""

    def __init__(self, kernel: Kernel, events: Path, limit: float) -> None:
        self.kernel, self.events, self.limit = kernel, events, limit
        self.functions: dict[str, Callable[..., Any]] = {}
        self.expected: tuple[Any, list[Any]] = (None, [])

    def emit(self, **event: Any) -> None:
        with self.events.open("a") as file:
            print(json.dumps(event), file=file)

    def check(self, version: str, check: Callable[[], dict[str, Any]]) -> None:
        """Emit the events around the check of a version; an exception is a result too."""
        self.emit(begin=version)
        try:
            found = check()
        except Exception as error:
            found = {"status": "error", "text": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}
        self.emit(end=version, **found)

    def call(self, function: Callable[..., Any]) -> tuple[Any, list[Any], float]:
        """Call with new arguments; return the result, the arguments afterwards, and the seconds."""
        arguments = self.kernel.arguments()
        started = time.perf_counter()
        result = function(*arguments)
        return result, arguments, time.perf_counter() - started

    def numpy(self) -> dict[str, Any]:
        function = self.kernel.function("numpy")
        result, arguments, first = self.call(function)
        self.expected = result, arguments
        self.functions["numpy"] = function
        return {"status": "right", "first": first}

    def numba(self, version: str) -> dict[str, Any]:
        """Check a version by NPBench's authors, which may return other dtypes and relies on fast mathematics."""
        function = self.kernel.function(version)
        result, arguments, first = self.call(function)
        loose = {"tolerance": max(self.kernel.tolerance, 1e-5), "dtypes": False}
        wrong = difference(result, self.expected[0], **loose) or difference(arguments, self.expected[1], **loose)
        if wrong:
            return {"status": "wrong", "text": wrong, "first": first}
        self.functions[version] = function
        return {"status": "right", "first": first}

    def ours(self) -> dict[str, Any]:
        """Check the unmodified function under `cyxla.jit`: values, written arguments and warnings."""
        import cyxla

        plain = self.kernel.function("numpy")
        started = time.perf_counter()
        function = cyxla.jit(plain)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            wrong, first = self._wrong(function)
            for _ in range(CALLS - 1):
                wrong = wrong or self._wrong(function)[0]
            function.wait(self.limit)
            ready = time.perf_counter() - started
            wrong = wrong or self._wrong(function)[0]  # of native code
        found = {"status": "right", "text": "", "first": first, "ready": ready}
        said = [w for w in caught if w.category.__module__.startswith("cyxla")]
        if said:
            found |= {"status": "warned", "text": f"{said[0].category.__name__}: {said[0].message}".splitlines()[0]}
        if wrong:
            return found | {"status": "wrong", "text": wrong}
        self.functions["cyxla"] = function
        return found

    def _wrong(self, function: Callable[..., Any]) -> tuple[str, float]:
        result, arguments, seconds = self.call(function)
        wrong = difference(result, self.expected[0], tolerance=self.kernel.tolerance)
        if not wrong:
            wrong = difference(arguments, self.expected[1], tolerance=self.kernel.tolerance)
            wrong = wrong and f"arguments{wrong}"
        return wrong, seconds

    def time(self, repeat: int, seconds: float) -> None:
        """Emit the fewest milliseconds of each version; calls of all versions alternate."""
        self.emit(begin="timing")
        best = dict.fromkeys(self.functions, float("inf"))
        stop = time.perf_counter() + seconds
        for k in range(repeat):
            for version, function in self.functions.items():
                time.sleep(PAUSE)
                best[version] = min(best[version], self.call(function)[2] * 1e3)
            if k + 1 >= FEWEST_ROUNDS and time.perf_counter() > stop:
                break
        self.emit(end="timing", times=best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("kernel")
    parser.add_argument("events", type=Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--limit", type=float, default=100.0)
    parser.add_argument("--skip", nargs="*", default=[])
    options = parser.parse_args()
    sys.path.append(str(options.checkout))
    kernel = Kernel.read(options.checkout, options.kernel, options.preset)
    worker = Worker(kernel, options.events, options.limit)
    worker.check("numpy", worker.numpy)
    for version in NUMBA:
        if version not in options.skip and kernel.has(version):
            worker.check(version, lambda v=version: worker.numba(v))
    worker.time(options.repeat, options.seconds)
    if "cyxla" not in options.skip:
        worker.check("cyxla", worker.ours)
    if "cyxla" in worker.functions:
        worker.time(options.repeat, options.seconds)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of NumPy, about kernels that divide by zero; ours are recorded
    main()
