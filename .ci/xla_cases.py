"""Run real XLA cases on both platforms, or on one, all or each Nth: python .ci/xla_cases.py RUNNER [PLATFORM [N]].

No answer may be wrong: a case passes, or raises UnimplementedError, and of those there may only be a few.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# (platform, formats, least part that must pass)
CHECKS = [
    ("interpreter", "text,proto,stablehlo,roundtrip", 0.995),
    ("interpreter", "grammar", 1.0),
    ("cpu", "text", 0.98),
]
# Right, but not what was recorded: XLA's CPU flushes denormal results to zero, cyxla keeps them.
FLUSHED = {"op/atan2.f64.special"}


def options_of(runner: str, platform: str, formats: str, every: int) -> list[str]:
    """Options of the runner for the covering subset, or for one case of `every` of it."""
    options = ["--platform", platform, "--format", formats, "--tier", "1"]
    if every == 1:
        return options
    listed = subprocess.run([sys.executable, runner, *options, "--list"], capture_output=True, text=True, check=True)
    names = sorted({line.split()[1] for line in listed.stdout.splitlines()})[::every]
    return [*options, "--filter", f"^({'|'.join(map(re.escape, names))})$"]


def run(runner: str, platform: str, formats: str, every: int) -> list[dict]:
    """The results of one run of the runner."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = [*options_of(runner, platform, formats, every), "--jobs", "2", "--json", str(report)]
        subprocess.run([sys.executable, runner, *options], stdout=subprocess.DEVNULL, check=False)
        return json.loads(report.read_text())["results"]


def check(runner: str, every: int, platform: str, formats: str, least: float) -> bool:
    """Run, report, judge."""
    results = run(runner, platform, formats, every)
    failed = [r for r in results if r["why"]]
    lacking = [r for r in failed if r["why"].startswith("UnimplementedError")]
    wrong = [r for r in failed if r not in lacking and r["id"] not in FLUSHED]
    for r in wrong:
        print(f"WRONG {platform} {r['id']}: {r['why']}")
    passed = len(results) - len(failed)
    counts = f"{passed} of {len(results)} passed, {len(lacking)} not implemented, {len(wrong)} wrong"
    print(f"{platform} {formats}: {counts}")
    return bool(results) and not wrong and passed >= least * (len(results) - len(FLUSHED))


if __name__ == "__main__":
    platform = sys.argv[2] if len(sys.argv) > 2 else ""
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    wanted = [each for each in CHECKS if platform in ("", each[0])]
    verdicts = [check(sys.argv[1], every, *each) for each in wanted]
    sys.exit(not all(verdicts))
