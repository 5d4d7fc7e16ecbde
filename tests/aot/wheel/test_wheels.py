"""Wheels: the same bits as jit where there is NumPy alone, their files, the same bytes each time."""

import ast
import email
import inspect
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.builds.ahead_of_time import LEVEL
from support.builds.wheel_programs import PROGRAMS, loop_program, network_program, newton
from support.builds.wheels import build, install, module, numpy_alone, run_alone
from support.hlo.residual_network import ResidualNetwork

import cyxla
from cyxla import aot
from cyxla.aot.config import Config, Feed, Fetch, Variable
from cyxla.core.framework.apply import apply_op
from cyxla.errors import InvalidArgumentError, TraceError, UnimplementedError

RNG = np.random.default_rng(7)


ALONE = """
import importlib.util, sys
import numpy as np
assert importlib.util.find_spec("cyxla") is None and importlib.util.find_spec("ml_dtypes") is None
import package
data = np.load(FILE)
results = package.f(*[data[f"a{k}"] for k in range(sum(n[0] == "a" for n in data.files))])
results = results if isinstance(results, tuple) else (results,)
for k, result in enumerate(results):
    want = data[f"r{k}"]
    assert np.shape(result) == want.shape, k
    assert np.asarray(result).dtype == want.dtype, k
    assert np.asarray(result).tobytes() == want.tobytes(), k
print(len(results), type(results[-1]).__name__)
"""


