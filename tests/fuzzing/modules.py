"""Random modules of Python functions with loops, branches and state, as they are written and under `cyxla.jit`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support.functions.holder_checks import COMPILED, check_holders
from support.functions.module_checks import DifferentError, check, turns_on_rounding
from support.functions.random_holders import random_holders
from support.functions.random_lists import random_lists
from support.functions.random_locals import random_locals
from support.functions.random_modules import random_module

from fuzzing.kind import DifferenceError, Kind, Stage


class Functions(Kind):
    """Modules whose function `main` is called three times."""

    name, suffix = "functions", ".py"
    stages = ("interpreter", "cpu", "rounding")  # the last one counts modules that turn on it
    runs = slow = ("interpreter", "cpu")
    deep = 0.1
    seconds = 60.0

    def prepare(self, folders: Sequence[Path]) -> None:
        pass

    def make(self, rng: random.Random) -> bytes:
        return random_module(rng.randrange(1 << 40)).encode()

    def check(self, text: str, platform: str, stage: Stage) -> None:
        """Compare the plain function and the compiled one."""
        check(text, platform)

    def is_rounding(self, text: str) -> bool:
        """Return whether a difference is that of other last bits."""
        return turns_on_rounding(text)

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        try:
            for platform in ("interpreter", "cpu") if deep else ("interpreter",):
                stage(platform)
                self.check(data.decode(), platform, stage)
        except SyntaxError:  # a text that was cut
            return
        except DifferentError as error:
            if self.is_rounding(data.decode()):
                stage("rounding")
                return
            raise DifferenceError(str(error)[-800:]) from error

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return [data.splitlines(keepends=True)]


class Lists(Functions):
    """Modules whose function `main` has nested loops over lists of numbers that are written meanwhile."""

    name = "lists"

    def make(self, rng: random.Random) -> bytes:
        return random_lists(rng.randrange(1 << 40)).encode()


class Holders(Functions):
    """Modules whose function `main` reads and writes state through holders, with changes of the state between calls."""

    name, suffix = "holders", ".py"
    stages = ("interpreter", "compiled", "cpu")  # the second one counts modules without a fallback
    deep = 0.02
    classes: tuple[type, ...] = (int, float)  # that loops and branches may give Python's numbers

    def is_rounding(self, text: str) -> bool:
        return False

    def make(self, rng: random.Random) -> bytes:
        return random_holders(rng.randrange(1 << 40)).encode()

    def check(self, text: str, platform: str, stage: Stage) -> None:
        if check_holders(text, platform, self.classes) == COMPILED and platform == "interpreter":
            stage("compiled")


class Locals(Holders):
    """Modules whose function `main` keeps values of any kind in local variables."""

    name = "locals"
    deep = 0.05
    classes = (int, float, np.generic)

    def make(self, rng: random.Random) -> bytes:
        return random_locals(rng.randrange(1 << 40)).encode()
