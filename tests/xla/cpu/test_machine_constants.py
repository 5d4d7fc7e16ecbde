"""Sizes and times in the cpu backend are multiples of `kernel.machine`, or have a comment."""

import ast
from pathlib import Path

import pytest

import cyxla.xla.cpu
from cyxla.xla.cpu.kernel import machine

FOLDER = Path(cyxla.xla.cpu.__file__).parent
MACHINE = Path(machine.__file__)


def is_size(node: ast.AST) -> bool:
    """Whether an expression looks like bytes or ns: a shift by 10 or more, a power of two, a multiple of 1,000."""
    match node:
        case ast.BinOp(op=ast.LShift(), left=ast.Constant(), right=ast.Constant(value=int() as bits)):
            return bits >= 10
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            power_of_two = value >= 4096 and float(value).hex().startswith("0x1.0000000000000")
            return power_of_two or (value >= 5000 and value % 1000 == 0)
    return False


def unexplained(source: str) -> list[str]:
    """The lines with such an expression, and with no comment on them or above."""
    lines = source.splitlines()
    tree = ast.parse(source)
    powers = {id(part) for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
              for part in ast.walk(node)}  # fmt: skip
    found = []
    for node in ast.walk(tree):
        if id(node) in powers or not is_size(node):
            continue
        line, above = lines[node.lineno - 1], lines[node.lineno - 2] if node.lineno > 1 else ""
        if "  # " not in line and not above.strip().startswith("#"):
            found.append(f"{node.lineno}: {line.strip()}")
    return found


@pytest.mark.parametrize("path", [p for p in sorted(FOLDER.rglob("*.py")) if p != MACHINE], ids=lambda p: p.stem)
def test_sizes_and_times_have_a_name_or_a_comment(path):
    assert unexplained(path.read_text()) == []


@pytest.mark.parametrize(
    "source,count",
    [
        ("L2 = 1 << 20", 1), ("L2 = 1 << 20  # bytes", 0), ("# bytes\nL2 = 1 << 20", 0), ("x = 5", 0),
        ("NS = 20_000.0", 1), ("NS = 5e6", 1), ("NS = 4_000", 0), ("SIZE = 8192", 1), ("SIZE = 4095", 0),
        ("LIMIT = 2**31", 0), ("f(1 << 9)", 0), ("f(64 << 10)", 1), ("flag = True", 0),
        ("SIZE = 2 * machine.L2_BYTES", 0),
    ],
)  # fmt: skip
def test_what_counts(source, count):
    assert len(unexplained(source)) == count