@pytest.mark.parametrize("weights", ["embed", "file"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits_as_jit_with_numpy_alone(tmp_path, name, weights):
    program, arguments, function = PROGRAMS[name]()
    results = function(*arguments)
    results = list(results) if isinstance(results, tuple) else [results]
    wheel = build(tmp_path, program, name="package", weights=weights)
    assert name == "loop" or (weights == "file") == any(
        n.endswith(".weights") for n in zipfile.ZipFile(wheel).namelist()
    )
    arrays = {f"a{k}": a for k, a in enumerate(arguments)} | {f"r{k}": np.asarray(r) for k, r in enumerate(results)}
    np.savez(tmp_path / "data.npz", **arrays)
    installed, packages = install(wheel, tmp_path / "installed"), numpy_alone(tmp_path / "packages")
    printed = run_alone(ALONE.replace("FILE", repr(str(tmp_path / "data.npz"))), installed, packages)
    assert printed.split() == [str(len(results)), type(results[-1]).__name__]


def test_variables_of_a_graph_are_written(tmp_path):
    """z = x + the number of calls, a variable that is an argument."""
    graph = cyxla.Graph()
    with graph.as_default():
        node = graph.placeholder("float", [None, 3], name="x")
        calls = apply_op("VarHandleOp", dtype="float", shape=[], shared_name="calls", name="calls")
        added = apply_op("AssignAddVariableOp", calls, graph.constant(np.float32(1)))
        with graph.control_dependencies([added]):
            apply_op("AddV2", node, apply_op("ReadVariableOp", calls, dtype="float"), name="z")
    config = Config([Feed("x", (2, 3))], [Fetch("z")], [Variable("calls")])
    package = module(tmp_path, aot.program(graph, config=config, name="count"), name="counting")
    x, calls = RNG.standard_normal((2, 3), np.float32), np.zeros((), np.float32)
    for number in (1, 2, 3):
        np.testing.assert_array_equal(package.count(x, calls), x + np.float32(number))
        assert calls == number
    with pytest.raises(TypeError, match="argument calls is written"):
        package.count(x, 3.0)


BOUNDED = """
ENTRY e {
  x = f32[5] parameter(0)
  n = s32[] parameter(1)
  y = f32[<=5] set-dimension-size(x, n), dimensions={0}
  ROOT r = (f32[<=5], s32[]) tuple(y, n)
}
"""


def test_results_of_bounded_size_are_cut(tmp_path):
    package = module(tmp_path, BOUNDED, name="bounded")
    [function] = [getattr(package, n) for n in package.__all__ if n != "set_threads"]
    x = RNG.standard_normal(5, np.float32)
    for size in (0, 2, 5):
        cut, n = function(x, size)
        np.testing.assert_array_equal(cut, x[:size])
        assert n == size


def test_arguments_of_bounded_size_are_refused(tmp_path):
    text = "ENTRY e { x = f32[<=5] parameter(0) ROOT y = f32[<=5] add(x, x) }"
    with pytest.raises(UnimplementedError, match="arguments of bounded size"):
        build(tmp_path, text, name="bounded")


@pytest.mark.slow
def test_thousands_of_arrays(tmp_path):
    package = module(tmp_path, lambda xs: [x + 1 for x in xs], [((), float)] * 1200, name="thousands")
    xs = list(np.arange(1200.0))
    assert package.thousands(xs) == [x + 1 for x in xs]


@pytest.mark.slow
def test_pip_installs_into_a_new_environment(tmp_path):
    pytest.importorskip("pip")
    program, _, _ = loop_program()
    wheel = build(tmp_path, program, name="package")
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "environment"], check=True)
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "-q", wheel]
    subprocess.run(command, check=True)
    packages = numpy_alone(tmp_path / "packages")
    [site] = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    (site / "numpy.pth").write_text(f"{packages}\n")
    code = (
        "import package, numpy, importlib.metadata as m; print(package.f(numpy.ones((5, 7)))[1], m.version('package'))"
    )
    done = subprocess.run([python, "-c", code], env={"PATH": ""}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "0.1.0"]


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_and_metadata(tmp_path):
    wheel = build(tmp_path, newton, ((3,), float), name="roots", version="1.2.3rc1")
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version) == ("roots", "1.2.3rc1")
    assert platform.startswith(("manylinux_2_", "linux_"))
    with zipfile.ZipFile(wheel) as archive:
        names, entries = archive.namelist(), archive.infolist()
        metadata = email.message_from_bytes(archive.read("roots-1.2.3rc1.dist-info/METADATA"))
        tags = email.message_from_bytes(archive.read("roots-1.2.3rc1.dist-info/WHEEL"))
    assert {n for n in names if ".dist-info" not in n} == {
        "roots/__init__.py", "roots/__init__.pyi", "roots/_calls.py", "roots/py.typed",
        "roots/_programs.abi3.so" if abi == "abi3" else f"roots/_programs.{python}",
    }  # fmt: skip
    assert (metadata["Name"], metadata["Version"], metadata["Requires-Python"]) == ("roots", "1.2.3rc1", ">=3.11")
    assert [r.partition(">")[0] for r in metadata.get_all("Requires-Dist")] == ["numpy"]
    assert tags["Tag"] == f"{python}-{abi}-{platform}"
    assert tags["Root-Is-Purelib"] == "false"
    assert {e.date_time for e in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_the_tag_names_the_oldest_system(tmp_path):
    """The newest symbol of glibc in the module decides, as `auditwheel` has it."""
    package = module(tmp_path, newton, ((3,), float), name="tagged")
    data = Path(package._programs.__file__).read_bytes()
    versions = [tuple(map(int, part.split(b"\0")[0].split(b"."))) for part in data.split(b"GLIBC_")[1:]]
    [wheel] = tmp_path.glob("*.whl")
    assert f"manylinux_{'_'.join(map(str, max([(2, 17), *versions])))}_" in wheel.name


BUILD = """
import sys, numpy as np
from cyxla import aot
def f(x, w):
    return {"y": np.tanh(x @ w) + np.arange(3000).reshape(3, 1000)}
w = np.random.default_rng(0).random((400, 1000))
for weights in ("embed", "file"):
    aot.compile(f, ((3, 400), float), w, bind={"w": w}, directory=sys.argv[1] + weights, kind="wheel", weights=weights,
                name="f", isa=("LEVEL",))
""".replace("LEVEL", LEVEL[0])


@pytest.mark.slow
def test_two_processes_make_the_same_bytes(tmp_path):
    (tmp_path / "build.py").write_text(BUILD)
    found = []
    for k in range(2):
        target = tmp_path / f"{'x' * (5 * k + 1)}"
        target.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": str(k), "CYXLA_CACHE": "0"}
        subprocess.run([sys.executable, tmp_path / "build.py", f"{target}/"], check=True, env=environment)
        found.append({p.relative_to(target): p.read_bytes() for p in target.rglob("*.whl")})
    assert len(found[0]) == 2
    assert found[0] == found[1]


def test_element_types_of_ml_dtypes_are_required_where_they_occur(tmp_path):
    x = RNG.standard_normal(5).astype(ml_dtypes.bfloat16)
    package = module(tmp_path, lambda x: x * x, x, name="narrow")
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read("narrow-0.1.0.dist-info/METADATA"))
    assert metadata.get_all("Requires-Dist")[1:] == ["ml_dtypes"]
    result = getattr(package, package.__all__[0])(x)
    assert result.dtype == x.dtype
    assert result.tobytes() == (x * x).tobytes()


