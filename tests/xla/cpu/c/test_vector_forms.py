"""The table of element-wise opcodes without a vector form agrees with gcc."""

import re
import shutil
import subprocess
from bisect import bisect_right

import pytest

from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import COMPILE_FLAGS, ISA_FEATURES, OPTIMIZE_FLAGS, isa_flags
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.c.vector_forms import _ROWS, scalar_reason
from cyxla.xla.cpu.kernel.array_types import memory_type

TYPES = (E.F32, E.F64, E.S8, E.S32, E.S64, E.U64, E.C64)
#: Opcodes of the table, and some that vectorise.
OPCODES = sorted({o for row in _ROWS for o in row.opcodes} | {"add", "and", "maximum", "log", "tanh", "acos", "floor"})
LEVELS = [level for level in ISA_FEATURES if level != "x86-64-v1"]  # of the first, the table holds no rows of its own


def forms():
    """Each opcode with the types of its operands and result that native code supports, and whether one is constant."""
    for opcode in OPCODES:
        arity = scalar.OPCODES[opcode].arity[0]
        for of in TYPES:
            for to in TYPES if opcode == "convert" else (of,):
                types, same = [of] * arity, opcode == "convert" and to is of
                if not same and _is_valid(opcode, of) and scalar.is_supported(opcode, to, types, {}):
                    yield opcode, types, to, False
                    if arity == 2 and opcode != "power":  # by a constant, the passes make it a product
                        yield opcode, types, to, True


def _is_valid(opcode, of):
    return of in scalar.OPCODES[opcode].accepts or opcode == "convert"


def loop(number, opcode, types, to, by_constant):
    """The C of a loop over one opcode, in three lines."""
    arrays = [f"const {memory_type(t)} *restrict p{n}" for n, t in enumerate(types)]
    loads = [f"const {scalar.register_type(t)} v{n} = {scalar.load(t, f'p{n}[k]')};" for n, t in enumerate(types)]
    values = [f"v{n}" for n in range(len(types))]
    if by_constant:
        values[1] = scalar.literal(types[1], 3)
    value = scalar.expression(opcode, to, types, {}, values)
    return (
        f"void f{number}({', '.join(arrays)}, {memory_type(to)} *restrict r) {{\n"
        f"for (int k = 0; k < 4096; ++k) {{ {' '.join(loads)} r[k] = {scalar.store(to, value)}; }}\n}}\n"
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The forms, a file with a loop of each, and the line of each loop."""
    if shutil.which("gcc") is None or not subprocess.run(
        ["gcc", "-dumpversion"], capture_output=True
    ).stdout.startswith(b"12"):
        pytest.skip("the table holds for gcc 12")
    found = list(forms())
    body = "".join(loop(n, *form) for n, form in enumerate(found))
    head = prelude(body) + "".join(f"{scalar.memory_typedef(memory_type(t), t)}\n" for t in TYPES)
    path = tmp_path_factory.mktemp("forms") / "forms.c"
    path.write_text(head + body)
    return found, path, [head.count("\n") + 1 + 3 * n for n in range(len(found))]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("isa", LEVELS)
def test_gcc_agrees(isa, source):
    found, path, lines = source
    flags = (*COMPILE_FLAGS, *OPTIMIZE_FLAGS["gcc"], *isa_flags(isa), "-ffp-contract=off")
    command = ["gcc", *flags, "-fopt-info-vec-optimized", "-S", "-o", "/dev/null", str(path)]
    messages = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    where = re.findall(r"forms\.c:(\d+):\d+: optimized: loop vectorized", messages)
    vectorised = {bisect_right(lines, int(line)) - 1 for line in where}
    wrong = [
        (opcode, *map(str, types), str(to), by_constant)
        for n, (opcode, types, to, by_constant) in enumerate(found)
        if bool(scalar_reason(opcode, [*types, to], isa, by_constant=by_constant)) == (n in vectorised)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "opcode, types, isa, reason",
    [
        ("remainder", (E.F32, E.F32, E.F32), "x86-64-v4", "the number of its steps depends on the elements"),
        ("remainder", (E.S8, E.S8, E.S8), "x86-64-v4", "x86-64 divides integers one at a time"),
        ("multiply", (E.S64, E.S64, E.S64), "x86-64-v2", "it has vector instructions from x86-64-v3 on"),
        ("multiply", (E.S64, E.S64, E.S64), "x86-64-v3", ""),
        ("convert", (E.S64, E.F32), "x86-64-v3", "it has vector instructions from x86-64-v4 on"),
        ("convert", (E.S64, E.S32), "x86-64-v3", ""),
        ("power", (E.F32, E.F32, E.F32), "x86-64-v4", ""),
        ("popcnt", (E.U8, E.U8), "", ""),  # nothing is known of other processors
    ],
)
def test_reasons(opcode, types, isa, reason):
    assert scalar_reason(opcode, types, isa) == reason
