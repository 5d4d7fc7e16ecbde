"""Programs of XLA: HLO text, StableHLO text, protos, and valid programs whose results must agree."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.hlo import random_bounded, random_programs
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same
from support.hlo.random_steps import random_steps

import cyxla
from cyxla.errors import DeadlineExceededError, OpError, UnimplementedError
from cyxla.testing import cases
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.hlo.proto import schema
from cyxla.xla.stablehlo import read_stablehlo, write_stablehlo
from fuzzing import bits, messages, texts
from fuzzing.exactness import settled
from fuzzing.kind import DifferenceError, Kind, Stage, files

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"
MOST_ELEMENTS, MOST_TRIPS, LONGEST = 200_000, 500, 6000


def modules() -> list[HloModule]:
    """Small programs of this project: random ones, recorded ones."""
    made = [random_programs.random_module(seed, 3 + seed % 14)[0] for seed in range(160)]
    made += [random_steps(seed) for seed in range(60)]
    return made + [parse_module(cases.read(case["id"] + "/program.hlo").decode()) for case in cases.index()]


def short(found: Sequence[str]) -> list[str]:
    return [text for text in found if len(text) <= LONGEST]


class Program(Kind):
    """Checks that programs in every form pass."""

    stages = ("parse", "verify", "compile", "again", "run", "compile for cpu", "run on cpu")
    runs = ("run", "run on cpu")
    slow = ("run",)
    deep = 0.004

    @abstractmethod
    def read(self, data: bytes) -> HloModule:
        """Return the module of an input."""

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        stage("parse")
        module = self.read(data)
        stage("verify")
        module.verify()
        stage("compile")
        oracle = cyxla.compile(module, platform="interpreter", max_trips=MOST_TRIPS)
        stage("again")
        _read_again(module)
        if deep:
            _run(module, oracle, stage)


def _read_again(module: HloModule) -> None:
    """A verified module is printed as a text that means the same."""
    text = module.to_text()
    try:
        again = parse_module(text)
        again.verify()
    except OpError as error:
        raise DifferenceError(f"our own text is refused: {error}\n{text}") from error
    if again.to_text() != text:
        raise DifferenceError(f"read again it is another program:\n{text}\n{again.to_text()}")


def _run(module: HloModule, oracle: cyxla.Executable, stage: Stage) -> None:
    """Compile for the cpu; if it is small and takes arrays alone, run it on both platforms and compare."""
    want: Any = None
    takes_arrays = all(leaf.is_array for p in module.parameters for leaf in p.shape.leaves())
    given = arguments(module, 1, 0.1) if takes_arrays and _is_small(module) else None
    if given is not None:
        stage("run")
        try:
            want = oracle(*given)
        except DeadlineExceededError:
            given = None
        except OpError as error:
            want = error
    stage("compile for cpu")
    compiled = cyxla.compile(module, cache=False)
    if given is None:
        return
    stage("run on cpu")
    try:
        got = compiled(*given)
    except UnimplementedError:
        raise
    except OpError as error:
        got = error
    compare(module, got, want)


def compare(module: HloModule, got: Any, want: Any) -> None:
    """Raise unless results are of one form, and the settled ones of them of the same values."""
    if isinstance(want, OpError) or isinstance(got, OpError):
        if not (isinstance(want, OpError) and isinstance(got, OpError)):
            raise DifferenceError(f"the interpreter gives {want!r}, the cpu {got!r}")
        return
    leaves = module.entry.root.shape.leaves()
    for g, w, exact, shape in zip(flat(got), flat(want), settled(module), leaves, strict=True):
        if shape.is_array:
            g, w = np.asarray(g), np.asarray(w)
            try:
                assert_same(g, w, shape.dtype, 0) if exact else _assert_alike(g, w)
            except AssertionError as error:
                raise DifferenceError(str(error)) from None


def _assert_alike(got: np.ndarray, want: np.ndarray) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype)


def _is_small(module: HloModule) -> bool:
    shapes = [leaf for c in module.post_order() for ins in c.instructions for leaf in ins.shape.leaves()]
    return all(s.size <= MOST_ELEMENTS for s in shapes if s.is_array)


class Text(Program):
    """Mutated texts."""

    corpus: list[str]

    @abstractmethod
    def collect(self) -> list[str]:
        """Return the texts that inputs are made from."""

    def prepare(self, folders: Sequence[Path]) -> None:
        given = [data.decode("utf-8", "replace") for data in files(folders, (self.suffix,))]
        self.corpus = self.collect() + given
        self.words = texts.Vocabulary(self.corpus)

    def make(self, rng: random.Random) -> bytes:
        text = rng.choice(self.corpus)
        return texts.mutated(text, rng, self.words).encode("utf-8", "surrogatepass")

    def cuts(self, data: bytes) -> list[list[bytes]]:
        text = data.decode("utf-8", "replace")
        return [[t.encode() for t in text.splitlines(keepends=True)], [t.encode() for t in texts.split(text)]]


class Hlo(Text):
    name, suffix = "hlo", ".hlo"

    def collect(self) -> list[str]:
        named = [entry["text"] for kind in cases.grammar().values() for entry in kind]
        examples = [path.read_text() for path in sorted(EXAMPLES.glob("*.hlo"))]
        return short([module.to_text() for module in modules()]) + short(named) + examples

    def read(self, data: bytes) -> HloModule:
        return parse_module(data.decode("utf-8", "replace"))


class StableHlo(Text):
    name, suffix = "stablehlo", ".mlir"

    def collect(self) -> list[str]:
        from xla.stablehlo.test_hostile import SEEDS

        found = list(SEEDS) * 5
        for module in modules():
            try:
                found.append(write_stablehlo(module))
            except UnimplementedError:
                continue
        return short(found)

    def read(self, data: bytes) -> HloModule:
        return read_stablehlo(data.decode("utf-8", "replace"))


class Proto(Program):
    name, suffix = "proto", ".pb"

    def prepare(self, folders: Sequence[Path]) -> None:
        self.corpus = [data for data in (m.to_proto() for m in modules()) if len(data) <= LONGEST]
        self.corpus += files(folders, (self.suffix,))

    def make(self, rng: random.Random) -> bytes:
        data = rng.choice(self.corpus)
        if rng.random() < 0.2:
            return bits.damaged(data, rng)
        message = schema.messages()["HloModuleProto"]()
        message.ParseFromString(data)
        messages.mutated(message, rng)
        return message.SerializeToString()

    def read(self, data: bytes) -> HloModule:
        return HloModule.from_proto(data)


class Valid(Kind):
    """Random valid programs, cpu against interpreter; an input is a seed and a length."""

    name, suffix = "programs", ".seed"
    stages = ("run",)
    runs = ("run",)
    seconds = 120.0

    def make(self, rng: random.Random) -> bytes:
        return f"{rng.randrange(1 << 40)} {rng.choice((5, 10, 20, 30, 60))}".encode()

    def check(self, seed: int, length: int) -> None:
        random_programs.check(seed, length)

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        seed, length = map(int, data.split())
        stage("run")
        try:
            self.check(seed, length)
        except AssertionError as error:
            raise DifferenceError(str(error)) from error

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return []


class Bounded(Valid):
    """Random programs with bounded dynamic dimensions, at several sizes; an input is a seed and a length."""

    name = "bounded"

    def check(self, seed: int, length: int) -> None:
        random_bounded.check(seed, length)
