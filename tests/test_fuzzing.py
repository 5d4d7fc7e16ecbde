"""The fuzzer reports planted faults, with real worker processes, and generates equal inputs from equal seeds."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import bits, texts
from fuzzing.kinds import KINDS
from fuzzing.worker import made

TESTS = Path(__file__).parent
PLANTED = """
import json, os, signal, sys
from fuzzing import supervisor
from fuzzing.kind import DifferenceError, Kind
from fuzzing.minimise import minimised
from cyxla.errors import InternalError, InvalidArgumentError
supervisor.DEAF, supervisor.IDLE = 1.0, 4.0

def allocate():
    import numpy as np
    return np.ones(1 << 40)

def grow():
    return b"x" * (100 << 20)

def spin():
    while True:
        pass

def deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spin()

def fail(error):
    raise error

WAYS = {
    "fine": lambda: None,
    "refusal": lambda: fail(InvalidArgumentError("no")),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda: os._exit(3),
    "hang": spin,
    "deadlock": lambda: signal.pause(),
    "deaf": deaf,
    "blow-up": allocate,
    "growth": grow,
    "foreign": lambda: fail(KeyError("x")),
    "internal": lambda: fail(InternalError("x")),
    "difference": lambda: fail(DifferenceError("1 is not 2")),
    "essay": lambda: fail(Essay("x")),
}

class Essay(InvalidArgumentError):
    def __str__(self):
        return "x" * 5000

class Planted(Kind):
    name, stages, seconds, megabytes = "planted", ("only",), 0.5, 64
    def make(self, rng):
        return self.text
    def attempt(self, data, deep, stage):
        stage("only")
        for way in data.decode().split():
            WAYS.get(way, WAYS["fine"])()

kind, told = Planted(), {}
for way in sys.argv[1:]:
    kind.text = way.encode()
    tally = supervisor.hunt(kind, 0, 1e9, count=2)
    told[way] = [tally.inputs, [f.label for f in tally.findings]]
kind.text = b"fine\\nfine\\nforeign\\nfine\\n"
[finding, *_] = supervisor.hunt(kind, 0, 1e9, count=1).findings
told["small"] = minimised(kind, finding).decode()
print(json.dumps(told))
"""
WANTED = {
    "fine": [],
    "refusal": [],
    "crash": ["crash"] * 2,
    "exit": ["crash"] * 2,
    "hang": ["hang"] * 2,
    "deadlock": ["hang"] * 2,
    "deaf": ["hang, deaf to an interrupt"] * 2,
    "blow-up": ["memory"] * 2,
    "growth": ["memory"],  # what was freed is there for the next input
    "foreign": ["foreign exception"] * 2,
    "internal": ["INTERNAL error"] * 2,
    "difference": ["difference"] * 2,
    "essay": ["long message"] * 2,
}


@pytest.mark.slow
def test_planted_faults_are_reported():
    run = subprocess.run(
        [sys.executable, "-c", PLANTED, *WANTED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout)
    assert told.pop("small").split() == ["foreign"]
    assert told == {way: [2, labels] for way, labels in WANTED.items()}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", KINDS)
def test_inputs_depend_on_the_seed_alone(name):
    one, other = (KINDS[name]() for _ in "ab")
    one.prepare([])
    other.prepare([])
    inputs = [made(one, 5, index, 0.5) for index in range(6)]
    assert inputs == [made(other, 5, index, 0.5) for index in range(6)]
    assert inputs != [made(one, 6, index, 0.5) for index in range(6)]


def test_tokens_are_the_text():
    text = '%a.1 = f32[2,3]{1,0} add(%b, -1.5e-3), metadata={op_name="x y"} tensor<4x?x3xf32> \u2028\0'
    assert "".join(texts.split(text)) == text
    words = texts.Vocabulary([text, "ENTRY e {\n  x = f32[] parameter(0)\n}"])
    changed = {texts.mutated(text, random.Random(k), words) for k in range(200)}
    assert len(changed) > 100


def test_bytes_are_damaged():
    assert len({bits.damaged(bytes(range(50)), random.Random(k)) for k in range(200)}) > 150
    assert isinstance(bits.damaged(b"", random.Random(1)), bytes)