# --- the package ------------------------------------------------------------------------------------------------------


def affine(p, x, *, scale=2.0):
    """Scale and shift."""
    return {"y": p["w"] * x * scale + p["b"], "sum": np.sum(x), "n": 3}


AFFINE = {"w": ((3,), float), "b": ((), float)}, ((3,), float)


def test_docstrings_and_signatures(tmp_path):
    f = module(tmp_path, [aot.program(affine, *AFFINE)]).affine
    assert str(inspect.signature(f)) == "(p, x, *, out=None)"
    assert f.__name__ == "affine"
    doc = inspect.getdoc(f)
    assert doc.startswith("Scale and shift.\n\nParameters\n")
    assert "x : float64 array of shape (3,)" in doc
    assert "p : a dict with 'w', 'b'\n    'w': float64 array of shape (3,)\n    'b': float64\n" in doc
    assert pickle.loads(pickle.dumps(f)) is f


def test_static_arguments_are_left_out(tmp_path):
    def powers(x, count, style="tall"):
        return np.stack([x**k for k in range(count)], 0 if style == "tall" else 1)

    package = module(tmp_path, [aot.program(powers, ((2,), float), 3)], name="fixed")
    assert str(inspect.signature(package.powers)) == "(x, *, out=None)"
    np.testing.assert_array_equal(package.powers([2, 3]), [[1, 1], [2, 3], [4, 9]])


@pytest.mark.slow
def test_types_for_type_checkers(tmp_path):
    pytest.importorskip("mypy")
    package = module(tmp_path, [aot.program(affine, *AFFINE), aot.program(newton, ((3,), float))], name="typed")
    folder = Path(package.__file__).parents[1]
    program = folder / "program.py"
    program.write_text("""
import numpy as np
import typed
reveal_type(typed.affine({"w": np.ones(3), "b": 1}, [1, 2, 3]))
reveal_type(typed.newton(np.ones(3)))
typed.newton(3, 4)
typed.nothing
typed.set_threads(2)
""")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", program]
    environment = {**os.environ, "MYPYPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    notes, errors = (
        [line for line in done.stdout.splitlines() if kind in line] for kind in (": note: Rev", ": error:")
    )
    for note, parts in zip(
        notes, (("dict[", "ndarray[", "float64", "int"), ("tuple[", "ndarray[", "int")), strict=True
    ):
        assert all(part in note for part in parts), note
    assert [error.rpartition("[")[2] for error in errors] == ["call-arg]", "attr-defined]"], errors
    stubs = ast.parse(Path(folder, "typed", "__init__.pyi").read_text())
    documented = [ast.get_docstring(node) for node in stubs.body if isinstance(node, ast.FunctionDef)]
    assert documented[:2] == [inspect.getdoc(package.affine), inspect.getdoc(package.newton)]


