"""The derivative of every opcode, against central differences; and the derivative of that."""

import numpy as np
import pytest
from cyxla.numpy.tracing.arrays.traced_array import traced, value_of
from support.numerical import slope

from cyxla.errors import UnimplementedError
from cyxla.numpy import jit
from cyxla.numpy.gradient import grad
from cyxla.numpy.gradient.table import find
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.opcode import OPCODES
from cyxla.xla.lib.compaction import compact, expand

RNG = np.random.default_rng(11)


def adder(opcode):
    return scalar_computation(opcode, "f64")


def random_values(*sizes, low=0.2, high=0.9):
    return RNG.uniform(low, high, sizes)


def many(*sizes):
    return random_values(*sizes, low=-1) + 1j * random_values(*sizes, low=-1)


def distinct_values(*sizes):
    """Return numbers that differ by more than the step of a difference quotient."""
    return RNG.permutation(np.prod(sizes, dtype=int)).reshape(sizes) / 10 + 0.05


def constant(value):
    return require_current().constant(value)


def second():
    b = XlaBuilder("second")
    return b.build([xla.parameter(b, k, Shape.array("f64")) for k in range(2)][1])


def pair_of_scalars(body):
    b = XlaBuilder("scalars")
    return b.build(body(*(xla.parameter(b, k, Shape.array("f64")) for k in range(2))))


def elements(op):
    return [xla.get_tuple_element(op, k) for k in range(len(op.shape.elements))]


def highest(x):
    """Return the maximum and its index by a reduction of pairs."""
    b = XlaBuilder("highest")
    s, i = Shape.array("f64"), Shape.array("s64")
    p, m, q, n = (xla.parameter(b, k, t) for k, t in enumerate((s, i, s, i)))
    first = xla.ge(p, q)
    by = b.build(xla.tuple_(b, [xla.select(first, p, q), xla.select(first, m, n)]))
    places = xla.iota(x.builder, x.shape.with_dtype(Shape.array("s64").dtype), 1)
    return elements(xla.reduce([x, places], [constant(-np.inf), constant(0)], by, [1]))[0]


def descending(x, y):
    b = XlaBuilder("descending")
    given = [xla.parameter(b, k, Shape.array("f64")) for k in range(4)]
    return elements(xla.sort([x, y], b.build(xla.gt(*given[:2])), 0))


def conv(strides, padding, base, holes, groups=1, turned=False, labels=None):
    def run(x, k):
        return xla.conv_general_dilated(
            x, k, strides, padding, base, holes, labels, groups, window_reversal=[turned] * len(strides)
        )

    return run


ROWS = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
}
INDICES = np.array([2, 0, 2, 7])
BYTES = np.array([2, -1, 120], np.int8)


def put(opcode, indices=INDICES, **more):
    def run(x, u):
        by = second() if opcode == "replace" else adder(opcode)
        return xla.scatter(x, constant(indices), u, by, **ROWS, **more)

    return run


SELECTED = np.array([False, True, True, False, True])


def compacted(*arrays, **options):
    packed, _ = compact(constant(SELECTED), arrays, **options)
    return packed if len(packed) > 1 else packed[0]


def gather_rows(x, indices=INDICES):
    return xla.gather(
        x, constant(indices), offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1,
        slice_sizes=(1, x.shape.dims[1]),
    )  # fmt: skip


def gather_in_batches(x):
    return xla.gather(
        x, constant([[1], [0]]), offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(1,), index_vector_dim=1,
        slice_sizes=(1, 2, 2), operand_batching_dims=(0,), start_indices_batching_dims=(0,),
    )  # fmt: skip


def window(opcode, sizes, strides, padding, base=None, holes=None):
    start = {"add": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}[opcode]
    return lambda x: xla.reduce_window(x, start, adder(opcode), sizes, strides, padding, base, holes)


def triangular(lower, unit, how, left):
    return lambda a, b: xla.triangular_solve(a, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=how)


def positive(a):
    return np.matmul(a, np.conj(np.swapaxes(a, -1, -2))) + 3 * np.eye(a.shape[-1])


