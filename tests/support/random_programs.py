"""Random HLO modules on whose results both platforms must agree.

A value is *exact* if the rounding of every operation that it depends on is fully defined; then the platforms must agree on its bits. Results
of transcendental functions, sums and matrix products are *inexact*: they may differ by a few units in the last place. Inexact values are
only operands of instructions that do not amplify the difference, never of a comparison, a rounding or a subtraction.
"""

# ruff: noqa: E501  programs read best a line at a time

from dataclasses import dataclass

import numpy as np

from cyxla.types import ElementType as E
from cyxla.types import Literal, Shape
from cyxla.xla.cpu.c import scalar
from cyxla.xla.hlo import OPCODES, HloModule, Instruction, infer_shape

DTYPES = [e for e in E if e.is_array and e not in (E.S1, E.U1, E.F8E8M0FNU)]
EXACT_UNARY = [
    "abs",
    "negate",
    "sign",
    "not",
    "popcnt",
    "count-leading-zeros",
    "ceil",
    "floor",
    "round-nearest-even",
    "real",
    "imag",
]
INEXACT_UNARY = ["exponential", "tanh", "logistic", "sine", "cosine", "erf"]
EXACT_BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "shift-left", "shift-right-logical",
                "shift-right-arithmetic", "remainder", "divide"]  # fmt: skip
DIRECTIONS = ["EQ", "NE", "GE", "GT", "LE", "LT"]
MAX_ELEMENTS = 3000


@dataclass
class Value:
    """An instruction, and whether its bits are fully defined."""

    ins: Instruction
    exact: bool

    @property
    def shape(self) -> Shape:
        return self.ins.shape


