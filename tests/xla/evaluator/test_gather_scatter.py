"""gather and scatter against their definitions, element by element."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Shape
from cyxla.xla.evaluator import evaluate_instruction
from cyxla.xla.hlo import Computation

INDEX_TYPES = [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64]


@st.composite
def layouts(draw):
    """Sizes and dimension numbers that gather and scatter share."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rank = len(sizes)
    batching = sorted(draw(st.sets(st.integers(0, rank - 1), max_size=1)))
    rest = [d for d in range(rank) if d not in batching]
    vector = draw(st.permutations(rest))[: draw(st.integers(0, len(rest)))]
    dropped = sorted(draw(st.sets(st.sampled_from(rest)))) if rest else []
    slices = [1 if d in batching or d in dropped else draw(st.integers(1, sizes[d])) for d in range(rank)]
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    places = []
    for d in batching:
        places.append(draw(st.integers(0, len(batch))))
        batch.insert(places[-1], sizes[d])
    vector_dim = draw(st.integers(0, len(batch)))
    index_shape = [*batch[:vector_dim], len(vector), *batch[vector_dim:]]
    window = [slices[d] for d in range(rank) if d not in dropped and d not in batching]
    offsets = sorted(draw(st.permutations(range(len(batch) + len(window))))[: len(window)])
    result, remaining, slots = [], iter(batch), dict(zip(offsets, window, strict=True))
    for d in range(len(batch) + len(window)):
        result.append(slots[d] if d in slots else next(remaining))
    index_batching = [p + (p >= vector_dim) for p in places]
    seed, dtype = draw(st.integers(0, 999)), draw(st.sampled_from(INDEX_TYPES))
    low = 0 if np.dtype(dtype).kind == "u" else -2
    indices = np.random.default_rng(seed).integers(low, 6, index_shape).astype(dtype)
    return {
        "sizes": sizes, "batching": batching, "index_batching": index_batching, "vector": tuple(vector),
        "dropped": dropped, "slices": slices, "vector_dim": vector_dim, "indices": indices,
        "offsets": offsets, "result": result,
    }  # fmt: skip


def place(at, how):
    """Start of the slice and offset in it that belong to an element of the result."""
    batch = [i for d, i in enumerate(at) if d not in how["offsets"]]
    vector = how["indices"][(*batch[: how["vector_dim"]], slice(None), *batch[how["vector_dim"] :])]
    start = [0] * len(how["sizes"])
    for d, i in zip(how["vector"], vector, strict=True):
        start[d] = int(i)
    for d, p in zip(how["batching"], how["index_batching"], strict=True):
        start[d] = batch[p - (p > how["vector_dim"])]
    inner = iter(at[d] for d in how["offsets"])
    offset = [0 if d in how["dropped"] or d in how["batching"] else next(inner) for d in range(len(start))]
    return start, offset


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_gather_is_its_definition(how):
    x = np.arange(np.prod(how["sizes"]), dtype=np.int32).reshape(how["sizes"])
    want = np.zeros(how["result"], np.int32)
    for at in np.ndindex(want.shape):
        start, offset = place(at, how)
        fitted = [min(max(s, 0), n - w) for s, n, w in zip(start, x.shape, how["slices"], strict=True)]
        want[at] = x[tuple(s + o for s, o in zip(fitted, offset, strict=True))]
    comp = Computation("main")
    operands = parameters(comp, x, how["indices"])
    attrs = {
        "offset_dims": tuple(how["offsets"]), "collapsed_slice_dims": tuple(how["dropped"]),
        "start_index_map": how["vector"],
        "operand_batching_dims": tuple(how["batching"]), "start_indices_batching_dims": tuple(how["index_batching"]),
        "index_vector_dim": how["vector_dim"], "slice_sizes": tuple(how["slices"]),
    }  # fmt: skip
    ins = comp.add("gather", operands, attrs, shape=Shape.array("s32", how["result"]))
    np.testing.assert_array_equal(evaluate_instruction(ins, x, how["indices"]), want)


def parameters(comp, *values):
    return [comp.add("parameter", attrs={"parameter_number": n}, shape=Shape.of(v)) for n, v in enumerate(values)]


def combiner(name, dtype):
    comp = Computation(name)
    scalar = Shape.array(dtype)
    a, b = (comp.add("parameter", attrs={"parameter_number": n}, shape=scalar) for n in range(2))
    comp.root = b if name == "set" else comp.add(name, [a, b], shape=scalar)
    return comp


FUNCTIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "set": lambda a, b: b,
    "maximum": max,
}


