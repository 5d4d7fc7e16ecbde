"""Imports inside functions: all stand in docs/imports.md, and none closes a cycle of modules."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
ROW = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \| [\d.]+ \|$", re.MULTILINE)
TABLE = set(ROW.findall((ROOT / "docs" / "imports.md").read_text()))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def module_name(path):
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in (SOURCES / "cyxla").rglob("*.py")}


def is_typing_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_of(tree):
    """Each import of a module: its statement, and True if it is inside a function."""
    stack = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, inside
        elif not is_typing_only(node):
            inside = inside or isinstance(node, FUNCTIONS)
            stack += [(child, inside) for child in ast.iter_child_nodes(node)]


def packages(statement):
    return [statement.module] if isinstance(statement, ast.ImportFrom) else [a.name for a in statement.names]


def targets(statement):
    """The modules of a statement, submodules named after `import` included."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names}
    names = {f"{statement.module}.{alias.name}" for alias in statement.names}
    return (names & MODULES.keys()) | ({statement.module} if names - MODULES.keys() else set())


@cache
def found():
    """Imports inside functions with the modules that they load, and all imports of each module."""
    lazy, graph = {}, {}
    for name, path in MODULES.items():
        graph[name] = set()
        for statement, inside in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            graph[name] |= targets(statement)
            for package in packages(statement) if inside else ():
                lazy.setdefault((name, package), set()).update(targets(statement))
    return lazy, graph


def reachable(start, graph):
    seen, stack = set(start), list(start)
    while stack:
        new = graph.get(stack.pop(), set()) - seen
        seen |= new
        stack += new
    return seen


def test_imports_inside_functions_stand_in_the_table():
    lazy, _ = found()
    assert sorted(lazy.keys() - TABLE) == [], "import at the top, or add a measured row to docs/imports.md"
    assert sorted(TABLE - lazy.keys()) == [], "take the row out of docs/imports.md"


def test_no_import_inside_a_function_closes_a_cycle():
    lazy, graph = found()
    cycles = {key for key, modules in lazy.items() if key[0] in reachable(modules, graph)}
    assert sorted(cycles) == [], "move the shared part down, or register a function from the module above"
