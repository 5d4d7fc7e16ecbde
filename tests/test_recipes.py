"""The recipes of CONTRIBUTING: each is followed in a copy of the package, and programs use its additions."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@dataclass
class Recipe:
    """A recipe followed with a toy.

    Attributes
    ----------
    title : str
        Title in CONTRIBUTING.
    most : int
        Limit of the number of files.
    edits : dict
        Text to insert by file: after the first line that contains an anchor, or as a new file or at the end of one if
        the anchor is empty.
    program : str
        Program that uses the toy, for a platform named `PLATFORM`.
    """

    title: str
    most: int
    edits: dict[str, list[tuple[str, str]]]
    program: str


XLA = "src/cyxla/xla"
RECIPES = {
    "cotdg": Recipe(
        "An element-wise opcode", 5, {
            f"{XLA}/hlo/ops/elementwise.py": [
                ('unary( "cbrt"', 'unary( "cotdg", FLOAT, ulp=8, xla="CotDg", cost=1.0)'),
            ],
            f"{XLA}/evaluator/numerics/elementwise_functions.py": [
                ('_meaning("cbrt"', '_meaning("cotdg", smooth=lambda x: 1 / np.tan(np.deg2rad(x)))'),
            ],
            "include/cyxla/math_inverse.h": [("/* ---- cube root", """
static inline CYX_INLINE double cyx_cotdg_f64(double x) { return 1.0 / cyx_tan_f64(x * 0x1.1df46a2529d39p-6); }

static inline CYX_INLINE float cyx_cotdg_f32(float x) { return (float)cyx_cotdg_f64((double)x); }
""")],
            "src/cyxla/numpy/gradient/elementwise.py": [
                ('partials("cbrt"', 'partials("cotdg", lambda g, out, x: -g * full_like(g, pi / 180) * '
                                    "(full_like(g, 1) + out * out))"),
            ],
            "src/cyxla/numpy/ufuncs/scipy_ufuncs.py": [('    "cbrt":', '    "cotdg": xla.cotdg,')],
        }, """
from scipy import special
x = np.linspace(5, 80, 16)
function = cyxla.jit(lambda x: special.cotdg(x), platform=PLATFORM)
np.testing.assert_allclose(function(x), special.cotdg(x), rtol=1e-13)
np.testing.assert_allclose(function(x.astype("f")), special.cotdg(x.astype("f")), rtol=1e-6)
slope = cyxla.jit(cyxla.grad(lambda x: special.cotdg(x).sum()), platform=PLATFORM)(x)
np.testing.assert_allclose(slope, -np.pi / 180 / np.sin(np.deg2rad(x)) ** 2, rtol=1e-12)
text = "HloModule m\\nENTRY e { x = f64[16] parameter(0) ROOT r = f64[16] cotdg(x) }"
check_forms(text, "stablehlo.cotdg", x, special.cotdg(x))
""",
    ),
    "antitranspose": Recipe(
        "Another opcode", 8, {
            f"{XLA}/hlo/ops/data_movement.py": [("", '''

@opcode("antitranspose", 1, movement=True)
def antitranspose(site: Site) -> Shape:
    """(C1) a matrix."""
    arrays(site)
    x = site.operands[0]
    site.require(x.rank == 2, "C1", f"{x} is no matrix")
    return x.with_dims(x.dims[::-1])
''')],
            f"{XLA}/evaluator/ops/data_movement.py": [("", '''

@evaluates("antitranspose")
def antitranspose(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Reflect a matrix at its other diagonal."""
    return x[::-1, ::-1].T
''')],
            f"{XLA}/cpu/loops/loop_ir.py": [("", '''

def _antitranspose(body: Body, ins: Instruction, index: Index) -> _Steps:
    at = [c.scale(-1).shift(n - 1) for c, n in zip(index.coordinates, ins.shape.dims, strict=True)]
    (node,) = yield [(ins.operands[0], body.space.index(ins.operands[0].shape.dims, tuple(at[::-1])))]
    return node


HANDLERS["antitranspose"] = _antitranspose
''')],
            f"{XLA}/stablehlo/data_movement.py": [("", '''

