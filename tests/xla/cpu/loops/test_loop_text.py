"""The loop IR as text: every kind of node and atom, and the loops of whole programs."""

from dataclasses import dataclass

import numpy as np
import pytest

from cyxla.types import ElementType, Literal
from cyxla.xla.cpu import lowering
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.loops import index_map, nodes
from cyxla.xla.cpu.loops.index_map import Condition, Space
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_text import form_text, loop_text, node_text
from cyxla.xla.hlo import parse_module
from cyxla.xla.hlo.text.printer import names_of
from cyxla.xla.service import CompileOptions

F32, S32 = ElementType.F32, ElementType.S32
MODULE = parse_module("""
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] multiply(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
  less = pred[4] compare(x, x), direction=LT
  ROOT both = f32[4] map(x, x), dimensions={0}, to_apply=f
}""")
BY_NAME = {ins.name: ins for ins in MODULE.entry.instructions}


@dataclass(frozen=True)
class Sum:
    """A writer of calls, equal to all others of its class."""

    def write(self, writer, texts):
        return " + ".join(texts)


def body():
    """A body over 4 x 6 points with two nodes: $0 and $1."""
    made = Body(Space((4, 6)), set(), Reads())
    made.load(S32, 0, made.space.loop(1))
    made.constant(F32, np.float32(2))
    return made


NODES = {
    nodes.Load: (lambda b, x, y: b.load(F32, 3, b.space.loop(0)), "load f32 p3[i0]"),
    nodes.Table: (
        lambda b, x, y: b.table(Literal(np.array([7, 8], np.int32)), b.space.loop(0)),
        "table s32 [7, 8][i0]",
    ),
    nodes.Constant: (lambda b, x, y: b.constant(S32, 5), "constant s32 5"),
    nodes.IndexValue: (lambda b, x, y: b.index_value(F32, b.space.loop(1).shift(-2)), "index f32 i1 - 2"),
    nodes.Apply: (lambda b, x, y: b.apply(BY_NAME["less"], (x, y)), "compare pred $0, $1, direction=LT, type=FLOAT"),
    nodes.Map: (lambda b, x, y: b.map(BY_NAME["both"], (x, y)), "map f32 $0, $1, to_apply=f"),
    nodes.Guard: (
        lambda b, x, y: b.guard((Condition(b.space.loop(0), 1, 9), Condition(b.space.loop(1), 0, 3)), x, y),
        "guard s32 $0 if 1 <= i0 and i1 <= 3 else $1",
    ),
    nodes.Call: (lambda b, x, y: b.call(F32, (y, y), Sum()), "call f32 $1, $1, writer=Sum"),
    nodes.External: (lambda b, x, y: b.external(F32, "part"), "external f32 part"),
}


def test_every_kind_of_node_is_printed():
    assert set(NODES) == {k for k in vars(nodes).values() if isinstance(k, type) and issubclass(k, nodes.Node)} - {
        nodes.Node
    }


@pytest.mark.parametrize("kind", NODES)
def test_nodes(kind):
    build, text = NODES[kind]
    made = body()
    node = build(made, *made.nodes)
    assert type(node) is kind
    assert node_text(node, names_of(MODULE)) == text
    assert build(made, *made.nodes[:2]) is node, "equal nodes are one"
    assert node.operands == () or node.operands[0] in made.nodes[:2]


ATOMS = {
    index_map.Loop: (lambda b: b.space.loop(1), None, "i1"),
    index_map.Quotient: (lambda b: b.space.quotient(b.space.loop(1).shift(1), 4), "(i1 + 1) / 4", "n3"),
    index_map.Remainder: (lambda b: b.space.remainder(b.space.loop(1).shift(1), 4), "(i1 + 1) % 4", "n3"),
    index_map.Runtime: (lambda b: b.space.runtime(b.nodes[0], 9), "clamp($0, 0, 9)", "n3"),
    index_map.Choice: (
        lambda b: b.space.choice((Condition(b.space.loop(0), 2, 8),), b.space.loop(0).shift(-2), 1),
        "i0 - 2 if 2 <= i0 else 0",
        "n3",
    ),
}


@pytest.mark.parametrize("kind", ATOMS)
def test_atoms(kind):
    build, definition, name = ATOMS[kind]
    made = body()
    form = build(made)
    assert type(form.terms[0][0]) is kind
    assert form_text(form) == name
    made.load(F32, 1, form.scale(-3).shift(-7))
    lines = loop_text({}, made).splitlines()
    assert lines[-1] == f"$2 = load f32 p1[-3*{name} - 7]"
    assert definition is None or lines[-2] == f"n3 = {definition}"


PROGRAMS = {
    "reduction of a gather": (
        """
        add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
        ENTRY e {
          x = f32[100,256] parameter(0)
          i = s32[64] parameter(1)
          rows = f32[64,256] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
            index_vector_dim=1, slice_sizes={1,256}
          square = f32[64,256] multiply(rows, rows)
          zero = f32[] constant(0)
          ROOT r = f32[64] reduce(square, zero), dimensions={1}, to_apply=add
        }""",
        """
        p0 = s32[64] i
        p1 = f32[100,256] x
        loops i0 < 64, i1 < 256
        $0 = external f32 0
        $1 = load s32 p0[i0]
        n3 = clamp($1, 0, 99)
        $2 = load f32 p1[i1 + 256*n3]
        $3 = multiply f32 $2, $2                      # %1 square
        $4 = constant f32 0x0.0p+0f
        fold $0 = $3 from $4
        store f32 r0[i0] = $0
        """,
    ),
    "two results": (
        """
        ENTRY e {
          x = f32[8] parameter(0)
          up = f32[8] ceil(x)
          down = f32[8] subtract(x, up)
          ROOT r = (f32[8], f32[8]) tuple(up, down)
        }""",
        """
        p0 = f32[8] x
        loops i0 < 8
        $0 = load f32 p0[i0]
        $1 = ceil f32 $0                              # %0 up
        $2 = subtract f32 $0, $1                      # %1 down
        store f32 r0[i0] = $2
        store f32 r1[i0] = $1
        """,
    ),
    "loop with a small state": (
        """
        next { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 j = s32[] multiply(i, i)
          ROOT r = (s32[]) tuple(j) }
        more { s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9)
          ROOT r = pred[] compare(i, n), direction=LT }
        ENTRY e { i = s32[] parameter(0) s = (s32[]) tuple(i) ROOT w = (s32[]) while(s), condition=more, body=next }
        """,
        """
        p0 = s32[] i.2
        $0 = load s32 p0[0]
        p0 = s32[] i.2
        $0 = external s32 s.1.0[0]
        $1 = constant s32 9
        $2 = compare pred $0, $1, direction=LT, type=SIGNED  # %2 r.1
        p0 = s32[] i.2
        $0 = external s32 s.0[0]
        $1 = multiply s32 $0, $0                      # %1 j
        """,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    program, wanted = PROGRAMS[name]
    module = lowering.run_passes(parse_module(program), CompileOptions(), Dump())
    _, _, source = lowering.emit(module)
    names = names_of(module)
    texts = [listing.text(names) for _, kernel in source.kernels for listing in kernel.loops]
    assert [line.strip() for text in texts for line in text.splitlines()] == [
        line.strip() for line in wanted.strip().splitlines()
    ]