SQUARE = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
COMPLEX_SQUARE = SQUARE + 0.3j * RNG.normal(size=(2, 3, 3))
UNARY = [
    "abs_",
    "acos",
    "asin",
    "asinh",
    "atanh",
    "cbrt",
    "cosh",
    "cosine",
    "erf",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "rsqrt",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
COMPLEX_UNARY = [
    "abs_",
    "acos",
    "asin",
    "asinh",
    "atanh",
    "acosh",
    "cosh",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "imag",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "real",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

CASES = {
    **{u: (getattr(xla, u), random_values(3)) for u in UNARY},
    **{f"{u}-complex": (getattr(xla, u), many(3)) for u in COMPLEX_UNARY},
    "acosh": (xla.acosh, random_values(3) + 1),
    **{
        b: (getattr(xla, b), random_values(3), random_values(3) + 0.1)
        for b in ("add", "atan2", "complex_", "divide", "maximum", "minimum", "multiply", "power", "subtract")
    },
    **{f"{b}-complex": (getattr(xla, b), many(3), many(3)) for b in ("add", "divide", "multiply", "power", "subtract")},
    "remainder": (xla.remainder, np.array([5.3, -5.3, 2.2]), np.array([2.1, 2.1, -0.7])),
    "constant-steps": (
        lambda x: (
            x * xla.floor(x * 10) + xla.ceil(x) + xla.sign(x) + xla.round_nearest_even(x) + xla.round_nearest_afz(x)
        ),
        random_values(3),
    ),
    "convert": (lambda x: xla.convert(xla.convert(x, "c128"), "c128") * 2.0, random_values(3)),
    "copy": (xla.copy, random_values(2)),
    "select": (lambda x, y: xla.select(xla.lt(x, y), x * y, y), random_values(4), random_values(4)),
    "select-scalar": (lambda x, y: xla.select(xla.lt(x[0], y[1]), x * y, y), random_values(4), random_values(4)),
    "clamp": (
        lambda a, x, b: xla.clamp(a, x, b),
        np.array([0.1, 0.5, 0.1]),
        np.array([0.3, 0.2, 0.9]),
        np.array([0.6, 0.7, 0.8]),
    ),
    "clamp-scalars": (lambda a, x, b: xla.clamp(a, x, b), np.array(0.3), random_values(4), np.array(0.6)),
    "reduce-precision": (lambda x: xla.reduce_precision(x, 11, 52), random_values(2)),
    "opt-barrier": (
        lambda x, y: elements(xla.opt_barrier(xla.tuple_(x.builder, [x, y])))[0] * y,
        random_values(2),
        random_values(2),
    ),
    "reshape": (lambda x: xla.reshape(x, (4, 3)), random_values(2, 6)),
    "broadcast": (
        lambda x: x.builder.add("broadcast", [x], {"dimensions": (2, 0)}, shape=x.shape.with_dims((3, 4, 2))),
        random_values(2, 3),
    ),
    "transpose": (lambda x: xla.transpose(x, (2, 0, 1)), random_values(2, 3, 4)),
    "reverse": (lambda x: xla.reverse(x, (1,)), random_values(2, 3)),
    "slice": (lambda x: xla.slice_(x, (1, 0), (6, 3), (2, 1)), random_values(7, 3)),
    "slice-empty": (lambda x: xla.slice_(x, (1,), (1,)), random_values(3)),
    "pad": (lambda x, v: xla.pad(x, v, [(1, 2, 1), (-1, 1, 0)]), random_values(3, 2), np.array(0.5)),
    "pad-within": (lambda x: xla.pad(x, 0, [(-1, -2, 2)]), random_values(3)),
    "pad-empty": (lambda x, v: xla.pad(x, v, [(1, 1, 0)]), random_values(0), np.array(0.5)),
    "concatenate": (lambda x, y: xla.concatenate([x, y, x], 1), random_values(2, 1), random_values(2, 3)),
    "dynamic-slice": (lambda x: xla.dynamic_slice(x, [constant(5), constant(1)], (2, 2)), random_values(4, 3)),
    "dynamic-update-slice": (
        lambda x, u: xla.dynamic_update_slice(x, u, [constant(3), constant(0)]),
        random_values(4, 3),
        random_values(2, 2),
    ),
    "reduce-add": (lambda x, i: xla.reduce(x, i, adder("add"), (0, 2)), random_values(2, 3, 2), np.array(0.4)),
    "reduce-max": (lambda x, i: xla.reduce(x, i, adder("maximum"), (1,)), distinct_values(3, 4), np.array(0.21)),
    "reduce-min": (lambda x, i: xla.reduce(x, i, adder("minimum"), (0,)), distinct_values(3, 4), np.array(0.42)),
    "reduce-multiply": (
        lambda x, i: xla.reduce(x, i, adder("multiply"), (0, 2)),
        random_values(3, 2, 3),
        np.array(0.4),
    ),
    "reduce-multiply-zeros": (
        lambda x, i: xla.reduce(x, i, adder("multiply"), (1,)),
        np.array([[0, 2, 3.0], [0, 4, 0]]),
        np.array(1.0),
    ),
    "reduce-multiply-empty": (
        lambda x, i: xla.reduce(x, i, adder("multiply"), (0,)),
        random_values(0, 2),
        np.array(0.4),
    ),
    "reduce-pairs": (highest, distinct_values(3, 4)),
    "dot": (xla.dot, random_values(2, 3), random_values(3, 4)),
    "dot-vectors": (xla.dot, random_values(3), random_values(3)),
    "dot-complex": (xla.dot, many(2, 3), many(3)),
    "dot-general": (
        lambda x, y: xla.dot_general(
            x, y, lhs_contracting_dims=(3, 0), rhs_contracting_dims=(1, 3), lhs_batch_dims=(2,), rhs_batch_dims=(0,)
        ),
        random_values(2, 3, 4, 5),
        random_values(4, 5, 2, 2),
    ),
    "dot-outer": (
        lambda x, y: xla.dot_general(x, y, lhs_contracting_dims=(), rhs_contracting_dims=()),
        random_values(2),
        random_values(3),
    ),
    "gather": (gather_rows, random_values(4, 3)),
    "gather-batches": (gather_in_batches, random_values(2, 3, 2)),
    "gather-bytes": (lambda x: gather_rows(x, BYTES), random_values(300, 1)),
    "scatter-add": (put("add"), random_values(4, 3), random_values(4, 3)),
    "scatter-replace": (put("replace", INDICES[:3]), random_values(4, 3), random_values(3, 3)),
    "scatter-replace-unique": (
        put("replace", INDICES[1:], unique_indices=True),
        random_values(4, 3),
        random_values(3, 3),
    ),
    "scatter-multiply": (put("multiply", INDICES[1:], unique_indices=True), random_values(4, 3), random_values(3, 3)),
    "scatter-multiply-again": (put("multiply"), random_values(4, 3), random_values(4, 3)),
    "scatter-multiply-zeros": (
        lambda u: put("multiply", np.array([1, 1, 1, 0]))(constant(np.ones((2, 1))), u),
        np.array([[0.0], [2.0], [0.5], [0.0]]),
    ),
    "scatter-subtract": (put("subtract"), random_values(4, 3), random_values(4, 3)),
    "scatter-divide": (put("divide"), random_values(4, 3), random_values(4, 3)),
    "scatter-max": (put("maximum"), distinct_values(4, 3), distinct_values(4, 3) + 0.02),
    "scatter-min": (put("minimum"), distinct_values(4, 3), distinct_values(4, 3) + 0.02),
    "topk": (lambda x: elements(xla.topk(x, 2))[0], distinct_values(2, 5)),
    "sort": (lambda x: xla.sort(x, None, 0), distinct_values(4, 2)),
    "sort-payload": (lambda x, y: xla.concatenate(descending(x, y), 0), distinct_values(4, 2), random_values(4, 2)),
    "map": (
        lambda x, y: xla.map_([x, y], pair_of_scalars(lambda p, q: xla.sine(p) * q + 2.0)),
        random_values(2, 2),
        random_values(2, 2),
    ),
    "call": (
        lambda x, y: xla.call(x.builder, pair_of_scalars(lambda p, q: xla.sine(p) * q), [x, y]),
        np.array(0.4),
        np.array(0.2),
    ),
    "window-add": (window("add", (2, 3), (1, 2), [(0, 1), (2, 0)]), random_values(3, 4)),
    "window-add-holes": (window("add", (2, 2), (2, 1), [(1, 1), (0, 0)], (2, 1), (1, 2)), random_values(3, 4)),
    "window-add-missing": (window("add", (2,), (3,), [(-1, -1)]), random_values(9)),
    "window-cumulative": (window("add", (5,), (1,), [(4, 0)]), random_values(5)),
    "window-max": (window("maximum", (2, 2), (2, 1), [(0, 1), (0, 0)]), distinct_values(3, 4)),
    "window-min": (window("minimum", (1, 3), (1, 1), [(0, 0), (2, 0)]), distinct_values(2, 4)),
    "window-products": (window("multiply", (1, 4), (1, 1), [(0, 0), (3, 0)]), np.array([[1, 2, 0, 3], [0, 2, 3, 0.0]])),
    "window-products-back": (window("multiply", (4, 1), (1, 1), [(0, 3), (0, 0)]), random_values(4, 2)),
    "select-and-scatter": (
        lambda x, s: xla.select_and_scatter(x, pair_of_scalars(xla.ge), (2,), (2,), [(0, 1)], s, 0.0, adder("add")),
        distinct_values(5),
        random_values(3),
    ),
    "conv": (conv((2, 1), [(1, 2), (0, 1)], (1, 2), (2, 1)), random_values(2, 3, 6, 4), random_values(2, 3, 2, 3)),
    "conv-groups": (conv((1,), "SAME", (1,), (1,), groups=2), random_values(2, 4, 5), random_values(6, 2, 3)),
    "conv-turned": (
        conv((2,), [(0, 0)], (1,), (1,), turned=True, labels=ConvDims(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))),
        random_values(2, 6, 3),
        random_values(3, 3, 2),
    ),
    "conv-cut": (conv((1,), [(-1, -1)], (1,), (1,)), random_values(1, 2, 6), random_values(2, 2, 2)),
    "fft": (lambda x: xla.fft(x, "FFT", (3, 4)), many(2, 3, 4)),
    "ifft": (lambda x: xla.fft(x, "IFFT", (4,)), many(3, 4)),
    "rfft": (lambda x: xla.fft(x, "RFFT", (3, 4)), random_values(3, 4)),
    "rfft-odd": (lambda x: xla.fft(x, "RFFT", (5,)), random_values(5)),
    "irfft": (lambda x: xla.fft(x, "IRFFT", (3, 4)), many(3, 3)),
    "irfft-odd": (lambda x: xla.fft(x, "IRFFT", (5,)), many(3)),
    "cholesky": (xla.cholesky, positive(SQUARE)),
    "cholesky-upper": (lambda x: xla.cholesky(x, False), positive(SQUARE)),
    "cholesky-complex": (xla.cholesky, positive(COMPLEX_SQUARE)),
    "cholesky-complex-upper": (lambda x: xla.cholesky(x, False), positive(COMPLEX_SQUARE)),
    "solve": (triangular(True, False, "NO_TRANSPOSE", True), SQUARE, random_values(2, 3, 2)),
    "solve-upper": (triangular(False, True, "TRANSPOSE", True), SQUARE, random_values(2, 3, 2)),
    "solve-right": (triangular(True, False, "TRANSPOSE", False), SQUARE, random_values(2, 2, 3)),
    "solve-adjoint": (triangular(True, False, "ADJOINT", False), COMPLEX_SQUARE, many(2, 2, 3)),
    "compact": (compacted, random_values(5)),
    "compact-rows": (compacted, random_values(5, 3)),
    "compact-complex": (compacted, many(5)),
    "compact-loose": (lambda x: xla.slice_in_dim(compacted(x, zero_fill=False), 0, 3), random_values(5, 3)),
    "compact-two": (lambda x, y: xla.multiply(*compacted(x, y)), random_values(5), random_values(5)),
    "expand": (lambda x: expand(constant(SELECTED), x), random_values(5, 3)),
    "solve-complex": (triangular(False, False, "TRANSPOSE", True), COMPLEX_SQUARE, many(2, 3, 2)),
    "solve-adjoint-left": (triangular(False, True, "ADJOINT", True), COMPLEX_SQUARE, many(2, 3, 2)),
}


def weighted_sum(function):
    """Return a function whose result is a weighted sum of all results of a function."""

    def run(*arrays):
        result = function(*map(value_of, arrays))
        out = traced(result)
        weights = np.cos(np.arange(out.size) + 1.0).reshape(out.shape)
        if out.dtype.kind == "c":
            return np.sum(np.real(out * (weights + 0.7j * weights[..., ::-1] if out.ndim else weights)))
        return np.sum(out * weights)

    return run


def compiled(function):
    return jit(function, platform="interpreter")


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", CASES)
def test_derivative(name):
    function, *args = CASES[name]
    args = [np.asarray(a) for a in args]
    total = weighted_sum(function)
    value, slopes = compiled(total), compiled(grad(total, argnums=tuple(range(len(args)))))(*args)
    for k, got in enumerate(slopes):
        at = lambda x, k=k: value(*args[:k], x, *args[k + 1 :])  # noqa: E731
        np.testing.assert_allclose(got, slope(at, args[k]), rtol=2e-7, atol=2e-8)


SIDES = [complex(x, y) for x in (1.5, -1.5) for y in (0.0, -0.0)]


@pytest.mark.parametrize("function", [np.arcsin, np.arccos, np.arccosh, np.arctanh, np.arcsinh])
def test_derivative_on_branch_cuts(function):
    upright = function is np.arcsinh
    points = np.array([complex(z.imag, z.real) if upright else z for z in SIDES])
    above, below = (
        function([complex(z.real, z.imag + s) if upright else complex(z.real + s, z.imag) for z in points])
        for s in (1e-6, -1e-6)
    )
    got = compiled(grad(lambda x: np.sum(np.real(function(x)))))(points)
    np.testing.assert_allclose(got, (above - below) / (2e-6j if upright else 2e-6), rtol=1e-8, atol=1e-8)


TWICE = [n for n in CASES if not n.startswith(("sign-", "constant", "conv-groups"))]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", TWICE)
def test_derivative_of_the_derivative(name):
    """Tested along one direction, since single elements are tested above."""
    function, *args = CASES[name]
    args = [np.asarray(a) for a in args]
    numbers = tuple(range(len(args)))
    first = grad(weighted_sum(function), argnums=numbers)

    def total(*given):
        return sum(np.sum(np.real(g * np.sin(np.arange(g.size) + 1.0).reshape(g.shape))) for g in first(*given))

    value, slopes = compiled(total), compiled(grad(total, argnums=numbers))(*args)
    step, ways = 1e-6, [np.cos(3.0 * np.arange(a.size) + 1).reshape(a.shape) for a in args]
    above, below = (value(*[a + s * w for a, w in zip(args, ways, strict=True)]) for s in (step, -step))
    got = sum(np.real(np.sum(g * w)) for g, w in zip(slopes, ways, strict=True))
    np.testing.assert_allclose(got, (above - below) / (2 * step), rtol=2e-6, atol=1e-6)


INACTIVE = {
    "parameter",
    "constant",
    "iota",
    "tuple",
    "get-tuple-element",
    "and",
    "or",
    "xor",
    "not",
    "popcnt",
    "mulhi",
    "count-leading-zeros",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
}
WITHOUT = {
    "while",
    "conditional",
    "scan",
    "fusion",
    "batch-norm-training",
    "batch-norm-inference",
    "batch-norm-grad",
    "ragged-dot",
    "scaled-dot",
    "dynamic-reshape",
    "get-dimension-size",
    "set-dimension-size",
    "domain",
    "add-dependency",
    "after-all",
    "infeed",
    "outfeed",
    "send",
    "recv",
    "send-done",
    "recv-done",
    "copy-start",
    "copy-done",
    "opt-barrier",
    "replica-id",
    "partition-id",
    "rng",
    "rng-bit-generator",
    "rng-get-and-update-state",
}


def test_every_opcode_has_a_rule_or_an_exemption():
    missing = {o for o in OPCODES if find(o) is None} - INACTIVE - WITHOUT
    assert {
        m for m in missing if not m.startswith(("async", "all-", "collective", "reduce-scatter", "ragged-all"))
    } == set()


def test_missing_derivatives_name_the_opcode():
    def half(x):
        return traced(xla.custom_call(x.builder, "halve", [x], x.shape)) if isinstance(x, XlaOp) else half(value_of(x))

    with pytest.raises(UnimplementedError, match="custom-call halve is not implemented") as caught:
        compiled(grad(lambda x: np.sum(half(x))))(np.ones(3))
    assert "cyxla.custom_vjp" in str(caught.value)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    "function, args",
    [
        (put("power"), (random_values(4, 3), random_values(4, 3))),
        (window("multiply", (2,), (1,), [(0, 0)]), (random_values(4),)),
        (lambda x: xla.reduce(x, 0.0, pair_of_scalars(lambda a, b: a * 2.0 + b), (0,)), (random_values(4),)),
    ],
)
def test_unsupported_derivatives_raise(function, args):
    with pytest.raises(UnimplementedError, match="the derivative of"):
        compiled(grad(weighted_sum(function), argnums=tuple(range(len(args)))))(*args)
