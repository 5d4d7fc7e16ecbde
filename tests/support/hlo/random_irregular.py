"""Steps of random programs: sorts, windows, gathers and scatters, products with epilogues, loops."""

import numpy as np

from cyxla.types import ElementType as E
from cyxla.types import Literal, Shape
from cyxla.xla.hlo import infer_shape
from cyxla.xla.hlo.attributes import ConvDims, WindowDim

HUGE = {E.F32: 1e15, E.F64: 1e100}  # squares of smaller numbers can be added without overflow
FEW = 8  # results of a product, of which the largest may be one whose terms cancel


def literal(w, dtype, value):
    """Add a scalar constant."""
    array = np.asarray(value).astype(dtype.numpy_dtype)
    ins = w.entry.add("constant", attrs={"literal": Literal(array, Shape.array(dtype))}, shape=Shape.array(dtype))
    return w.keep(ins, True)


def filled(w, shape, value):
    """Add a constant of any shape."""
    return w.add("broadcast", [literal(w, shape.dtype, value)], {"dimensions": ()}, declared=shape)


def parameter(w, dtype, dims):
    """Add a parameter."""
    number = sum(v.ins.opcode == "parameter" for v in w.values)
    shape = Shape.array(dtype, dims)
    return w.keep(w.entry.add("parameter", attrs={"parameter_number": number}, shape=shape), True)


def replace_huge(w, x, *, finite=False):
    """Replace huge numbers by infinity, or by 1: whether a sum overflows depends on the order of its terms."""
    if not x.shape.dtype.is_float:
        return x
    limit = filled(w, x.shape, HUGE[x.shape.dtype])
    small = w.add("compare", [w.add("abs", [x]), limit], {"direction": "LT"})
    huge = filled(w, x.shape, 1) if finite else w.add("multiply", [x, w.add("multiply", [limit, limit])])
    return w.add("select", [small, x, huge])


def drop_signs(w, operands, results):
    """Drop the signs of operands if results are few: then the largest may be one whose terms cancelled."""
    if results > FEW or not operands[0].shape.dtype.is_float:
        return operands
    return [w.add("abs", [o]) for o in operands]


def drop_nan_signs(w, x):
    """Drop the signs of NaNs: the total order tells them apart, but those of computed NaNs are undefined."""
    if not x.shape.dtype.is_float:
        return x
    is_number, positive = w.add("compare", [x, x], {"direction": "EQ"}), w.add("abs", [x])
    return positive and w.add("select", [is_number, x, positive])  # None if x is too large


def dims(w, rank, most=6):
    return tuple(int(w.rng.integers(1, most + 1)) for _ in range(rank))


def add_epilogue(w, y):
    """Add an epilogue that does not amplify rounding errors relative to the largest element."""
    if y is None or y.shape.dtype not in (E.F32, E.F64, E.S32):
        return
    y = w.add("abs", [y])
    for _ in range(int(w.rng.integers(0, 4))):
        kind = w.choice(["scale", "bias", "partner", "floor", "shape"])
        if kind == "scale":
            y = w.add("multiply", [y, filled(w, y.shape, 3)])
        elif kind == "bias" and y.shape.rank:
            axis = int(w.rng.integers(y.shape.rank))
            bias = w.add("abs", [parameter(w, y.shape.dtype, (y.shape.dims[axis],))])
            y = w.add("add", [y, w.add("broadcast", [bias], {"dimensions": (axis,)}, declared=y.shape)])
        elif kind == "partner":
            y = w.add("add", [y, w.add("abs", [w.partner(y, exact=False)])])
        elif kind == "floor":
            y = w.add("maximum", [filled(w, y.shape, 2), y])
        elif kind == "shape" and y.shape.size:
            y = w.add("reshape", [y], declared=y.shape.with_dims([y.shape.size]))


