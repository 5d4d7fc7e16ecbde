"""Products of which slices are read become products of slices of the weights, with the same results."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same

from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify import dce
from cyxla.xla.passes.specialise import split_products
from cyxla.xla.passes.specialise.known_values import Known


def attention(chain: str, parts: str, root: str) -> str:
    """A product d of 9 rows and 384 columns, what is done to it, and the slices of that."""
    return f"""ENTRY e {{
      x = f32[9,16] parameter(0) w = f32[16,384] parameter(1) b = f32[384] parameter(2) y = f32[9,384] parameter(3)
      v = f32[9,384] broadcast(b), dimensions={{1}}
      d = f32[9,384] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      {chain}
      {parts}
      ROOT r = {root}
    }}"""


VIEW = "r5 = f32[9,3,2,64] reshape(a) t = f32[3,2,9,64] transpose(r5), dimensions={1,2,0,3}"
BIAS = f"a = f32[9,384] add(d, v) {VIEW}"
THREE = " ".join(
    f"s{k} = f32[1,2,9,64] slice(t), slice={{[{k}:{k + 1}], [0:2], [0:9], [0:64]}} q{k} = f32[2,9,64] reshape(s{k})"
    for k in range(3)
)
RESULT = "(f32[2,9,64], f32[2,9,64], f32[2,9,64]) tuple(q0, q1, q2)"
HALF = "s0 = f32[3,2,9,32] slice(t), slice={[0:3], [0:2], [0:9], [0:32]} s1 = f32[3,2,9,32] slice(t), slice={[0:3], [0:2], [0:9], [32:64]}"
ROWS = "s0 = f32[3,2,4,64] slice(t), slice={[0:3], [0:2], [0:4], [0:64]} s1 = f32[3,2,5,64] slice(t), slice={[0:3], [0:2], [4:9], [0:64]}"
HEADS = "s0 = f32[3,1,9,64] slice(t), slice={[0:3], [0:1], [0:9], [0:64]} s1 = f32[3,1,9,64] slice(t), slice={[0:3], [1:2], [0:9], [0:64]}"

# name: (program, columns of the products afterwards)
CASES = {
    "heads": (attention(BIAS, THREE, RESULT), [128, 128, 128]),
    "without bias": (attention(f"a = f32[9,384] tanh(d) {VIEW}", THREE, RESULT), [128, 128, 128]),
    "with what is not known": (attention(f"g = f32[9,384] multiply(y, d) a = f32[9,384] add(g, v) {VIEW}", THREE, RESULT), [128, 128, 128]),
    "only one": (attention(BIAS, THREE, "f32[2,9,64] negate(q1)"), [128]),
    "a part of a part": (attention(BIAS, THREE, "f32[2,9,64] add(q0, q2)"), [128, 128]),
    "not reordered": (attention("a = f32[9,384] add(d, v)", "s0 = f32[9,128] slice(a), slice={[0:9], [0:128]} s1 = f32[9,256] slice(a), slice={[0:9], [128:384]}", "(f32[9,128], f32[9,256]) tuple(s0, s1)"), [384]),
    "read as a whole": (attention(BIAS, THREE, "(f32[2,9,64], f32[3,2,9,64]) tuple(q0, t)"), [384]),
    "cut within heads": (attention(BIAS, HALF, "(f32[3,2,9,32], f32[3,2,9,32]) tuple(s0, s1)"), [384]),
    "cut between heads": (attention(BIAS, HEADS, "(f32[3,1,9,64], f32[3,1,9,64]) tuple(s0, s1)"), [384]),
    "cut between rows": (attention(BIAS, ROWS, "(f32[3,2,4,64], f32[3,2,5,64]) tuple(s0, s1)"), [384]),
    "overlapping": (attention(BIAS, "s0 = f32[2,2,9,64] slice(t), slice={[0:2], [0:2], [0:9], [0:64]} s1 = f32[2,2,9,64] slice(t), slice={[1:3], [0:2], [0:9], [0:64]}", "f32[2,2,9,64] add(s0, s1)"), [384]),
    "with a stride": (attention(BIAS, "s0 = f32[2,2,9,64] slice(t), slice={[0:3:2], [0:2], [0:9], [0:64]}", "f32[2,2,9,64] negate(s0)"), [384]),
    "two heads of three": (attention(BIAS, "s0 = f32[2,2,9,64] slice(t), slice={[1:3], [0:2], [0:9], [0:64]}", "f32[2,2,9,64] negate(s0)"), [256]),
}  # fmt: skip


def split(module: HloModule, fixed=(1,)) -> bool:
    known = Known(module, [module.parameters[k] for k in fixed])
    changed = split_products.run(module, known)
    dce.run(module)
    module.verify()
    return changed


@pytest.mark.parametrize("name", CASES)
def test_both_sides(name):
    text, columns = CASES[name]
    module, twin = parse_module(text), parse_module(text)
    assert split(twin) == (columns != [384])
    found = [i.shape.dims[-1] for i in twin.entry.instructions if i.opcode == "dot"]
    assert sorted(found) == sorted(columns)
    values = arguments(module, 3)
    for g, w in zip(flat(evaluate(twin, values)), flat(evaluate(module, values)), strict=True):
        np.testing.assert_array_equal(g, w)


def test_free_weights_stay():
    assert not split(parse_module(CASES["heads"][0]), fixed=(0, 2))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_view(data):
    """Products seen through random reshapes and transposes, and cut anywhere."""
    module = HloModule("m")
    entry = module.new_computation("e")
    module.entry, write = entry, Writer(entry)
    f32, columns = ElementType.F32, data.draw(st.sampled_from([12, 24, 36, 64]))
    x, w = (
        entry.add("parameter", (), {"parameter_number": k}, shape=Shape.array(f32, dims))
        for k, dims in enumerate([(6, 5), (5, columns)])
    )
    attrs = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
    at = entry.add("dot", (x, w), attrs, shape=Shape.array(f32, (6, columns)))
    for _ in range(data.draw(st.integers(0, 2))):
        at = write.reshape(at, data.draw(factors(6 * columns)))
        at = write.transpose(at, data.draw(st.permutations(range(at.shape.rank))))
    cuts = []
    for size in at.shape.dims:
        start = data.draw(st.integers(0, size - 1))
        cuts.append(SliceDim(start, data.draw(st.integers(start + 1, size))))
    shape = at.shape.with_dims([c.limit - c.start for c in cuts])
    entry.root = write.op("negate", write.op("slice", at, shape=shape, slice=tuple(cuts)))
    twin = clone(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_products, "MIN_COLUMNS", 1)
        split(twin)
    values = arguments(module, 5)
    assert_same(evaluate(twin, values), evaluate(module, values), f32, 2)


@st.composite
def factors(draw, total):
    """Sizes with a given product, some of them 1."""
    found = []
    while total > 1:
        found.append(draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0])))
        total //= found[-1]
        if len(found) > 5:
            found.append(total)
            break
    return tuple(found)