def test_several_functions_share_weights(tmp_path):
    table = RNG.random(5000)

    def free(x):  # names that C does not have
        return x + table

    def double(x):
        return x * table

    programs = [aot.program(f, table) for f in (free, double)]
    product = aot.compile(programs, directory=tmp_path, kind="wheel", name="both", isa=LEVEL)
    assert product.weights_bytes == -(-table.nbytes // 64) * 64
    package = module(tmp_path, programs)
    assert package.__all__ == ["double", "free", "set_threads"]
    np.testing.assert_array_equal(package.free(table), table + table)
    np.testing.assert_array_equal(package.double(table), table * table)


def test_weights_of_another_wheel_are_refused(tmp_path):
    network = ResidualNetwork()
    wheel = build(tmp_path, network.text, name="package", weights="file")
    folder = install(wheel, tmp_path / "installed")
    [weights] = folder.rglob("*.weights")
    weights.write_bytes(b"cyxla weights" + bytes(weights.stat().st_size - 13))
    packages = numpy_alone(tmp_path / "packages")
    code = "try:\n  import package\nexcept ImportError as error:\n  print(error)"
    assert "is missing or of another version (status 15)" in run_alone(code, folder, packages)
    weights.unlink()
    assert "is missing or of another version (status 5)" in run_alone(code, folder, packages)


def test_the_extension_module_compiles_without_warnings(tmp_path, monkeypatch):
    monkeypatch.setattr(cyxla.aot.build, "SUPPORT_FLAGS", (*cyxla.aot.build.SUPPORT_FLAGS, "-Werror"))
    for k, weights in enumerate(("embed", "file")):
        programs = [network_program()[0], aot.program(affine, *AFFINE)]
        assert build(tmp_path, programs, name=f"strict{k}", weights=weights).is_file()


@pytest.mark.parametrize("options, error, words", [
    ({"name": "lambda"}, InvalidArgumentError, "lambda"),
    ({"version": "one"}, InvalidArgumentError, "version='one'"),
    ({"version": "1.0\nName: other"}, InvalidArgumentError, "version="),
    ({"weights": "both"}, InvalidArgumentError, "weights='both'"),
    ({"threads": "many"}, InvalidArgumentError, "threads='many'"),
    ({"machine": "aarch64"}, InvalidArgumentError, "machine= is for C libraries"),
    ({"cpp_class": "ns::F"}, InvalidArgumentError, "cpp_class= is for C libraries"),
])  # fmt: skip
def test_options_are_checked(tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        build(tmp_path, newton, ((3,), float), **options)
    assert not list(tmp_path.rglob("*.whl"))


class Odd:
    pass


@pytest.mark.parametrize("function, specs, words", [
    (lambda d: {"x": d, Odd(): d}, [((3,), float)], "static Odd"),
    (lambda d: d.update(x=d["y"]), [{"y": ((3,), float)}], "d is changed"),
])  # fmt: skip
def test_what_a_wheel_cannot_hold_is_refused(tmp_path, function, specs, words):
    with pytest.raises((UnimplementedError, TraceError), match=words):
        build(tmp_path, function, *specs, name="package")


def test_texts_of_the_program_are_only_texts(tmp_path):
    def f(x):
        r'''Quotes """ and '' and \ and \n, {braces} and %s; é.'''
        return {'quo"te\\': x, "{x}": x + 1}

    package = module(tmp_path, f, ((2,), float))
    result = package.f(np.ones(2))
    assert list(result) == ['quo"te\\', "{x}"]
    assert r'Quotes """ and' in package.f.__doc__
    stubs = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    [documented] = [ast.get_docstring(n) for n in stubs.body if isinstance(n, ast.FunctionDef) and n.name == "f"]
    assert documented.replace("'''", '"""') == inspect.getdoc(package.f)
