"""A dump names the rules that fired, with the instructions before and after, and stays within its bounds."""

import subprocess
import sys

import pytest

import cyxla
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine import pass_dump
from cyxla.xla.passes.engine.observer import observed
from cyxla.xla.passes.engine.pass_dump import PassDump, folder_of
from cyxla.xla.passes.simplify import simplification

#: file of rewrites: (program, lines that it has)
REWRITES = {
    "simplify.algebra": (
        "x = f32[4] parameter(0) one = f32[] constant(1) ones = f32[4] broadcast(one), dimensions={} "
        "y = f32[4] multiply(x, ones) ROOT z = f32[4] tanh(y)",
        [
            "[1] multiply(x, 1) -> x, in %e",
            "  - %one = f32[] constant(1)",
            "  - %ones = f32[4]{0} broadcast(%one), dimensions={}",
            "  - %y = f32[4]{0} multiply(%x, %ones)",
            "  = %x = f32[4]{0} parameter(0)",
        ],
    ),
    "simplify.constant_folding": (
        "a = s32[3] constant({1, 2, 3}) ROOT b = s32[3] multiply(a, a)",
        [
            "[1] all operands are constants, in %e",
            "  - %a = s32[3]{0} constant({1, 2, 3})",
            "  - %b = s32[3]{0} multiply(%a, %a)",
            "  + %constant = s32[3]{0} constant({1, 4, 9})",
        ],
    ),
    "simplify.cse": (
        "x = f32[4] parameter(0) a = f32[4] tanh(x) b = f32[4] tanh(x) ROOT c = f32[4] add(a, b)",
        [
            "[1] the same is computed before, in %e",
            "  - %b = f32[4]{0} tanh(%x)",
            "  = %a = f32[4]{0} tanh(%x)",
        ],
    ),
    "simplify.dce": (
        "x = f32[4] parameter(0) a = f32[4] tanh(x) ROOT c = f32[4] negate(x)",
        ["instructions removed (-), added or changed (+)", "  - %a = f32[4]{0} tanh(%x)"],
    ),
    "inline": (
        "x = f32[4] parameter(0) ROOT c = f32[4] call(x), to_apply=f",
        [
            "[1] call -> its computation, in %e",
            "  - %c = f32[4]{0} call(%x), to_apply=%f",
            "  + %q.1 = f32[4]{0} cosine(%x)",
        ],
    ),
    "expand_bitcast_convert": (
        "x = f32[4] parameter(0) ROOT c = u8[4,4] bitcast-convert(x)",
        ["  - %c = u8[4,4]{1,0} bitcast-convert(%x)"],
    ),
}


def program(body):
    return f"HloModule m f {{ p = f32[4] parameter(0) ROOT q = f32[4] cosine(p) }} ENTRY e {{ {body} }}"


def watched(module, folder, run=simplification.run):
    """The files of a dump of one run of passes, by name."""
    dump = PassDump(folder)
    with observed(dump, module):
        run(module)
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", REWRITES)
def test_rules_are_named_with_the_text_before_and_after(name, tmp_path, monkeypatch):
    body, lines = REWRITES[name]
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    cyxla.compile(program(body))
    (path,) = tmp_path.glob(f"m.*/??_{name}.rewrites.txt")
    text = path.read_text()
    assert text.startswith(f"// {name}: ")
    assert "\n".join(lines) in text
    parse_module(path.with_name(path.name.replace(".rewrites.txt", ".hlo")).read_text()).verify()


def test_a_dump_follows_rewritten_instructions(tmp_path):
    body = "x = f32[4] parameter(0) a = f32[2,2] reshape(x) b = f32[4,1] reshape(a) ROOT c = f32[4] reshape(b)"
    files = watched(parse_module(program(body)), tmp_path)
    (text,) = (text for name, text in files.items() if name.endswith("algebra.rewrites.txt"))
    assert text.count("reshape(reshape(x)) -> reshape(x)") == 2
    assert text.rstrip().splitlines()[-1] == "  = %x = f32[4]{0} parameter(0)"


def test_a_second_dump_replaces_the_first(tmp_path):
    ones = "x = f32[4] parameter(0) one = f32[4] constant({1, 1, 1, 1}) ROOT y = f32[4] multiply(x, one)"
    (tmp_path / "07_other.hlo").write_text("left by an earlier dump")
    (tmp_path / "07_notes.txt").write_text("not of a dump")
    files = watched(parse_module(program(ones)), tmp_path)
    assert "07_other.hlo" not in files
    assert "07_notes.txt" in files


def test_files_of_an_earlier_compilation_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_DUMP", str(tmp_path))
    text = program("x = f32[4] parameter(0) ROOT a = f32[4] tanh(x)")
    cyxla.compile(text)
    (folder,) = tmp_path.iterdir()
    for name in ("unit9.c", "k9.loops.txt"):
        (folder / name).write_text("left by an earlier dump")
    cyxla.compile(text)
    names = {path.name for path in folder.iterdir()}
    assert {"unit0.c", "k0.loops.txt"} <= names
    assert not {"unit9.c", "k9.loops.txt"} & names


BOUNDS = {
    "MAX_REWRITES": (
        2,
        "simplify.cse.rewrites.txt",
        "// cut: the first 2 rewrites are shown\n// simplify.cse: 19",
    ),
    "MAX_PROGRAM": (300, "input.hlo", "// cut: "),
    "MAX_FOLDER": (10, "simplify.cse.hlo", "// cut: 0 of "),
    "MAX_LINE": (20, "simplify.cse.rewrites.txt", ".. // cut\n"),
    "MAX_INSTRUCTIONS": (3, "simplify.dce.rewrites.txt", "  - // cut: 18 more instructions"),
    "MAX_ELEMENTS": (2, "simplify.cse.rewrites.txt", "constant({...})"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_kept_and_stated(name, tmp_path, monkeypatch):
    bound, file, words = BOUNDS[name]
    monkeypatch.setattr(pass_dump, name, bound)
    terms = " ".join(f"k{n} = f32[3] constant({{1.5, 2.5, 3.5}})" for n in range(20))
    sums = " ".join(f"s{n} = f32[3] atan2({'x' if n == 0 else f's{n - 1}'}, k{n})" for n in range(20))
    files = watched(
        parse_module(program(f"x = f32[3] parameter(0) {terms} {sums} ROOT r = f32[3] negate(s19)")), tmp_path
    )
    (text,) = (text for path, text in files.items() if path.endswith(file))
    assert words in text
    if name == "MAX_PROGRAM":
        assert len(text) < bound + 60


@pytest.mark.parametrize(
    "name, start", [("a/b", "a_b."), ("../../x", "_.._x."), ("", "module."), ("n" * 99, "n" * 40 + ".")]
)
def test_folders_are_named_by_module_and_fingerprint(name, start):
    module = parse_module(program("ROOT x = f32[4] parameter(0)"))
    module.name = name
    folder = folder_of("root", module)
    assert str(folder.parent) == "root"
    assert folder.name == start + module.fingerprint()[:16]


def test_without_a_dump_nothing_of_it_is_loaded():
    code = f"""import sys, cyxla
cyxla.compile({program("x = f32[4] parameter(0) ROOT a = f32[4] tanh(x)")!r}, cache=False)
print("cyxla.xla.passes.engine.pass_dump" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
