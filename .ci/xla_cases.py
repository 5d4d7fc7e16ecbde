"""Run real XLA cases on both platforms, or on one: python .ci/xla_cases.py RUNNER [PLATFORM].

No answer may be wrong: a case passes, or raises UnimplementedError, and of those there may only be a few.
"""

import json
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


def run(runner: str, platform: str, formats: str) -> list[dict]:
    """The results of one run of the runner, on the covering subset."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = ["--platform", platform, "--format", formats, "--tier", "1", "--jobs", "2", "--json", str(report)]
        subprocess.run([sys.executable, runner, *options], stdout=subprocess.DEVNULL, check=False)
        return json.loads(report.read_text())["results"]


def check(runner: str, platform: str, formats: str, least: float) -> bool:
    """Run, report, judge."""
    results = run(runner, platform, formats)
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
    wanted = [each for each in CHECKS if sys.argv[2:] in ([], [each[0]])]
    verdicts = [check(sys.argv[1], *each) for each in wanted]
    sys.exit(not all(verdicts))
