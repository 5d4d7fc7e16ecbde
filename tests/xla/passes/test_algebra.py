"""Both sides of every rule compute the same: bit for bit where the rule is exact."""

# ruff: noqa: E501  programs read best a line at a time

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same

from cyxla.types import ElementType as E
from cyxla.types import Literal, Shape
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, infer_shape, parse_module
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.pattern import AttrVar, Const, Op, Uniform, Var, full, special
from cyxla.xla.passes.engine.rewrite import RewritePass
from cyxla.xla.passes.simplify.algebra import RULES, algebra, lossless
from cyxla.xla.passes.simplify.algebra_movement import unit_map

DTYPES = [E.F32, E.S32, E.U8, E.PRED, E.F64, E.BF16, E.S8, E.U64, E.C64, E.F8E4M3FN]
FUNCTIONS = (
    "".join(
        f"{o}_{t} {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT r = {t}[] {o}(a, b) }}\n"
        for o, t in itertools.product(("add", "maximum", "minimum"), ("f32", "s32", "s8"))
    )
    + "last { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"
)

# Programs for what random operands do not build: one a line, the entry's instructions.
EXAMPLES = """
x = f32[2,6] parameter(0) ROOT r = f32[2,6] reshape(x)
x = f32[2,6] parameter(0) a = f32[12] reshape(x) ROOT r = f32[3,4] reshape(a)
x = f32[2,6] parameter(0) ROOT r = f32[2,6] transpose(x), dimensions={0,1}
x = f32[2,3,4] parameter(0) a = f32[4,2,3] transpose(x), dimensions={2,0,1} ROOT r = f32[2,4,3] transpose(a), dimensions={1,0,2}
x = f32[2,3] parameter(0) a = f32[3,4,2] broadcast(x), dimensions={2,0} ROOT r = f32[4,2,3] transpose(a), dimensions={1,2,0}
x = f32[2,1,3,1] parameter(0) ROOT r = f32[1,2,1,3] transpose(x), dimensions={1,0,3,2}
x = f32[2,4,1,3] parameter(0) a = f32[1,4,2,3] transpose(x), dimensions={2,1,0,3} ROOT r = f32[4,2,3] reshape(a)
x = f32[1,4,1,3] parameter(0) a = f32[3,1,4,1] transpose(x), dimensions={3,0,1,2} ROOT r = f32[3,1,4] reshape(a)
x = f32[2,3] parameter(0) ROOT r = f32[2,3] broadcast(x), dimensions={0,1}
x = f32[2,3,4] parameter(0) ROOT r = f32[4,2,3] broadcast(x), dimensions={1,2,0}
x = f32[2,3] parameter(0) a = f32[3,4,2] broadcast(x), dimensions={2,0} ROOT r = f32[2,5,4,3] broadcast(a), dimensions={3,2,0}
x = f32[3] parameter(0) a = f32[1,3] reshape(x) ROOT r = f32[4,1,3] broadcast(a), dimensions={1,2}
x = f32[3] parameter(0) a = f32[4,1,3] broadcast(x), dimensions={2} ROOT r = f32[4,3] reshape(a)
x = f32[3] parameter(0) a = f32[4,3] broadcast(x), dimensions={1} ROOT r = f32[1,4,1,3] reshape(a)
c = f32[] constant(2) a = f32[6] broadcast(c), dimensions={} ROOT r = f32[2,3] reshape(a)
c = f32[] constant(2) a = f32[2,3] broadcast(c), dimensions={} ROOT r = f32[3,2] transpose(a), dimensions={1,0}
c = f32[] constant(2) a = f32[6] broadcast(c), dimensions={} ROOT r = f32[6] reverse(a), dimensions={0}
c = f32[] constant(2) a = f32[6] broadcast(c), dimensions={} ROOT r = f32[2] slice(a), slice={[1:5:2]}
c = f32[] constant(2) a = f32[6] broadcast(c), dimensions={} ROOT r = f32[2,6] broadcast(a), dimensions={1}
x = f32[1,1] parameter(0) ROOT r = f32[1,3,1] broadcast(x), dimensions={0,2}
x = f32[1,3] parameter(0) ROOT r = f32[1,3] reverse(x), dimensions={0}
x = f32[2,3,4] parameter(0) a = f32[2,3,4] reverse(x), dimensions={0,2} ROOT r = f32[2,3,4] reverse(a), dimensions={1,2}
x = f32[2] parameter(0) a = f32[3,2,4] broadcast(x), dimensions={1} ROOT r = f32[3,2,4] reverse(a), dimensions={1,2}
x = f32[2,6] parameter(0) ROOT r = f32[2,6] slice(x), slice={[0:2], [0:6]}
x = f32[40] parameter(0) a = f32[13] slice(x), slice={[1:39:3]} ROOT r = f32[4] slice(a), slice={[2:10:2]}
x = f32[6] parameter(0) a = f32[6,4] broadcast(x), dimensions={0} ROOT r = f32[2,3] slice(a), slice={[1:5:2], [0:3]}
x = f32[6] parameter(0) v = f32[] parameter(1) a = f32[11] pad(x, v), padding=2_3 ROOT r = f32[2] slice(a), slice={[3:7:2]}
x = f32[6] parameter(0) y = f32[5] parameter(1) a = f32[11] concatenate(x, y), dimensions={0} ROOT r = f32[2] slice(a), slice={[7:11:2]}
x = f32[7,3] parameter(0) i = s32[4,2] parameter(1) u = f32[4] parameter(2) a = f32[7,3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add_f32 ROOT r = f32[5,2] slice(a), slice={[0:5], [0:2]}
x = f32[7,3] parameter(0) i = s32[4,1] parameter(1) u = f32[4,3] parameter(2) a = f32[7,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32 ROOT r = f32[2,3] slice(a), slice={[0:2], [0:3]}
x = f32[2,6] parameter(0) i = s32[] parameter(1) ROOT r = f32[2,6] dynamic-slice(x, i, i), dynamic_slice_sizes={2,6}
x = f32[4,6] parameter(0) i = s32[] constant(-3) j = s32[] constant(5) ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}
x = f32[4] parameter(0) y = f32[4] parameter(1) i = s32[] parameter(2) ROOT r = f32[4] dynamic-update-slice(x, y, i)
x = f32[4] parameter(0) y = f32[0] parameter(1) i = s32[] parameter(2) ROOT r = f32[4] dynamic-update-slice(x, y, i)
x = f32[4] parameter(0) v = f32[] parameter(1) ROOT r = f32[4] pad(x, v), padding=0_0
x = f32[4,5] parameter(0) v = f32[] parameter(1) ROOT r = f32[3,2] pad(x, v), padding=-1_0x-1_-2
x = f32[0,3] parameter(0) v = f32[] parameter(1) ROOT r = f32[2,3] pad(x, v), padding=1_1x0_0
v = f32[] parameter(0) x = f32[3] broadcast(v), dimensions={} ROOT r = f32[5] pad(x, v), padding=1_1
x = f32[4] parameter(0) v = f32[] parameter(1) a = f32[6] pad(x, v), padding=2_0 ROOT r = f32[9] pad(a, v), padding=1_2
x = f32[4] parameter(0) ROOT r = f32[4] concatenate(x), dimensions={0}
x = f32[4] parameter(0) y = f32[0] parameter(1) a = f32[8] concatenate(x, x), dimensions={0} ROOT r = f32[12] concatenate(x, y, a), dimensions={0}
x = f32[2,8] parameter(0) a = f32[2,3] slice(x), slice={[0:2], [1:4]} b = f32[2,2] slice(x), slice={[0:2], [4:6]} ROOT r = f32[2,5] concatenate(a, b), dimensions={1}
x = f32[2] parameter(0) a = f32[2,3] broadcast(x), dimensions={0} b = f32[2,4] broadcast(x), dimensions={0} ROOT r = f32[2,7] concatenate(a, b), dimensions={1}
x = f32[4] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={}, to_apply=add_f32
x = f32[4,1] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=maximum_f32
x = f32[4] parameter(0) z = f32[] parameter(1) a = f32[3,4,2] broadcast(x), dimensions={1} ROOT r = f32[4,2] reduce(a, z), dimensions={0}, to_apply=maximum_f32
x = s32[4] parameter(0) z = s32[] parameter(1) a = s32[3,4,2] broadcast(x), dimensions={1} ROOT r = s32[4] reduce(a, z), dimensions={0,2}, to_apply=add_s32
n = s64[] parameter(0) w = s32[] parameter(1) i = s64[9] iota(), iota_dimension=0 nn = s64[9] broadcast(n), dimensions={} c = pred[9] compare(i, nn), direction=LT a = s32[9] convert(c) ROOT r = s32[] reduce(a, w), dimensions={0}, to_apply=add_s32
n = s32[] parameter(0) w = s8[] parameter(1) i = s32[70,3,2] iota(), iota_dimension=0 nn = s32[70,3,2] broadcast(n), dimensions={} c = pred[70,3,2] compare(nn, i), direction=GT a = s8[70,3,2] convert(c) ROOT r = s8[2] reduce(a, w), dimensions={0,1}, to_apply=add_s8
n = u8[] parameter(0) w = s32[] parameter(1) i = u8[256] iota(), iota_dimension=0 nn = u8[256] broadcast(n), dimensions={} c = pred[256] compare(i, nn), direction=LT a = s32[256] convert(c) ROOT r = s32[] reduce(a, w), dimensions={0}, to_apply=add_s32
x = s32[2,3,4] parameter(0) z = s32[] constant(0) w = s32[] parameter(1) a = s32[2,4] reduce(x, z), dimensions={1}, to_apply=add_s32 ROOT r = s32[4] reduce(a, w), dimensions={0}, to_apply=add_s32
x = f32[2,3,4] parameter(0) z = f32[] constant(inf) w = f32[] parameter(1) a = f32[2,4] reduce(x, z), dimensions={1}, to_apply=minimum_f32 ROOT r = f32[2] reduce(a, w), dimensions={1}, to_apply=minimum_f32
x = f32[2,3,4] parameter(0) w = f32[] parameter(1) a = f32[3,2,4] transpose(x), dimensions={1,0,2} ROOT r = f32[2,4] reduce(a, w), dimensions={0}, to_apply=maximum_f32
x = s32[2,3] parameter(0) w = s32[] parameter(1) a = s32[2,1,3] reshape(x) ROOT r = s32[2,1] reduce(a, w), dimensions={2}, to_apply=add_s32
x = s32[2,1,3] parameter(0) w = s32[] parameter(1) a = s32[2,3] reshape(x) ROOT r = s32[3] reduce(a, w), dimensions={0}, to_apply=add_s32
x = s32[2,3] parameter(0) w = s32[] parameter(1) a = s32[2,1,3] reshape(x) ROOT r = s32[1,3] reduce(a, w), dimensions={0}, to_apply=add_s32
x = f32[2,0] parameter(0) y = f32[0,3] parameter(1) ROOT r = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
x = s32[5,2,1] parameter(0) y = s32[1,5,3] parameter(1) ROOT r = s32[5,2,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}
x = s32[2] parameter(0) y = s32[3] parameter(1) ROOT r = s32[2,3] dot(x, y)
x = f32[2] parameter(0) y = f32[3] parameter(1) ROOT r = f32[2,3] dot(x, y)
x = pred[4] parameter(0) a = f32[4] parameter(1) b = f32[4] parameter(2) n = pred[4] not(x) ROOT r = f32[4] select(n, a, b)
p = pred[4] parameter(0) a = f32[4] parameter(1) ROOT r = f32[4] select(p, a, a)
p = pred[] parameter(0) a = f32[4] parameter(1) b = f32[4] parameter(2) c = f32[4] parameter(3) s = f32[4] select(p, a, b) ROOT r = f32[4] select(p, s, c)
p = pred[4] parameter(0) a = f32[4] parameter(1) b = f32[4] parameter(2) c = f32[4] parameter(3) s = f32[4] select(p, a, b) ROOT r = f32[4] select(p, c, s)
t = pred[] constant(true) p = pred[4] broadcast(t), dimensions={} a = f32[4] parameter(0) b = f32[4] parameter(1) ROOT r = f32[4] select(p, a, b)
t = pred[] constant(false) a = f32[4] parameter(0) b = f32[4] parameter(1) ROOT r = f32[4] select(t, a, b)
p = pred[4] parameter(0) t = pred[] constant(true) f = pred[] constant(false) a = pred[4] broadcast(t), dimensions={} b = pred[4] broadcast(f), dimensions={} ROOT r = pred[4] select(p, a, b)
p = pred[4] parameter(0) t = pred[] constant(true) f = pred[] constant(false) a = pred[4] broadcast(t), dimensions={} b = pred[4] broadcast(f), dimensions={} ROOT r = pred[4] select(p, b, a)
p = pred[4] parameter(0) n = s8[4] convert(p) z = s8[] constant(0) zz = s8[4] broadcast(z), dimensions={} ROOT r = pred[4] compare(n, zz), direction=NE
p = pred[4] parameter(0) n = f32[4] convert(p) z = f32[] constant(0) zz = f32[4] broadcast(z), dimensions={} ROOT r = pred[4] compare(n, zz), direction=EQ
x = s32[4] parameter(0) y = s32[4] parameter(1) c = pred[4] compare(x, y), direction=LT ROOT r = pred[4] not(c)
x = f32[4] parameter(0) y = f32[4] parameter(1) c = pred[4] compare(x, y), direction=EQ ROOT r = pred[4] not(c)
x = f32[4] parameter(0) y = f32[4] parameter(1) c = pred[4] compare(x, y), direction=GT, type=TOTALORDER ROOT r = pred[4] not(c)
x = f32[4] parameter(0) ROOT r = pred[4] compare(x, x), direction=LT
x = s32[4] parameter(0) ROOT r = pred[4] compare(x, x), direction=GE
x = u8[4] parameter(0) c = u8[] constant(0) cc = u8[4] broadcast(c), dimensions={} ROOT r = pred[4] compare(x, cc), direction=LT
x = s8[4] parameter(0) c = s8[] constant(127) cc = s8[4] broadcast(c), dimensions={} ROOT r = pred[4] compare(x, cc), direction=LE
x = f32[4] parameter(0) ROOT r = f32[4] convert(x)
x = bf16[4] parameter(0) a = f32[4] convert(x) ROOT r = bf16[4] convert(a)
x = bf16[4] parameter(0) a = f32[4] convert(x) ROOT r = f64[4] convert(a)
x = s8[4] parameter(0) a = s32[4] convert(x) ROOT r = u8[4] convert(a)
x = u16[4] parameter(0) a = f32[4] convert(x) ROOT r = s64[4] convert(a)
x = f32[4] parameter(0) ROOT r = f32[4] bitcast-convert(x)
x = f32[4] parameter(0) a = s32[4] bitcast-convert(x) ROOT r = u32[4] bitcast-convert(a)
x = f32[4] parameter(0) y = f32[4] parameter(1) z = c64[4] complex(x, y) ROOT r = f32[4] real(z)
x = f32[4] parameter(0) y = f32[4] parameter(1) z = c64[4] complex(x, y) ROOT r = f32[4] imag(z)
z = c64[4] parameter(0) a = f32[4] real(z) b = f32[4] imag(z) ROOT r = c64[4] complex(a, b)
ROOT r = f32[4] constant({2, 2, 2, 2})
ROOT r = s64[5] constant({0, 1, 2, 3, 4})
""".strip().splitlines()


