"""The public names, and the rules that hold for the whole of the house."""

import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cyxla
from cyxla import config, errors
from cyxla.errors import InvalidArgumentError

ROOT = Path(__file__).parents[1]


def test_public_names_are_pinned():
    assert cyxla.__all__ == [
        "ElementType", "Error", "Executable", "Feeds", "Graph", "Jitted", "Literal", "LocalClient", "LocalExecutable",
        "OpError", "RecompileWarning", "RunMetadata", "RunOptions", "Session", "Shape", "TracedArray", "XlaBuilder",
        "XlaComputation", "XlaOp", "__version__", "aot", "associative_scan", "checkpoint", "ckernel", "compile", "cond",
        "custom_call", "custom_vjp", "disable_jit", "errors", "fori_loop", "get_include", "grad", "gradients",
        "hessian", "hlo", "jacobian", "jit", "jvp", "load_graph", "load_saved_model", "map", "print", "random",
        "raw_ops", "register_c_call", "register_custom_call", "scan", "spec", "special", "stop_gradient", "switch",
        "threads", "value_and_grad", "vjp", "vmap", "while_loop",
    ]  # fmt: skip


@pytest.mark.parametrize("name", cyxla.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(cyxla, name)
    assert name == "__version__" or inspect.getdoc(value)


REFERENCE = re.compile(r"^\.\. auto(?:function|class|module):: (.*)", re.MULTILINE)
ELSEWHERE = {"Error", "OpError", "RecompileWarning", "__version__"}  # in cyxla.errors; in the title


def test_every_public_name_is_in_the_reference():
    named = REFERENCE.findall("".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst")))
    assert len(named) == len(set(named))
    assert {f"cyxla.{name}" for name in cyxla.__all__ if name not in ELSEWHERE} - {*named, "cyxla.hlo"} == set()
    for name in named:
        assert inspect.getdoc(pydoc.locate(name)), name


@pytest.mark.parametrize("name", ["hlo", "random", "special"])
def test_modules_can_be_imported(name):
    code = f"import cyxla.{name} as m; import cyxla; assert m is cyxla.{name}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        _ = cyxla.compil


def test_imports_go_one_way():
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_import_loads_nothing_heavy():
    code = "import json, sys, cyxla; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert not {"scipy", "google.protobuf", "platformdirs", "cyxla.xla"} & set(loaded)


CODES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.OpError)]


@pytest.mark.parametrize("cls", CODES, ids=lambda c: c.__name__)
def test_errors_carry_their_code(cls):
    error = cls("what")
    assert error.message == "what"
    assert error.code.isupper()
    assert type(errors.from_code(error.number, "what")).code == error.code


LONG = "begin " + 3000 * "x" + " end"
LINES = "\n".join(["begin", *(f"line {n}" for n in range(50)), "end"])


@pytest.mark.parametrize("message", ["short", LONG, LINES, LINES + LONG])
@pytest.mark.parametrize("where", ["", "%x", LONG, LINES])
@pytest.mark.parametrize("hint", ["", "reshape one", LONG, LINES])
def test_errors_shorten_long_texts(message, where, hint):
    error = errors.InvalidArgumentError(message, where=where, hint=hint)
    text = str(error)
    assert len(text) <= 900
    assert text.count("\n") < 15
    assert text.startswith(message[:5])
    assert text.endswith((hint or where or message)[-2:])
    assert (error.message, error.where, error.hint) == (message, where, hint)
    assert ("…" in text) == (max(map(len, (message, where, hint))) > 200)


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e { ROOT r = f32[8] add(LONG, LONG) }",
        "HloModule m\nENTRY e { p = f32[] parameter(0) ROOT r = f32[] LONG(p) }",
        "HloModule m\nENTRY e { LONG = f32[8] parameter(0) ROOT r = f32[9] add(LONG, LONG) }",
        "HloModule m\nENTRY e { p = f32[8] parameter(0), LONG=3 }",
        "HloModule m, LONG={}\nENTRY e { ROOT p = f32[8] parameter(0) }",
    ],
)
def test_long_names_do_not_make_long_errors(text):
    with pytest.raises(InvalidArgumentError) as caught:
        cyxla.compile(text.replace("LONG", 3000 * "n"))
    assert len(str(caught.value)) <= 900


def test_errors_have_a_fault_a_location_and_a_remedy():
    error = errors.ShapeError("sizes differ", rule="add C1", where="%x", hint="reshape one")
    assert str(error) == "sizes differ  [add C1]\n  at:   %x\n  mend: reshape one"
    assert isinstance(error, ValueError)


def test_unknown_setting_names_the_nearest(monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DRI", "x")
    with pytest.raises(InvalidArgumentError, match="CYXLA_CACHE_DIR"):
        config.check_environment()


@pytest.mark.parametrize("name, text, value", [
    ("THREADS", "3", 3), ("CACHE", "0", False), ("CACHE", "on", True), ("CC", "", ""),
    ("DISABLE_HLO_PASSES", "cse, dce", ("cse", "dce")),
])  # fmt: skip
def test_settings_parse(monkeypatch, name, text, value):
    monkeypatch.setenv("CYXLA_" + name, text)
    assert config.get(name) == value


@pytest.mark.parametrize("name, text", [("THREADS", "0"), ("THREADS", "many"), ("CACHE", "perhaps")])
def test_bad_settings_are_refused(monkeypatch, name, text):
    monkeypatch.setenv("CYXLA_" + name, text)
    with pytest.raises(InvalidArgumentError, match=f"CYXLA_{name}"):
        config.check_environment()


@pytest.mark.parametrize("options", [{"disabled_pases": ()}, {"nonsense": 1}])
def test_unknown_options_are_refused(options):
    with pytest.raises(InvalidArgumentError, match="unknown option"):
        cyxla.compile("ENTRY e { ROOT x = f32[] parameter(0) }", platform="interpreter", **options)
