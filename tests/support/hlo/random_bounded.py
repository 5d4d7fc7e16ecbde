"""Random programs with bounded dynamic dimensions, whose results of all sizes are fully defined: integers, and floats without sums."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np

import cyxla
from cyxla.types import ElementType as E
from cyxla.types import Literal, Shape
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, infer_shape
from cyxla.xla.hlo.attributes import ConvDims, PaddingDim, SliceDim, WindowDim
from cyxla.xla.hlo.reshape_groups import reshape_groups
from cyxla.xla.passes.dynamic import pad_dynamic
from cyxla.xla.passes.engine.clone import clone

MAX_ELEMENTS = 600
SIZE = Shape.array(E.S32)
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class Writer:
    """Appends random instructions on arrays of s32, f32 and pred to a computation."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.module = HloModule(f"bounded_{seed}")
        self.c = self.module.entry = self.module.new_computation("main")
        self.values, self.sizes = [], []
        for _ in range(int(self.rng.integers(1, 4))):
            self.parameter(self.any_shape())
        for _ in range(2):
            self.sizes.append(self.parameter(SIZE))

    def choice(self, things):
        return things[int(self.rng.integers(len(things)))]

    def chance(self, p):
        return self.rng.random() < p

    def any_shape(self, dtype=None):
        rank = int(self.choice([0, 1, 1, 2, 2, 3, 4]))
        dims = [int(d) for d in self.rng.choice([1, 2, 3, 4, 6, 8], rank)]
        dynamic = [bool(self.chance(0.6)) for _ in dims]
        shape = Shape.array(dtype or self.choice([E.S32, E.S32, E.F32]), dims, dynamic=dynamic)
        return shape if shape.size <= MAX_ELEMENTS else self.any_shape(dtype)

    def parameter(self, shape):
        number = len(self.c.parameters)
        return self.keep(self.c.add("parameter", attrs={"parameter_number": number}, shape=shape))

    def keep(self, ins):
        if ins.shape.is_array:
            self.values.append(ins)
        return ins

    def add(self, opcode, operands, attrs=None, *, declared=None, called=(), keep=True):
        shape = infer_shape(opcode, operands, attrs or {}, called, declared)
        if any(leaf.size > MAX_ELEMENTS for leaf in shape.leaves()):
            return None
        ins = self.c.add(opcode, operands, attrs, shape=shape, called=called)
        return self.keep(ins) if keep else ins

    def pick(self, accept=lambda s: True):
        found = [v for v in self.values if accept(v.shape)]
        dynamic = [v for v in found if v.shape.is_dynamic]
        return self.choice(dynamic if dynamic and self.chance(0.8) else found) if found else None

    def constant(self, value, dtype=E.S32, c=None):
        literal = Literal(np.asarray(value).astype(dtype.numpy_dtype), Shape.array(dtype))
        return (c or self.c).add("constant", attrs={"literal": literal}, shape=literal.shape)

    def partner(self, x):
        """Return a value of the same bounds, whose dimensions may be static or dynamic."""
        same = [v for v in self.values if v.shape.static is x.shape.static]
        return self.choice(same)

    def function(self, name, types, body):
        c = self.module.new_computation(f"{name}_{len(self.module.computations)}")
        c.root = body(c, *[c.add("parameter", attrs={"parameter_number": k}, shape=s) for k, s in enumerate(types)])
        return c

    def combiner(self, opcode, dtype):
        one = Shape.array(dtype)
        return self.function(opcode, [one, one], lambda c, a, b: c.add(opcode, [a, b], shape=one))

    def elements(self, packed):
        for k, shape in enumerate(packed.shape.elements if packed is not None else ()):
            self.keep(self.c.add("get-tuple-element", [packed], {"index": k}, shape=shape))


def number(s):
    return s.dtype in (E.S32, E.F32)


def integers(s):
    return s.dtype is E.S32


def ranked(s):
    return s.rank > 0


def unary(w):
    x = w.pick(number)
    w.add(w.choice(["negate", "abs", "sign", "copy"]), [x])


def binary(w):
    x = w.pick(number)
    w.add(w.choice(BINARY), [x, w.partner(x)])


def select(w):
    x = w.pick(number)
    y = w.partner(x)
    mask = w.add("compare", [x, w.partner(x)], {"direction": w.choice(["LT", "GE", "NE"])})
    w.add("select", [mask, x, y])


