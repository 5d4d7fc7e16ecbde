"""The builder: every function makes its opcode, operators, broadcasting, and errors that wait for `build`."""

# ruff: noqa: E501
from __future__ import annotations

import pickle

import numpy as np
import pytest

from cyxla.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, OpError, ShapeError
from cyxla.types import TOKEN, Literal, Shape
from cyxla.xla.hlo import OPCODES, XlaBuilder, XlaComputation, XlaOp, parse_shape, verify
from cyxla.xla.hlo.attributes import Sharding, SliceDim
from cyxla.xla.hlo.builder import copy_module, scalar_computation
from cyxla.xla.hlo.builder import functions as f


def given(*shapes: str) -> tuple[XlaBuilder, list[XlaOp]]:
    """A builder and parameters of these shapes."""
    builder = XlaBuilder("test")
    return builder, [f.parameter(builder, i, parse_shape(s), f"x{i}") for i, s in enumerate(shapes)]


def computation(shapes: str, make, name: str = "callee") -> XlaComputation:
    """A computation of these parameters (separated by semicolons)."""
    builder, xs = given(*shapes.split(";"))
    return builder.build(make(*xs))


def step() -> XlaComputation:
    return computation("f32[2];f32[2]", lambda x, c: f.tuple_(x.builder, [x + c, x + c]))


LESS = computation("f32[];f32[]", lambda x, y: x < y)
NEGATE = computation("f32[]", lambda x: -x)
FINITE = computation("f32[]", f.is_finite)
ADD = scalar_computation("add", "f32")
REPLICATED = Sharding("replicated")
CONTRACT = {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}

