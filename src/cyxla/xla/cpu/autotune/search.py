"""Measurement of the variants of a kernel, each in turn with the kernel of the rules.

The load of a machine changes by the second, so that times are only compared with times of the same moment: a pair is a
run of the variant and a run of the kernel of the rules, one right after the other. A variant has to be faster in the
median of the pairs, and in the least times of both: neighbours that take a core away now and then may spoil one of the
two figures, rarely both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import OpError
from cyxla.types import Shape
from cyxla.xla.cpu.autotune.records import text_of
from cyxla.xla.cpu.kernel.variants import RULES, Axes, Choice
from cyxla.xla.service import Executable

Array = np.ndarray[Any, Any]
Build = Callable[[Choice], Executable]
Pair = tuple[float, float]  # seconds of a variant and of the kernel of the rules

SECONDS = 0.5  # of measurements for one kernel ..
CALLS = 60  # .. or this many calls of it, where they take longer
BUILD_SECONDS = 2.0  # for compiling variants of generated C, after which no other one is begun
SAMPLE_SECONDS = 3e-4  # of one run: shorter kernels are called several times
MAX_ROUNDS, MIN_PAIRS = 9, 11  # pairs of each variant at first, and of the one to confirm
MAX_RATIO = 0.97  # of the times of a variant that is chosen, and of the rules
HOPELESS_RATIO = 1.03  # after two rounds
MAX_DRAWN = 100_003  # random numbers of an array; a prime, so that rows differ
SHARES = 0.6, 0.75, 1.0  # of the time, until which the single changes, the combination and the confirmation take


class Finding(NamedTuple):
    """Outcome of a search.

    Attributes
    ----------
    choice : mapping of str to int
        Parameters of the variant; empty if none is faster.
    gain : float
        Time of the kernel of the rules in times of the variant.
    measured : int
        Number of variants that were measured.
    rejected : dict of str to str
        Variants that were not measured, with the reasons.
    """

    choice: Choice
    gain: float
    measured: int
    rejected: dict[str, str]


def search(build: Build, axes: Axes) -> Finding:
    """Return the fastest variant of a kernel, if it is confirmed to be faster than the kernel of the rules.

    Parameters
    ----------
    build : callable
        Function that returns a program of the kernel alone for a choice.
    axes : mapping
        Parameters with the values to try: first one change at a time, then the best ones together.
    """
    if not axes:
        return Finding(RULES, 1.0, 0, {})
    trial = _Trial(build)
    singles: list[Choice] = [{name: value} for name, values in axes.items() for value in values]
    ratios = trial.measure(singles, SHARES[0])
    better = sorted((r, k) for k, r in enumerate(ratios) if r is not None and r <= MAX_RATIO)
    if not better:
        return Finding(RULES, 1.0, len(trial.measured), trial.rejected)
    best, combined = singles[better[0][1]], _combine([singles[k] for _, k in better])
    if combined != best:
        pair = trial.measure([best, combined], SHARES[1])
        if pair[1] is not None and (pair[0] is None or pair[1] < pair[0]):
            best = combined
    confirmed = trial.confirm(best)
    choice, gain = (best, 1 / confirmed) if confirmed <= MAX_RATIO else (RULES, 1.0)
    return Finding(choice, gain, len(trial.measured), trial.rejected)


def _combine(choices: Sequence[Choice]) -> Choice:
    """Return one choice with the best value of every parameter; better choices come first."""
    combined: dict[str, int] = {}
    for choice in choices:
        combined = {**choice, **combined}
    return combined


class _Trial:
    """Programs of one kernel, and their times.

    Attributes
    ----------
    measured : set of str
        Variants that were measured.
    rejected : dict of str to str
        Variants that were not measured, with the reasons.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self._default = build(RULES)
        self._arguments = arguments(self._default.inputs)
        self._want = _bytes(self._default(*self._arguments))
        self._programs: dict[str, Executable] = {}
        self.rejected: dict[str, str] = {}
        self.measured: set[str] = set()
        once = min(self._time(self._default, 1) for _ in range(3))
        self._calls = max(1, round(SAMPLE_SECONDS / once))
        self._seconds = max(SECONDS, CALLS * once)
        self._build_seconds = self._measure_seconds = 0.0

    def measure(self, choices: Sequence[Choice], share: float) -> list[float | None]:
        """Return the ratio of each choice's time and the default's, or None if it was not measured."""
        pairs: dict[int, list[Pair]] = {}
        programs = {k: p for k, p in enumerate(map(self._program, choices)) if p is not None}
        for number in range(MAX_ROUNDS):
            for k, program in programs.items():
                if self._measure_seconds < share * self._seconds and not _is_hopeless(pairs.get(k, ())):
                    pairs.setdefault(k, []).append(self._pair(program, number))
        for k in (k for k in programs if k not in pairs):
            self.rejected[text_of(choices[k])] = "the time was up"
        self.measured.update(text_of(choices[k]) for k in pairs)
        return [ratio(pairs[k]) if k in pairs else None for k in range(len(choices))]

    def confirm(self, choice: Choice) -> float:
        """Return the ratio of a choice that was measured before, from new pairs alone."""
        program, pairs = self._programs[text_of(choice)], list[Pair]()
        while len(pairs) < MIN_PAIRS or (self._measure_seconds < self._seconds and len(pairs) < 4 * MIN_PAIRS):
            pairs.append(self._pair(program, len(pairs)))
        return ratio(pairs)

    def _program(self, choice: Choice) -> Executable | None:
        """Return the program of a choice; None, with the reason noted, if there is none with the same results."""
        name = text_of(choice)
        if name not in self._programs and name not in self.rejected:
            started = time.perf_counter()
            if self._build_seconds > BUILD_SECONDS:
                self.rejected[name] = "the time to compile was up"
                return None
            try:
                program = self._build(choice)
                if _bytes(program(*self._arguments)) == self._want:
                    self._programs[name] = program
                else:
                    self.rejected[name] = "its results have other bits"
            except OpError as error:
                self.rejected[name] = error.message.partition("\n")[0]
            self._build_seconds += time.perf_counter() - started
        return self._programs.get(name)

    def _pair(self, program: Executable, number: int) -> Pair:
        """Return the times of a program and of the default; every other pair is the other way round."""
        order = (program, self._default) if number % 2 else (self._default, program)
        times = {id(p): self._time(p, self._calls) for p in order}
        self._measure_seconds += sum(times.values()) * self._calls
        return times[id(program)], times[id(self._default)]

    def _time(self, program: Executable, calls: int) -> float:
        """Return the seconds of a call."""
        started = time.perf_counter()
        for _ in range(calls):
            program(*self._arguments)
        return (time.perf_counter() - started) / calls


