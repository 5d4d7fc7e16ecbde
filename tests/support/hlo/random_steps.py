"""Random HLO modules of instructions that prebuilt kernels cover, arguments for them, and the comparison of bits."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.types import ElementType as E
from cyxla.types import Literal, Shape
from cyxla.xla.cpu.prebuilt import elementwise as prebuilt_elementwise
from cyxla.xla.cpu.prebuilt import reductions as prebuilt_reductions
from cyxla.xla.cpu.prebuilt.forms import LANED, TYPES, Form
from cyxla.xla.hlo import OPCODES, HloModule, Instruction, infer_shape
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim
from support.strategies import ordinary, special_values

SHAPES = ((), (0,), (1,), (63,), (64,), (65,), (129,), (1000,), (7, 9), (3, 0, 4), (2, 3, 4), (1, 5, 1), (2, 65),
          (33, 31), (16, 40), (4, 1, 6, 2), (3, 2, 1, 4, 2), (2, 2, 2, 2, 2, 2))  # fmt: skip
MOST_ELEMENTS, MOST_RANK = 10_000, 6
FLOATS = (1e5, -1e6, 3e9, -2147483649.0, 9.3e18, -1e19, 1e30, 1e38, 1e100, -1e200, 1e300, 1e-20, -1e-300, np.pi, 2.5,
          88.7, -103.9, 709.7, -745.1, 0.4999999, 127.5, 32768.0)  # fmt: skip
FORMS: dict[E, dict[str, list[Form]]] = {t: {} for t in TYPES}  # by the type of the last operand, then the opcode
for _form in prebuilt_elementwise.forms():
    if _form.operands[0] in OPCODES[_form.opcode].accepts:
        FORMS[_form.operands[-1]].setdefault(_form.opcode, []).append(_form)
REDUCTIONS = {t: [c for c, of in prebuilt_reductions.forms() if of is t] for t in TYPES}


class Writer:
    """Appends random instructions to a computation."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.module = HloModule(f"steps_{seed}")
        self.entry = self.module.entry = self.module.new_computation("main")
        self.values: list[Instruction] = []
        for dims in self.rng.sample(SHAPES, 3):
            self.parameter(Shape.array(self.rng.choice(TYPES), dims))

    def add(
        self, opcode: str, operands: Sequence[Instruction], attrs: Any = None, declared: Any = None, called: Any = ()
    ) -> Instruction:
        """Add an instruction; later ones do not use a large one."""
        shape = declared if not operands else infer_shape(opcode, operands, attrs or {}, called, declared)
        ins = self.entry.add(opcode, operands, attrs, shape=shape, called=called)
        self.values += [ins] if shape.size <= MOST_ELEMENTS else []
        return ins

    def parameter(self, shape: Shape) -> Instruction:
        return self.add("parameter", [], {"parameter_number": len(self.entry.parameters)}, shape)

    def pick(self) -> Instruction:
        return self.rng.choice(self.values[-8:] if self.rng.random() < 0.6 else self.values)

    def like(self, shape: Shape) -> Instruction:
        """Return a value of a shape: an existing one, a converted one, or a new one."""
        how = self.rng.random()
        same = [v for v in self.values if v.shape is shape]
        ones = [v for v in self.values if v.shape.dtype is shape.dtype and not v.shape.rank]
        others = [v for v in self.values if v.shape.dims == shape.dims and v.shape is not shape]
        if how < 0.05:
            return self.constant(shape)
        if same and how < 0.75:
            return self.rng.choice(same)
        if ones and shape.rank and how < 0.82:
            return self.add("broadcast", [self.rng.choice(ones)], {"dimensions": ()}, shape)
        if others and how < 0.93:
            return self.add("convert", [self.rng.choice(others)], None, shape)
        return self.parameter(shape)

    def constant(self, shape: Shape) -> Instruction:
        """Add a constant: a broadcast scalar, a literal array, or an iota."""
        how = self.rng.random()
        if shape.rank and shape.dtype is not E.PRED and how < 0.3:
            return self.add("iota", [], {"iota_dimension": self.rng.randrange(shape.rank)}, shape)
        literal = shape if how < 0.6 else Shape.array(shape.dtype)
        numbers = drawn(literal, np.random.default_rng(self.rng.randrange(1 << 30)), 0.5)
        one = self.add("constant", [], {"literal": Literal(numbers, literal)}, literal)
        return one if literal is shape else self.add("broadcast", [one], {"dimensions": ()}, shape)

    def reducer(self, opcode: str, dtype: E) -> Any:
        body = self.module.new_computation(f"{opcode}_{dtype}")
        ends = [body.add("parameter", attrs={"parameter_number": k}, shape=Shape.array(dtype)) for k in (0, 1)]
        body.root = body.add(opcode, ends, shape=Shape.array(dtype))
        return body


def elementwise(w: Writer) -> None:
    x = w.pick()
    form = w.rng.choice(w.rng.choice(list(FORMS[x.shape.dtype].values())))
    operands = [*(w.like(x.shape.with_dtype(t)) for t in form.operands[:-1]), x]
    if len(operands) == 2 and w.rng.random() < 0.5:
        operands.reverse()
    w.add(form.opcode, operands, form.attrs, x.shape.with_dtype(form.result))


def transpose(w: Writer) -> None:
    x = w.pick()
    w.add("transpose", [x], {"dimensions": tuple(w.rng.sample(range(x.shape.rank), x.shape.rank))})


def reverse(w: Writer) -> None:
    x = w.pick()
    w.add("reverse", [x], {"dimensions": tuple(d for d in range(x.shape.rank) if w.rng.random() < 0.5)})