def divide(w):
    x = w.pick(integers)
    w.add(w.choice(["divide", "remainder", "and", "xor"]), [x, w.partner(x)])


def convert(w):
    x = w.pick(lambda s: s.dtype in (E.S32, E.PRED))
    if x is not None:
        w.add("convert", [x], declared=x.shape.with_dtype(w.choice([E.S32, E.F32])))


def broadcast(w):
    x = w.pick()
    rank = x.shape.rank + int(w.rng.integers(0, 3))
    if rank > 4:
        return
    at = tuple(sorted(int(d) for d in w.rng.permutation(rank)[: x.shape.rank]))
    dims = [int(d) for d in w.rng.integers(1, 4, rank)]
    flags = [False] * rank
    for k, d in enumerate(at):
        dims[d], flags[d] = x.shape.dims[k], x.shape.dynamic[k]
    w.add("broadcast", [x], {"dimensions": at}, declared=x.shape.with_dims(dims, flags))


def transpose(w):
    x = w.pick()
    w.add("transpose", [x], {"dimensions": tuple(int(d) for d in w.rng.permutation(x.shape.rank))})


def reverse(w):
    x = w.pick(ranked)
    if x is not None:
        w.add("reverse", [x], {"dimensions": tuple(d for d in range(x.shape.rank) if w.chance(0.6))})


def slice_(w):
    x = w.pick(ranked)
    if x is None:
        return
    ranges = []
    for n in x.shape.dims:
        start = int(w.rng.integers(0, max(n, 1)))
        part = SliceDim(min(start, n), min(int(w.rng.integers(start, max(n, 1))) + 1, n), int(w.rng.integers(1, 3)))
        ranges.append(SliceDim(0, n, 1) if w.chance(0.6) else part)
    w.add("slice", [x], {"slice": tuple(ranges)})


def pad(w):
    x = w.pick(lambda s: s.rank > 0 and number(s))
    if x is None:
        return
    padding = [
        PaddingDim(int(w.choice([0, 0, 1, 2, -1])), int(w.choice([0, 0, 1, -1])), int(w.choice([0, 0, 1, 2])))
        for _ in x.shape.dims
    ]
    if all((n - 1) * (p.interior + 1) + 1 + p.low + p.high >= 1 for n, p in zip(x.shape.dims, padding, strict=True)):
        w.add("pad", [x, w.constant(w.choice([0, 7]), x.shape.dtype)], {"padding": tuple(padding)})


def concatenate(w):
    x = w.pick(ranked)
    if x is None:
        return
    along = int(w.rng.integers(x.shape.rank))

    def fits(v):
        s = v.shape
        return (
            s.dtype is x.shape.dtype
            and s.rank == x.shape.rank
            and all(n == m for d, (n, m) in enumerate(zip(s.dims, x.shape.dims, strict=True)) if d != along)
        )

    others = [v for v in w.values if fits(v)]
    parts = [x, *[w.choice(others) for _ in range(int(w.rng.integers(1, 3)))]]
    w.add("concatenate", [parts[int(k)] for k in w.rng.permutation(len(parts))], {"dimensions": (along,)})


def factors(w, n):
    """Split a number into a few factors."""
    parts = []
    while n > 1:
        f = w.choice([f for f in range(2, n + 1) if n % f == 0])
        parts.append(f)
        n //= f
        if w.chance(0.1):
            parts.append(1)
    return parts


def reshape(w):
    x = w.pick(lambda s: s.size > 0)
    if x is None:
        return
    dims = []
    for n in [x.shape.size] if w.chance(0.5) else x.shape.dims:
        dims += [n] if w.chance(0.4) and n != 1 else factors(w, n)
    if len(dims) > 5:
        return
    flags = [False] * len(dims)
    for group in reshape_groups(x.shape.dims, dims):
        if any(x.shape.dynamic[d] for d in group.operand):
            if not group.result:
                return
            for _ in range(int(w.choice([1, 1, 2, 3]))):
                flags[w.choice(group.result)] = True
    stated = [d for d, flag in enumerate(flags) if flag]
    inferred = {"inferred_dimension": w.choice(stated)} if stated and w.chance(0.2) else {}
    w.add("reshape", [x], inferred, declared=x.shape.with_dims(dims, flags))


