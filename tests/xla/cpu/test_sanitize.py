"""Generated code under sanitizers: a kernel that goes too far is caught, wherever its arrays lie."""

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from cyxla import config
from cyxla.errors import InvalidArgumentError
from cyxla.xla.cpu.memory import arena
from cyxla.xla.cpu.native import compiler_search

SANITIZED = Path(__file__).parents[3] / ".ci" / "sanitized"
SORTED = """
less {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT l = pred[] compare(x, y), direction=LT
}
"""
PROGRAMS = {
    "an argument": "ENTRY e {\n a = s32[333] parameter(0)\n ROOT r = s32[333] negate(a)\n}",
    "a result": "ENTRY e {\n ROOT r = s32[333] iota(), iota_dimension=0\n}",
    "a temporary": SORTED + "ENTRY e {\n i = s32[333] iota(), iota_dimension=0\n"
    " ROOT r = s32[333] sort(i), dimensions={0}, to_apply=less\n}",
}  # fmt: skip
RUN = """
import sys
import numpy as np, cyxla
from cyxla.xla.cpu.entry import module as emit_module
length, *texts = sys.argv[1:]
with_prelude = emit_module._with_prelude
emit_module._with_prelude = lambda body: with_prelude(body).replace("333", length)
for text in texts:
    run = cyxla.compile("HloModule m" + text, cache=False)
    run(*[np.zeros(333, np.int32)] * len(run.inputs))
"""


@cache
def has_sanitizers() -> bool:
    """Whether gcc compiles, and comes with the libraries."""
    compiler = compiler_search.find_compiler("", "")
    if compiler is None or compiler.kind != "gcc" or not SANITIZED.exists():
        return False
    said = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return os.path.isabs(said.stdout)


def run(names: Iterable[str], length: int) -> subprocess.CompletedProcess:
    if not has_sanitizers():
        pytest.skip("there is no gcc with sanitizers")
    command = [str(SANITIZED), sys.executable, "-c", RUN, str(length), *(PROGRAMS[name] for name in names)]
    return subprocess.run(command, capture_output=True, text=True)


def test_accesses_within_bounds_pass():
    found = run(PROGRAMS, 333)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_accesses_out_of_bounds_are_caught(name):
    found = run([name], 334)
    assert found.returncode != 0
    assert "AddressSanitizer" in found.stderr


def test_the_flag_is_checked(monkeypatch):
    monkeypatch.setenv("CYXLA_SANITIZE", "address,undefined")
    assert config.get("SANITIZE") == ("address", "undefined")
    monkeypatch.setenv("CYXLA_SANITIZE", "adress")
    with pytest.raises(InvalidArgumentError, match="address"):
        config.get("SANITIZE")


def test_temporaries_with_guards():
    temporaries = [arena.Temporary(n, 0, 0) for n in (1, 64, 100, 0)]
    total = arena.assign_guarded_offsets(temporaries)
    ends = [t.offset + t.nbytes for t in temporaries]
    starts = [*(t.offset for t in temporaries[1:]), total]
    assert all(start - end >= arena.GUARD for start, end in zip(starts, ends, strict=True))
