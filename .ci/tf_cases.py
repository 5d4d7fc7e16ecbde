"""Run graphs whose results TensorFlow recorded: python .ci/tf_cases.py RUNNER.

Right answers and the codes of errors both count; what TensorFlow itself cannot compile does not.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

# (folder beside the runner, jit, platform, least part that must pass)
CHECKS = [
    ("cases", "off", "cpu", 0.99),
    *(("models", jit, "cpu", 1.0) for jit in ("off", "auto", "on")),
]


def run(runner: Path, folder: str, jit: str, platform: str) -> dict:
    """The report of one run of the runner."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.json"
        options = ["--cases", str(runner.parent / folder), "--jit", jit, "--platform", platform, "--jobs", "2"]
        command = [sys.executable, str(runner), *options, "--json", str(report)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return json.loads(report.read_text())


def check(runner: Path, folder: str, jit: str, platform: str, least: float) -> bool:
    """Run, report, judge."""
    report = run(runner, folder, jit, platform)
    for op, found in report["ops"].items():
        for name, case in found["cases"].items():
            if case["status"] not in ("pass", "na"):
                print(f"{folder} jit={jit} {op}/{name}: {case['status']} {case['detail']}")
    asked = report["passed"] + report["failed"]
    print(
        f"{folder} jit={jit} platform={platform}: {report['passed']} of {asked} passed, {report['na']} not applicable"
    )
    return bool(asked) and report["passed"] >= least * asked


if __name__ == "__main__":
    verdicts = [check(Path(sys.argv[1]), *each) for each in CHECKS]
    sys.exit(not all(verdicts))