def bitcast(w):
    x = w.pick(lambda s: s.rank > 0 and s.dtype is E.S32)
    if x is not None:
        w.add("bitcast", [x], declared=x.shape.with_dims([*x.shape.dims, 1], [*x.shape.dynamic, False]))


def set_size(w):
    x = w.pick(ranked)
    if x is not None:
        d = int(w.rng.integers(x.shape.rank))
        flags = [f or k == d for k, f in enumerate(x.shape.dynamic)]
        w.add(
            "set-dimension-size",
            [x, w.choice(w.sizes)],
            {"dimensions": (d,)},
            declared=x.shape.with_dims(x.shape.dims, flags),
        )


def get_size(w):
    x = w.pick(ranked)
    if x is not None:
        w.sizes.append(w.add("get-dimension-size", [x], {"dimensions": (int(w.rng.integers(x.shape.rank)),)}))


def starts(w, rank):
    return [w.choice(w.sizes) if w.chance(0.7) else w.constant(int(w.rng.integers(-1, 4))) for _ in range(rank)]


def dynamic_slice(w):
    x = w.pick(ranked)
    if x is not None:
        sizes = tuple(n if w.chance(0.5) else int(w.rng.integers(min(1, n), n + 1)) for n in x.shape.dims)
        w.add("dynamic-slice", [x, *starts(w, len(sizes))], {"dynamic_slice_sizes": sizes})


def dynamic_update_slice(w):
    x = w.pick(ranked)
    if x is None:
        return
    fitting = [
        v
        for v in w.values
        if v.shape.rank == x.shape.rank
        and v.shape.dtype is x.shape.dtype
        and all(n <= m for n, m in zip(v.shape.dims, x.shape.dims, strict=True))
    ]
    w.add("dynamic-update-slice", [x, w.choice(fitting), *starts(w, x.shape.rank)])


def push(w):
    """Write an update at a run-time index, perhaps two, and set sizes, perhaps larger ones."""
    x = w.pick(ranked)
    if x is None:
        return
    for _ in range(int(w.choice([1, 1, 2]))):
        dims = [int(w.rng.integers(1, n + 1)) if n else 0 for n in x.shape.dims]
        flags = [bool(w.chance(0.3)) for _ in dims]
        update = w.parameter(x.shape.with_dims(dims, flags))
        x = w.add("dynamic-update-slice", [x, update, *starts(w, x.shape.rank)], keep=w.chance(0.5))
    for _ in range(int(w.choice([1, 1, 2, 3]))):
        d = int(w.rng.integers(x.shape.rank))
        flags = [f or k == d for k, f in enumerate(x.shape.dynamic)]
        declared = x.shape.with_dims(x.shape.dims, flags)
        x = w.add("set-dimension-size", [x, w.choice(w.sizes)], {"dimensions": (d,)}, declared=declared)


def unstated(w):
    """State fewer or more dimensions as dynamic than have a size of their own, and use the array."""
    x = w.pick(lambda s: number(s) and s.is_dynamic)
    if x is None:
        return
    y = w.c.add("negate", [x], shape=x.shape.static)
    z = w.constant(3, x.shape.dtype)
    full = w.c.add("broadcast", [z], {"dimensions": ()}, shape=x.shape)
    w.keep(w.c.add(w.choice(["add", "maximum"]), [w.choice([x, y]), w.choice([y, full])], shape=x.shape))


def topk(w):
    x = w.pick(lambda s: number(s) and s.rank > 0)
    if x is not None:
        k = int(w.rng.integers(1, max(x.shape.dims[-1], 1) + 1))
        if x.shape.dtype is E.F32:  # NaNs are ordered by their signs, which no operation before this one defines
            x = w.add("abs", [x], keep=False)
        w.elements(w.add("topk", [x], {"k": k, "largest": bool(w.chance(0.5))}, keep=False))


def reduction(w, x):
    """Return a combiner, and an initial value that may be any number."""
    dtype = x.shape.dtype
    opcode = w.choice(["maximum", "minimum"] + ["add", "add", "xor"] * (dtype is E.S32))
    combiner = w.combiner(opcode, dtype)
    if w.chance(0.1):
        combiner.root = combiner.parameters[1]
    lowest = (
        {"add": 0, "xor": 0, "maximum": -(2**31), "minimum": 2**31 - 1}
        if dtype is E.S32
        else {"maximum": -np.inf, "minimum": np.inf}
    )
    return combiner, w.constant(lowest[opcode] if w.chance(0.6) else w.choice([0, 1, 5]), dtype)