# opcode: (parameters, how it is made, result)
MADE = {
    "add-dependency": ("f32[2];token[]", f.add_dependency, "f32[2]"),
    "after-all": ("token[]", lambda t: f.after_all(t.builder, [t]), "token[]"),
    "all-gather": ("f32[2]", lambda x: f.all_gather(x, 0, [[0, 1]]), "f32[4]"),
    "all-gather-done": ("f32[2]", lambda x: f.all_gather_done(f.all_gather_start(x, 0, [[0, 1]])), "f32[4]"),
    "all-gather-start": ("f32[2]", lambda x: f.all_gather_start(x, 0, [[0, 1]]), "(f32[2], f32[4])"),
    "all-reduce": ("f32[2]", lambda x: f.all_reduce(x, ADD), "f32[2]"),
    "all-reduce-done": ("f32[2]", lambda x: f.all_reduce_done(f.all_reduce_start(x, ADD)), "f32[2]"),
    "all-reduce-start": ("f32[2]", lambda x: f.all_reduce_start(x, ADD), "f32[2]"),
    "all-to-all": ("f32[2]", lambda x: f.all_to_all(x, 0, [[0, 1]]), "f32[2]"),
    "async-done": ("f32[]", lambda x: f.async_done(f.async_start(x.builder, NEGATE, [x])), "f32[]"),
    "async-start": ("f32[]", lambda x: f.async_start(x.builder, NEGATE, [x]), "((f32[]), f32[])"),
    "async-update": ("f32[]", lambda x: f.async_update(f.async_start(x.builder, NEGATE, [x])), "((f32[]), f32[])"),
    "batch-norm-grad": (
        "f32[2,3];f32[3];f32[3];f32[3];f32[2,3]", lambda *x: f.batch_norm_grad(*x, 0.1, 1), "(f32[2,3], f32[3], f32[3])",
    ),
    "batch-norm-inference": ("f32[2,3];f32[3];f32[3];f32[3];f32[3]", lambda *x: f.batch_norm_inference(*x, 0.1, 1), "f32[2,3]"),
    "batch-norm-training": ("f32[2,3];f32[3];f32[3]", lambda *x: f.batch_norm_training(*x, 0.1, 1), "(f32[2,3], f32[3], f32[3])"),
    "bitcast": ("f32[2,3]", lambda x: f.bitcast(x, parse_shape("s32[6]")), "s32[6]"),
    "bitcast-convert": ("f32[2]", lambda x: f.bitcast_convert(x, "u8"), "u8[2,4]"),
    "broadcast": ("f32[2]", lambda x: f.broadcast(x, [3]), "f32[3,2]"),
    "call": ("f32[]", lambda x: f.call(x.builder, NEGATE, [x]), "f32[]"),
    "cholesky": ("f32[4,4]", f.cholesky, "f32[4,4]"),
    "clamp": ("f32[2]", lambda x: f.clamp(0, x, 1), "f32[2]"),
    "collective-broadcast": ("f32[2]", lambda x: f.collective_broadcast(x, [[0, 1]]), "f32[2]"),
    "collective-permute": ("f32[2]", lambda x: f.collective_permute(x, [(0, 1)]), "f32[2]"),
    "collective-permute-done": (
        "f32[2]", lambda x: f.collective_permute_done(f.collective_permute_start(x, [(0, 1)])), "f32[2]",
    ),
    "collective-permute-start": ("f32[2]", lambda x: f.collective_permute_start(x, [(0, 1)]), "(f32[2], f32[2])"),
    "compare": ("f32[2];f32[2]", lambda x, y: f.compare(x, y, "LT", "TOTALORDER"), "pred[2]"),
    "complex": ("f32[2];f32[2]", f.complex_, "c64[2]"),
    "concatenate": ("f32[2];f32[3]", lambda x, y: f.concatenate([x, y], 0), "f32[5]"),
    "conditional": ("s32[];f32[]", lambda i, x: f.conditional(i, [NEGATE, NEGATE], [x, x]), "f32[]"),
    "constant": ("f32[]", lambda x: f.constant(x.builder, [[1, 2]], "s8"), "s8[1,2]"),
    "convert": ("f32[2]", lambda x: f.convert(x, "s8"), "s8[2]"),
    "convolution": ("f32[1,3,8,8];f32[4,3,3,3]", lambda x, k: f.conv(x, k, [1, 1], "SAME"), "f32[1,4,8,8]"),
    "copy": ("f32[2]", f.copy, "f32[2]"),
    "copy-done": ("f32[2]", lambda x: f.copy_done(f.copy_start(x)), "f32[2]"),
    "copy-start": ("f32[2]", f.copy_start, "(f32[2], f32[2], u32[])"),
    "custom-call": ("f32[2]", lambda x: f.custom_call(x.builder, "t", [x], parse_shape("f32[3]"), "opaque"), "f32[3]"),
    "domain": ("f32[2]", lambda x: f.domain(x, REPLICATED, REPLICATED), "f32[2]"),
    "dot": ("s8[2,3];s8[3,4]", lambda x, y: f.dot_general(x, y, **CONTRACT, preferred_element_type="s32"), "s32[2,4]"),
    "dynamic-reshape": ("f32[6];s32[]", lambda x, n: f.dynamic_reshape(x, [n], [6], [True]), "f32[<=6]"),
    "dynamic-slice": ("f32[4,4];s32[]", lambda x, i: f.dynamic_slice(x, [i, 0], [2, 4]), "f32[2,4]"),
    "dynamic-update-slice": ("f32[4];f32[2];s32[]", lambda x, u, i: f.dynamic_update_slice(x, u, [i]), "f32[4]"),
    "fft": ("f32[8]", lambda x: f.fft(x, "RFFT", [8]), "c64[5]"),
    "fusion": ("f32[]", lambda x: f.fusion(x.builder, NEGATE, [x]), "f32[]"),
    "gather": (
        "f32[3,4];s32[5,1]",
        lambda x, i: f.gather(
            x, i, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1, slice_sizes=[1, 4]
        ),
        "f32[5,4]",
    ),
    "get-dimension-size": ("f32[2]", lambda x: f.get_dimension_size(x, 0), "s32[]"),
    "get-tuple-element": ("(f32[2], s32[])", lambda x: f.get_tuple_element(x, 1), "s32[]"),
    "infeed": ("token[]", lambda t: f.infeed(t, parse_shape("f32[2]")), "(f32[2], token[])"),
    "iota": ("f32[]", lambda x: f.iota(x.builder, parse_shape("s32[2,3]"), 1), "s32[2,3]"),
    "map": ("f32[2,3]", lambda x: f.map_(x, NEGATE), "f32[2,3]"),
    "opt-barrier": ("f32[2]", f.opt_barrier, "f32[2]"),
    "outfeed": ("f32[2];token[]", f.outfeed, "token[]"),
    "pad": ("f32[2]", lambda x: f.pad(x, 0, [(1, 1, 1)]), "f32[5]"),
    "parameter": ("f32[2]", lambda x: x, "f32[2]"),
    "partition-id": ("f32[]", lambda x: f.partition_id(x.builder), "u32[]"),
    "ragged-all-to-all": ("f32[4];f32[6];s32[2];s32[2];s32[2];s32[2]", f.ragged_all_to_all, "f32[6]"),
    "ragged-dot": ("f32[5,6];f32[6,4];s32[3]", lambda *x: f.ragged_dot(*x, **CONTRACT, lhs_ragged_dims=[1]), "f32[3,5,4]"),
    "recv": ("token[]", lambda t: f.recv(t, parse_shape("f32[2]"), 1), "(f32[2], u32[], token[])"),
    "recv-done": ("token[]", lambda t: f.recv_done(f.recv(t, parse_shape("f32[2]"), 1), 1), "(f32[2], token[])"),
    "reduce": ("f32[2,3]", lambda x: f.reduce(x, 0, ADD, [1]), "f32[2]"),
    "reduce-precision": ("f32[2]", lambda x: f.reduce_precision(x, 5, 10), "f32[2]"),
    "reduce-scatter": ("f32[4]", lambda x: f.reduce_scatter(x, ADD, 0, [[0, 1]]), "f32[2]"),
    "reduce-window": ("f32[8,8]", lambda x: f.reduce_window(x, 0, ADD, [3, 3], [2, 2], "SAME"), "f32[4,4]"),
    "replica-id": ("f32[]", lambda x: f.replica_id(x.builder), "u32[]"),
    "reshape": ("f32[2,3]", lambda x: f.reshape(x, [6]), "f32[6]"),
    "reverse": ("f32[2]", lambda x: f.reverse(x, [0]), "f32[2]"),
    "rng": ("f32[];f32[]", lambda a, b: f.rng_uniform(a, b, parse_shape("f32[5]")), "f32[5]"),
    "rng-bit-generator": ("u64[2]", lambda s: f.rng_bit_generator(s, parse_shape("u32[5]")), "(u64[2], u32[5])"),
    "rng-get-and-update-state": ("f32[]", lambda x: f.rng_get_and_update_state(x.builder, 1), "u64[2]"),
    "scaled-dot": ("f32[2,6];f32[6,4];f32[2,2]", lambda *x: f.scaled_dot(*x, **CONTRACT), "f32[2,4]"),
    "scan": ("f32[5,2];f32[2]", lambda x, c: f.scan(x, c, step()), "(f32[5,2], f32[2])"),
    "scatter": (
        "f32[4];s32[3,1];f32[3]",
        lambda x, i, u: f.scatter(
            x, i, u, ADD, update_window_dims=[], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1
        ),
        "f32[4]",
    ),
    "select": ("pred[2];f32[2]", lambda p, x: f.select(p, x, 0.0), "f32[2]"),
    "select-and-scatter": (
        "f32[4];f32[2]", lambda x, s: f.select_and_scatter(x, LESS, [2], [2], "VALID", s, 0, ADD), "f32[4]",
    ),
    "send": ("f32[2];token[]", lambda x, t: f.send(x, t, 1), "(f32[2], u32[], token[])"),
    "send-done": ("f32[2];token[]", lambda x, t: f.send_done(f.send(x, t, 1), 1), "token[]"),
    "set-dimension-size": ("f32[4];s32[]", lambda x, n: f.set_dimension_size(x, n, 0), "f32[<=4]"),
    "slice": ("f32[4]", lambda x: f.slice_(x, [1], [4], [2]), "f32[2]"),
    "sort": ("f32[4];s32[4]", lambda x, y: f.sort([x, y], is_stable=True), "(f32[4], s32[4])"),
    "stochastic-convert": ("f32[4];u32[4]", lambda x, r: f.stochastic_convert(x, r, "s8"), "s8[4]"),
    "topk": ("f32[4]", lambda x: f.topk(x, 2), "(f32[2], s32[2])"),
    "transpose": ("f32[2,3]", lambda x: f.transpose(x, [1, 0]), "f32[3,2]"),
    "triangular-solve": ("f32[4,4];f32[4,2]", lambda a, b: f.triangular_solve(a, b, left_side=True, lower=True), "f32[4,2]"),
    "tuple": ("f32[2];s32[]", lambda x, y: f.tuple_(x.builder, [x, y]), "(f32[2], s32[])"),
    "while": ("f32[]", lambda x: f.while_(FINITE, NEGATE, x), "f32[]"),
}  # fmt: skip
PLAIN = [n for n, r in OPCODES.items() if r.elementwise and n not in MADE]


