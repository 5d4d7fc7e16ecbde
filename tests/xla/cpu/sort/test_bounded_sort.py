"""Sorts of a bounded dimension put the present elements in order, as a sort of their number alone does."""

import numpy as np
import pytest

import cyxla
from cyxla.types import element_type


def order(types: str, root: str, between: str = "") -> str:
    """Return a comparator of the first elements a, b, the second ones c, d, and so on."""
    names = iter("abcdefgh")
    parameters = [f"{next(names)} = {t}[] parameter({n})" for n, t in enumerate(t for t in types.split() for _ in "lr")]
    return f"order {{ {' '.join(parameters)} {between} ROOT r = pred[] {root} }}"


#: Element types of the operands, bounds with the sorted dimension, comparator and attributes, by name.
CASES = {
    **{f"{t} {d}": (t, ("<=40",), 0, order(t, f"compare(a, b), direction={d}"))
       for t in ("f32", "f64", "bf16", "f16", "s8", "u8", "s16", "s32", "u32", "s64", "pred", "s4", "f8e4m3fn")
       for d in ("LT", "GT")},
    **{f"{t} total {d}": (t, ("<=40",), 0, order(t, f"compare(a, b), direction={d}, type=TOTALORDER"))
       for t in ("f32", "f64", "f16") for d in ("LT", "GT")},
    "swapped": ("f32", ("<=40",), 0, order("f32", "compare(b, a), direction=LT")),
    "not after": ("s32 s32", ("<=40",), 0, order("s32 s32", "compare(a, b), direction=LE")),
    "absolute": ("f32", ("<=40",), 0, order(
        "f32", "compare(p, q), direction=LT", "p = f32[] abs(a) q = f32[] abs(b)")),
    "real parts": ("c64", ("<=40",), 0, order(
        "c64", "compare(p, q), direction=LT", "p = f32[] real(a) q = f32[] real(b)")),
    "two operands": ("f32 s32", ("<=40",), 0, order("f32 s32", "compare(a, b), direction=GT")),
    "wide key": ("f64 s8", ("<=40",), 0, order("f64 s8", "compare(a, b), direction=LT")),
    "second key": ("s8 f32", ("<=40",), 0, order("s8 f32", "compare(c, d), direction=LT")),
    "two keys": ("u8 f32", ("<=40",), 0, order(
        "u8 f32", "select(e, l, k)",
        "e = pred[] compare(a, b), direction=EQ k = pred[] compare(a, b), direction=LT "
        "l = pred[] compare(c, d), direction=LT")),
    "masks": ("pred pred", ("<=40",), 0, order("pred pred", "compare(c, d), direction=LT")),
    "rows": ("f32", ("7", "<=40"), 1, order("f32", "compare(a, b), direction=LT")),
    "bounded rows": ("f32 s16", ("<=7", "<=40"), 1, order("f32 s16", "compare(a, b), direction=LT")),
    "columns": ("f32", ("<=40", "<=7"), 0, order("f32", "compare(a, b), direction=GT")),
    "between": ("s32 f32", ("<=3", "<=40", "<=5"), 1, order("s32 f32", "compare(a, b), direction=LT")),
    "long": ("f32", ("<=40000",), 0, order("f32", "compare(a, b), direction=LT")),
    "long pairs": ("f32 f64", ("<=40000",), 0, order("f32 f64", "compare(a, b), direction=GT")),
}  # fmt: skip
#: Cases whose comparators put no NaN before or behind all other elements.
WITHOUT_NANS = {"swapped", "two keys"}
#: Lines from the sorted arrays ``z`` to the result, by name; {0} is its type.
USES = {
    "itself": "",
    "reversed": "ROOT r = {0} reverse(z), dimensions={{{axis}}}",
    "computed with": "e = {0} negate(z) w = {0} add(e, e) ROOT r = {0} subtract(w, z)",
}


def program(types: str, dims: tuple[str, ...], axis: int, comparator: str, *, stable: bool) -> str:
    shapes = [f"{t}[{','.join(dims)}]" for t in types.split()]
    shape = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    parameters = " ".join(f"x{n} = {s} parameter({n})" for n, s in enumerate(shapes))
    operands = ", ".join(f"x{n}" for n in range(len(shapes)))
    return (
        f"HloModule m\n{comparator}\nENTRY e {{ {parameters} ROOT z = {shape} sort({operands}), "
        f"dimensions={{{axis}}}, is_stable={str(stable).lower()}, to_apply=order }}"
    )


