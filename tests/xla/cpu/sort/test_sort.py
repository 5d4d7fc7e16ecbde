"""Sorting agrees with the oracle bit for bit: every element type, every order, equal keys, all lengths of rows."""

import numpy as np
import pytest
from support.hlo.differential import flat
from support.strategies import random_array

import cyxla
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.evaluator import evaluate

TYPES = [
    "f32",
    "f64",
    "bf16",
    "f16",
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "pred",
    "s4",
    "u4",
    "f8e4m3fn",
]
LENGTHS = [0, 1, 2, 13, 129, 4097]  # by insertion, by merging, by narrow digits, by wide ones


def plain(dtype: str, direction: str, kind: str = "", extra: str = "") -> str:
    kind = f", type={kind}" if kind else ""
    more = "".join(f" q{n} = {t}[] parameter({n + 2})" for n, t in enumerate(extra.split()))
    return (
        f"order {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1){more} "
        f"ROOT r = pred[] compare(a, b), direction={direction}{kind} }}"
    )


def canonical(dtype: str, *, inner: bool = True) -> str:
    """The comparator for which zeros are equal, and NaNs too; `inner`: NaNs are looked for once zeros are replaced."""
    sides = "".join(
        f"{p} = {dtype}[] parameter({n}) z{p} = pred[] compare({p}, zero), direction=EQ "
        f"s{p} = {dtype}[] select(z{p}, zero, {p}) "
        f"n{p} = pred[] compare({'s' * inner}{p}, {'s' * inner}{p}), direction=NE "
        f"c{p} = {dtype}[] select(n{p}, nan, s{p}) "
        for n, p in enumerate("ab")
    )
    constants = f"nan = {dtype}[] constant(nan) zero = {dtype}[] constant(0) "
    return f"order {{ {constants}{sides}ROOT r = pred[] compare(ca, cb), direction=LT, type=TOTALORDER }}"