class Writer:
    """Appends random instructions to a computation."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.module = HloModule(f"random_{seed}")
        self.entry = self.module.entry = self.module.new_computation("main")
        self.values: list[Value] = []

    def choice(self, things):
        return things[int(self.rng.integers(len(things)))]

    def dims(self) -> tuple[int, ...]:
        rank = int(self.rng.integers(0, 5))
        return tuple(int(d) for d in self.rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 17], rank, p=[0.02, *[0.1225] * 8]))

    def parameter(self, dtype: E) -> Value:
        dims = self.dims()
        while np.prod(dims) > MAX_ELEMENTS:
            dims = self.dims()
        number = sum(v.ins.opcode == "parameter" for v in self.values)
        ins = self.entry.add("parameter", attrs={"parameter_number": number}, shape=Shape.array(dtype, dims))
        return self.keep(ins, True)

    def add(
        self, opcode: str, operands: list[Value], attrs=None, *, exact=None, declared=None, called=()
    ) -> Value | None:
        instructions = [o.ins for o in operands]
        shape = infer_shape(opcode, instructions, attrs or {}, called, declared)
        if shape.size > MAX_ELEMENTS:
            return None
        ins = self.entry.add(opcode, instructions, attrs, shape=shape, called=called)
        return self.keep(ins, all(o.exact for o in operands) if exact is None else exact)

    def keep(self, ins: Instruction, exact: bool) -> Value:
        value = Value(ins, exact)
        self.values.append(value)
        return value

    def pick(self, accept=lambda v: True) -> Value | None:
        found = [v for v in self.values if v.shape.is_array and accept(v)]
        return self.choice(found) if found else None

    def partner(self, value: Value, exact=True) -> Value:
        """Return another value of the same shape: an existing one, or a constant."""
        same = [v for v in self.values if v.shape is value.shape and (v.exact or not exact)]
        return self.choice(same) if same and self.rng.random() < 0.8 else self.constant(value.shape)

    def constant(self, shape: Shape, *, signed=True) -> Value:
        from support.strategies import ordinary

        scalar_value = np.asarray(ordinary(shape.dtype, (), self.rng)).astype(shape.dtype.numpy_dtype)
        scalar_value = scalar_value if signed else np.abs(scalar_value)
        one = self.entry.add(
            "constant",
            attrs={"literal": Literal(scalar_value, Shape.array(shape.dtype))},
            shape=Shape.array(shape.dtype),
        )
        if not shape.rank:
            return self.keep(one, True)
        return self.keep(self.entry.add("broadcast", [one], {"dimensions": ()}, shape=shape), True)

    def reducer(self, opcode: str, dtype: E):
        body = self.module.new_computation(f"{opcode}_{dtype}")
        args = [body.add("parameter", attrs={"parameter_number": k}, shape=Shape.array(dtype)) for k in (0, 1)]
        body.root = body.add(opcode, args, shape=Shape.array(dtype))
        return body


def unary(w: Writer) -> None:
    x = w.pick(lambda v: v.exact)  # parameters are exact, so there is one
    names = [n for n in EXACT_UNARY if x.shape.dtype in OPCODES[n].accepts]
    if x.shape.dtype.is_complex:  # absolute values are rounded
        names = [n for n in names if n not in ("abs", "sign")]
    if names:
        _elementwise(w, w.choice(names), [x], {})


def transcendental(w: Writer) -> None:
    x = w.pick(lambda v: v.exact and v.shape.dtype in (E.F32, E.F64))
    if x:
        w.add(w.choice(INEXACT_UNARY), [x], exact=False)


def binary(w: Writer) -> None:
    x = w.pick(lambda v: v.exact)
    dtype = x.shape.dtype
    names = [
        n
        for n in EXACT_BINARY
        if dtype in OPCODES[n].accepts and not (dtype.is_complex and n in ("divide", "multiply", "maximum", "minimum"))
    ]
    if names:
        _elementwise(w, w.choice(names), [x, w.partner(x)], {})


def _elementwise(w: Writer, name: str, operands: list[Value], attrs: dict) -> None:
    dtypes = [o.shape.dtype for o in operands]
    result = infer_shape(name, [o.ins for o in operands], attrs).dtype
    if scalar.is_supported(name, result, dtypes, attrs):
        w.add(name, operands, attrs)


def compare(w: Writer) -> None:
    x = w.pick(lambda v: v.exact and not v.shape.dtype.is_complex)
    if x:
        w.add("compare", [x, w.partner(x)], {"direction": w.choice(DIRECTIONS)})


def select(w: Writer) -> None:
    p = w.pick(lambda v: v.shape.dtype is E.PRED)
    if p:
        x = w.pick(lambda v: v.shape.dims == p.shape.dims) or p
        w.add("select", [p, x, w.partner(x, exact=False)])


def convert(w: Writer) -> None:
    x = w.pick(lambda v: v.exact)
    w.add("convert", [x], declared=x.shape.with_dtype(w.choice(DTYPES)))


def clamp(w: Writer) -> None:
    x = w.pick(lambda v: not v.shape.dtype.is_complex)
    if x:
        w.add("clamp", [w.constant(x.shape), x, w.constant(x.shape)])


def transpose(w: Writer) -> None:
    x = w.pick()
    w.add("transpose", [x], {"dimensions": tuple(int(d) for d in w.rng.permutation(x.shape.rank))})


def reverse(w: Writer) -> None:
    x = w.pick()
    w.add("reverse", [x], {"dimensions": tuple(d for d in range(x.shape.rank) if w.rng.random() < 0.5)})


def broadcast(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.size < 200)
    if not x:
        return
    rank = x.shape.rank + int(w.rng.integers(0, 3))
    places = tuple(int(d) for d in w.rng.permutation(rank)[: x.shape.rank])
    dims = [int(w.choice([1, 2, 3])) for _ in range(rank)]
    for k, d in enumerate(places):
        dims[d] = x.shape.dims[k]
    w.add("broadcast", [x], {"dimensions": places}, declared=Shape.array(x.shape.dtype, dims))


def reshape(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.size > 0)
    if not x:
        return
    left, dims = x.shape.size, []
    for p in (2, 3, 5, 17):
        while left % p == 0 and w.rng.random() < 0.8:
            left //= p
            dims.append(p)
    dims.append(left)
    order = [dims[k] for k in w.rng.permutation(len(dims))]
    w.add("reshape", [x], declared=x.shape.with_dims(order))


def slice_(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.rank > 0)
    if not x:
        return
    from cyxla.xla.hlo.attributes import SliceDim

    cuts = []
    for d in x.shape.dims:
        start = int(w.rng.integers(0, d + 1))
        cuts.append(SliceDim(start, int(w.rng.integers(start, d + 1)), int(w.choice([1, 1, 2, 3]))))
    w.add("slice", [x], {"slice": tuple(cuts)})


def pad(w: Writer) -> None:
    from cyxla.xla.hlo.attributes import PaddingDim

    x = w.pick(lambda v: v.shape.size < 500)
    if not x:
        return
    edges = []
    for d in x.shape.dims:
        low, inner = int(w.rng.integers(-1, 3)) if d else 1, int(w.choice([0, 0, 1, 2]))
        edges.append(PaddingDim(low, int(w.rng.integers(0, 3)) + (1 if low < 0 else 0), inner))
    w.add("pad", [x, w.constant(Shape.array(x.shape.dtype))], {"padding": tuple(edges)})


def concatenate(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.rank > 0)
    if x:
        w.add(
            "concatenate",
            [x, w.partner(x, exact=False), x][: int(w.rng.integers(1, 4))],
            {"dimensions": (int(w.rng.integers(x.shape.rank)),)},
        )


def iota(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.rank > 0 and v.shape.dtype is not E.PRED)
    if x:
        w.add("iota", [], {"iota_dimension": int(w.rng.integers(x.shape.rank))}, declared=x.shape)


def reduce(w: Writer) -> None:
    x = w.pick(lambda v: v.exact and v.shape.rank > 0)
    if not x:
        return
    dtype = x.shape.dtype
    names = [
        n
        for n in ("add", "maximum", "minimum", "and", "or", "xor")
        if dtype in OPCODES[n].accepts and not dtype.is_complex
    ]
    if scalar.is_narrow(dtype):
        names = [n for n in names if n != "add"]
    if not names:
        return
    name = w.choice(names)
    dims = tuple(d for d in range(x.shape.rank) if w.rng.random() < 0.5)
    exact = name != "add" or not dtype.is_float
    if not exact and dtype in (E.F32, E.F64):
        from support.hlo.random_irregular import drop_signs, replace_huge

        kept = [size for d, size in enumerate(x.shape.dims) if d not in dims]
        (x,) = drop_signs(w, [replace_huge(w, x)], np.prod(kept))
    w.add(
        "reduce",
        [x, w.constant(Shape.array(dtype), signed=exact)],
        {"dimensions": dims},
        called=[w.reducer(name, dtype)],
        exact=exact,
    )


def rows(w: Writer) -> None:
    """Add a row group: reductions along rows, each broadcast back to the elements of its row."""
    x = w.pick(lambda v: v.exact and v.shape.rank > 0 and v.shape.dtype in (E.F32, E.F64, E.S32, E.BF16, E.F16))
    if not x:
        return
    dtype, length = x.shape.dtype, int(w.rng.integers(14, 40))
    if x.shape.size * length > MAX_ELEMENTS:
        return
    wide = Shape.array(dtype, (*x.shape.dims, length))
    lead = {"dimensions": tuple(range(x.shape.rank))}
    y = w.add("broadcast", [x], lead, declared=wide)
    columns = w.add("iota", [], {"iota_dimension": x.shape.rank}, declared=wide)
    kept = x.shape.rank if w.rng.random() < 0.8 else int(w.rng.integers(0, x.shape.rank + 1))
    gone = {"dimensions": tuple(range(kept, x.shape.rank + 1))}
    totals = []
    y = w.add(w.choice(["multiply", "subtract", "maximum"]), [y, columns])
    for name in ("maximum", "minimum", "add")[: 3 if dtype is E.S32 else 2]:
        init = w.constant(Shape.array(dtype))
        totals.append(w.add("reduce", [y, init], gone, called=[w.reducer(name, dtype)]))
        back = w.add("broadcast", [totals[-1]], {"dimensions": tuple(range(kept))}, declared=wide)
        y = w.add(w.choice(["subtract", "add", "maximum"]), [back, y])
        if w.rng.random() < 0.3:
            y = w.add("add", [y, w.partner(y)])
    if dtype in (E.F32, E.F64):
        from support.hlo.random_irregular import drop_signs

        last = w.add(w.choice(["tanh", "logistic"]), [y], exact=False)
        (last,) = drop_signs(w, [last], np.prod(x.shape.dims[:kept]))
        init = w.constant(Shape.array(dtype), signed=False)  # so that it does not cancel the sum
        w.add("reduce", [last, init], gone, called=[w.reducer("add", dtype)], exact=False)


def dot(w: Writer) -> None:
    x = w.pick(lambda v: v.exact and v.shape.rank > 0 and v.shape.dtype in (E.F32, E.F64, E.S32, E.U8, E.S64))
    if not x:
        return
    axis = int(w.rng.integers(x.shape.rank))
    y = w.pick(lambda v: v.exact and v.shape.dtype is x.shape.dtype and x.shape.dims[axis] in v.shape.dims) or x
    other = y.shape.dims.index(x.shape.dims[axis])
    attrs = {"lhs_contracting_dims": (axis,), "rhs_contracting_dims": (other,)}
    if x.shape.dtype.is_float:
        from support.hlo.random_irregular import drop_signs, replace_huge

        results = x.shape.size * y.shape.size // max(x.shape.dims[axis], 1) ** 2
        x, y = drop_signs(w, [replace_huge(w, x), replace_huge(w, y)], results)
    w.add("dot", [x, y], attrs, exact=not x.shape.dtype.is_float)


def dynamic_slice(w: Writer) -> None:
    x = w.pick(lambda v: v.shape.rank > 0)
    if not x:
        return
    sizes = tuple(int(w.rng.integers(0, d + 1)) for d in x.shape.dims)
    starts = [w.constant(Shape.array(E.S32)) for _ in sizes]
    part = w.add("dynamic-slice", [x, *starts], {"dynamic_slice_sizes": sizes})
    if part:
        w.add("dynamic-update-slice", [x, part, *starts[::-1]])


STEPS = [unary, transcendental, binary, binary, compare, select, convert, clamp, transpose, reverse, broadcast, reshape, slice_, pad,
         concatenate, iota, reduce, reduce, rows, rows, dot, dynamic_slice]  # fmt: skip


def random_module(seed: int, length: int = 30, steps=()) -> tuple[HloModule, list[bool]]:
    """Return a module of about `length` instructions with a tuple of results, and whether each result is exact.

    If `steps` are given, the module is made of these alone, and every instruction is a result.
    """
    from support.hlo.random_irregular import STEPS as IRREGULAR

    w = Writer(seed)
    chosen = list(steps) or STEPS + IRREGULAR * int(w.rng.integers(0, 3))
    for dtype in w.rng.choice(len(DTYPES), int(w.rng.integers(1, 4)), replace=False):
        w.parameter(DTYPES[int(dtype)])
    while len(w.entry.instructions) < length:
        w.choice(chosen)(w)
    results = [w.values[int(k)] for k in w.rng.choice(len(w.values), min(4, len(w.values)), replace=False)]
    results.append(w.values[-1])
    if steps:
        results = [v for v in w.values if v.ins.opcode not in ("parameter", "constant")]
    w.entry.root = w.entry.add("tuple", [r.ins for r in results], shape=Shape.tuple([r.shape for r in results]))
    w.module.verify()
    return w.module, [r.exact for r in results]


def check(seed: int, length: int = 30, steps=()) -> None:
    """Compare the results of one random module on both platforms."""
    import cyxla
    from support.hlo.programs import assert_same
    from support.strategies import random_array

    module, exact = random_module(seed, length, steps)
    args = [random_array(p.shape, seed + k, 0.2) for k, p in enumerate(module.parameters)]
    got = cyxla.compile(module, cache=False)(*args)
    want = cyxla.compile(module, platform="interpreter")(*args)
    for g, v, is_exact, r in zip(got, want, exact, module.entry.root.operands, strict=True):
        # Errors of inexact results are measured by the largest element.
        assert_same(g, v, r.shape.dtype, 0 if is_exact else 64, floor=0.0 if is_exact else 1.0)
