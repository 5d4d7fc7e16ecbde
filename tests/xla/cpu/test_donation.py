"""Donated arguments: results in their memory, equal to those of a plain call; other arrays stay as they are."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import flat
from support.hlo.programs import assert_same
from support.hlo.random_programs import random_module
from support.strategies import random_array

import cyxla
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.cpu.native import cache as store

INCREMENT = """ENTRY e { x = f32[64] parameter(0) o = f32[] constant(1) b = f32[64] broadcast(o), dimensions={}
  ROOT r = f32[64] add(x, b) }"""
UPDATE = """ENTRY e { x = f32[50,40] parameter(0) u = f32[1,40] parameter(1) i = s32[] parameter(2) z = s32[] constant(0)
  ROOT r = f32[50,40] dynamic-update-slice(x, u, i, z) }"""
SCATTER = """add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[300] parameter(0) i = s32[5,1] parameter(1) u = f32[5] parameter(2)
  ROOT r = f32[300] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=add }"""
LOOP = """body { s = (s32[], f32[60,70], f32[70,60]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1)
  j = s32[] add(i, o) x = f32[60,70] get-tuple-element(s), index=1 y = f32[70,60] get-tuple-element(s), index=2
  z = s32[] constant(0) row = f32[1,70] dynamic-slice(x, i, z), dynamic_slice_sizes={1,70} d = f32[1,70] add(row, row)
  u = f32[60,70] dynamic-update-slice(x, d, j, z) ROOT t = (s32[], f32[60,70], f32[70,60]) tuple(j, u, y) }