@pytest.mark.parametrize("opcode", MADE)
def test_functions_make_their_opcode(opcode):
    shapes, make, result = MADE[opcode]
    builder, xs = given(*shapes.split(";"))
    made = make(*xs)
    module = builder.build(made).module()
    assert module.entry.root.opcode == opcode
    assert module.entry.root.shape is parse_shape(result)
    verify(module)


@pytest.mark.parametrize("opcode", PLAIN)
def test_elementwise_functions_make_their_opcode(opcode):
    row = OPCODES[opcode]
    dtype = "f32" if "f32" in map(str, row.accepts) else "s32"
    builder, xs = given(*[f"{dtype}[2,3]"] * row.arity[0])
    module = builder.build(f.function_of(opcode)(*xs)).module()
    assert module.entry.root.opcode == opcode
    assert module.entry.root.shape.dims == (2, 3)


def test_there_is_a_function_for_every_opcode():
    assert set(MADE) | set(PLAIN) == set(OPCODES)
    assert all(callable(f.function_of(o)) for o in OPCODES)


@pytest.mark.parametrize("name", sorted(f.XLA_NAMES))
def test_xla_names_are_attributes(name):
    assert callable(getattr(f, name))


def test_other_names_are_no_attributes():
    with pytest.raises(AttributeError, match="Frobnicate"):
        f.Frobnicate  # noqa: B018