def dot(w):
    """Add a dot with batch, free and contracting dimensions, and an epilogue."""
    dtype = w.choice([E.F32, E.F32, E.F64, E.S32])
    batch, m, n, k = (
        dims(w, int(w.rng.integers(0, 3)), 3),
        *(dims(w, int(w.rng.integers(0, 3)), 20) for _ in "mn"),
        dims(w, 1, 40),
    )
    if max(np.prod((*batch, *m, *n)), np.prod((*batch, *m, *k)), np.prod((*batch, *n, *k))) > 2000:
        return
    sides, attrs = [], {}
    for side, free in (("lhs", m), ("rhs", n)):
        sizes = (*batch, *free, *k)
        order = [int(d) for d in w.rng.permutation(len(sizes))] if w.rng.random() < 0.5 else list(range(len(sizes)))
        sides.append(replace_huge(w, parameter(w, dtype, [sizes[d] for d in order])))
        attrs[f"{side}_batch_dims"] = tuple(order.index(d) for d in range(len(batch)))
        attrs[f"{side}_contracting_dims"] = (order.index(len(sizes) - 1),)
    sides = drop_signs(w, sides, np.prod((*batch, *m, *n)))
    add_epilogue(w, w.add("dot", sides, attrs, exact=not dtype.is_float))


def conv_dims(x, f, y, rank):
    """Return the attribute for the three texts of dim_labels."""
    places = [tuple(text.index(str(d)) for d in range(rank)) for text in (x, f, y)]
    features = x.index("b"), x.index("f"), f.index("i"), f.index("o"), y.index("b"), y.index("f")
    return ConvDims(*features[:2], places[0], *features[2:4], places[1], *features[4:], places[2])


def convolution(w):
    """Add a convolution with strides, padding, dilations and groups, and an epilogue."""
    dtype, rank = w.choice([E.F32, E.F32, E.F64, E.S32]), int(w.choice([0, 1, 1, 2, 2, 3]))
    groups, kind = int(w.choice([1, 1, 2, 3])), w.choice(["feature", "batch"])
    space, depth, features = dims(w, rank, 7), int(w.rng.integers(1, 5)), groups * int(w.choice([1, 2, 3, 8, 17]))
    window = []
    for size in space:
        wide = int(w.rng.integers(1, min(size, 3) + 1))
        window.append(
            WindowDim(
                wide,
                stride=int(w.choice([1, 1, 2])),
                padding_low=int(w.rng.integers(0, 3)),
                padding_high=int(w.rng.integers(0, 3)),
                base_dilation=int(w.choice([1, 1, 2])),
                window_dilation=int(w.choice([1, 1, 2])),
                window_reversal=bool(w.rng.random() < 0.2),
            )
        )
    by_feature = kind == "feature"
    batch = int(w.rng.integers(1, 4)) * (1 if by_feature else groups)
    sizes_x = {"b": batch, "f": depth * groups if by_feature else depth, **{str(d): s for d, s in enumerate(space)}}
    sizes_w = {"i": depth, "o": features, **{str(d): p.size for d, p in enumerate(window)}}
    if max(np.prod(list(sizes.values())) for sizes in (sizes_x, sizes_w)) > 2000:
        return
    labels = ["".join(w.rng.permutation(list(sizes))) for sizes in (sizes_x, sizes_w, sizes_x)]
    if w.rng.random() < 0.6:
        tail = "".join(str(d) for d in range(rank))
        labels = [f"b{tail}f", f"{tail}io", f"b{tail}f"]
    x = replace_huge(w, parameter(w, dtype, [sizes_x[label] for label in labels[0]]))
    # It is undefined whether padding adds nothing, or zero times the weight, which may be infinite.
    f = replace_huge(w, parameter(w, dtype, [sizes_w[label] for label in labels[1]]), finite=True)
    attrs = {
        "window": tuple(window),
        "dim_labels": conv_dims(*labels, rank),
        "feature_group_count": groups if by_feature else 1,
        "batch_group_count": 1 if by_feature else groups,
    }
    results = infer_shape("convolution", [x.ins, f.ins], attrs, (), None).size
    x, f = drop_signs(w, [x, f], results)
    add_epilogue(w, w.add("convolution", [x, f], attrs, exact=not dtype.is_float))