@functools.cache
def examples() -> list[HloModule]:
    return [parse_module(f"HloModule example\n{FUNCTIONS}ENTRY e {{ {line} }}") for line in EXAMPLES]


class Maker:
    """Builds the instructions of a pattern of element-wise opcodes, with parameters for its variables."""

    def __init__(self, dtype: E) -> None:
        self.dtype, self.shape = dtype, Shape.array(dtype, (7,))
        self.module = HloModule("rule")
        self.entry = self.module.entry = self.module.new_computation("e")
        self.made = {}

    def make(self, pattern):
        if isinstance(pattern, Const):
            value = special(pattern.value, self.dtype) if isinstance(pattern.value, str) else pattern.value
            return full(self.entry, value, self.shape)
        if isinstance(pattern, Var):
            if pattern.name not in self.made:
                self.made[pattern.name] = self.variable(pattern)
            return self.made[pattern.name]
        operands = [self.make(o) for o in pattern.operands]
        attrs = {k: "LT" if isinstance(v, AttrVar) else v for k, v in pattern.attrs.items()}
        shape = infer_shape(pattern.opcode, operands, attrs, declared=self.shape)
        return self.entry.add(pattern.opcode, operands, attrs, shape=shape)

    def variable(self, pattern: Var):
        if isinstance(pattern, Uniform):
            literal = Literal(np.asarray(1 if self.dtype is E.PRED else 4), Shape.array(self.dtype))
            one = self.entry.add("constant", attrs={"literal": literal}, shape=Shape.array(self.dtype))
            return self.entry.add("broadcast", [one], {"dimensions": ()}, shape=self.shape)
        number = sum(i.opcode == "parameter" for i in self.entry.instructions)
        return self.entry.add("parameter", attrs={"parameter_number": number}, shape=self.shape)


