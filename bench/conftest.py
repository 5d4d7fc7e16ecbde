"""Claims about speed: each benchmark file measures some, and the summary prints them with their bounds."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from machine import TRIES, Machine

CLAIMS = pytest.StashKey()


def pytest_configure(config):
    config.stash[CLAIMS] = []


@pytest.fixture
def claim(request):
    """Record a figure: claim("what", value, "us", at_most=1.5)."""

    def record(what, value, unit="", at_most=None, at_least=None):
        request.config.stash[CLAIMS].append((what, value, unit, at_most, at_least))

    return record


@pytest.fixture(scope="session")
def machine():
    """Return the limits of this machine."""
    return Machine()


@pytest.fixture
def against(claim, best_time):
    """Claim a fraction of a limit: against("what", "GFLOP/s", limit, work, run, args, at_least=0.8).

    `limit` returns the machine's rate per second, `work` is the work of one call. Limit and call are measured in
    alternation, since the rates of a machine change with the load of its neighbours; the pair with the median fraction
    counts, because the best of each would be measured at different times.
    """

    def measure(what, unit, limit, work, run, args, at_least=None, rounds=15):
        pairs = [(limit(), work / best_time(lambda: run(*args), 0.1, TRIES)) for _ in range(rounds)]
        most, rate = sorted(pairs, key=lambda pair: pair[1] / pair[0])[rounds // 2]
        claim(f"{what}: {unit}", rate / 1e9, unit)
        claim(f"  part of the limit, {most / 1e9:.0f} {unit}", rate / most, "", at_least=at_least)

    return measure


@pytest.fixture
def best_time():
    """Return the shortest of several timings of a call in seconds; calls of microseconds are timed in batches."""

    def measure(call, seconds=0.5, least=1):
        call()
        started = time.perf_counter()
        call()
        once = time.perf_counter() - started
        bundle = max(1, int(2e-4 / max(once, 1e-9)))
        best, deadline = float("inf"), time.perf_counter() + seconds
        while least > 0 or time.perf_counter() < deadline:
            least -= 1
            started = time.perf_counter()
            for _ in range(bundle):
                call()
            best = min(best, (time.perf_counter() - started) / bundle)
        return best

    return measure


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[CLAIMS]
    if not rows:
        return
    terminalreporter.section("claims")
    for what, value, unit, at_most, at_least in rows:
        bound = (
            f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}" if at_least is not None else ""
        )
        holds = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        verdict = "" if not bound else "holds" if holds else "FALLS SHORT"
        terminalreporter.write_line(f"{what:58s} {value:10.3g} {unit:6s} {bound:16s} {verdict}")