OPERATORS = [
    (lambda x, y: x + y, "add"), (lambda x, y: x - y, "subtract"), (lambda x, y: x * y, "multiply"), (lambda x, y: x / y, "divide"),
    (lambda x, y: x % y, "remainder"), (lambda x, y: x**y, "power"), (lambda x, y: x & y, "and"), (lambda x, y: x | y, "or"),
    (lambda x, y: x ^ y, "xor"), (lambda x, y: x << y, "shift-left"), (lambda x, y: x >> y, "shift-right-arithmetic"),
    (lambda x, y: x @ y, "dot"), (lambda x, y: -x, "negate"), (lambda x, y: ~x, "not"), (lambda x, y: abs(x), "abs"),
    (lambda x, y: x < y, "compare"), (lambda x, y: x.eq(y), "compare"), (lambda x, y: x.ne(y), "compare"),
    (lambda x, y: 2 + x, "add"), (lambda x, y: 2 - x, "subtract"), (lambda x, y: x * np.int32(2), "multiply"),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(OPERATORS)), ids=[f"{i}-{o}" for i, (_, o) in enumerate(OPERATORS)])
def test_operators(i):
    operate, opcode = OPERATORS[i]
    builder, (x, y) = given("s32[3,3]", "s32[3,3]")
    made = operate(x, y)
    assert builder.build(made).module().entry.root.opcode == opcode


@pytest.mark.parametrize(
    "method, direction", [("eq", "EQ"), ("ne", "NE"), ("lt", "LT"), ("le", "LE"), ("gt", "GT"), ("ge", "GE")]
)
def test_comparisons(method, direction):
    _, (x,) = given("f32[2]")
    made = getattr(x, method)(0)
    assert made.shape is parse_shape("pred[2]")
    assert made.instruction.attrs["direction"] == direction
    assert (x > 0).instruction.attrs["direction"] == "GT"


def test_unsigned_shift_is_logical():
    _, (x,) = given("u8[2]")
    assert (x >> 1).instruction.opcode == "shift-right-logical"


BROADCAST = [
    ("f32[2,3]", "f32[]", (), "f32[2,3]"),
    ("f32[]", "f32[2,3]", (), "f32[2,3]"),
    ("f32[2,3]", "f32[3]", (1,), "f32[2,3]"),
    ("f32[2]", "f32[2,3]", (0,), "f32[2,3]"),
    ("f32[2,1]", "f32[1,3]", (), "f32[2,3]"),
    ("f32[2,1]", "f32[2,3]", (), "f32[2,3]"),
    ("f32[1]", "f32[2,3]", (1,), "f32[2,3]"),
]


@pytest.mark.parametrize("a, b, dims, result", BROADCAST)
def test_operands_are_broadcast_as_in_xla(a, b, dims, result):
    builder, (x, y) = given(a, b)
    made = f.add(x, y, dims)
    assert made.shape is parse_shape(result)
    builder.build(made)


@pytest.mark.parametrize(
    "a, b, dims", [("f32[2,3]", "f32[3]", ()), ("f32[2]", "f32[3]", ()), ("f32[2]", "f32[2,3]", (2,))]
)
def test_operands_that_cannot_be_broadcast(a, b, dims):
    builder, (x, y) = given(a, b)
    f.add(x, y, dims)
    with pytest.raises(ShapeError):
        builder.build()


