"""Prebuilt functions against native code, and any number of threads against one: all bits are the same."""

from __future__ import annotations

import random
import re

import numpy as np
from support.hlo import random_steps

import cyxla
from cyxla.errors import OpError
from cyxla.xla.cpu.prebuilt import program as prebuilt_program
from cyxla.xla.cpu.prebuilt.program import NotCoveredError
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.service import CompileOptions
from fuzzing import texts
from fuzzing.kind import DifferenceError, Kind, Stage

THREADS = (1, 2, 3, 8)
WIDE = re.compile(r"\b(1000|129|65)\b")
SEED = re.compile(r"// arguments (\d+)\n")
MOST_ELEMENTS = 2_000_000


class Tiers(Kind):
    """Programs of steps that prebuilt functions take; some so large that threads share the work."""

    name, suffix = "tiers", ".hlo"
    stages = ("parse", "native", "prebuilt", "threads")
    runs = ("native", "prebuilt", "threads")
    seconds = 120.0

    def make(self, rng: random.Random) -> bytes:
        text = random_steps.random_steps(rng.randrange(1 << 40)).to_text()
        if rng.random() < 0.4:
            text = _enlarged(text, rng)
        return f"// arguments {rng.randrange(10**6)}\n{text}".encode()

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        text = data.decode()
        stage("parse")
        module = parse_module(text)
        module.verify()
        seed = SEED.match(text)
        given = random_steps.arguments(module, int(seed[1]) if seed else 0)
        stage("native")
        cyxla.threads(1)
        native = cyxla.compile(module, cache=False)
        want = native(*given)
        stage("prebuilt")
        try:
            prebuilt = prebuilt_program.prebuilt_program(module, CompileOptions(), 1e12)
        except NotCoveredError:
            prebuilt = None
        ways = {"native code": native} | ({"prebuilt functions": prebuilt} if prebuilt else {})
        stage("threads")
        for name, run in ways.items():
            for count in THREADS:
                cyxla.threads(count)
                if not random_steps.same_bits(run(*given), want):
                    raise DifferenceError(f"{name} on {count} threads")

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return [data.splitlines(keepends=True), [t.encode() for t in texts.split(data.decode())]]


def _enlarged(text: str, rng: random.Random) -> str:
    """The program with a larger size, if it is still one."""
    sizes = sorted(set(WIDE.findall(text)))
    if not sizes:
        return text
    size, new = rng.choice(sizes), str(rng.choice((4096, 20_000, 100_003, 262_144)))
    changed = re.sub(rf"\b{size}\b", new, text)
    try:
        module = parse_module(changed)
        module.verify()
    except OpError:
        return text
    return changed if _elements(module) <= MOST_ELEMENTS else text


def _elements(module: HloModule) -> int:
    shapes = [leaf for ins in module.entry.instructions for leaf in ins.shape.leaves()]
    return int(np.max([s.size for s in shapes], initial=0))