def window(w):
    """Add a reduce-window whose result does not depend on rounding."""
    x = w.pick(lambda v: v.exact and 0 < v.shape.rank <= 3 and v.shape.dtype in (E.S32, E.U8, E.F32, E.S64, E.PRED))
    if not x:
        return
    name = "or" if x.shape.dtype is E.PRED else w.choice(["maximum", "minimum"] + ["add"] * x.shape.dtype.is_integer)
    cut = [
        WindowDim(
            int(w.rng.integers(1, 4)),
            stride=int(w.choice([1, 2])),
            padding_low=int(w.rng.integers(0, 3)),
            padding_high=int(w.rng.integers(0, 3)),
            base_dilation=int(w.choice([1, 1, 2])),
            window_dilation=int(w.choice([1, 1, 2])),
        )
        for _ in x.shape.dims
    ]
    dtype = x.shape.dtype
    w.add("reduce-window", [x, w.constant(Shape.array(dtype))], {"window": tuple(cut)}, called=[w.reducer(name, dtype)])


def sort(w):
    """Add a sort along one dimension, in total order, sometimes with a second array."""
    x = w.pick(lambda v: v.exact and v.shape.rank > 0 and not v.shape.dtype.is_complex and v.shape.dtype is not E.PRED)
    if not x:
        return
    beside = w.pick(lambda v: v.shape.dims == x.shape.dims) if w.rng.random() < 0.5 else None
    x = drop_nan_signs(w, x)
    if not x:
        return
    operands = [x] if beside is None else [x, beside]
    body = w.module.new_computation(f"order_{len(w.module.computations)}")
    args = []
    for o in operands:
        for _ in "ab":
            attrs = {"parameter_number": len(args)}
            args.append(body.add("parameter", attrs=attrs, shape=Shape.array(o.shape.dtype)))
    attrs = {"direction": w.choice(["LT", "GT"])}
    if x.shape.dtype.is_float:
        attrs["type"] = "TOTALORDER"
    body.root = body.add("compare", args[:2], attrs, shape=Shape.array(E.PRED))
    axis = int(w.rng.integers(x.shape.rank))
    attrs = {"dimensions": (axis,), "is_stable": True}
    if beside is None:
        w.add("sort", operands, attrs, called=[body])
        return
    both = w.entry.add(
        "sort", [o.ins for o in operands], attrs, called=[body], shape=Shape.tuple([o.shape for o in operands])
    )
    for k, o in enumerate(operands):
        w.keep(w.entry.add("get-tuple-element", [both], {"index": k}, shape=o.shape), o.exact)


def gather(w):
    """Add a gather of rows with some indices out of bounds."""
    x = w.pick(lambda v: v.shape.rank > 0 and v.shape.size > 0)
    if not x:
        return
    axis, count = int(w.rng.integers(x.shape.rank)), int(w.rng.integers(1, 9))
    indices = parameter(w, w.choice([E.S32, E.S64, E.U8]), (count, 1))
    rest = [d for d in range(x.shape.rank) if d != axis]
    attrs = {
        "offset_dims": tuple(range(1, len(rest) + 1)),
        "collapsed_slice_dims": (axis,),
        "start_index_map": (axis,),
        "index_vector_dim": 1,
        "slice_sizes": tuple(1 if d == axis else n for d, n in enumerate(x.shape.dims)),
    }
    w.add("gather", [x, indices], attrs)