def spread_operands(pattern: Op) -> HloModule | None:
    """An element-wise opcode of broadcasts, for the rules that take any operands."""
    from cyxla.xla.hlo import OPCODES

    row = OPCODES[pattern.opcode]
    if not row.elementwise or row.name == "stochastic-convert":
        return None
    dtype = next((t for t in (E.F32, E.S32, E.C64) if t in row.accepts), E.PRED)
    m = Maker(dtype)
    kinds = [E.PRED, E.F32, E.F32] if row.name == "select" else [dtype] * (row.arity[1] or 1)
    parameters = [
        m.entry.add("parameter", attrs={"parameter_number": k}, shape=Shape.array(t, (3,))) for k, t in enumerate(kinds)
    ]
    wide = [m.entry.add("broadcast", [p], {"dimensions": (1,)}, shape=p.shape.with_dims((2, 3))) for p in parameters]
    attrs = {"compare": {"direction": "LT"}, "reduce-precision": {"exponent_bits": 5, "mantissa_bits": 10}}.get(
        row.name, {}
    )
    shape = infer_shape(row.name, wide, attrs, declared=Shape.array(E.S8, (2, 3)))
    m.entry.root = m.entry.add(row.name, wide, attrs, shape=shape)
    return m.module


@functools.cache
def instances(number: int) -> list[tuple[HloModule, HloModule]]:
    """Yield programs that a rule matches, each with its rewritten form."""
    rule = RULES[number]
    found = []
    candidates = [m for m in examples() if any(i.opcode == rule.pattern.opcode for i in m.entry.instructions)]
    for dtype in DTYPES:
        maker = Maker(dtype)
        try:
            maker.entry.root = maker.make(rule.pattern)
            maker.module.verify()
            candidates.append(maker.module)
        except Exception:
            continue
    if not rule.pattern.operands:
        candidates += filter(None, [spread_operands(rule.pattern)])
    for before in candidates:
        after = clone(before)
        if RewritePass("one", [rule], exact=False).run(after):
            after.verify()
            found.append((before, after))
    return found


