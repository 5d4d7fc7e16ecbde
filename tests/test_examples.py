"""The code and the commands of the pages run, and the names on them exist."""

import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from cyxla.tools.verbs import functions, opcodes, settings
from support.builds import plugins

import cyxla
from cyxla.core.framework import apply_op, load_op_library
from cyxla.tools.main import main
from cyxla.xla.service import register_compiler

ROOT = Path(__file__).parents[1]


def blocks(name, language):
    found = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    return [code for kind, code in found if kind == language]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(path, tmp_path):
    words = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_readme_runs():
    known, checks = {}, {"softmax": check_softmax, "train(": check_training, "exported": check_exported}
    found = blocks("README.md", "python")
    assert len(found) == len(checks)
    for code, (mark, check) in zip(found, checks.items(), strict=True):
        assert mark in code
        exec(compile(code, f"README: {mark}", "exec"), known)
        check(known)


def check_softmax(known):
    x, y, softmax = known["x"][:16], known["y"][:16], known["softmax"]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, softmax.__wrapped__(x), rtol=1e-5)
    softmax.wait()
    assert "1 kernels" in softmax.explain()


def check_training(known):
    x, y, w = np.eye(3), np.array([0.1, 0.2, 0.3]), np.zeros(3)
    for _ in range(100):
        t = np.tanh(x @ w)
        w = w - 0.1 * (2 / 3) * x.T @ ((t - y) * (1 - t * t))
    np.testing.assert_allclose(known["w"], w, rtol=1e-12)


def check_exported(known):
    np.testing.assert_allclose(known["z"], np.full(3, np.tanh(1), np.float32), rtol=1e-6)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def rows(page):
    """Cells of the tables of a page, by their first cell."""
    lines = (ROOT / page).read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[1:]]


def test_figures_of_the_readme_are_those_of_the_benchmarks():
    header, *_ = (row for row in rows("docs/benchmarks.md") if row[:2] == ["workload", "cyxla ms"])
    measured = {
        row[0]: dict(zip(header, row, strict=True)) for row in rows("docs/benchmarks.md") if len(row) == len(header)
    }
    shown = [row for row in rows("README.md") if row[-1] and "`" in row[0]]
    assert len(shown) == 5
    for name, own, *others in shown:
        want = measured[re.search(r"`(\w+)`", name)[1]]
        assert own == f"{want['cyxla ms']} ms"
        assert others == [want[library] for library in ("NumPy", "JAX", "numba", "torch.compile")]


def commands(page):
    """The lines of a page's code blocks without a language, without comments."""
    return [line.partition(" #")[0].strip() for block in blocks(page, "") for line in block.splitlines()]


PAGES = ("README.md", "docs/programs.md", "docs/graphs.md", "docs/debugging.md", "docs/aot.md")
CYXLA = [(page, line) for page in PAGES for line in commands(page) if line.startswith("cyxla ")]
PROGRAM = "HloModule p ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] tanh(x) }"
STABLEHLO = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"


@pytest.mark.parametrize("page, line", CYXLA, ids=[f"{Path(page).stem}: {line}" for page, line in CYXLA])
def test_commands_of_the_pages_run(page, line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones(3, np.float32))
    Path("program.hlo").write_text(PROGRAM)
    Path("program.mlir").write_text(STABLEHLO)
    graph = cyxla.Graph()
    with graph.as_default():
        cyxla.raw_ops.Tanh(x=cyxla.raw_ops.Placeholder(dtype="float", shape=(3,), name="x"), name="y")
    Path("model.pb").write_bytes(graph.to_graph_def().SerializeToString())
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out or "convert" in line


def test_other_commands_of_the_readme_exist():
    found = [line.split() for line in commands("README.md") if not line.startswith("cyxla ")]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    verbs = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert ["make", "demo"] in found
    assert ["make", "test"] in found
    for program, verb, *rest in found:
        wanted = re.findall(r"\[(\w+)\]", " ".join(rest))
        assert (program == "make" and verb in verbs) or (
            (program, verb) == ("pip", "install") and set(wanted) <= set(extras)
        )


def test_the_plugin_of_the_documents_works():
    known = {}
    exec(blocks("docs/plugins.md", "python")[0], known)
    register_compiler("documented", known["ToyCompiler"])
    run = cyxla.compile("ENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] add(x, x) }", platform="documented")
    np.testing.assert_array_equal(run(np.arange(3, dtype=np.float32)), [0, 2, 4])
    assert run.explain() == "evaluated on NumPy"