def ratio(pairs: Sequence[Pair]) -> float:
    """Return the median ratio of the pairs, or the ratio of the least times if that is greater."""
    least = min(variant for variant, _ in pairs) / min(default for _, default in pairs)
    return max(float(np.median([variant / default for variant, default in pairs])), least)


def _is_hopeless(pairs: Sequence[Pair]) -> bool:
    return len(pairs) >= 2 and min(variant / default for variant, default in pairs) > HOPELESS_RATIO


def arguments(shapes: Sequence[Shape]) -> list[Array]:
    """Return arguments of normally distributed floats, small integers and fair booleans, the same each time."""
    rng = np.random.default_rng(0)
    return [_random(shape, rng) for shape in shapes]


def _random(shape: Shape, rng: np.random.Generator) -> Array:
    """Return an array of random elements; those of a large one repeat, since drawing them takes long."""
    dtype, count = shape.dtype.numpy_dtype, min(shape.size, MAX_DRAWN)
    assert dtype is not None
    if shape.dtype.is_complex:
        drawn = rng.standard_normal(count) + 1j * rng.standard_normal(count)
    elif shape.dtype.is_float:
        drawn = rng.standard_normal(count)
    else:
        drawn = rng.integers(0, 2 if dtype.kind == "b" else 100, count)
    return np.resize(drawn.astype(dtype), shape.dims)


def _bytes(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(r).tobytes() for r in _leaves(results)]


def _leaves(results: Any) -> Iterator[Array]:
    if isinstance(results, tuple):
        for result in results:
            yield from _leaves(result)
    else:
        yield np.asarray(results)


def unmeasured(reason: str) -> Finding:
    """Return the finding of a kernel that cannot be measured."""
    return Finding(RULES, 1.0, 0, {"any variant": reason})