def broadcast(w: Writer) -> None:
    x = w.pick()
    rank = min(MOST_RANK, x.shape.rank + w.rng.randint(0, 2))
    places = tuple(w.rng.sample(range(rank), x.shape.rank))
    sizes = dict(zip(places, x.shape.dims, strict=True))
    dims = [sizes.get(d, w.rng.choice([1, 2, 3, 17, 64])) for d in range(rank)]
    w.add("broadcast", [x], {"dimensions": places}, x.shape.with_dims(dims))


def slice_(w: Writer) -> None:
    x, cuts = w.pick(), []
    for n in x.shape.dims:
        start = w.rng.randint(0, n) if w.rng.random() < 0.4 else 0
        limit = w.rng.randint(start, n) if w.rng.random() < 0.4 else n
        cuts.append(SliceDim(start, limit, w.rng.choice([1, 1, 2, 3, 7])))
    w.add("slice", [x], {"slice": tuple(cuts)})


def concatenate(w: Writer) -> None:
    x = w.pick()
    if x.shape.rank:
        axis = w.rng.randrange(x.shape.rank)
        fit = [v for v in w.values if _without(v.shape, axis) == _without(x.shape, axis)]
        w.add("concatenate", w.rng.choices(fit, k=w.rng.randint(1, 3)), {"dimensions": (axis,)})


def _without(shape: Shape, axis: int) -> Shape:
    return shape.with_dims([0 if d == axis else n for d, n in enumerate(shape.dims)])


def pad(w: Writer) -> None:
    x, edges = w.pick(), []
    for n in x.shape.dims:
        inner = w.rng.choice([0, 0, 1, 2, 5])
        whole = n + max(0, n - 1) * inner
        low = w.rng.randint(-min(whole, 4), 3)
        edges.append(PaddingDim(low, w.rng.randint(-min(max(whole + low, 0), 3), 3), inner))
    w.add("pad", [x, w.like(Shape.array(x.shape.dtype))], {"padding": tuple(edges)})


def reshape(w: Writer) -> None:
    x = w.pick()
    left, dims = x.shape.size, []
    for p in (2, 3, 5, 13):
        while left and left % p == 0 and len(dims) < MOST_RANK - 1 and w.rng.random() < 0.6:
            left //= p
            dims.append(p)
    dims.append(left)
    w.add("reshape", [x], None, x.shape.with_dims(w.rng.sample(dims, len(dims)) if dims != [1] else []))


def reduce(w: Writer) -> None:
    x = w.pick()
    dtype, rank = x.shape.dtype, x.shape.rank
    gone = tuple(d for d in range(rank) if w.rng.random() < 0.6)
    combiner = w.rng.choice(REDUCTIONS[dtype])
    if combiner in LANED and (dtype.is_float or dtype.is_complex):  # along rows, or over all dimensions
        gone = tuple(range(rank))[-1 if rank and x.shape.dims[-1] >= 16 else 0 :]
    if gone:
        w.add("reduce", [x, w.like(Shape.array(dtype))], {"dimensions": gone}, called=[w.reducer(combiner, dtype)])


STEPS: list[Callable[[Writer], object]] = [
    *[elementwise] * 14, transpose, reverse, broadcast, slice_, concatenate, pad, reshape, *[reduce] * 3,
    lambda w: w.add("copy", [w.pick()]),
]  # fmt: skip


def random_steps(seed: int) -> HloModule:
    """Return a module of 5 to 30 instructions, on most of which its results depend."""
    w = Writer(seed)
    length = w.rng.randint(5, 30)
    while len(w.values) < length:
        w.rng.choice(STEPS)(w)
    ends = [v for v in w.values if not v.users]
    results = [*w.rng.sample(ends, min(len(ends), 5)), *w.rng.choices(w.values, k=w.rng.randint(0, 2))]
    shape = Shape.tuple([r.shape for r in results])
    w.entry.root = results[0] if len(results) == 1 else w.entry.add("tuple", results, shape=shape)
    w.module.verify()
    return w.module


def drawn(shape: Shape, rng: np.random.Generator, special: float) -> np.ndarray:
    """Return an array of ordinary numbers, a fraction `special` of which is replaced by special ones."""
    dtype, dims = shape.dtype, shape.dims
    if dtype.is_complex:
        made = np.empty(dims, dtype.numpy_dtype)
        made.real, made.imag = (drawn(shape.with_dtype(dtype.real_part), rng, special) for _ in range(2))
        return made
    with np.errstate(all="ignore"):
        candidates = np.concatenate(
            [special_values(dtype), np.array(FLOATS if dtype.is_float else []).astype(dtype.numpy_dtype)]
        )
    chosen, plain = candidates[rng.integers(0, len(candidates), dims)], ordinary(dtype, dims, rng)
    return np.where(rng.random(dims) < special, chosen, plain).astype(dtype.numpy_dtype).reshape(dims)


def arguments(module: HloModule, seed: int, special: float = 0.3) -> list[np.ndarray]:
    """Return random arrays for the parameters of a module."""
    rng = np.random.default_rng(seed)
    return [drawn(p.shape, rng, special) for p in module.parameters]


def same_bits(a: Any, b: Any) -> bool:
    """Return whether two results, arrays or tuples of them, have the same bits; all NaNs count as equal."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_bits, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype, a.shape) == (b.dtype, b.shape) and np.array_equal(_bits(a), _bits(b))


def _bits(array: np.ndarray) -> np.ndarray:
    numbers = np.ascontiguousarray(array).reshape(-1)
    numbers = numbers.view(numbers.real.dtype) if numbers.dtype.kind == "c" else numbers
    bits = numbers.view(f"u{numbers.itemsize}")
    return bits if numbers.dtype.kind in "biu" else np.where(np.isnan(numbers), np.iinfo(bits.dtype).max, bits)