def counted_loop(w):
    """Add a counted loop that carries an array, some of whose iterations update one row."""
    x = w.pick(lambda v: v.exact and v.shape.dtype in (E.F32, E.S32, E.U8, E.F64))
    if not x:
        return
    dtype, turns = x.shape.dtype, int(w.rng.integers(0, 6))
    state = Shape.tuple([Shape.array(E.S32), x.shape])
    body, condition = (w.module.new_computation(f"{n}_{len(w.module.computations)}") for n in ("body", "condition"))
    parts = {}
    for c in (body, condition):
        p = c.add("parameter", attrs={"parameter_number": 0}, shape=state)
        parts[c] = [c.add("get-tuple-element", [p], {"index": k}, shape=s) for k, s in enumerate(state.elements)]
    counter, array = parts[body]
    limit = condition.add(
        "constant", attrs={"literal": Literal(np.int32(turns), Shape.array(E.S32))}, shape=Shape.array(E.S32)
    )
    condition.root = condition.add(
        "compare", [parts[condition][0], limit], {"direction": "LT"}, shape=Shape.array(E.PRED)
    )
    one = body.add("constant", attrs={"literal": Literal(np.int32(1), Shape.array(E.S32))}, shape=Shape.array(E.S32))
    count = body.add("add", [counter, one], shape=Shape.array(E.S32))
    number = body.add("convert", [counter], shape=Shape.array(dtype))
    wide = body.add("broadcast", [number], {"dimensions": ()}, shape=x.shape)
    y = body.add(w.choice(["add", "maximum", "subtract"]), [array, wide], shape=x.shape)
    if x.shape.rank and x.shape.dims[0] and w.rng.random() < 0.5:  # an iteration updates the row of its number
        row = x.shape.with_dims((1, *x.shape.dims[1:]))
        zero = body.add(
            "constant", attrs={"literal": Literal(np.int32(0), Shape.array(E.S32))}, shape=Shape.array(E.S32)
        )
        at = [counter, *[zero] * (x.shape.rank - 1)]
        part = body.add("dynamic-slice", [y, *at], {"dynamic_slice_sizes": row.dims}, shape=row)
        y = body.add("dynamic-update-slice", [array, part, *at], shape=x.shape)
    body.root = body.add("tuple", [count, y], shape=state)
    zero = literal(w, E.S32, 0)
    start = w.entry.add("tuple", [zero.ins, x.ins], shape=state)
    both = w.entry.add("while", [start], called=[body, condition], shape=state)
    for k, shape in enumerate(state.elements):
        w.keep(w.entry.add("get-tuple-element", [both], {"index": k}, shape=shape), True)


_STEPS = ("multiply", "multiply", "add", "subtract", "xor", "and", "maximum", "shift-left", "shift-right-logical",
          "shift-right-arithmetic")  # fmt: skip


def recurrence(w):
    """Add a counted loop that multiplies, adds, shifts .. carried integers, beside a loop invariant."""
    sizes = [(), (1,), (2,), (3,), (4,), (8,), (17,), (2, 3), (4, 8)]
    dtype = w.choice([E.S8, E.S16, E.S32, E.S64, E.U8, E.U16, E.U32, E.U64, E.S4, E.U2])
    shape, turns = Shape.array(dtype, w.choice(sizes)), int(w.choice([1, 2, 3, 4, 5, 10, 13, 33]))
    count = int(w.rng.integers(1, 4))  # carried arrays; one more is loop-invariant
    given = [parameter(w, dtype, shape.dims) for _ in range(count + 1)]
    state = Shape.tuple([Shape.array(E.S32), *[shape] * (count + 1)])
    body, condition = (w.module.new_computation(f"{n}_{len(w.module.computations)}") for n in ("body", "condition"))

    def number(computation, value, of):
        attrs = {"literal": Literal(np.asarray(value).astype(of.numpy_dtype), Shape.array(of))}
        return computation.add("constant", attrs=attrs, shape=Shape.array(of))

    def carried(computation):
        whole = computation.add("parameter", attrs={"parameter_number": 0}, shape=state)
        elements = enumerate(state.elements)
        return [computation.add("get-tuple-element", [whole], {"index": k}, shape=s) for k, s in elements]

    condition.root = condition.add(
        "compare",
        [carried(condition)[0], number(condition, turns, E.S32)],
        {"direction": "LT"},
        shape=Shape.array(E.PRED),
    )
    counter, *arrays = carried(body)
    following = body.add("add", [counter, number(body, 1, E.S32)], shape=Shape.array(E.S32))
    small = number(body, w.choice([1, 1, 2, 3]) if dtype is not E.U2 else 1, dtype)
    values = [*arrays, body.add("broadcast", [small], {"dimensions": ()}, shape=shape)]
    if w.rng.random() < 0.4:
        values.append(body.add("multiply", [arrays[0], arrays[0]], shape=shape))
    for _ in range(int(w.choice([0, 1, 1, 2, 2, 3, 5])) or len(values) == count + 2):
        name, x = w.choice(_STEPS), w.choice(values)
        y = values[count + 1] if "shift" in name else x if w.rng.random() < 0.4 else w.choice(values)
        values.append(body.add(name, [x, y], shape=shape))
    made = [values[-1], *(w.choice(values[count + 2 :]) for _ in range(count - 1))]
    body.root = body.add("tuple", [following, *made, arrays[count]], shape=state)
    start = w.entry.add("tuple", [literal(w, E.S32, 0).ins, *(g.ins for g in given)], shape=state)
    carried_out = w.entry.add("while", [start], called=[body, condition], shape=state)
    for k in range(count):
        w.keep(w.entry.add("get-tuple-element", [carried_out], {"index": k + 1}, shape=shape), True)


