"""The example: C and C++ programs that link libraries, built by make and run without Python."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.builds.ahead_of_time import needs_gcc, run_command
from support.builds.shared_builds import build_once

EXAMPLE = Path(__file__).parents[2] / "examples" / "aot"

pytestmark = [needs_gcc, pytest.mark.skipif(shutil.which("make") is None, reason="needs make")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the libraries and the programs."""

    def build(folder):
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build"))
        run_command("make", f"PYTHON={sys.executable}", cwd=folder)

    return build_once(tmp_path_factory, "aot_example", build)


def without_python():
    return {"PATH": os.pathsep.join(p for p in ("/usr/bin", "/bin") if Path(p).exists())}


def test_programs_run_without_python(built):
    printed = run_command("make", "-s", "PYTHON=false", "check", cwd=built, env=without_python())
    assert printed.count(": ok\n") == 3
    assert "calls: 3\n" in printed
    lines = printed.splitlines()
    scores = lines[lines.index("resnet: ok") + 1 :][:3]
    assert len(scores[0].split()) == 10
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_valgrind_finds_nothing(built):
    run_command("make", "-s", "PYTHON=false", "valgrind", cwd=built, env=without_python())