def test_the_libraries_of_the_documents_work(tmp_path):
    """In C with its XLA kernel, and in C++."""
    kernels, xla = blocks("docs/plugins.md", "c")
    assert "NULL, 0)" in kernels
    head, table = kernels.split("CYXLA_KERNEL_PLUGIN")
    (tmp_path / "scale.c").write_text(f"{head}{xla}CYXLA_KERNEL_PLUGIN{table.replace('NULL, 0', 'xla_kernels, 1')}")
    (tmp_path / "power.cpp").write_text(*blocks("docs/plugins.md", "cpp"))
    load_op_library(plugins.build(tmp_path, tmp_path / "scale.c"))
    load_op_library(plugins.build(tmp_path, tmp_path / "power.cpp", language="c++"))
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None])
        y = apply_op("DocumentedScale", x, factor=3.0)
        z = apply_op("DocumentedPower", y)
    value = np.arange(4, dtype=np.float32)
    for jit, result, expected in (("off", z, 9 * value**2), ("on", y, 3 * value)):
        with cyxla.Session(graph, jit=jit) as session:
            np.testing.assert_array_equal(session.run(result, {x: value}), expected)


def test_the_architecture_page_lists_every_folder():
    listed = {row[0].strip("`") for row in rows("docs/architecture.md")}
    source = ROOT / "src" / "cyxla"
    for inside, prefix in (("", ""), ("xla", "xla/"), ("xla/cpu", "")):
        folders = {prefix + path.name for path in (source / inside).iterdir() if any(path.glob("*.py"))}
        assert folders - {"xla"} <= listed


def test_the_compiler_page_shows_the_plan_and_the_c():
    shown, (c,) = blocks("docs/compiler.md", "")[0], blocks("docs/compiler.md", "c")
    text = re.search(r'TEXT = """(.*?)"""', blocks("docs/compiler.md", "python")[0], re.DOTALL)[1]
    executable = cyxla.compile(text)
    assert executable.explain() == shown.rstrip()
    assert c in executable.c_source


@pytest.mark.parametrize("page", ["programs.md", "dynamic.md", "graphs.md", "compiler.md", "debugging.md", "aot.md"])
def test_pages_run(page, tmp_path):
    words = [sys.executable, "-W", "error", "-c", "\n".join(blocks(f"docs/{page}", "python"))]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")


GENERATED = {"opcodes.md": opcodes.markdown, "numpy.md": functions.markdown, "settings.md": settings.markdown}


@pytest.mark.parametrize("page", GENERATED)
def test_generated_pages_are_up_to_date(page):
    """``make docs`` writes them."""
    assert (ROOT / "docs" / page).read_text() == GENERATED[page]()


DOCUMENTS = [
    *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def anchors(path):
    """Anchors that the headings of a page get."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(path):
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^):]+)\)", prose):
        target, _, anchor = link.partition("#")
        page = path.parent / target if target else path
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), link


def test_the_index_lists_every_page():
    listed = set(re.findall(r"\]\((\S+\.md)\)", (ROOT / "docs" / "index.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"} <= listed


ROOTS = [ROOT / where for where in ("", "docs", "include", "src/cyxla", "src/cyxla/core", "src/cyxla/xla")]


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if "CHANGELOG" not in p.name], ids=lambda p: p.stem)
def test_files_that_the_pages_name_are_there(path):
    prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    names = re.findall(r"`([\w.]+/[\w/.]*(?:\.py|\.pyx|\.h|/))`", prose)
    assert [n for n in names if not any((root / n).exists() for root in ROOTS)] == []


def resolve(name):
    """Return the module or attribute of a dotted name, or raise an error."""
    try:
        return pkgutil.resolve_name(name)
    except AttributeError:
        module, _, attribute = name.rpartition(".")
        return getattr(resolve(module), attribute)


HEADERS = [ROOT / "include" / "cyxla" / name for name in ("kernel_plugin.h", "kernel_plugin.hpp", "plugin_stamp.h")]
MACROS = {name for path in HEADERS for name in re.findall(r"CYXLA_[A-Z_]+", path.read_text())}


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if "CHANGELOG" not in p.name], ids=lambda p: p.stem)
def test_names_and_variables_that_the_pages_mention_exist(path):
    prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    entry_points = {"cyxla.backends", "cyxla.kernels"}
    for name in set(re.findall(r"`(cyxla(?:\.\w+)+)(?:\([^`]*\))?`", prose)) - entry_points:
        resolve(name)
    listed = set(re.findall(r"CYXLA_\w+", settings.markdown())) | MACROS
    assert set(re.findall(r"CYXLA_[A-Z_]+", prose)) <= listed