def agree(before, after, seed, special, ulp, floor=0.0):
    given_ = arguments(before, seed, special)
    got, want = flat(evaluate(after, given_)), flat(evaluate(before, given_))
    for g, w, shape in zip(got, want, before.entry.root.shape.leaves(), strict=True):
        assert_same(np.asarray(g), np.asarray(w), shape.dtype, ulp, floor)
        if not ulp and shape.dtype.is_float:
            zero = np.asarray(w).astype(np.float64) == 0
            np.testing.assert_array_equal(
                np.signbit(np.asarray(g).astype(np.float64))[zero], np.signbit(np.asarray(w).astype(np.float64))[zero]
            )


NUMBERS = [pytest.param(n, id=str(r)) for n, r in enumerate(RULES)]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_rule_fits_something(number):
    assert instances(number)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("number", [n for n in NUMBERS if RULES[n.values[0]].exact])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**16), special=st.sampled_from([0.3, 1.0]))
def test_both_sides_of_a_rule_agree(number, seed, special):
    for before, after in instances(number):
        agree(before, after, seed, special, RULES[number].ulp)


@pytest.mark.parametrize("number", [n for n in NUMBERS if not RULES[n.values[0]].exact])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**16))
def test_inexact_rules_are_about_right_for_ordinary_numbers(number, seed):
    for before, after in instances(number):
        if before.entry.root.shape.dtype in (E.F32, E.F64):
            agree(before, after, seed, 0.0, 64, 1.0)