def reduce(w):
    x = w.pick(number)
    combiner, init = reduction(w, x)
    w.add(
        "reduce", [x, init], {"dimensions": tuple(d for d in range(x.shape.rank) if w.chance(0.6))}, called=[combiner]
    )


def arg_extreme(w):
    """Add a reduction of two arrays by a computation without identity."""
    x = w.pick(lambda s: integers(s) and s.rank > 0)
    if x is None:
        return
    y, one = w.partner(x), Shape.array(E.S32)

    def body(c, a, i, b, j):
        wins = c.add("compare", [a, b], {"direction": "GE"}, shape=Shape.array(E.PRED))
        parts = [c.add("select", [wins, p, q], shape=one) for p, q in ((a, b), (i, j))]
        return c.add("tuple", parts, shape=Shape.tuple([one, one]))

    combiner = w.function("best", [one] * 4, body)
    dims = tuple(d for d in range(x.shape.rank) if w.chance(0.7))
    both = w.add(
        "reduce", [x, y, w.constant(-(2**31)), w.constant(-1)], {"dimensions": dims}, called=[combiner], keep=False
    )
    w.elements(both)


def window(w, x, most=3):
    return tuple(
        WindowDim(int(w.rng.integers(1, max(min(n, most), 1) + 1)), stride=int(w.choice([1, 1, 2])), padding_low=int(w.choice([0, 0, 1])),
                  padding_high=int(w.choice([0, 0, 1])), base_dilation=int(w.choice([1, 1, 1, 2])), window_dilation=int(w.choice([1, 1, 1, 2])))
        for n in x.shape.dims
    )  # fmt: skip


def reduce_window(w):
    x = w.pick(lambda s: number(s) and s.rank > 0)
    if x is not None:
        combiner, init = reduction(w, x)
        w.add("reduce-window", [x, init], {"window": window(w, x)}, called=[combiner])


def select_and_scatter(w):
    x = w.pick(lambda s: integers(s) and 0 < s.rank < 4)
    if x is None:
        return
    cut = tuple(d._replace(base_dilation=1, window_dilation=1) for d in window(w, x))
    one = Shape.array(E.S32)
    better = w.function(
        "better",
        [one, one],
        lambda c, a, b: c.add("compare", [a, b], {"direction": w.choice(["GE", "LT"])}, shape=Shape.array(E.PRED)),
    )
    counts = w.add("reduce-window", [x, w.constant(0)], {"window": cut}, called=[w.combiner("add", E.S32)])
    if counts is not None:
        w.add(
            "select-and-scatter", [x, counts, w.constant(1)], {"window": cut}, called=[better, w.combiner("add", E.S32)]
        )


def sort(w):
    x = w.pick(lambda s: integers(s) and s.rank > 0)
    if x is None:
        return
    y, along, one = w.partner(x), int(w.rng.integers(x.shape.rank)), Shape.array(E.S32)
    direction = w.choice(["LT", "GT", "LE"])
    compare = w.function(
        "before",
        [one] * 4,
        lambda c, a, b, i, j: c.add(
            "compare", [a, b], {"direction": direction.replace("E", "T")}, shape=Shape.array(E.PRED)
        ),
    )
    if y.shape is x.shape:
        w.elements(w.add("sort", [x, y], {"dimensions": (along,), "is_stable": True}, called=[compare], keep=False))


def gather(w):
    x, i = w.pick(ranked), w.pick(integers)
    if x is None or i.shape.rank > 2 or i.shape.rank + x.shape.rank > 5:
        return
    along = int(w.rng.integers(x.shape.rank))
    sizes = tuple(1 if d == along else n for d, n in enumerate(x.shape.dims))
    attrs = {"offset_dims": tuple(range(i.shape.rank, i.shape.rank + x.shape.rank - 1)), "collapsed_slice_dims": (along,),
             "start_index_map": (along,), "index_vector_dim": i.shape.rank, "slice_sizes": sizes}  # fmt: skip
    w.add("gather", [x, i], attrs)


