"""Equal groups: which share the kernels of one, and which do not."""
# ruff: noqa: E501 - programs read best one a line

import numpy as np
import pytest

import cyxla
from cyxla.xla.cpu import lowering
from cyxla.xla.cpu.emitters import emit
from cyxla.xla.cpu.plan.equal_groups import GroupEmitter
from cyxla.xla.cpu.plan.fusion import fuse
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions

HEAD = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
"""
SOFTMAX = (
    "{0} = f32[64,80] tanh({1}); m{0} = f32[64] reduce({0}, low), dimensions={{1}}, to_apply=max; n{0} = f32[64,80] broadcast(m{0}), dimensions={{0}};"
    "d{0} = f32[64,80] subtract({0}, n{0}); e{0} = f32[64,80] exponential(d{0}); s{0} = f32[64] reduce(e{0}, zero), dimensions={{1}}, to_apply=add;"
    "t{0} = f32[64,80] broadcast(s{0}), dimensions={{0}}; r{0} = f32[64,80] divide(e{0}, t{0})"
)
#: Programs: parameters, statements, and how many of the kernels are those of earlier groups.
EQUAL = {
    "loops": ("f32[9]; f32[9]", "a = f32[9] tanh(p0); b = f32[9] tanh(p1)", "a b", 1),
    "chains of loops": ("f32[9]; f32[9]", "a = f32[9] tanh(p0); b = f32[9] abs(a); c = f32[9] tanh(p1); d = f32[9] abs(c)", "b d", 1),
    "of an array twice": ("f32[9]; f32[9]", "a = f32[9] multiply(p0, p0); b = f32[9] multiply(p1, p1)", "a b", 1),
    "of a common array": ("f32[9]; f32[9]; f32[9]", "a = f32[9] subtract(p0, p2); b = f32[9] subtract(p1, p2)", "a b", 1),
    "behind reshapes": ("f32[9]; f32[9]", "x = f32[3,3] reshape(p0); a = f32[3,3] tanh(x); y = f32[3,3] reshape(p1); b = f32[3,3] tanh(y)", "a b", 1),
    "of one constant": ("f32[9]; f32[9]", "o = f32[] constant(2); t = f32[9] broadcast(o); a = f32[9] add(p0, t); b = f32[9] add(p1, t)", "a b", 1),
    "reductions": ("f32[9,700]; f32[9,700]", "a = f32[9] reduce(p0, zero), dimensions={1}, to_apply=add; b = f32[9] reduce(p1, zero), dimensions={1}, to_apply=add", "a b", 1),
    "row groups": ("f32[64,80]; f32[64,80]", SOFTMAX.format("a", "p0") + ";" + SOFTMAX.format("b", "p1"), "ra rb", 1),
    "products": ("f32[64,64]; f32[64,64]; f32[64,64]", "a = f32[64,64] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}; b = f32[64,64] dot(p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "a b", 1),
    "products with epilogues": ("f32[64,64]; f32[64,64]; f32[64,64]", "a = f32[64,64] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}; c = f32[64,64] tanh(a); b = f32[64,64] dot(p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}; d = f32[64,64] tanh(b)", "c d", 1),
    "three": ("f32[9]; f32[9]; f32[9]", "a = f32[9] tanh(p0); b = f32[9] tanh(p1); c = f32[9] tanh(p2)", "a b c", 2),
    "with other arrays in common": ("f32[9]; f32[9]", "a = f32[9] multiply(p0, p0); b = f32[9] multiply(p0, p1)", "a b", 0),
    "with other places of arrays": ("f32[9]; f32[9]", "a = f32[9] tanh(p0); b = f32[9] tanh(p1); c = f32[9] subtract(a, p0); d = f32[9] subtract(p1, b)", "c d", 0),
    "of other constants": ("f32[9]; f32[9]", "o = f32[] constant(2); n = f32[] constant(3); t = f32[9] broadcast(o); u = f32[9] broadcast(n); a = f32[9] add(p0, t); b = f32[9] add(p1, u)", "a b", 0),
    "with other attributes": ("f32[9]; f32[9]", "a = f32[5] slice(p0), slice={[0:5]}; b = f32[5] slice(p1), slice={[4:9]}; c = f32[5] tanh(a); d = f32[5] tanh(b)", "c d", 0),
    "with other combiners": ("f32[9,700]; f32[9,700]", "a = f32[9] reduce(p0, zero), dimensions={1}, to_apply=add; b = f32[9] reduce(p1, zero), dimensions={1}, to_apply=max", "a b", 0),
    "behind other reshapes": ("f32[12]; f32[3,4]", "x = f32[4,3] reshape(p0); a = f32[3,4] transpose(x), dimensions={1,0}; c = f32[3,4] tanh(a); y = f32[4,3] reshape(p1); b = f32[3,4] transpose(y), dimensions={1,0}; d = f32[3,4] tanh(b)", "c d", 0),
    "slices behind other reshapes": ("f32[24]; f32[24]", "x = f32[2,12] reshape(p0); a = f32[2,3] slice(x), slice={[0:2],[0:3]}; c = f32[2,3] tanh(a); y = f32[3,8] reshape(p1); b = f32[2,3] slice(y), slice={[0:2],[0:3]}; d = f32[2,3] tanh(b)", "c d", 0),
}  # fmt: skip


def program(parameters, statements, results):
    shapes = parameters.split("; ")
    lines = [f"p{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
    lines += ["zero = f32[] constant(0)", "low = f32[] constant(-inf)", *statements.split(";")]
    names = results.split()
    shape_of = {s.split("=")[0].strip(): s.split("=")[1].split()[0] for s in statements.split(";")}
    lines.append(f"ROOT out = ({', '.join(shape_of[n] for n in names)}) tuple({', '.join(names)})")
    return HloModule.from_text(HEAD + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"), shapes


def optimized(module):
    return lowering.run_passes(module, CompileOptions(), lowering.Dump(module))


@pytest.mark.parametrize("name", EQUAL)
def test_groups(name):
    parameters, statements, results, shared = EQUAL[name]
    module, shapes = program(parameters, statements, results)
    emitter, kernels, plain = GroupEmitter(), [], []
    for group in fuse(optimized(module).entry):
        steps, own = emitter.emit(group), emit(group)
        assert [(s.reads, s.writes, s.in_place, s.must_alias, s.offsets, s.groups) for s in steps] == [
            (s.reads, s.writes, s.in_place, s.must_alias, s.offsets, s.groups) for s in own
        ]
        kernels += [s.kernel for s in steps]
        plain += [s.kernel for s in own]
    assert [k.code for k in kernels] == [k.code for k in plain]
    assert len(kernels) - len(set(map(id, kernels))) == shared

    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(n) for n in s[4:-1].split(",")]).astype(np.float32) for s in shapes]
    compiled, oracle = (cyxla.compile(module, platform=p) for p in ("cpu", "interpreter"))
    for got, expected in zip(compiled(*args), oracle(*args), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_product_with_a_transpose_of_its_operand():
    """Its kernel computes half of the sums."""
    module, _ = program(
        "f32[1024,1024]; f32[1024,1024]; f32[1024,1024]",
        "x = f32[1024,1024] transpose(p0), dimensions={1,0}; y = f32[1024,1024] transpose(p1), dimensions={1,0};"
        "a = f32[1024,1024] dot(p0, x), lhs_contracting_dims={1}, rhs_contracting_dims={0};"
        "b = f32[1024,1024] dot(p2, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "a b",
    )
    emitter, groups = GroupEmitter(), fuse(module.entry)
    for group in groups:
        assert [s.kernel.code for s in emitter.emit(group)] == [s.kernel.code for s in emit(group)]
    products = [emit(g)[0].kernel.code for g in groups if g.kind == "dot"]
    assert len(set(products)) == 2


def layers(x, weights, size):
    """Return the result of equal layers with products, and with rows that are normalised, of some leading rows."""
    rows = np.arange(len(x))[:, None] < size
    for w in weights:
        y = x @ w
        y = np.where(rows, np.exp(y - y.max(1, keepdims=True)), 0)
        x = x + y / (y.sum(1, keepdims=True) + 1)
    return x


@pytest.mark.parametrize("count", [2, 9])
def test_equal_layers_are_emitted_once(count):
    x, size = np.random.default_rng(0).standard_normal((40, 96)).astype(np.float32), np.int64(33)
    weights = list(np.random.default_rng(1).standard_normal((count, 96, 96)).astype(np.float32) / 10)
    compiled = cyxla.jit(layers)
    np.testing.assert_allclose(compiled(x, weights, size), layers(x, weights, size), rtol=1e-4, atol=1e-5)
    module = optimized(compiled.trace(x, weights, size).module)
    kernels = [step.kernel for step in lowering.plan(module.entry).steps()]
    assert len(kernels) >= 2 * count
    assert len(set(map(id, kernels))) <= 6