@pytest.mark.parametrize(
    "value, dtype, ok",
    [(2, "f32", True), (0.5, "f32", True), (0.5, "s32", False), (1j, "c64", True), (1j, "f32", False), (300, "s8", False),
     (True, "pred", True), (2, "pred", False), (2, "bf16", True), (-1, "u8", False), (np.float64(0.5), "f32", True)],
)  # fmt: skip
def test_scalars_take_the_element_type_of_the_other_side(value, dtype, ok):
    builder, (x,) = given(f"{dtype}[2]")
    made = f.maximum(x, value)
    if ok:
        assert made.shape is parse_shape(f"{dtype}[2]")
        builder.build()
    else:
        with pytest.raises(DTypeError):
            builder.build()


@pytest.mark.parametrize(
    "key, result, slices",
    [(0, "f32[3]", ((0, 1, 1), (0, 3, 1))), (-1, "f32[3]", ((3, 4, 1), (0, 3, 1))), ((slice(1, None, 2), 0), "f32[2]", None),
     ((Ellipsis, slice(0, 2)), "f32[4,2]", None), (Ellipsis, "f32[4,3]", None), ((slice(9, 12),), "f32[0,3]", None)],
)  # fmt: skip
def test_indexing(key, result, slices):
    builder, (x,) = given("f32[4,3]")
    made = x[key]
    assert made.shape is parse_shape(result)
    module = builder.build(made).module()
    if slices:
        taken = next(i for i in module.entry.instructions if i.opcode == "slice")
        assert taken.attrs["slice"] == tuple(SliceDim(*s) for s in slices)


@pytest.mark.parametrize("key", [4, (0, 0, 0), slice(None, None, -1), "a"])
def test_wrong_indices(key):
    builder, (x,) = given("f32[4,3]")
    x[key]
    with pytest.raises(InvalidArgumentError):
        builder.build()


def test_the_first_error_waits_for_build_and_names_its_place():
    builder, (x, y) = given("f32[2,3]", "f32[4,5]")
    bad = f.Add(x, y)  # the line that the error names
    worse = f.exponential(bad) * 2 + f.transpose(x, [0, 0])
    assert not bad.valid
    assert not worse.valid
    with pytest.raises(ShapeError) as error:
        builder.build()
    text = str(error.value)
    assert "f32[2,3]" in text
    assert "f32[4,5]" in text
    assert "%x0" in text
    line = test_the_first_error_waits_for_build_and_names_its_place.__code__.co_firstlineno + 2
    assert f"test_builder.py:{line}:" in error.value.where
    assert builder.first_error is error.value


def test_shapes_of_invalid_ops_raise_the_first_error():
    _, (x,) = given("f32[2]")
    bad = f.reshape(x, [3])
    with pytest.raises(ShapeError) as error:
        _ = f.negate(bad).shape
    assert error.value.rule == "reshape C4"


def test_mixing_builders_is_an_error_at_once():
    _, (x,) = given("f32[2]")
    _, (y,) = given("f32[2]")
    with pytest.raises(InvalidArgumentError, match="different builders") as error:
        x + y
    assert error.value.number == 3
    with pytest.raises(InvalidArgumentError, match="different builders"):
        f.concatenate([x, y], 0)
    other = XlaBuilder("other")
    with pytest.raises(InvalidArgumentError):
        other.build(x)


def test_functions_need_an_operand_to_know_their_builder():
    with pytest.raises(InvalidArgumentError, match="XlaOp"):
        f.add(1, 2)


def test_build_ends_building():
    builder, (x,) = given("f32[2]")
    builder.build()
    f.negate(x)
    assert isinstance(builder.first_error, FailedPreconditionError)
    with pytest.raises(OpError):
        builder.build()
    with pytest.raises(FailedPreconditionError):
        XlaBuilder("empty").build()


def test_parameters_must_be_numbered_without_gaps():
    builder = XlaBuilder("gap")
    f.parameter(builder, 1, Shape.array("f32"))
    with pytest.raises(InvalidArgumentError) as error:
        builder.build()
    assert error.value.rule == "module V7"


def test_build_takes_the_last_operation_or_the_one_given():
    builder, (x, y) = given("f32[2]", "f32[3]")
    f.negate(x)
    assert builder.build(y).program_shape.result is parse_shape("f32[3]")