cond { s = (s32[], f32[60,70], f32[70,60]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9)
  ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { i = s32[] constant(0) x = f32[60,70] parameter(0) y = f32[70,60] parameter(1)
  s = (s32[], f32[60,70], f32[70,60]) tuple(i, x, y)
  w = (s32[], f32[60,70], f32[70,60]) while(s), condition=cond, body=body ROOT r = f32[60,70] get-tuple-element(w), index=1 }
"""
SWAP = "ENTRY e { a = f32[64] parameter(0) b = f32[64] parameter(1) ROOT t = (f32[64], f32[64]) tuple(b, a) }"
CROSSED = """ENTRY e { a = f32[64] parameter(0) b = f32[64] parameter(1) s = f32[64] subtract(a, b) m = f32[64] multiply(a, b)
  d = f32[64] reverse(b), dimensions={0} ROOT t = (f32[64], f32[64], f32[64]) tuple(d, s, m) }"""
SAME = "ENTRY e { x = f32[64] parameter(0) n = f32[64] negate(x) ROOT t = (f32[64], f32[64], f32[64]) tuple(x, n, x) }"
PRODUCT = """ENTRY e { a = f32[32,32] parameter(0) b = f32[32,32] parameter(1)
  ROOT r = f32[32,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
OTHER_TYPE = "ENTRY e { x = f32[64] parameter(0) v = f32[8,8] reshape(x) ROOT r = s32[8,8] convert(v) }"
NESTED = """ENTRY e { p = (f32[64], (f32[64], s32[3])) parameter(0) x = f32[64] get-tuple-element(p), index=0
  q = (f32[64], s32[3]) get-tuple-element(p), index=1 y = f32[64] get-tuple-element(q), index=0
  ROOT r = f32[64] add(x, y) }"""
ALIASED = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }\n"
DONOR = "HloModule m, buffer_donor={ (0, {}) }\n"
#: Program, what is donated, which result lies in the memory of which argument, bytes that are copied.
CASES = {
    "increment": (INCREMENT, (0,), {0: 0}, 0),
    "by name": (INCREMENT, ("%x",), {0: 0}, 0),
    "update": (UPDATE, ("x",), {0: 0}, 0),
    "scatter": (SCATTER, (0,), {0: 0}, 0),
    "loop": (LOOP, (0, 1), {0: 0}, 0),
    "swap": (SWAP, (0, 1), {0: 1, 1: 0}, 0),
    "swap, one": (SWAP, (1,), {0: 1}, 256),
    "swap, fixed": (ALIASED + SWAP, (0, 1), {0: 0, 1: 1}, 3 * 256),
    "swap, by table": (ALIASED + SWAP, True, {0: 0, 1: 1}, 3 * 256),
    "donor": (DONOR + CROSSED, True, {1: 0}, None),
    "crossed": (ALIASED + CROSSED, (0, 1), {0: 0, 1: 1}, None),
    "no table": (CROSSED, True, {}, 0),
    "returned too": (SAME, (0,), {0: 0}, None),
    "product": (PRODUCT, (0,), {0: 0}, 4096),
    "other type": (OTHER_TYPE, (0,), {0: 0}, 0),
}


def values(exe, seed: int = 3) -> list:
    def value(shape, n):
        if shape.is_tuple:
            return tuple(value(e, n + 10 * k) for k, e in enumerate(shape.elements, 1))
        return np.random.default_rng(seed + n).integers(0, 9, shape.dims).astype(shape.dtype.numpy_dtype)

    return [value(s, n) for n, s in enumerate(exe.inputs)]


def place(array) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("case", CASES)
def test_results_lie_in_donated_arguments(case):
    text, donate, pairs, copied = CASES[case]
    exe, plain = cyxla.compile(text, donate=donate), cyxla.compile(text)
    args, kept = values(exe), values(exe)
    want = flat(plain(*args))
    for a, b in zip(args, kept, strict=True):
        np.testing.assert_array_equal(a, b)  # a plain call writes to nobody's arrays
    got = flat(exe(*args))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    where = {place(a): k for k, a in enumerate(args) if a.size}
    found = {n: where[place(g)] for n, g in enumerate(got) if place(g) in where}
    assert found == pairs or case in ("donor", "returned too")
    assert sorted(found.values()) == sorted(pairs.values())
    for k, (a, b) in enumerate(zip(args, kept, strict=True)):
        if k not in pairs.values():
            np.testing.assert_array_equal(a, b)
    if copied is not None:
        assert sum(c.nbytes for some in exe._emitted[1].copies.values() for c in some) == copied
    again = flat(exe(*kept))
    for g, w in zip(again, want, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:native code needs a C compiler")
@pytest.mark.parametrize("setting", [("interpreter", None), ("cpu", "none")])
def test_others_accept_the_option(case, setting, monkeypatch):
    text, donate, *_ = CASES[case]
    platform, compiler = setting
    if compiler is not None:
        monkeypatch.setenv("CYXLA_CC", compiler)
    exe, plain = cyxla.compile(text, donate=donate, platform=platform), cyxla.compile(text, platform="interpreter")
    for g, w in zip(flat(exe(*values(exe))), flat(plain(*values(exe))), strict=True):
        np.testing.assert_array_equal(g, w)


def test_a_chain_stays_in_one_place():
    exe = cyxla.compile(INCREMENT, donate=(0,))
    first = np.zeros(64, np.float32)
    x = first
    for _ in range(100):
        x = exe(x)
    assert place(x) == place(first)
    assert (x == 100).all()
    assert x.base is first  # and not a chain of a hundred arrays
    assert exe.memory["donated"] == 256
    assert "donated" not in cyxla.compile(INCREMENT).memory


def test_results_outlive_the_argument():
    exe = cyxla.compile(INCREMENT, donate=(0,))
    x = cyxla.compile(INCREMENT)(np.zeros(64, np.float32))  # memory of the pool
    y = exe(x)
    del x
    others = [exe(np.full(64, k, np.float32)) for k in range(50)]
    assert (y == 2).all()
    assert [o[0] for o in others] == list(range(1, 51))


def test_nested_arguments():
    exe = cyxla.compile(NESTED, donate=(0,))
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    got = exe((x, (y, np.arange(3, dtype=np.int32))))
    assert (got == 2).all()
    assert place(got) == place(x)
    assert (y == 1).all()


@pytest.mark.parametrize("make", [
    lambda: [0.0] * 64, lambda: np.zeros(128, np.float32)[::2], lambda: np.zeros(64, ">f4"),
    lambda: np.zeros(257, np.uint8)[1:].view(np.float32), lambda: np.zeros(64, np.float32).view(np.recarray),
], ids=["list", "strided", "big endian", "misaligned", "subclass"])  # fmt: skip
def test_unsuitable_donations_are_copied(make):
    exe = cyxla.compile(INCREMENT, donate=(0,))
    assert (exe(make()) == 1).all()


def test_arguments_that_may_not_be_written():
    exe = cyxla.compile(CROSSED, donate=(0,))
    a, b = np.zeros(64, np.float32), np.ones(64, np.float32)
    both = np.zeros(100, np.float32)
    for bad, message in (((a, a), "argument 0 is donated: it shares"), ((both[:64], both[36:]), "it shares memory")):
        with pytest.raises(InvalidArgumentError, match=message):
            exe(*bad)
    a.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="argument 0 is donated: the array is read-only"):
        exe(a, b)
    assert (exe(b, a)[1] == 1).all()  # the other one may be
    with pytest.raises(InvalidArgumentError, match="want float32"):
        exe(np.zeros(63, np.float32), b)


def test_no_result_of_its_size():
    exe = cyxla.compile("ENTRY e { x = f32[8] parameter(0) ROOT r = f32[4] slice(x), slice={[0:4]} }", donate=("x",))
    x = np.arange(8, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(exe(x), x[:4])


@pytest.mark.parametrize("text, donate, message", [
    (INCREMENT, (1,), "no parameter 1"), (INCREMENT, (-1,), "no parameter -1"), (INCREMENT, ("y",), "no parameter 'y'"),
    (INCREMENT, (0, "x"), "donated twice"), (INCREMENT, (1.5,), "neither the number"), (INCREMENT, (True,), "neither"),
    ("ENTRY e { ROOT r = f32[] constant(1) }", (0,), "no parameter 0"),
])  # fmt: skip
def test_wrong_names_are_refused(backend, text, donate, message):
    with pytest.raises(InvalidArgumentError, match=message):
        cyxla.compile(text, donate=donate, platform=backend)


def test_out():
    exe = cyxla.compile(CROSSED, donate=("a",))
    a, b = np.full(64, 3, np.float32), np.arange(64, dtype=np.float32)
    want = cyxla.compile(CROSSED)(a, b)
    out = tuple(np.zeros(64, np.float32) for _ in want)
    got = exe(a.copy(), b, out=out)
    assert all(g is o and (o == w).all() for g, o, w in zip(got, out, want, strict=True))
    donated = exe(a.copy(), b)
    (own,) = (n for n, g in enumerate(donated) if n == exe._emitted[1].donations[0])
    c = a.copy()
    assert exe(c, b, out=tuple(c if n == own else None for n in range(3)))[own] is c
    np.testing.assert_array_equal(c, want[own])
    with pytest.raises(InvalidArgumentError, match="over donated memory"):
        exe(c, b, out=tuple(c if n == (own + 1) % 3 else None for n in range(3)))


def test_bound_and_donated():
    exe = cyxla.compile(UPDATE, donate=("x",))
    with pytest.raises(InvalidArgumentError, match=r"argument 0 \(x\) is donated"):
        exe.bind({0: np.zeros((50, 40), np.float32)})
    part = cyxla.compile(PRODUCT, donate=("b",)).bind({"a": np.eye(32, dtype=np.float32)})
    b = np.arange(1024, dtype=np.float32).reshape(32, 32)
    got = part(b)
    assert place(got) == place(b)
    np.testing.assert_array_equal(got, np.arange(1024).reshape(32, 32))


def test_cached_programs_know_their_donations(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CYXLA_CACHE", "1")
    store._open.cache_clear()
    renamed = CROSSED.replace("a = f32[64] parameter(0) b =", "b = f32[64] parameter(0) a =")
    renamed = renamed.replace("(a, b)", "(b, a)").replace("reverse(b)", "reverse(a)")
    for _ in range(2):  # the same program but for names; it is found by its bytes the second time
        for text, donate, taken in (
            (CROSSED, ("a",), [0]),
            (renamed, ("a",), [1]),
            (CROSSED, (), []),
            (CROSSED, [1], [1]),
        ):
            args = [np.full(64, k + 1, np.float32) for k in range(2)]
            got = cyxla.compile(text, donate=donate)(*args)
            assert [k for k, a in enumerate(args) if place(a) in map(place, got)] == taken
            np.testing.assert_array_equal(got[1], -1)
    store._open.cache_clear()


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    module, exact = random_module(seed)
    rng = np.random.default_rng(seed)
    donate = tuple(k for k in range(len(module.parameters)) if rng.random() < 0.7)
    args = [random_array(p.shape, seed + k, 0.2) for k, p in enumerate(module.parameters)]
    want = cyxla.compile(module, platform="interpreter")(*args)
    try:
        exe = cyxla.compile(module, donate=donate)
    except UnimplementedError:
        return
    given = [np.array(a) for a in args]
    got = exe(*given)
    for g, v, settled, r in zip(got, want, exact, module.entry.root.operands, strict=True):
        assert_same(g, v, r.shape.dtype, 0 if settled else 64, floor=0.0 if settled else 1.0)
    taken = exe._emitted[1].donations
    assert set(taken) <= set(donate)
    for k, (g, a) in enumerate(zip(given, args, strict=True)):
        if k in taken:
            assert np.shares_memory(g, got[taken[k]])
        else:
            assert g.tobytes() == a.tobytes()
