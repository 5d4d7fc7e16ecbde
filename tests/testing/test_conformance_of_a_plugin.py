"""The conformance tests on a backend in a package of its own: an evaluator with faults and gaps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cyxla.errors import InvalidArgumentError
from cyxla.testing.lists import read_list

ROOT = Path(__file__).parents[2]
BACKEND = '''
from cyxla.errors import UnimplementedError
from cyxla.xla.interpreter.compiler import InterpreterCompiler, InterpreterExecutable


class EchoCompiler(InterpreterCompiler):
    """The evaluator without sorts, whose tanh is off by a thousandth."""

    platform = "echo"

    def run_backend(self, module, options):
        opcodes = {i.opcode for c in module.post_order() for i in c.instructions}
        if "sort" in opcodes:
            raise UnimplementedError("the echo has no sort")
        return EchoExecutable(module, options, wrong="tanh" in opcodes)


class EchoExecutable(InterpreterExecutable):
    platform = "echo"

    def __init__(self, module, options, wrong):
        super().__init__(module, options)
        self.wrong = wrong

    def __call__(self, *args, out=None):
        result = super().__call__(*args, out=out)
        return result * result.dtype.type(1.001) if self.wrong else result
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "cyxla_echo.py").write_text(BACKEND)
    info = folder / "cyxla_echo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cyxla-echo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cyxla.backends]\necho = cyxla_echo:EchoCompiler\n")
    return folder


@pytest.fixture
def conformance(site, tmp_path):
    """Run the tests with some options and a list; gives the exit status, the counts by outcome and the output."""

    def run(*options, entries="", command=("-m", "cyxla.testing")):
        (tmp_path / "list.txt").write_text(entries)
        path = os.pathsep.join([str(site), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, *command, "--backend=echo", f"--backend-list={tmp_path / 'list.txt'}", "-rA", *options],
            env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        counts = {
            word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|deselected)", done.stdout)
        }
        return done.returncode, counts, done.stdout + done.stderr

    return run


SOME = "-k=(tanh-f32 and not atanh) or cosine-f32 or sort"


def test_faults_fail_and_gaps_are_skipped(conformance):
    status, counts, out = conformance(SOME)
    assert status == 1
    assert re.search(r"FAILED .*test_opcode\[tanh-f32-echo\]", out)
    assert re.search(r"PASSED .*test_opcode\[cosine-f32-echo\]", out)
    assert counts["skipped"] > 0
    assert "refused: the echo has no sort" in out


def test_listed_tests_are_known_to_fail(conformance):
    entries = """# faults of the echo
fails test_elementwise.py::test_opcode[tanh-f*] off by a thousandth
skip  test_programs.py::*sort*                     # takes long
"""
    status, counts, out = conformance(SOME, entries=entries)
    assert status == 0, out
    assert counts["xfailed"] == 1
    assert "list.txt:2: off by a thousandth" in out
    assert "list.txt:3" in out


def test_a_listed_test_that_passes_is_reported(conformance):
    entries = "fails test_elementwise.py::test_opcode[cosine-f32] no longer\nskip test_none.py::* gone"
    status, counts, out = conformance("-k=cosine-f32", entries=entries)
    assert (status, counts["failed"]) == (1, 1)
    assert "[XPASS(strict)] listed in" in out
    assert "list.txt:2: no test that was collected matches 'test_none.py::*'" in out


def test_pytest_takes_the_option(conformance):
    command = ("-m", "pytest", "-p", "cyxla.testing.plugin", "--pyargs", "cyxla.testing.conformance")
    status, counts, out = conformance("-k=cosine-f32", command=command)
    assert (status, counts["passed"]) == (0, 1), out


def test_tests_of_this_project_take_the_option(conformance):
    """Those of no backend are left out."""
    path = str(ROOT / "tests" / "xla" / "cpu" / "entry" / "test_tokens.py")
    command = ("-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={ROOT}", f"-c={ROOT / 'pyproject.toml'}", path)
    status, counts, out = conformance(command=command)
    assert status == 0, out
    assert "test_tokens_pass_through[echo]" in out
    assert counts["deselected"] > 0


def test_several_backends_by_one_option(conformance):
    path = str(ROOT / "tests" / "xla" / "cpu" / "entry" / "test_tokens.py")
    command = ("-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={ROOT}", f"-c={ROOT / 'pyproject.toml'}", path)
    status, _, out = conformance("--backend=interpreter,cpu", "-k=pass_through", command=command)
    assert status == 0, out
    assert [f"test_tokens_pass_through[{name}]" in out for name in ("echo", "interpreter", "cpu")] == [True] * 3
    status, _, out = conformance("--backend=interpreter,ekko", command=command)
    assert (status, "ekko" in out) == (4, True)


def test_the_example_of_the_page(conformance, tmp_path):
    text = (ROOT / "docs" / "backend.md").read_text()
    (block,) = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "test_example.py").write_text(block)
    status, counts, out = conformance(command=("-m", "pytest", "-p", "cyxla.testing.plugin", "test_example.py"))
    assert (status, counts["passed"]) == (0, 1), out


def test_unknown_backends_are_a_usage_error(conformance):
    status, _, out = conformance("--backend=ekko")
    assert status == 4
    assert "no platform 'ekko'" in out


def test_patterns_may_have_spaces_in_brackets(tmp_path):
    (tmp_path / "list").write_text("fails t.py::test[a b-*]   c d # e\n\n# f\nskip t.py::*\n")
    entries = read_list(tmp_path / "list")
    assert [(e.verb, e.pattern, e.reason) for e in entries] == [
        ("fails", "t.py::test[a b-*]", "c d"),
        ("skip", "t.py::*", ""),
    ]
    assert entries[0].takes("t.py::test[a b-f32]")
    assert not entries[0].takes("t.py::test[a c-f32]")


@pytest.mark.parametrize("text, message", [
    ("fail x", r"list:1: 'fail x' is no entry"), ("\n# c\nskip", "list:3"), (None, "cannot read the list"),
])  # fmt: skip
def test_malformed_lists(tmp_path, text, message):
    path = tmp_path / "list"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=message):
        read_list(path)