def scatter(w):
    x = w.pick(lambda s: integers(s) and s.rank > 0)
    i = w.pick(lambda s: integers(s) and s.rank == 1)
    if x is None or i is None:
        return
    rows = x.shape.with_dims((i.shape.dims[0], *x.shape.dims[1:]), (i.shape.dynamic[0], *x.shape.dynamic[1:]))
    fitting = [v for v in w.values if v.shape.static is rows.static and (v.shape.dynamic[1:] == rows.dynamic[1:])]
    if not fitting:
        return
    attrs = {
        "update_window_dims": tuple(range(1, x.shape.rank)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
    }
    combiner = w.combiner(w.choice(["add", "maximum", "subtract"]), E.S32)
    if w.chance(0.3):
        combiner.root = combiner.parameters[1]
    w.add("scatter", [x, i, w.choice(fitting)], attrs, called=[combiner])


def dot(w):
    x = w.pick(lambda s: integers(s) and s.rank > 0)
    if x is None:
        return
    k = int(w.rng.integers(x.shape.rank))
    pairs = [(v, d) for v in w.values if integers(v.shape) for d, n in enumerate(v.shape.dims) if n == x.shape.dims[k]]
    y, j = w.choice(pairs)
    batch = [
        (d, e) for d, n in enumerate(x.shape.dims) for e, m in enumerate(y.shape.dims) if n == m and d != k and e != j
    ]
    chosen = [w.choice(batch)] if batch and w.chance(0.4) else []
    if x.shape.rank + y.shape.rank > 6:
        return
    attrs = {
        "lhs_contracting_dims": (k,),
        "rhs_contracting_dims": (j,),
        "lhs_batch_dims": tuple(d for d, _ in chosen),
        "rhs_batch_dims": tuple(e for _, e in chosen),
    }
    w.add("dot", [x, y], attrs)


def convolution(w):
    x = w.pick(lambda s: integers(s) and s.rank == 3 and s.dims[2])
    if x is None:
        return
    features, size = x.shape.dims[1], int(w.rng.integers(1, min(3, x.shape.dims[2]) + 1))
    shape = Shape.array(E.S32, (features, 2, size), dynamic=[x.shape.dynamic[1], bool(w.chance(0.3)), False])
    labels = ConvDims(0, 1, (2,), 0, 1, (2,), 0, 1, (2,))
    cut = (window(w, x)[2]._replace(size=size, window_dilation=1),)
    w.add("convolution", [x, w.parameter(shape)], {"window": cut, "dim_labels": labels})


def grouped_convolution(w):
    x = w.pick(lambda s: integers(s) and s.rank == 3 and s.dims[1] > 1 and s.dims[2] and not s.dynamic[1])
    if x is None:
        return
    features, size = x.shape.dims[1], int(w.rng.integers(1, min(3, x.shape.dims[2]) + 1))
    labels = ConvDims(0, 1, (2,), 0, 1, (2,), 0, 1, (2,))
    cut = (window(w, x)[2]._replace(size=size, window_dilation=1),)
    attrs = {"window": cut, "dim_labels": labels, "feature_group_count": features}
    w.add("convolution", [x, w.parameter(Shape.array(E.S32, (1, features, size)))], attrs)


def dynamic_convolution(w):
    x = w.pick(lambda s: integers(s) and s.rank == 3 and s.dynamic[2])
    if x is None:
        return
    size, stride, dilation = (int(w.rng.integers(1, 4)) for _ in range(3))
    count = -(-x.shape.dims[2] // stride)
    kernel = w.parameter(Shape.array(E.S32, (x.shape.dims[1], 2, size), dynamic=[bool(w.chance(0.3)), False, False]))
    shape = x.shape.with_dims((x.shape.dims[0], 2, count), (x.shape.dynamic[0], False, True))
    attrs = {"window": (WindowDim(size, stride=stride, window_dilation=dilation),), "padding_type": "PADDING_SAME",
             "dim_labels": ConvDims(0, 1, (2,), 0, 1, (2,), 0, 1, (2,)), "custom_call_target": "DynamicConvolutionForward"}  # fmt: skip
    w.keep(w.c.add("custom-call", [x, kernel], attrs, shape=shape))


def custom_calls(w):
    x = w.pick(ranked)
    if x is None:
        return
    if w.chance(0.5):
        shape = Shape.tuple([x.shape.static, *[SIZE] * x.shape.rank])
        packed = w.c.add("custom-call", [x], {"custom_call_target": "PadToStatic"}, shape=shape)
        w.elements(packed)
        w.sizes += w.values[-x.shape.rank :]
    elif not x.shape.is_dynamic:
        shape = x.shape.with_dims(x.shape.dims, [bool(w.chance(0.5)) for _ in x.shape.dims])
        sizes = [w.choice(w.sizes) for _ in x.shape.dims]
        w.keep(w.c.add("custom-call", [x, *sizes], {"custom_call_target": "SliceToDynamic"}, shape=shape))


def iota(w):
    x = w.pick(ranked)
    if x is not None:
        w.add("iota", [], {"iota_dimension": int(w.rng.integers(x.shape.rank))}, declared=x.shape.with_dtype(E.S32))


def body_of(w, shape):
    """Return a computation that changes an array and perhaps its sizes."""

    def body(c, x):
        y = c.add("add", [x, x], shape=shape) if shape.dtype is not E.PRED else c.add("not", [x], shape=shape)
        for d in (d for d, is_dynamic in enumerate(shape.dynamic) if is_dynamic):
            if w.chance(0.5):
                size = c.add("get-dimension-size", [y], {"dimensions": (d,)}, shape=SIZE)
                less = c.add("subtract", [size, w.constant(1, c=c)], shape=SIZE)
                y = c.add("set-dimension-size", [y, less], {"dimensions": (d,)}, shape=shape)
        return y

    return w.function("change", [shape], body)


def call(w):
    x = w.pick()
    w.add("call", [x], called=[body_of(w, x.shape)])


def conditional(w):
    x = w.pick()
    others = [v for v in w.values if v.shape is x.shape]
    branches = [body_of(w, x.shape) for _ in range(2)]
    w.add("conditional", [w.choice(w.sizes), x, w.choice(others)], called=branches)


def loop(w):
    x = w.pick(number)
    state, change, trips = Shape.tuple([SIZE, x.shape]), body_of(w, x.shape), int(w.rng.integers(0, 4))

    def condition(c, t):
        i = c.add("get-tuple-element", [t], {"index": 0}, shape=SIZE)
        return c.add("compare", [i, w.constant(trips, c=c)], {"direction": "LT"}, shape=Shape.array(E.PRED))

    def body(c, t):
        i, y = (c.add("get-tuple-element", [t], {"index": k}, shape=s) for k, s in enumerate(state.elements))
        j = c.add("add", [i, w.constant(1, c=c)], shape=SIZE)
        return c.add("tuple", [j, c.add("call", [y], shape=x.shape, called=[change])], shape=state)

    start = w.c.add("tuple", [w.constant(0), x], shape=state)
    done = w.c.add(
        "while",
        [start],
        shape=state,
        called=[w.function("body", [state], body), w.function("condition", [state], condition)],
    )
    w.elements(done)


def scan(w):
    x = w.pick(lambda s: integers(s) and s.rank == 1)
    if x is None:
        return
    one = Shape.array(E.S32)

    def step(c, a, b):
        s = c.add("add", [c.add("multiply", [b, w.constant(3, c=c)], shape=one), a], shape=one)
        return c.add("tuple", [s, s], shape=Shape.tuple([one, one]))

    attrs = {"dimensions": (0,), "num_carries": 1, "is_reverse": bool(w.chance(0.5))}
    w.elements(w.add("scan", [x, w.constant(2)], attrs, called=[w.function("step", [one, one], step)], keep=False))


def scan_of_rows(w):
    """Scan slices of dynamic sizes with a carry whose sizes may change."""
    x = w.pick(lambda s: integers(s) and s.rank > 1)
    if x is None:
        return
    along = int(w.rng.integers(x.shape.rank))
    kept = [d for d in range(x.shape.rank) if d != along]
    row = x.shape.with_dims([x.shape.dims[d] for d in kept], [x.shape.dynamic[d] for d in kept])
    flags = [f or bool(w.chance(0.3)) for f in row.dynamic]
    carry = row.with_dims(row.dims, flags)

    def step(c, a, b):
        s = c.add("add", [c.add("add", [b, b], shape=carry), a], shape=carry)
        after = s
        for d in (d for d, is_dynamic in enumerate(flags) if is_dynamic):
            if w.chance(0.3):
                size = c.add("get-dimension-size", [s], {"dimensions": (d,)}, shape=SIZE)
                less = c.add("subtract", [size, w.constant(1, c=c)], shape=SIZE)
                after = c.add("set-dimension-size", [after, less], {"dimensions": (d,)}, shape=carry)
        return c.add("tuple", [s, after], shape=Shape.tuple([carry, carry]))

    attrs = {"dimensions": (along,), "num_carries": 1, "is_reverse": bool(w.chance(0.5))}
    operands = [x, w.parameter(carry)]
    w.elements(w.add("scan", operands, attrs, called=[w.function("rows", [row, carry], step)], keep=False))


STEPS = [
    unary, binary, binary, select, divide, convert, broadcast, transpose, reverse, slice_, pad, concatenate, reshape, reshape,
    set_size, set_size, get_size, dynamic_slice, dynamic_update_slice, reduce, reduce, arg_extreme, reduce_window,
    select_and_scatter, sort, gather, scatter, dot, convolution, custom_calls, iota, call, conditional, loop, scan,
    bitcast, push, push, unstated, topk, grouped_convolution, dynamic_convolution, scan_of_rows,
]  # fmt: skip


def random_bounded(seed, length):
    """Return a random module with at most `length` steps."""
    w = Writer(seed)
    while len(w.c.instructions) < 60 and length:
        w.choice(STEPS)(w)
        length -= 1
    unused = [v for v in w.values if not v.users]
    w.c.root = w.c.add("tuple", unused, shape=Shape.tuple([v.shape for v in unused]))
    return w.module


def random_arguments(module, rng, kind):
    """Return arguments whose dynamic dimensions are all empty, all full, or of any size."""
    args = []
    for p in module.parameters:
        sizes = {
            "empty": lambda n: 0,
            "one": lambda n: min(n, 1),
            "full": lambda n: n,
            "any": lambda n: int(rng.integers(0, n + 1)),
        }
        dims = [sizes[kind](n) if m else n for n, m in zip(p.shape.dims, p.shape.dynamic, strict=True)]
        if p.shape.dtype is E.F32:
            args.append(rng.choice(np.float32([0, -0.0, 1.5, -2, 3, 100, np.nan, np.inf, -np.inf]), dims))
        else:
            args.append(rng.integers(-2, 9, dims).astype(p.shape.dtype.numpy_dtype))
    return args


def compare(got, want):
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_array_equal(g, w)


def check(seed, length):
    """Compare both platforms on arguments of several sizes."""
    module = random_bounded(seed, length)
    module.verify()
    compiled, oracle = cyxla.compile(module, cache=False), cyxla.compile(module, platform="interpreter")
    rng = np.random.default_rng(seed)
    for kind in ("empty", "one", "full", "any", "any", "any"):
        args = random_arguments(module, rng, kind)
        compare(compiled(*args), oracle(*args))


def check_padded(seed, length):
    """Compare a program of padded arrays, evaluated with arbitrary padding, with the program itself."""
    module = random_bounded(seed, length)
    module.verify()
    padded, oracle = clone(module), cyxla.compile(module, platform="interpreter")
    pad_dynamic.run(padded)
    padded.verify()
    rng = np.random.default_rng(seed)
    for kind in ("empty", "one", "full", "any", "any", "any"):
        args = random_arguments(module, rng, kind)
        packed = [packed_argument(a, p.shape, rng) for a, p in zip(args, module.parameters, strict=True)]
        got = evaluate(padded, packed)
        shapes = module.entry.root.shape.elements
        compare([present(g, s) for g, s in zip(got, shapes, strict=True)], oracle(*args))


def packed_argument(array, shape, rng):
    """Return an array in arbitrary padding, and its sizes."""
    if not shape.is_dynamic:
        return array
    whole = rng.integers(-9, 99, shape.dims).astype(array.dtype)
    if array.dtype.kind == "f":
        whole[rng.random(shape.dims) < 0.3] = np.nan
    whole[tuple(map(slice, array.shape))] = array
    return (whole, *(np.int32(n) for n, m in zip(array.shape, shape.dynamic, strict=True) if m))


def present(packed, shape):
    """Return the present elements of a padded result."""
    if not shape.is_dynamic:
        return packed
    whole, *sizes = packed
    rest = iter(sizes)
    return whole[tuple(slice(int(next(rest)) if m else None) for m in shape.dynamic)]