@pytest.mark.parametrize("rule", [r for r in RULES if not r.exact], ids=str)
def test_inexact_rules_are_off(rule):
    assert rule not in algebra.rules


# What looks like a rule but is none: these programs stay as they are.
KEPT = """
x = f32[4] parameter(0) z = f32[] constant(0) zz = f32[4] broadcast(z), dimensions={} ROOT r = f32[4] add(x, zz)
x = f32[4] parameter(0) z = f32[] constant(-0.0) zz = f32[4] broadcast(z), dimensions={} ROOT r = f32[4] subtract(x, zz)
x = f32[4] parameter(0) z = f32[] constant(0) zz = f32[4] broadcast(z), dimensions={} ROOT r = f32[4] multiply(x, zz)
x = f32[4] parameter(0) ROOT r = f32[4] subtract(x, x)
x = f32[4] parameter(0) ROOT r = f32[4] divide(x, x)
x = f32[4] parameter(0) z = f32[] constant(3) zz = f32[4] broadcast(z), dimensions={} ROOT r = f32[4] divide(x, zz)
x = c64[4] parameter(0) z = c64[] constant((1, 0)) zz = c64[4] broadcast(z), dimensions={} ROOT r = c64[4] multiply(x, zz)
x = f32[4] parameter(0) ROOT r = pred[4] compare(x, x), direction=EQ
x = f32[4] parameter(0) y = f32[4] parameter(1) c = pred[4] compare(x, y), direction=LT ROOT r = pred[4] not(c)
x = f32[4] parameter(0) a = bf16[4] convert(x) ROOT r = f32[4] convert(a)
x = s8[4] parameter(0) a = u32[4] convert(x) ROOT r = s64[4] convert(a)
x = s16[4] parameter(0) a = f32[4] convert(x) ROOT r = s8[4] convert(a)
x = s32[4] parameter(0) a = f32[4] convert(x) ROOT r = f64[4] convert(a)
x = s32[4] parameter(0) z = s32[] constant(4) zz = s32[4] broadcast(z), dimensions={} ROOT r = s32[4] divide(x, zz)
x = f32[6] parameter(0) v = f32[] parameter(1) a = f32[11] pad(x, v), padding=2_3 ROOT r = f32[4] slice(a), slice={[1:5]}
x = f32[6] parameter(0) v = f32[] parameter(1) w = f32[] parameter(2) a = f32[8] pad(x, v), padding=1_1 ROOT r = f32[9] pad(a, w), padding=1_0
x = bf16[2,3,4] parameter(0) ROOT r = bf16[4,3,2] transpose(x), dimensions={2,1,0}
x = f32[4,3] parameter(0) z = f32[] parameter(1) a = f32[3,4] transpose(x), dimensions={1,0} ROOT r = f32[3] reduce(a, z), dimensions={1}, to_apply=last
x = f32[2,3,4] parameter(0) z = f32[] constant(1) a = f32[2,4] reduce(x, z), dimensions={1}, to_apply=add_f32 ROOT r = f32[4] reduce(a, z), dimensions={0}, to_apply=add_f32
n = s64[] parameter(0) w = s32[] parameter(1) i = s64[9,2] iota(), iota_dimension=0 nn = s64[9,2] broadcast(n), dimensions={} c = pred[9,2] compare(i, nn), direction=LT a = s32[9,2] convert(c) ROOT r = s32[9] reduce(a, w), dimensions={1}, to_apply=add_s32
n = u8[] parameter(0) w = s32[] parameter(1) i = u8[257] iota(), iota_dimension=0 nn = u8[257] broadcast(n), dimensions={} c = pred[257] compare(i, nn), direction=LT a = s32[257] convert(c) ROOT r = s32[] reduce(a, w), dimensions={0}, to_apply=add_s32
""".strip().splitlines()