def values(dtype: str, dims: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random elements: many equal ones, and among floats zeros, infinities and NaNs of both signs."""
    rng = np.random.default_rng(seed)
    element = element_type(dtype)
    x = random_array(Shape.array(element, dims), seed, 0.3)
    again = x[rng.integers(0, dims[0], dims[0])] if dims[0] else x
    x = np.where(rng.random(dims) < 0.3, again, x)
    if element.is_float:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0], np.float64).astype(x.dtype)
        x = np.where(rng.random(dims) < 0.3, special[rng.integers(0, 7, dims)], x)
    return x.astype(element.numpy_dtype)


def same(text: str, *args: np.ndarray) -> None:
    module = cyxla.hlo.parse_module(text)
    for got, want in zip(flat(cyxla.compile(text)(*args)), flat(evaluate(module, list(args))), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def program(shapes: list[str], order: str, axis: int = 0) -> str:
    names = [f"p{n}" for n in range(len(shapes))]
    result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    body = " ".join(f"{p} = {s} parameter({n})" for n, (p, s) in enumerate(zip(names, shapes, strict=True)))
    return (
        f"HloModule m\n{order}\nENTRY e {{ {body} ROOT r = {result} sort({', '.join(names)}), "
        f"dimensions={{{axis}}}, is_stable=true, to_apply=order }}"
    )


def several(dtype: str, order: str) -> str:
    """One program that sorts a row of every length."""
    body, roots = "", []
    for n, length in enumerate(LENGTHS):
        body += f"  p{n} = {dtype}[{length}] parameter({n})\n"
        body += f"  s{n} = {dtype}[{length}] sort(p{n}), dimensions={{0}}, is_stable=true, to_apply=order\n"
        roots.append(f"{dtype}[{length}]")
    names = ", ".join(f"s{n}" for n in range(len(LENGTHS)))
    return f"HloModule m\n{order}\nENTRY e {{\n{body}  ROOT r = ({', '.join(roots)}) tuple({names})\n}}"


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("dtype", TYPES)
def test_orders(dtype, direction):
    kinds = ["TOTALORDER", ""] if element_type(dtype).is_float else [""]
    for kind in kinds:
        same(several(dtype, plain(dtype, direction, kind)), *(values(dtype, (n,)) for n in LENGTHS))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_canonical_order(dtype):
    for inner in (False, True):
        same(several(dtype, canonical(dtype, inner=inner)), *(values(dtype, (n,)) for n in LENGTHS))


def test_operands_in_the_other_order():
    order = "order { b = s32[] parameter(1) a = s32[] parameter(0) ROOT r = pred[] compare(b, a), direction=LT }"
    same(several("s32", order), *(values("s32", (n,)) for n in LENGTHS))


@pytest.mark.parametrize(
    "dtype, other", [("f32", "s32"), ("f32", "c128"), ("u64", "bf16"), ("s8", "f64"), ("bf16", "pred")]
)
@pytest.mark.parametrize("dims, axis", [((300,), 0), ((5, 40), 1), ((200, 3), 0), ((2, 150, 3), 1), ((64, 20), 0)])
def test_operands_move_along(dtype, other, dims, axis):
    shape = ",".join(map(str, dims))
    order = plain(dtype, "GT", "TOTALORDER" if element_type(dtype).is_float else "", f"{other} {other}")
    text = program([f"{dtype}[{shape}]", f"{other}[{shape}]"], order, axis)
    payload = np.arange(np.prod(dims)).reshape(dims).astype(element_type(other).numpy_dtype)
    same(text, values(dtype, dims), payload)


def test_the_second_operand_decides():
    order = (
        "order { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) "
        "ten = s32[] constant(10) x = s32[] remainder(c, ten) y = s32[] remainder(d, ten) "
        "ROOT r = pred[] compare(x, y), direction=LT }"
    )
    for n in (20, 500):
        same(program([f"f32[{n}]", f"s32[{n}]"], order), values("f32", (n,)), np.arange(n, dtype=np.int32)[::-1].copy())


def test_two_keys_need_the_comparator():
    order = (
        "order { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3) "
        "less = pred[] compare(a, b), direction=LT same = pred[] compare(a, b), direction=EQ "
        "then = pred[] compare(c, d), direction=LT, type=TOTALORDER both = pred[] and(same, then) "
        "ROOT r = pred[] or(less, both) }"
    )
    n = 700
    keys = np.random.default_rng(0).integers(0, 9, n).astype(np.int32)
    same(program([f"s32[{n}]", f"f32[{n}]"], order), keys, values("f32", (n,)))


@pytest.mark.parametrize("dtype", ["s64", "f64"])
def test_wide_keys_that_differ_in_few_bits(dtype):
    """Keys far apart or adjacent: the first pass of the sort does not distinguish adjacent keys."""
    rng = np.random.default_rng(1)
    shapes = [f"{dtype}[5,600]", "s32[5,600]"]
    far, near = rng.integers(-3, 4, (5, 600)), rng.integers(0, 40, (5, 600))
    bits = (far << 60) + near
    bits[1:3] = [near[1], far[2]]  # few bits differ at all
    bits[3] = -7  # all are equal
    x = bits if dtype == "s64" else bits.view(np.float64)
    for direction in ("LT", "GT"):
        order = plain(dtype, direction, "TOTALORDER" if dtype == "f64" else "", "s32 s32")
        same(program(shapes, order, 1), x, np.arange(3000, dtype=np.int32).reshape(5, 600))


def test_a_row_in_order_stays():
    for n in (100, 5000):
        x = np.arange(n, dtype=np.float32)
        same(program([f"f32[{n}]"], plain("f32", "GT", "TOTALORDER")), x)
        same(program([f"f32[{n}]"], plain("f32", "LT", "TOTALORDER")), x)


def test_one_array_twice():
    text = (
        f"HloModule m\n{plain('f32', 'LT', 'TOTALORDER', 'f32 f32')}\nENTRY e {{ p = f32[300] parameter(0) "
        "ROOT r = (f32[300], f32[300]) sort(p, p), dimensions={0}, is_stable=true, to_apply=order }"
    )
    same(text, values("f32", (300,)))


# lengths that are cut into chunks and buckets, with ends that no vector ends at
LONG = [(100_003,), (3, 40_001), (40_001, 2)]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dims", LONG, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "s8", "u32", "s64"])
def test_long_rows_by_buckets(dtype, dims):
    shape, axis = f"{dtype}[{','.join(map(str, dims))}]", int(np.argmax(dims))
    floating = element_type(dtype).is_float
    orders = [plain(dtype, "GT", "TOTALORDER" if floating else "")]
    orders += [canonical(dtype), plain(dtype, "LT")] if floating else []
    for order in orders:
        same(program([shape], order, axis), values(dtype, dims))


@pytest.mark.parametrize("dims", LONG, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "u8"])
def test_long_rows_with_places(dtype, dims):
    shape = ",".join(map(str, dims))
    order = plain(dtype, "LT", "", "s32 s32")
    places = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    same(program([f"{dtype}[{shape}]", f"s32[{shape}]"], order, int(np.argmax(dims))), values(dtype, dims), places)


def test_many_buckets():
    x = values("f32", (4_200_001,))
    got = cyxla.compile(program(["f32[4200001]"], plain("f32", "LT", "TOTALORDER")))(x)
    bits = got.view(np.int32)
    keys = np.where(bits < 0, ~bits ^ np.int32(-(2**31)), bits)
    assert (np.diff(keys.astype(np.int64)) >= 0).all()
    np.testing.assert_array_equal(np.sort(got.view(np.uint32)), np.sort(x.view(np.uint32)))


@pytest.mark.parametrize("pattern", ["falling", "organ", "two", "one", "saw"])
def test_patterns(pattern):
    n = 40_000
    k = np.arange(n)
    made = {"falling": n - k, "organ": np.minimum(k, n - k), "two": k % 2, "one": 0 * k, "saw": k % 17}[pattern]
    same(program([f"f32[{n}]"], canonical("f32")), made.astype(np.float32))
    same(program([f"s64[{n}]"], plain("s64", "LT")), made.astype(np.int64))


@pytest.mark.parametrize("wanted", ["nan", "zero"])
def test_half_canonical_orders_are_not_taken_for_whole_ones(wanted):
    test = {"nan": "compare({p}, {p}), direction=NE", "zero": "compare({p}, zero), direction=EQ"}[wanted]
    sides = "".join(
        f"{p} = f32[] parameter({n}) t{p} = pred[] {test.format(p=p)} c{p} = f32[] select(t{p}, {wanted}, {p}) "
        for n, p in enumerate("ab")
    )
    constants = "nan = f32[] constant(nan) zero = f32[] constant(0) "
    order = f"order {{ {constants}{sides}ROOT r = pred[] compare(ca, cb), direction=LT, type=TOTALORDER }}"
    same(program(["f32[700]"], order), values("f32", (700,)))


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "s8", "u16"])
@pytest.mark.parametrize("dims, other", [((70000,), ""), ((9, 500), ""), ((9, 500), "s32"), ((40000,), "s16")])
def test_bits_depend_neither_on_the_home_of_the_text_nor_on_the_threads(monkeypatch, dtype, dims, other):
    shapes = [f"{t}[{','.join(map(str, dims))}]" for t in (dtype, other) if t]
    text = program(shapes, plain(dtype, "GT", extra=f"{other} {other}" if other else ""), len(dims) - 1)
    args = [values(dtype, dims), *([values(other, dims, 1)] if other else [])]
    got, before = set(), cyxla.threads()
    try:
        for prebuilt in ("0", "1"):
            monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)
            run = cyxla.compile(text, cache=False)
            for n in (1, 2, 8):
                cyxla.threads(n)
                got.add(b"".join(np.asarray(a).tobytes() for a in flat(run(*args))))
    finally:
        cyxla.threads(before)
    assert len(got) == 1


def by_bits(dtype: str) -> str:
    """The total order as older versions of JAX and TensorFlow write it: as integers, negative ones turned."""
    bits = element_type(dtype).bits
    most = 2 ** (bits - 1) - 1
    sides = "".join(
        f"{p} = {dtype}[] parameter({n}) i{p} = s{bits}[] bitcast-convert({p}) u{p} = u{bits}[] bitcast-convert({p}) "
        f"d{p} = u{bits}[] subtract(most, u{p}) t{p} = s{bits}[] bitcast-convert(d{p}) "
        f"l{p} = pred[] compare(i{p}, zero), direction=LT k{p} = s{bits}[] select(l{p}, t{p}, i{p}) "
        for n, p in enumerate("ab")
    )
    constants = f"most = u{bits}[] constant({most}) zero = s{bits}[] constant(0) "
    return f"order {{ {constants}{sides}ROOT r = pred[] compare(ka, kb), direction=LT }}"


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_total_order_by_bits(dtype):
    text = f"{by_bits(dtype)}\nENTRY main {{ x = {dtype}[300,2] parameter(0) ROOT s = {dtype}[300,2] sort(x), "
    text += "dimensions={0}, is_stable=true, to_apply=order }"
    x = values(dtype, (300, 2))
    (want,) = flat(evaluate(cyxla.hlo.parse_module(text), [x]))
    np.testing.assert_array_equal(cyxla.compile(text)(x).view(np.uint8), want.view(np.uint8))


def in_pieces(x: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([np.sort(piece) for piece in np.array_split(x, count)])


#: Rows made of few runs, from random elements, many of which are equal.
ARRANGEMENTS = {
    "sorted": np.sort,
    "reversed": lambda x: np.sort(x)[::-1],
    "all but the last": lambda x: np.r_[np.sort(x[:-1]), x[-1:]],
    "all but the first": lambda x: np.r_[x[:1], np.sort(x[1:])],
    "few appended": lambda x: np.r_[np.sort(x[:-7]), x[-7:]],
    "reversed, with one pair": lambda x: np.sort(np.r_[np.unique(x), np.sort(x)[:1]])[::-1],
    "two runs": lambda x: in_pieces(x, 2),
    "five runs": lambda x: in_pieces(x, 5),
    "twelve runs": lambda x: in_pieces(x, 12),
    "up and down": lambda x: np.r_[np.sort(x[::2]), np.sort(x[1::2])[::-1]],
    "down and up": lambda x: np.r_[np.sort(x[::2])[::-1], np.sort(x[1::2])],
    "reversed halves": lambda x: in_pieces(x, 2)[::-1],
    "sorted, then random": lambda x: np.r_[np.sort(x[: 2 * x.size // 3]), x[2 * x.size // 3 :]],
    "one moved to the end": lambda x: np.delete(np.r_[np.sort(x), np.median(x).astype(x.dtype)], x.size // 2),
}  # fmt: skip


def elements_to_arrange(dtype: str, size: int, kinds: int) -> np.ndarray:
    """Return elements of so many values; floats have zeros of both signs, and NaNs with bits of their own."""
    rng = np.random.default_rng(kinds)
    element = element_type(dtype)
    x = rng.integers(-kinds, kinds, size).astype(element.numpy_dtype)
    if element.is_float:
        x = np.where(rng.random(size) < 0.5, x, -x)
        if element is ElementType.F64:  # differences in lower bits alone
            x = x + np.where(np.abs(x) > 1, x * rng.integers(0, 3, size) * 2.0**-52, 0)
    return x


def with_nans(x: np.ndarray) -> np.ndarray:
    """Return elements, the last of which, if they are floats, are NaNs of two patterns."""
    if x.dtype.kind == "f":
        x[-3:] = np.array([np.nan, -np.nan, np.nan], x.dtype)
    return x


def iota_beside(dtype: str, size: int, order: str, index: int) -> str:
    """Return a program that sorts beside the indices, and whose result is one array, or both where `index` is 2."""
    both, sort = f"({dtype}[{size}], s64[{size}])", "sort(p, k), dimensions={0}, is_stable=true, to_apply=order"
    one = f"ROOT r = {(dtype, 's64')[index % 2]}[{size}] get-tuple-element(s), index={index}" if index < 2 else ""
    return (
        f"HloModule m\n{order}\nENTRY e {{ p = {dtype}[{size}] parameter(0) k = s64[{size}] iota(), iota_dimension=0 "
        f"{'ROOT ' * (index == 2)}s = {both} {sort} {one} }}"
    )


@pytest.mark.parametrize("kinds", [4, 1 << 20], ids=["equal ones", "few equal"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "s64", "u8"])
@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_few_runs(name, dtype, kinds):
    """Short rows, rows with room for several runs, and rows that are cut into chunks."""
    kinds = min(kinds, 100) if dtype == "u8" else kinds
    order = canonical(dtype) if dtype[0] == "f" else plain(dtype, "LT")
    beside = plain(dtype, "LT", "", "s64 s64")
    for size in (9, 30, 700, 40_003):
        x = with_nans(
            ARRANGEMENTS[name](elements_to_arrange(dtype, size, kinds)).astype(element_type(dtype).numpy_dtype)
        )
        same(program([f"{dtype}[{x.size}]"], order), x)
        same(program([f"{dtype}[{x.size}]"], plain(dtype, "GT")), x)
        for index in range(3):
            same(iota_beside(dtype, x.size, beside, index), x)


def test_rows_that_are_sorted_among_others():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((len(ARRANGEMENTS), 500))
    x = np.stack([np.resize(arrange(row), 500) for arrange, row in zip(ARRANGEMENTS.values(), x, strict=True)])
    for dtype in ("f32", "f64"):
        for axis, array in ((1, x), (0, np.ascontiguousarray(x.T))):
            shape = ",".join(map(str, array.shape))
            order = plain(dtype, "LT", "", "s32 s32")
            places = np.arange(x.size, dtype=np.int32).reshape(array.shape)
            same(
                program([f"{dtype}[{shape}]"], plain(dtype, "LT"), axis), array.astype(element_type(dtype).numpy_dtype)
            )
            same(
                program([f"{dtype}[{shape}]", f"s32[{shape}]"], order, axis),
                array.astype(element_type(dtype).numpy_dtype), places,
            )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("count", ["s32", "s64", "f32"])
def test_an_iota_is_the_index_along_its_own_dimension(count, dtype, dimension, axis):
    order = plain(dtype, "LT", "", f"{count} {count}")
    same(
        f"HloModule m\n{order}\nENTRY e {{ p = {dtype}[40,50] parameter(0) k = {count}[40,50] iota(), "
        f"iota_dimension={dimension} s = ({dtype}[40,50], {count}[40,50]) sort(p, k), dimensions={{{axis}}}, "
        f"is_stable=true, to_apply=order ROOT r = {count}[40,50] get-tuple-element(s), index=1 }}",
        values(dtype, (40, 50)),
    )


@pytest.mark.parametrize("key, stays", [("p", False), ("k", True)])
@pytest.mark.parametrize("count", ["s32", "s64"])
def test_an_iota_is_in_memory_only_as_the_key(count, key, stays):
    parameters = "a = f32[] parameter(0) b = f32[] parameter(1) c = {0}[] parameter(2) d = {0}[] parameter(3)"
    sides = "a, b" if key == "p" else "c, d"
    text = (
        f"HloModule m\norder {{ {parameters.format(count)} ROOT r = pred[] compare({sides}), direction=GT }}\n"
        f"ENTRY e {{ p = f32[50] parameter(0) k = {count}[50] iota(), iota_dimension=0 "
        f"ROOT s = (f32[50], {count}[50]) sort(p, k), dimensions={{0}}, is_stable=true, to_apply=order }}"
    )
    same(text, values("f32", (50,)))
    assert ("iota" in cyxla.compile(text).explain()) == stays


@pytest.mark.parametrize("type_", ["s64", "s32"])
def test_a_few_live_elements_of_a_long_row(type_):
    """They are fewer than the chunks of the row, of which most are empty."""
    bound = 3_000_001
    text = f"""HloModule m
less {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}
ENTRY main {{
  x = {type_}[{bound}] parameter(0)
  n = s64[] parameter(1)
  i = s64[{bound}] iota(), iota_dimension=0
  s = s64[{bound}] broadcast(n), dimensions={{}}
  live = pred[{bound}] compare(i, s), direction=LT
  most = {type_}[] constant({2 ** (int(type_[1:]) - 1) - 1})
  ends = {type_}[{bound}] broadcast(most), dimensions={{}}
  y = {type_}[{bound}] select(live, x, ends)
  z = {type_}[{bound}] sort(y), dimensions={{0}}, to_apply=less
  ROOT o = ({type_}[{bound}], s64[]) tuple(z, n)
}}"""
    compiled = cyxla.compile(text, live_results=((0, 0, 1),))
    x = np.random.default_rng(0).integers(-99, 99, bound).astype({"s64": np.int64, "s32": np.int32}[type_])
    for size in (bound, 1000, 40, *range(12, -1, -1)):
        np.testing.assert_array_equal(compiled(x, np.int64(size))[0][:size], np.sort(x[:size]), str(size))
