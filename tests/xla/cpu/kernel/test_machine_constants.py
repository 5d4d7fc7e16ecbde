"""Sizes and times in the cpu backend are multiples of `kernel.machine`, or have a comment."""

import ast
import re
from pathlib import Path

import pytest

import cyxla.xla.cpu
from cyxla.xla.cpu.kernel import machine

FOLDER = Path(cyxla.xla.cpu.__file__).parent
MACHINE = Path(machine.__file__)


NAME = re.compile(r"(^|_)(NS|BYTES?)($|_)")
#: Floats that are no measurements: halves, doubles, and the numbers of arithmetic.
PLAIN = frozenset({0.0, 0.5, 1.0, 2.0})


def is_size(node: ast.AST) -> bool:
    """Whether an expression looks like bytes or ns: a shift by 10 or more, a power of two, hundreds, a fraction."""
    match node:
        case ast.BinOp(op=ast.LShift(), left=ast.Constant(), right=ast.Constant(value=int() as bits)):
            return bits >= 10
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=float() as value):
            return value not in PLAIN
        case ast.Constant(value=int() as value):
            return value >= 1000 and (value.bit_count() == 1 or value % 500 == 0)
    return False


def is_anonymous(node: ast.AST) -> bool:
    """Whether a statement gives a constant named NS or BYTES a number that is no multiple of another name's."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    parts = list(ast.walk(node.value))
    number = any(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts)
    return number and any(map(NAME.search, names)) and not any(isinstance(p, ast.Attribute | ast.Name) for p in parts)


def unexplained(source: str) -> list[str]:
    """The lines with such an expression, and with no comment on them, above them, or above their statement."""
    lines = source.splitlines()
    found = {}

    def has_comment(line: int) -> bool:
        return "  # " in lines[line - 1] or (line > 1 and lines[line - 2].strip().startswith("#"))

    def visit(node: ast.AST, statement: int) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return
        if isinstance(node, ast.stmt):
            statement = node.lineno
        if (is_size(node) or is_anonymous(node)) and not has_comment(node.lineno) and not has_comment(statement):
            found[node.lineno] = f"{node.lineno}: {lines[node.lineno - 1].strip()}"
        for part in ast.iter_child_nodes(node):
            visit(part, statement)

    visit(ast.parse(source), 1)
    return list(found.values())


@pytest.mark.parametrize("path", [p for p in sorted(FOLDER.rglob("*.py")) if p != MACHINE], ids=lambda p: p.stem)
def test_sizes_and_times_have_a_name_or_a_comment(path):
    assert unexplained(path.read_text()) == []


@pytest.mark.parametrize(
    "source,count",
    [
        ("L2 = 1 << 20", 1), ("L2 = 1 << 20  # bytes", 0), ("# bytes\nL2 = 1 << 20", 0), ("x = 5", 0),
        ("NS = 20_000.0", 1), ("NS = 5e6", 1), ("COUNT = 4_001", 0), ("SIZE = 8192", 1), ("SIZE = 1024", 1),
        ("SIZE = 4095", 0), ("ns = products * RATE + 1000", 1), ("LIMIT = 2**31", 0), ("f(1 << 9)", 0),
        ("f(64 << 10)", 1), ("flag = True", 0), ("MAC_NS = 5", 1), ("MAC_NS: Final = 5", 1),
        ("MAC_NS, ROWS = 5, 6", 1), ("MAC_NS = {\n  4: 5,\n}", 1), ("# assumed\nMAC_NS = {\n  4: 0.1,\n}", 0),
        ("def f():\n    return 0.03", 1), ("def f():\n    return 2.0", 0), ("BLOCKS = 5", 0), ("BAND_BYTES = 512", 1),
        ("SIZE = 2 * machine.L2_BYTES", 0), ("SIZE_BYTES = 2 * machine.L2_BYTES", 0), ("POINT_NS = OTHER / 4", 0),
    ],
)  # fmt: skip
def test_lines_that_count(source, count):
    assert len(unexplained(source)) == count