def test_program_shape():
    builder, (x, _) = given("f32[2]", "(s32[], token[])")
    f.negate(x)
    assert str(builder.build().program_shape) == "(x0: f32[2], x1: (s32[], token[])) -> f32[2]"


def test_a_finished_computation_cannot_be_changed():
    finished = NEGATE
    with pytest.raises(FailedPreconditionError):
        finished.name = "other"
    before = finished.fingerprint()
    module = finished.module()
    module.entry.root = module.entry.parameters[0]
    assert finished.fingerprint() == before
    assert finished.module().fingerprint() == before


def test_called_computations_are_copied_once():
    builder, (x,) = given("f32[2,3]")
    made = f.reduce(f.reduce(x, 0, ADD, [1]), 0, ADD, [0])
    module = builder.build(made).module()
    assert len(module.computations) == 2
    verify(module)


def test_names_of_computations_stay_unique():
    one, two = (computation("f32[];f32[]", op) for op in (f.add, f.maximum))
    builder, (x,) = given("f32[2]")
    module = builder.build(f.reduce(x, 0, one, [0]) + f.reduce(x, 0, two, [0])).module()
    assert len(module.computations) == 3


def test_metadata_and_attributes_of_a_scope():
    builder, (x,) = given("f32[2]")
    with builder.metadata(op_type="Neg", op_name="outer"), builder.metadata(op_name="outer/inner", source_line=3):
        inside = -x
    with builder.attributes(sharding=REPLICATED):
        shared = -x
    outside = -x
    assert inside.instruction.metadata == (("op_type", "Neg"), ("op_name", "outer/inner"), ("source_line", 3))
    assert shared.instruction.extras == {"sharding": REPLICATED}
    assert outside.instruction.metadata == ()
    assert outside.instruction.extras == {}
    with pytest.raises(InvalidArgumentError, match="colour"), builder.metadata(colour="red"):
        pass


def test_numpy_numbers_in_attributes_become_plain():
    _, (x,) = given("f32[2,3]")
    order = np.array([1, 0])
    attrs = f.transpose(x, order).instruction.attrs
    assert attrs == {"dimensions": (1, 0)}
    assert all(type(d) is int for d in attrs["dimensions"])


def test_constants():
    builder = XlaBuilder("constants")
    assert f.constant(builder, np.ones((2, 3), np.float16)).shape is parse_shape("f16[2,3]")
    assert f.constant(builder, Literal((Literal(1), Literal(2.0)))).shape.is_tuple
    assert f.constant(builder, 1, "bf16").shape is parse_shape("bf16[]")


def test_tokens_and_effects():
    builder = XlaBuilder("effects")
    token = f.after_all(builder)
    assert token.shape is TOKEN
    fed = f.infeed(token, parse_shape("f32[2]"))
    f.outfeed(f.get_tuple_element(fed, 0), f.get_tuple_element(fed, 1))
    assert builder.build().module().entry.has_side_effect


def test_conv_general_dilated_follows_the_formula():
    _, (x, k) = given("f32[1,3,9,9]", "f32[4,3,3,3]")
    made = f.ConvGeneralDilated(x, k, [2, 1], [(1, 1), (0, 2)], [1, 2], [2, 1])
    assert made.shape is parse_shape("f32[1,4,4,17]")


def test_matmul_of_stacks():
    builder, (x, y, v) = given("f32[7,2,3]", "f32[7,3,4]", "f32[3]")
    assert (x @ y).shape is parse_shape("f32[7,2,4]")
    assert (v @ v).shape is parse_shape("f32[]")
    x @ v
    with pytest.raises(ShapeError):
        builder.build()


def test_copies_are_equal_and_independent():
    module = computation("f32[2]", lambda x: f.reduce(x, 0, ADD, [0])).module()
    copy = copy_module(module)
    assert copy.fingerprint() == module.fingerprint()
    copy.entry.add("negate", [copy.entry.root], shape=copy.entry.root.shape)
    assert len(copy.entry.instructions) == len(module.entry.instructions) + 1
    assert not {*copy.entry.instructions} & {*module.entry.instructions}


def test_computations_survive_their_proto_and_pickle():
    again = XlaComputation.from_proto(NEGATE.proto())
    assert again.fingerprint() == NEGATE.fingerprint()
    assert pickle.loads(pickle.dumps(NEGATE)).program_shape == NEGATE.program_shape