@settings(max_examples=200, deadline=None)
@given(layouts(), st.sampled_from(sorted(FUNCTIONS)), st.sampled_from(["s32", "f32", "bf16", "u8"]))
def test_scatter_is_its_definition(how, name, dtype):
    kind = Shape.array(dtype).dtype.numpy_dtype
    rng = np.random.default_rng(how["indices"].size)
    x, updates = (rng.integers(0, 6, s).astype(kind) for s in (how["sizes"], how["result"]))
    want = x.copy()

    def batch_part(at):
        return [i for d, i in enumerate(at) if d not in how["offsets"]]

    with np.errstate(all="ignore"):
        for at in sorted(np.ndindex(updates.shape), key=batch_part):
            start, offset = place(at, how)
            if all(0 <= s <= n - w for s, n, w in zip(start, x.shape, how["slices"], strict=True)):
                target = tuple(s + o for s, o in zip(start, offset, strict=True))
                want[target] = FUNCTIONS[name](want[target], updates[at])
    comp = Computation("main")
    values = (x, how["indices"], updates)
    attrs = {
        "update_window_dims": tuple(how["offsets"]), "inserted_window_dims": tuple(how["dropped"]),
        "scatter_dims_to_operand_dims": how["vector"], "input_batching_dims": tuple(how["batching"]),
        "scatter_indices_batching_dims": tuple(how["index_batching"]), "index_vector_dim": how["vector_dim"],
    }  # fmt: skip
    ins = comp.add("scatter", parameters(comp, *values), attrs, shape=Shape.of(x), called=[combiner(name, dtype)])
    np.testing.assert_array_equal(evaluate_instruction(ins, *values), want)
    np.testing.assert_array_equal(x, rng_again(how, kind))  # the operand is as it was


def rng_again(how, kind):
    return np.random.default_rng(how["indices"].size).integers(0, 6, how["sizes"]).astype(kind)


ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}"


@pytest.mark.parametrize(
    "indices", [np.array([2**63 + 5, 1], np.uint64), np.array([300, 1], np.int16), np.array([7, 1], np.uint8)]
)
def test_gather_clamps_before_it_reads(hlo, indices):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(hlo(f"f32[2,2] gather(p0, p1), {ROWS}", x, indices), x[[2, 1]])


MODULE = """
body {{
  {body}
}}
ENTRY main {{
  x = {dtype}[3] parameter(0)
  i = s32[4,1] parameter(1)
  u = {dtype}[4] parameter(2)
  ROOT r = {dtype}[3] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=body
}}
"""
TWICE = np.array([[1], [1], [9], [1]], np.int32)
PARAMETERS = "a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n "
# fmt: off
BODIES = [
    # dtype  body                                                                            start, updates, want
    ("f32",  "ROOT r = f32[] subtract(a, b)",                                                8, [1, 2, 4, 3], 2),
    ("f32",  "ROOT r = f32[] subtract(b, a)",                                                8, [1, 2, 4, 3], -6),
    ("bf16", "ROOT r = bf16[] add(a, b)",                                                    256, [1, 1, 1, 1], 256),
    ("f32",  "two = f32[] constant(2)\n c = f32[] multiply(a, two)\n ROOT r = f32[] add(c, b)", 1, [1, 2, 9, 3], 19),
    ("f32",  "ROOT r = f32[] copy(b)",                                                       1, [5, 6, 7, 8], 8),
    ("f32",  "ROOT r = f32[] constant(4)",                                                   1, [5, 6, 7, 8], 4),
]
# fmt: on


@pytest.mark.parametrize("dtype, body, start, updates, want", BODIES)
def test_updates_of_one_place_run_in_order(hlo, dtype, body, start, updates, want):
    kind = Shape.array(dtype).dtype.numpy_dtype
    text = MODULE.format(body=PARAMETERS.format(dtype) + body, dtype=dtype)
    got = hlo(text, np.full(3, start, kind), TWICE, np.array(updates).astype(kind))
    np.testing.assert_array_equal(got.astype(np.float64), [start, want, start])


def test_variadic_scatter(hlo):
    text = """
    body {
      a = f32[] parameter(0)
      b = s32[] parameter(1)
      c = f32[] parameter(2)
      d = s32[] parameter(3)
      s = f32[] add(a, c)
      m = s32[] maximum(b, d)
      ROOT t = (f32[], s32[]) tuple(s, m)
    }
    ENTRY main {
      x = f32[3] parameter(0)
      y = s32[3] parameter(1)
      i = s32[2,1] parameter(2)
      u = f32[2] parameter(3)
      v = s32[2] parameter(4)
      ROOT r = (f32[3], s32[3]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=body
    }
    """
    sums, tops = hlo(
        text,
        np.zeros(3, np.float32),
        np.zeros(3, np.int32),
        np.array([[2], [2]], np.int32),
        np.float32([1, 2]),
        np.int32([5, 4]),
    )
    assert (sums.tolist(), tops.tolist()) == ([0, 0, 3], [0, 0, 5])