def elements(type_: str, dims: list[int], seed: int, *, nans: bool = True) -> np.ndarray:
    """Return few different elements, extreme ones among them."""
    dtype, rng = element_type(type_).numpy_dtype, np.random.default_rng(seed)
    if dtype.kind in "iu":
        pool = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 5])
    elif type_ == "s4":
        pool = np.array([-8, 7, 0, 1])
    else:
        pool = np.array([0, 1] if type_ == "pred" else [np.nan if nans else 3, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2.5])
    return pool[rng.integers(0, len(pool), dims)].astype(dtype)


def sizes_of(dims: tuple[str, ...], size: int, others: int) -> list[int]:
    bounds = [int(d.removeprefix("<=")) for d in dims]
    longest = max(range(len(dims)), key=lambda d: bounds[d])
    return [
        b if not d.startswith("<=") else min(b, size) if k == longest else max(0, b - others)
        for k, (d, b) in enumerate(zip(dims, bounds, strict=True))
    ]


def same_bits(got, want):
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_present_elements_alone_are_sorted(name):
    types, dims, axis, comparator = CASES[name]
    text = program(types, dims, axis, comparator, stable="pairs" not in name)
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    (line,) = [line for line in compiled.explain().splitlines() if "a sort has a kernel of its own" in line]
    assert f"dimension {axis} is computed below" in line
    bound = max(int(d.removeprefix("<=")) for d in dims)
    for size, others in ((0, 0), (1, 1), (2, 0), (bound // 3, 2), (bound - 1, 0), (bound, 0)):
        shape, nans = sizes_of(dims, size, others), name not in WITHOUT_NANS
        args = [elements(t, shape, n + size, nans=nans) for n, t in enumerate(types.split())]
        same_bits(compiled(*args), oracle(*args))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_users_of_a_bounded_sort(type_, use):
    lines = USES[use].format(f"{type_}[<=60,<=5]", axis=0)
    text = program(type_, ("<=60", "<=5"), 0, order(type_, "compare(a, b), direction=LT"), stable=True)
    text = text.replace("ROOT z", "z" if lines else "ROOT z").replace("order }", f"order {lines} }}")
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    for dims in ([0, 5], [1, 5], [17, 3], [60, 5]):
        x = elements(type_, dims, dims[0])
        np.testing.assert_array_equal(compiled(x), oracle(x))


#: A sort by a mask, and lines after it that read the mask, or all elements.
BY_MASK = """HloModule m
order {{ a = f32[] parameter(0) b = f32[] parameter(1) c = pred[] parameter(2) d = pred[] parameter(3)
  n = pred[] not(d) p = pred[] compare(a, b), direction=LT o = pred[] or(p, n) ROOT r = pred[] and({root}) }}
ENTRY e {{ x = f32[50] parameter(0) n = s32[] parameter(1) k = s32[50] iota(), iota_dimension=0
  s = s32[50] broadcast(n), dimensions={{}} t = pred[50] compare(k, s), direction=LT
  v = f32[50] negate(x)
  u = pred[50] compare(x, v), direction=GT m = pred[50] {mask}
  z = (f32[50], pred[50]) sort(x, m), dimensions={{0}}, to_apply=order
  y = f32[50] get-tuple-element(z), index=0 q = pred[50] get-tuple-element(z), index=1 {lines} }}"""
MASKED = {
    "all elements": ("compare(k, s), direction=LT", "ROOT r = f32[50] negate(y)"),
    "the mask": ("compare(k, s), direction=LT", "ROOT r = (f32[50], pred[50]) tuple(y, q)"),
    "another mask": ("compare(k, s), direction=GT", "ROOT r = f32[50] negate(y)"),
    "up to the size": ("compare(k, s), direction=LE", "ROOT r = f32[50] negate(y)"),
    "beside another": ("and(t, u)", "ROOT r = f32[50] negate(y)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("root", ["c, o", "o, c"])
def test_elements_that_a_mask_puts_last_stay_in_order(name, root):
    mask, lines = MASKED[name]
    text = BY_MASK.format(root=root, mask=mask, lines=lines)
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    x = np.random.default_rng(0).standard_normal(50).astype("f4")
    for n in (-2, 0, 1, 20, 49, 50, 60):
        same_bits(compiled(x, np.int32(n)), oracle(x, np.int32(n)))