@pytest.mark.parametrize("line", KEPT)
def test_rewrites_that_would_change_bits_are_left_out(line):
    module = parse_module(f"HloModule kept\n{FUNCTIONS}ENTRY e {{ {line} }}")
    assert not algebra.run(module)


@pytest.mark.parametrize(
    "narrow", [e for e in E if e.is_array and not e.is_complex and e.bits <= 16 and e is not E.F8E8M0FNU], ids=str
)
@pytest.mark.parametrize("wide", [E.S16, E.S32, E.U16, E.F16, E.BF16, E.F32, E.F64], ids=str)
def test_lossless_is_so(narrow, wide):
    if not lossless(narrow, wide):
        return
    from cyxla.xla.evaluator.numerics.conversion import convert_array

    bits = np.arange(2 ** min(narrow.bits, 16), dtype=np.uint32).astype(f"u{narrow.itemsize}")
    values = (bits % 2 if narrow is E.PRED else bits).view(narrow.numpy_dtype)
    if narrow.is_integer and narrow.bits < 8:
        values = np.arange(
            -(2 ** (narrow.bits - 1)) if narrow.is_signed else 0, 2 ** (narrow.bits - narrow.is_signed)
        ).astype(narrow.numpy_dtype)
    with np.errstate(all="ignore"):
        back = convert_array(convert_array(values, wide), narrow)
        same = (back.view(bits.dtype) == values.view(bits.dtype)) | (
            np.isnan(values.astype(np.float64)) & np.isnan(back.astype(np.float64))
        )
    assert same.all()


@pytest.mark.parametrize(
    "before, after, places",
    [
        ((2, 3), (2, 3), {0: 0, 1: 1}),
        ((3,), (1, 3), {0: 1}),
        ((1, 3, 1), (3,), {1: 0}),
        ((1, 5), (5, 1), {1: 0}),
        ((2, 1, 3), (2, 3), {0: 0, 2: 1}),
        ((2, 3), (3, 2), None),
        ((6,), (2, 3), None),
        ((), (1, 1), {}),
    ],
)
def test_unit_map(before, after, places):
    assert unit_map(before, after) == places