def scatter(w):
    """Add a scatter of rows with indices that may be out of bounds or equal."""
    x = w.pick(
        lambda v: v.exact and v.shape.rank > 0 and v.shape.size > 0 and v.shape.dtype in (E.S32, E.U8, E.F32, E.S64)
    )
    if not x:
        return
    dtype, count = x.shape.dtype, int(w.rng.integers(1, 9))
    indices = parameter(w, w.choice([E.S32, E.S64]), (count, 1))
    updates = parameter(w, dtype, (count, *x.shape.dims[1:]))
    attrs = {
        "update_window_dims": tuple(range(1, x.shape.rank)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
    }
    name = w.choice(["maximum", "minimum"] + ["add"] * dtype.is_integer)
    body = w.reducer(name, dtype)
    if w.rng.random() < 0.3:
        body.root = body.parameters[1]
    w.add("scatter", [x, indices, updates], attrs, called=[body])


def conditional(w):
    """Add a conditional with both branches on the same array."""
    x = w.pick(lambda v: v.exact and v.shape.dtype in (E.F32, E.S32, E.U16))
    p = w.pick(lambda v: v.exact and v.shape.dtype is E.PRED and not v.shape.rank)
    if not x:
        return
    p = p or literal(w, E.PRED, bool(w.rng.random() < 0.5))
    branches = []
    for name in ("negate", "abs"):
        c = w.module.new_computation(f"branch_{len(w.module.computations)}")
        y = c.add("parameter", attrs={"parameter_number": 0}, shape=x.shape)
        name = "not" if x.shape.dtype is E.U16 else name
        c.root = y if w.rng.random() < 0.2 else c.add(name, [y], shape=x.shape)
        branches.append(c)
    ins = w.entry.add("conditional", [p.ins, x.ins, x.ins], called=branches, shape=x.shape)
    w.keep(ins, True)


def arg_extreme(w):
    """Add an arg-reduction: the largest element and the index of its first occurrence."""
    x = w.pick(
        lambda v: v.exact and v.shape.rank > 0 and v.shape.size < 2000 and v.shape.dtype in (E.F32, E.S32, E.F64)
    )
    if not x:
        return
    axis, dtype = int(w.rng.integers(x.shape.rank)), x.shape.dtype
    places = w.add("iota", [], {"iota_dimension": axis}, declared=x.shape.with_dtype(E.S32))
    c = w.module.new_computation(f"best_{len(w.module.computations)}")
    types = (dtype, E.S32, dtype, E.S32)
    a, i, b, j = (c.add("parameter", attrs={"parameter_number": n}, shape=Shape.array(t)) for n, t in enumerate(types))
    one, truth = Shape.array(dtype), Shape.array(E.PRED)
    wins = c.add("compare", [a, b], {"direction": "GT"}, shape=truth)
    lost = c.add("compare", [a, a], {"direction": "NE"}, shape=truth)
    wins = c.add("or", [wins, lost], shape=truth)
    even = c.add("compare", [a, b], {"direction": "EQ"}, shape=truth)
    first = c.add("compare", [i, j], {"direction": "LT"}, shape=truth)
    takes = c.add("or", [wins, c.add("and", [even, first], shape=truth)], shape=truth)
    value, place = c.add("select", [wins, a, b], shape=one), c.add("select", [takes, i, j], shape=Shape.array(E.S32))
    c.root = c.add("tuple", [value, place], shape=Shape.tuple([one, place.shape]))
    low = literal(w, dtype, -np.inf if dtype.is_float else -(2**31))
    rest = [n for d, n in enumerate(x.shape.dims) if d != axis]
    shapes = [x.shape.with_dims(rest), x.shape.with_dims(rest).with_dtype(E.S32)]
    operands = [x.ins, places.ins, low.ins, literal(w, E.S32, 0).ins]
    has_nan = dtype.is_float  # which of two NaNs comes first depends on the order
    both = w.entry.add("reduce", operands, {"dimensions": (axis,)}, called=[c], shape=Shape.tuple(shapes))
    for k, shape in enumerate(shapes[: 1 if has_nan else 2]):
        w.keep(w.entry.add("get-tuple-element", [both], {"index": k}, shape=shape), True)


def select_and_scatter(w):
    """Add a select-and-scatter of integers."""
    x = w.pick(lambda v: v.exact and 0 < v.shape.rank <= 3 and v.shape.size > 0 and v.shape.dtype in (E.S32, E.S64))
    if not x:
        return
    dtype = x.shape.dtype
    cut = tuple(
        WindowDim(
            int(w.rng.integers(1, min(n, 3) + 1)),
            stride=int(w.choice([1, 2, 3])),
            padding_low=int(w.rng.integers(0, 2)),
            padding_high=int(w.rng.integers(0, 2)),
        )
        for n in x.shape.dims
    )
    sizes = [
        (n + c.padding_low + c.padding_high - c.size) // c.stride + 1 for n, c in zip(x.shape.dims, cut, strict=True)
    ]
    source = parameter(w, dtype, sizes)
    better = w.module.new_computation(f"better_{len(w.module.computations)}")
    ab = [better.add("parameter", attrs={"parameter_number": n}, shape=Shape.array(dtype)) for n in range(2)]
    better.root = better.add("compare", ab, {"direction": w.choice(["GE", "LE"])}, shape=Shape.array(E.PRED))
    init = w.constant(Shape.array(dtype))
    w.add("select-and-scatter", [x, source, init], {"window": cut}, called=[better, w.reducer("add", dtype)])


def prefix_reduction(w):
    """Add a prefix reduction along a dimension, or one of windows nearly as long."""
    x = w.pick(
        lambda v: v.exact and 0 < v.shape.rank <= 3 and v.shape.size > 0 and v.shape.dtype in (E.S32, E.S64, E.F32)
    )
    if not x:
        return
    axis, dtype = int(w.rng.integers(x.shape.rank)), x.shape.dtype
    n = x.shape.dims[axis]
    size = n if w.rng.random() < 0.5 else int(w.rng.integers(1, 41))
    low = size - 1 if w.rng.random() < 0.5 else int(w.rng.integers(0, size))
    cut = tuple(
        WindowDim(size, padding_low=low, padding_high=size - 1 - low) if d == axis else WindowDim(1)
        for d in range(x.shape.rank)
    )
    name = w.choice(["maximum", "minimum"] + ["add"] * dtype.is_integer)
    lowest = (
        {"maximum": -np.inf, "minimum": np.inf}
        if dtype.is_float
        else {"maximum": -(2 ** (dtype.bits - 1)), "minimum": 2 ** (dtype.bits - 1) - 1}
    )
    init = literal(w, dtype, lowest.get(name, 0))
    w.add("reduce-window", [x, init], {"window": cut}, called=[w.reducer(name, dtype)])


STEPS = [
    dot,
    dot,
    convolution,
    convolution,
    window,
    sort,
    gather,
    counted_loop,
    recurrence,
    recurrence,
    scatter,
    conditional,
    arg_extreme,
    select_and_scatter,
    prefix_reduction,
]