@handles("antitranspose")
def _antitranspose(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.antitranspose(xs[0])
''')],
            f"{XLA}/stablehlo/write_ops.py": [
                ('    "transpose":  ', '    "antitranspose": _plain("stablehlo.antitranspose"),'),
            ],
            "src/cyxla/numpy/gradient/data_movement.py": [("", '''

@rule("antitranspose")
def antitranspose(node: Node) -> Cotangents:
    """Reflect back."""
    return [xla.antitranspose(node.g)]
''')],
        }, """
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.xla.hlo.builder import functions as xla
antitranspose = lambda x: TracedArray(xla.antitranspose(value_of(x)))
x = np.arange(6.0).reshape(2, 3)
function = cyxla.jit(lambda x: antitranspose(x * 2) + 1, platform=PLATFORM)
np.testing.assert_array_equal(function(x), (x * 2)[::-1, ::-1].T + 1)
weights = np.arange(6.0).reshape(3, 2)
slope = cyxla.jit(cyxla.grad(lambda x: (antitranspose(x) * weights).sum()), platform=PLATFORM)(x)
np.testing.assert_array_equal(slope, weights[::-1, ::-1].T)
text = "HloModule m\\nENTRY e { x = f64[2,3] parameter(0) ROOT r = f64[3,2] antitranspose(x) }"
check_forms(text, "stablehlo.antitranspose", x, x[::-1, ::-1].T)
""",
    ),
    "row-norms": Recipe(
        "Another opcode", 8, {
            f"{XLA}/hlo/ops/contraction.py": [("", '''

@opcode("row-norms", 1, accepts=FLOAT)
def row_norms(site: Site) -> Shape:
    """(C1) an array with a dimension."""
    arrays(site)
    x = site.operands[0]
    site.require(x.rank > 0, "C1", f"{x} has no rows")
    return x.with_dims(x.dims[:-1])
''')],
            f"{XLA}/evaluator/ops/linalg.py": [("", '''

@evaluates("row-norms")
def row_norms(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Sum the absolute values of each row."""
    return np.abs(x).sum(-1)
''')],
            f"{XLA}/cpu/linalg/row_norms.py": [("", '''"""Emitter of row-norms; the C is ``row_norms.h``."""

from math import prod

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, Step
from cyxla.xla.cpu.kernel.kernel_writer import describe
from cyxla.xla.cpu.kernel.shared_kernel import standalone_kernel
from cyxla.xla.cpu.kernel.values import Value, resolve
from cyxla.xla.hlo import Instruction


@emits("row-norms")
def row_norms(ins: Instruction) -> Step:
    """Emit the sums of rows; a row is a unit of work."""
    shape = ins.operands[0].shape
    rows, length = prod(shape.dims[:-1]), shape.dims[-1]
    ns = 0.1 * rows * length
    tasks = cost.tasks(ns, max(rows, 1))
    text = instantiate("row_norms.h", ROWS_TYPE=scalar.storage_type(shape.dtype), ROWS_RUN="KERNEL_run")
    made = Kernel(describe("row-norms", ins.shape), tasks, ns, 0, "row-norms")
    return Step(standalone_kernel(text, [tasks, rows, length], made), (resolve(ins.operands[0]),), (Value(ins),))
''')],
            "include/cyxla/kernels/row_norms.h": [("", '''/* Sums of the absolute values of rows: a template. */
#include "../abi.h"

static cyx_status ROWS_RUN(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  for (int64_t r = q[1] * begin / q[0]; r < q[1] * end / q[0]; ++r) {
    const ROWS_TYPE *const row = (const ROWS_TYPE *)bufs[0] + r * q[2];
    ROWS_TYPE sum = 0;
    for (int64_t k = 0; k < q[2]; ++k) sum += row[k] < 0 ? -row[k] : row[k];
    ((ROWS_TYPE *)bufs[1])[r] = sum;
  }
  return CYX_OK;
}

#undef ROWS_TYPE
#undef ROWS_RUN''')],
            f"{XLA}/cpu/emitters.py": [("MODULES: dict", '    "row-norms": "linalg.row_norms",')],
            f"{XLA}/stablehlo/contraction.py": [("", '''

@handles("row_norms")
def _row_norms(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.row_norms(xs[0])
''')],
            f"{XLA}/stablehlo/write_ops.py": [
                ('    "transpose":  ', '    "row-norms": _plain("stablehlo.row_norms"),'),
            ],
            "src/cyxla/numpy/gradient/linalg.py": [("", '''

@rule("row-norms")
def row_norms(node: Node) -> Cotangents:
    """Spread the cotangents over the rows, with the signs of the elements."""
    x = node.operands[0]
    return [xla.broadcast_in_dim(node.g, x.shape.dims, range(x.shape.rank - 1)) * xla.sign(x)]
''')],
        }, """
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.xla.hlo.builder import functions as xla
row_norms = lambda x: TracedArray(xla.row_norms(value_of(x)))
x = np.linspace(-3, 4, 35).reshape(5, 7)
np.testing.assert_allclose(cyxla.jit(row_norms, platform=PLATFORM)(x), np.abs(x).sum(-1), rtol=1e-14)
weights = np.arange(5.0)
slope = cyxla.jit(cyxla.grad(lambda x: (row_norms(x) * weights).sum()), platform=PLATFORM)(x)
np.testing.assert_array_equal(slope, np.sign(x) * weights[:, None])
text = "HloModule m\\nENTRY e { x = f64[5,7] parameter(0) ROOT r = f64[5] row-norms(x) }"
check_forms(text, "stablehlo.row_norms", x, np.abs(x).sum(-1))
""",
    ),
    "LogCosh": Recipe(
        "An op of TensorFlow", 4, {
            "src/cyxla/core/ops/math_unary_ops.py": [
                ("", 'op("LogCosh", "x: T -> y: T", "T: {float, double}", shape=elementwise_shape, doc="Log cosh.")'),
            ],
            "src/cyxla/core/kernels/math_unary_ops.py": [
                ("", 'unary("LogCosh", lambda x: np.log(np.cosh(x)), FLOATING)'),
            ],
            "src/cyxla/core/gradients/math/math_unary_ops.py": [
                ("", 'unary_gradient("LogCosh", lambda x, y, dy: dy * _op("Tanh", x))'),
            ],
            "src/cyxla/tf2xla/kernels/math_unary_ops.py": [
                ("", 'lowering("LogCosh", lambda x: xla.log(xla.cosh(x)), types=_FLOATS)'),
            ],
        }, """
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.gradients import gradients
from cyxla.core.graph.graph import Graph
from cyxla.autojit.analysis.op_groups import members
x = np.linspace(-2, 2, 9, dtype="f")
np.testing.assert_allclose(cyxla.raw_ops.LogCosh(x=x), np.log(np.cosh(x)), rtol=1e-5, atol=1e-7)
graph = Graph()
with graph.as_default():
    given = graph.placeholder(DataType.DT_FLOAT, (9,))
    made = apply_op("LogCosh", given)
    (slope,) = gradients([made], [given])
for jit in ("off", "on", "auto"):
    found = cyxla.Session(graph, jit=jit, platform=PLATFORM).run([made.name, slope.name], {given.name: x})
    np.testing.assert_allclose(found[0], np.log(np.cosh(x)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], np.tanh(x), rtol=1e-5, atol=1e-6)
assert "LogCosh" in members("PW")
""",
    ),
    "even_functions": Recipe(
        "A pass", 2, {
            f"{XLA}/passes/simplify/even_functions.py": [("", '''"""Drop the sign of the operand of a cosine.

Before::

    n = f32[4] negate(f32[4] x)
    ROOT y = f32[4] cosine(n)

After::

    ROOT y = f32[4] cosine(f32[4] x)
"""

from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import rewrite_each


def run(module: HloModule) -> bool:
    """Rewrite every cosine of a negated operand."""
    return rewrite_each(module, {"cosine": _cosine})


def _cosine(ins: Instruction) -> Instruction | None:
    (x,) = ins.operands
    return ins.computation.add("cosine", x.operands, ins.attrs, shape=ins.shape) if x.opcode == "negate" else None
''')],
            f"{XLA}/cpu/lowering.py": [
                ("from cyxla.xla.service import Compile", "from cyxla.xla.passes.simplify import even_functions"),
                ('    ("sparse_dot"', '    ("even_functions", even_functions.run),'),
            ],
        }, """
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.lowering import run_passes
from cyxla.xla.service import CompileOptions
function = cyxla.jit(lambda x: np.cos(-x), platform=PLATFORM)
x = np.linspace(-2, 2, 9)
np.testing.assert_allclose(function(x), np.cos(x), rtol=1e-13)
module = function.lower(x)
for disabled in ((), ("even_functions",)):
    made = run_passes(module, CompileOptions.of({"disabled_passes": disabled}), Dump(module))
    assert ("negate" in made.to_text()) == bool(disabled)
""",
    ),
    "polydiv": Recipe(
        "A function of NumPy", 2, {
            "src/cyxla/numpy/functions/polynomials.py": [("", '''

@implements(np.polydiv, note="the remainder keeps leading zeros")
def polydiv(u: Any, v: Any) -> Any:
    """Divide polynomials."""
    left, divisor = as_traced(u, np.float64), as_traced(v, np.float64)
    quotient: list[Any] = []
    while len(left) >= len(divisor):
        quotient.append(left[0] / divisor[0])
        left = (left - np.pad(quotient[-1] * divisor, (0, len(left) - len(divisor))))[1:]
    return np.stack(quotient), left
''')],
            "src/cyxla/numpy/functions/__init__.py": [('"poly polyadd polyder', None)],
        }, """
u, v = np.array([2.0, 3.0, 1.0, 4.0]), np.array([2.0, 1.0])
function = cyxla.jit(lambda u, v: np.polydiv(u, v), platform=PLATFORM)
for made, wanted in zip(function(u, v), np.polydiv(u, v), strict=True):
    np.testing.assert_allclose(made, wanted, rtol=1e-13)
first = cyxla.jit(cyxla.grad(lambda v: np.polydiv(u, v)[0][0], argnums=0), platform=PLATFORM)
np.testing.assert_allclose(first(v), [-u[0] / v[0] ** 2, 0], rtol=1e-13)
""",
    ),
}  # fmt: skip
PREAMBLE = """
import sys
import numpy as np
import cyxla
from cyxla.hlo import parse_module
from cyxla.xla.stablehlo import write_stablehlo
PLATFORM = ""  # each of the two in turn

def check_forms(text, operation, x, wanted):
    module = parse_module(text)
    assert module.to_text() == parse_module(module.to_text()).to_text()
    written = write_stablehlo(module)
    assert operation in written
    for program in (text, written):
        np.testing.assert_allclose(cyxla.compile(program, platform=PLATFORM)(x), wanted, rtol=1e-13)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return the folder of a copy of the package in which all recipes have been followed."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("src/cyxla", "include"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for recipe in RECIPES.values():
        for name, edits in recipe.edits.items():
            for anchor, text in edits:
                insert(folder / name, anchor, text)
    return folder


def insert(file, anchor, text):
    if not anchor:
        before = file.read_text() if file.exists() else ""
        file.write_text(f"{before}{text}\n")
        return
    lines = file.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if anchor in line)
    if text is None:  # a name in a list of names
        lines[at] = lines[at].replace("polyder", "polyder polydiv")
    else:
        lines.insert(at + 1, text)
    file.write_text("\n".join(lines) + "\n")


RUN = """
for PLATFORM in ("interpreter", "cpu"):
    exec(sys.argv[1])
"""


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", RECIPES)
def test_programs_use_the_additions_of_a_recipe(name, copy):
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "CYXLA_CACHE_DIR": str(copy / "cache")}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", PREAMBLE + RUN, RECIPES[name].program]
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_names_its_files(name):
    recipe = RECIPES[name]
    assert len(recipe.edits) <= recipe.most
    (text,) = re.findall(rf"\*\*{re.escape(recipe.title)}\*\* \(.*?(?=\n\*\*|\n## |\Z)", GUIDE, re.DOTALL)
    assert f"at most {recipe.most} files" in text
    for file in recipe.edits:
        short = Path(file.removeprefix("src/cyxla/"))
        assert any(f"{part}{'/' if part != short else ''}`" in text for part in (short, *short.parents)), file
