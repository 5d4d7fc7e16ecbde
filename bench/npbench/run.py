"""Run NPBench's kernels as plain NumPy, as NPBench's own Numba versions, and under a plain `@cyxla.jit`.

Usage: python bench/npbench/run.py CHECKOUT [--preset S|M] [--kernels a b] [--json FILE] [--png FILE] [--repeat N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kernels import names
from report import Row, table

WORKER = Path(__file__).with_name("worker.py")
POLL = 0.1  # seconds
PREPARE = """
import compileall, pathlib, cyxla
compileall.compile_dir(pathlib.Path(cyxla.__file__).parent, quiet=1)
cyxla.compile("HloModule m\\nENTRY e { ROOT p = f32[] parameter(0) }")
"""


def prepare(folder: Path) -> None:
    """Do what is done once on a machine: byte-compile the package, and have its C compiler checked."""
    environment = {**os.environ, "CYXLA_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", PREPARE], env=environment, check=True)


def run_kernel(name: str, options: argparse.Namespace) -> Row:
    """Run a kernel in a process of its own; versions by Numba that crash or take too long are left out next time."""
    skip: list[str] = []
    while True:
        events, failure = run_worker(name, options, skip)
        begun = [e["begin"] for e in events if "begin" in e]
        ended = [e["end"] for e in events if "end" in e]
        hanging = begun[-1] if len(begun) > len(ended) else ""
        if not hanging.startswith("numba"):
            return Row.of_events(name, events, failure)
        skip.append(hanging)


def run_worker(name: str, options: argparse.Namespace, skip: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the events of a worker, and why it ended early; its programs are cached nowhere else."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(options.prepared, folder, dirs_exist_ok=True)
        path = Path(folder) / "events"
        path.touch()
        command = [
            sys.executable, str(WORKER), str(options.checkout.resolve()), name, str(path), "--preset", options.preset,
            "--repeat", str(options.repeat), "--seconds", str(options.seconds), "--limit", str(options.timeout),
            "--skip", *skip,
        ]  # fmt: skip
        environment = {**os.environ, "CYXLA_CACHE_DIR": folder}
        said = Path(folder) / "stderr"
        with said.open("w") as stderr:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
            )
            try:
                failure = wait(process, path, options.timeout)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its compilers too
                process.wait()
        if not failure and process.returncode:
            failure = f"crash: {last_line(said) or process.returncode}"
        return [json.loads(line) for line in path.read_text().splitlines()], failure


def last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def wait(process: subprocess.Popen[bytes], path: Path, timeout: float) -> str:
    """Wait for a worker; say so if no event comes for too long."""
    size, deadline = 0, time.monotonic() + timeout
    while process.poll() is None:
        time.sleep(POLL)
        if path.stat().st_size > size:
            size, deadline = path.stat().st_size, time.monotonic() + timeout
        if time.monotonic() > deadline:
            return f"timeout: over {timeout:g} s"
    return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def save(rows: list[Row], path: Path, options: argparse.Namespace) -> None:
    packages = {name: _version(name) for name in ("numpy", "numba")}
    about = {"preset": options.preset, "processors": len(os.sched_getaffinity(0)), "packages": packages}
    path.write_text(json.dumps({**about, "kernels": [asdict(row) for row in rows]}, indent=1) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="folder of a checkout of spcl/npbench")
    parser.add_argument("--preset", default="S", help="sizes: S (default), M, L or paper")
    parser.add_argument("--kernels", nargs="+", help="names of kernels; all by default")
    parser.add_argument("--json", type=Path, help="file for everything that was found")
    parser.add_argument("--png", type=Path, help="file for a picture")
    parser.add_argument("--repeat", type=int, default=30, help="most timed calls of each version")
    parser.add_argument("--seconds", type=float, default=5.0, help="time after which no round of calls begins")
    parser.add_argument(
        "--timeout", type=float, default=180.0, help="seconds that a version's check, or a round of timing, may take"
    )
    return parser.parse_args()


def main() -> None:
    options = parse()
    known = list(names(options.checkout))
    unknown = set(options.kernels or ()) - set(known)
    if unknown:
        raise SystemExit(f"no kernels {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        options.prepared = Path(folder)
        prepare(options.prepared)
        for name in options.kernels or known:
            rows.append(run_kernel(name, options))
            print(*rows[-1].cells(), sep="  ", file=sys.stderr, flush=True)
    print(table(rows))
    if options.json:
        save(rows, options.json, options)
    if options.png:
        from picture import draw

        draw(rows, options.png, f"NPBench, preset {options.preset}, {len(os.sched_getaffinity(0))} processors")


if __name__ == "__main__":
    main()
