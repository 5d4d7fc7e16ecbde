"""Platforms: registered, announced by installed packages, unknown; a backend in a few lines passes what any must."""

import sys
from textwrap import dedent

import numpy as np
import pytest

import cyxla
from cyxla.errors import AlreadyExistsError, NotFoundError, UnimplementedError
from cyxla.xla.hlo import HloModule, Visitor
from cyxla.xla.service import (
    CompileOptions,
    Compiler,
    Executable,
    LocalService,
    compiler_for,
    load_entry_points,
    platforms,
    register_compiler,
)

NUMPY = {"add": np.add, "multiply": np.multiply, "negate": np.negative, "maximum": np.maximum}


class Toy(Compiler):
    """Runs four operations by a visitor over the entry computation."""

    platform = "toy"

    def run_hlo_passes(self, module, options):
        return module

    def run_backend(self, module, options):
        known = {"parameter", "constant", *NUMPY}
        missing = sorted({i.opcode for c in module.computations.values() for i in c.instructions} - known)
        if missing:
            raise UnimplementedError(f"no code for {', '.join(missing)}")
        return ToyExecutable(module)


class ToyExecutable(Executable):
    platform = "toy"

    def __init__(self, module):
        self.module = module
        self.inputs = tuple(p.shape.logical for p in module.parameters)
        self.outputs = module.entry.root.shape.logical

    def __call__(self, *args, out=None):
        run = Run(args)
        run.visit(self.module.entry)
        result = run.values[self.module.entry.root]
        return result if out is None else np.positive(result, out=out)

    def hlo(self, stage="optimized"):
        return self.module.to_text()

    def explain(self):
        return "one visit a call"


class Run(Visitor):
    def __init__(self, args):
        self.args, self.values = args, {}

    def handle_parameter(self, ins):
        self.values[ins] = np.asarray(self.args[ins.attrs["parameter_number"]])

    def handle_constant(self, ins):
        self.values[ins] = ins.attrs["literal"].array

    def handle_default(self, ins):
        self.values[ins] = NUMPY[ins.opcode](*(self.values[o] for o in ins.operands))


register_compiler("toy", Toy)
PLATFORMS = ["cpu", "interpreter", "toy"]
PROGRAM = """
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  p = f32[8] multiply(x, y)
  n = f32[8] negate(p)
  m = f32[8] maximum(n, c)
  ROOT r = f32[8] add(m, x)
}
"""
X, Y = np.linspace(-4, 4, 8, dtype=np.float32), np.linspace(3, -5, 8, dtype=np.float32)
WANT = np.maximum(-(X * Y), np.arange(1, 9, dtype=np.float32)) + X


@pytest.mark.parametrize("platform", PLATFORMS)
class TestBackend:
    """Requirements on every backend."""

    def test_runs(self, platform):
        run = cyxla.compile(PROGRAM, platform=platform)
        assert (run.platform, [str(s) for s in run.inputs], str(run.outputs)) == (platform, ["f32[8]"] * 2, "f32[8]")
        np.testing.assert_array_equal(run(X, Y), WANT)

    def test_out_receives_the_result(self, platform):
        out = np.empty(8, np.float32)
        assert cyxla.compile(PROGRAM, platform=platform)(X, Y, out=out) is out
        np.testing.assert_array_equal(out, WANT)

    def test_binds(self, platform):
        bound = cyxla.compile(PROGRAM, platform=platform).bind({0: X})
        assert len(bound.inputs) == 1
        np.testing.assert_array_equal(bound(Y), WANT)

    def test_leaves_the_module_as_it_is(self, platform):
        module = HloModule.from_text(PROGRAM)
        before = module.to_text()
        run = cyxla.compile(module, platform=platform)
        assert module.to_text() == before == run.hlo("input")

    def test_properties_of_compilers(self, platform):
        run = cyxla.compile(PROGRAM, platform=platform)
        assert run.explain()
        assert HloModule.from_text(run.hlo()).entry.root.shape.logical is run.outputs
        assert (run.memory["arguments"], run.memory["results"]) == (64, 32)


def test_everything_that_is_missing_is_named():
    program = "ENTRY e { x = f32[8] parameter(0) a = f32[8] sine(x) b = f32[8] erf(a) ROOT r = f32[8] negate(b) }"
    with pytest.raises(UnimplementedError, match="erf, sine"):
        cyxla.compile(program, platform="toy")


def test_names_are_taken_once():
    with pytest.raises(AlreadyExistsError, match="toy"):
        register_compiler("toy", Toy)


def test_one_compiler_for_all_callers():
    assert compiler_for("toy") is compiler_for("toy") is LocalService("toy").compiler
    assert set(PLATFORMS) <= set(platforms())


def test_unknown_platforms_are_refused():
    with pytest.raises(NotFoundError, match="no platform 'gpu'") as caught:
        cyxla.compile(PROGRAM, platform="gpu")
    assert {"cpu,", "interpreter,"} <= set(caught.value.hint.split())


def test_incomplete_backends_are_refused():
    class Half(Executable):
        def explain(self):
            return ""

    with pytest.raises(TypeError, match="__call__, hlo"):
        Half()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that announces two platforms."""
    (tmp_path / "announced_backend.py").write_text(
        dedent("""
            from cyxla.xla.interpreter.compiler import InterpreterCompiler

            class Announced(InterpreterCompiler):
                platform = "announced"

            calls = []

            def register():
                from cyxla.xla.service import register_compiler

                calls.append(1)
                register_compiler("registered", Announced)

            def forgets():
                pass
        """)
    )
    info = tmp_path / "announced-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[cyxla.backends]\nannounced = announced_backend:Announced\nbroken = no_such_module:Nothing\n"
        "registered = announced_backend:register\nforgotten = announced_backend:forgets\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("announced_backend", None)


@pytest.mark.usefixtures("package")
def test_installed_packages_announce_platforms():
    assert {"announced", "broken", "cpu"} <= set(platforms())
    run = cyxla.compile(PROGRAM, platform="announced")
    np.testing.assert_array_equal(run(X, Y), WANT)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        cyxla.compile(PROGRAM, platform="broken")


@pytest.mark.usefixtures("package")
def test_installed_packages_may_register_by_a_function(caplog):
    """Called once, whoever asks first; what cannot be loaded is told, and keeps nothing else from loading."""
    load_entry_points()
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "broken" in told
    assert "registered no compiler for platform 'forgotten'" in told
    np.testing.assert_array_equal(cyxla.compile(PROGRAM, platform="registered")(X, Y), WANT)
    load_entry_points()
    assert sys.modules["announced_backend"].calls == [1]
    with pytest.raises(NotFoundError, match="forgotten"):
        cyxla.compile(PROGRAM, platform="forgotten")


def test_the_service_verifies_before_it_compiles():
    module = HloModule.from_text(PROGRAM)
    module.entry.root.shape = cyxla.Shape.array("f32", (9,))
    with pytest.raises(cyxla.errors.InvalidArgumentError):
        LocalService("toy").build_executable(module, CompileOptions())
