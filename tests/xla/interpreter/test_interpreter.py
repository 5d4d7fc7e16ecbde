"""The interpreter as a platform: arguments, results, options."""

import resource

import ml_dtypes
import numpy as np
import pytest

import cyxla
from cyxla.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
)
from cyxla.xla.evaluator import TOKEN_VALUE


def interpret(text, **options):
    return cyxla.compile(text, platform="interpreter", **options)


def identity(shape):
    return interpret(f"ENTRY e {{ ROOT x = {shape} parameter(0) }}")


WIDE = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("shape, given, want", [
    ("f32[]",       2,                                 np.float32(2)),
    ("f32[]",       True,                              np.float32(1)),
    ("f32[]",       2.5,                               np.float32(2.5)),
    ("bf16[]",      1.5,                               ml_dtypes.bfloat16(1.5)),
    ("c64[]",       1 + 2j,                            np.complex64(1 + 2j)),
    ("s8[]",        -128,                              np.int8(-128)),
    ("pred[]",      True,                              np.bool_(True)),
    ("u64[]",       2**64 - 1,                         np.uint64(2**64 - 1)),
    ("f32[3]",      [1, 2.5, 3],                       np.array([1, 2.5, 3], "f4")),
    ("s32[2,2]",    [[1, 2], [3, 4]],                  np.array([[1, 2], [3, 4]], "i4")),
    ("f32[3]",      (1, 2, 3),                         np.array([1, 2, 3], "f4")),
    ("f32[0]",      [],                                np.zeros(0, "f4")),
    ("f32[2,3]",    WIDE[::2, ::2],                    WIDE[::2, ::2]),
    ("f32[6,4]",    WIDE.T,                            WIDE.T),
    ("f32[4,6]",    WIDE[::-1, ::-1],                  WIDE[::-1, ::-1]),
    ("f32[4,6]",    WIDE.astype(">f4"),                WIDE),
    ("f32[4,6]{0,1}", WIDE,                            WIDE),
    ("f32[5]",      np.broadcast_to(np.float32(3), 5), np.full(5, 3, "f4")),
    ("f32[]",       np.float32(7),                     np.float32(7)),
    ("f32[<=4]",    np.arange(3, dtype="f4"),          np.arange(3, dtype="f4")),
    ("f32[?]",      np.arange(9, dtype="f4"),          np.arange(9, dtype="f4")),
])  # fmt: skip
def test_arguments(shape, given, want):
    got = identity(shape)(given)
    assert (got.dtype, got.shape, got.flags.c_contiguous) == (want.dtype, np.shape(want), True)
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, want)
    assert not np.shares_memory(got, given) if isinstance(given, np.ndarray) else True
    got[...] = 0  # results are the caller's own


@pytest.mark.parametrize("shape, given", [
    ("f32[3]",      np.arange(3.0)),
    ("f32[3]",      np.arange(4, dtype="f4")),
    ("f32[3]",      np.arange(3, dtype="f4").reshape(1, 3)),
    ("f32[]",       np.float64(1)),
    ("f32[]",       1j),
    ("s32[]",       1.5),
    ("s8[]",        128),
    ("u8[]",        -1),
    ("pred[]",      2),
    ("f32[]",       "1"),
    ("f32[2]",      [[1], [1, 2]]),
    ("f32[<=4]",    np.arange(5, dtype="f4")),
    ("f32[<=4]",    np.arange(3.0)),
    ("(f32[], f32[])", np.zeros(2, "f4")),
    ("(f32[], f32[])", (1.0,)),
    ("(f32[], (s8[]))", (1.0, (300,))),
])  # fmt: skip
def test_arguments_that_do_not_fit(shape, given):
    with pytest.raises(OpError, match="argument 0") as caught:
        identity(shape)(given)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_wrong_leaves_are_named_by_their_path():
    with pytest.raises(InvalidArgumentError, match=r"argument 0\[1\]\[0\]"):
        identity("(f32[], (s8[]))")((1.0, (300,)))


def test_tuples_go_in_and_out():
    run = interpret("""
        ENTRY e {
          t = (f32[2], (s32[], pred[])) parameter(0)
          k = s32[] parameter(1)
          x = f32[2] get-tuple-element(t), index=0
          u = (s32[], pred[]) get-tuple-element(t), index=1
          i = s32[] get-tuple-element(u), index=0
          j = s32[] add(i, k)
          ROOT r = ((s32[], f32[2]), s32[]) tuple((s32[], f32[2]) tuple(j, x), i)
        }""")
    (j, x), i = run(([1, 2], (3, True)), 4)
    assert (j, i, x.tolist()) == (7, 3, [1, 2])


def test_users_of_nested_tuples():
    run = interpret("""
        ENTRY e {
          t = ((s8[], s8[]), f32[2]) parameter(0)
          x = f32[2] get-tuple-element(t), index=1
          u = (s8[], s8[]) get-tuple-element(t), index=0
          ROOT r = ((s8[], s8[]), f32[2]) tuple(u, x)
        }""")
    place = np.empty(2, np.float32)
    (a, b), x = run(((1, 2), [3, 4]), out=(None, place))
    assert (a, b, x.tolist(), x is place) == (1, 2, [3, 4], True)


def test_tokens_go_in_and_out():
    run = interpret("ENTRY e { t = token[] parameter(0) x = f32[] parameter(1) ROOT r = (token[], f32[]) tuple(t, x) }")
    for token in (None, TOKEN_VALUE, 3):
        got, x = run(token, 2.0)
        assert got is TOKEN_VALUE
        assert x == 2


def test_opaque_arguments_are_not_there():
    with pytest.raises(UnimplementedError, match="argument 0 is opaque"):
        identity("opaque[]")(None)


PAIR = "ENTRY e { x = f32[3] parameter(0) y = f32[3] negate(x) ROOT r = (f32[3], f32[3]) tuple(x, y) }"


def test_results_go_to_out():
    run, x = interpret(PAIR), np.arange(3, dtype="f4")
    strided = np.zeros((3, 2), "f4")
    same, negative = run(x, out=(None, strided[:, 0]))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(strided, [[0, 0], [-1, 0], [-2, 0]])
    assert negative.base is strided
    _, onto_itself = run(x, out=(None, x))
    assert onto_itself is x
    np.testing.assert_array_equal(x, [0, -1, -2])


@pytest.mark.parametrize("out, match", [
    (np.zeros(3, "f4"),                          "out: got"),
    ((np.zeros(3, "f4"),),                       "out: got"),
    ((None, np.zeros(3, "f8")),                  r"out\[1\]: got float64"),
    ((None, np.zeros(4, "f4")),                  r"out\[1\]: got float32\[4\]"),
    ((None, [0.0, 0.0, 0.0]),                    r"out\[1\]"),
    ((np.broadcast_to(np.float32(0), 3), None),  r"out\[0\]: the array is read-only"),
])  # fmt: skip
def test_places_that_do_not_fit(out, match):
    with pytest.raises(InvalidArgumentError, match=match):
        interpret(PAIR)(np.arange(3, dtype="f4"), out=out)


def test_a_place_for_a_dynamic_result_is_of_the_size_that_comes():
    run = interpret("ENTRY e { ROOT x = f32[<=4] parameter(0) }")
    with pytest.raises(ShapeError, match=r"float32\[3\]"):
        run(np.arange(3, dtype="f4"), out=np.zeros(4, "f4"))


CALL = 'ENTRY e { x = f32[2] parameter(0) ROOT r = f32[2] custom-call(x), custom_call_target="half" }'


def test_custom_calls_of_one_program():
    run = interpret(CALL, custom_calls={"half": lambda evaluation, ins, x: x / 2})
    assert run([2, 4]).tolist() == [1, 2]
    with pytest.raises(UnimplementedError, match="'half'"):
        interpret(CALL)


LOOP = """
below { i = s32[] parameter(0) n = s32[] constant(10) ROOT p = pred[] compare(i, n), direction=LT }
next { i = s32[] parameter(0) one = s32[] constant(1) ROOT j = s32[] add(i, one) }
ENTRY e { i = s32[] parameter(0) ROOT w = s32[] while(i), condition=below, body=next }
"""


@pytest.mark.parametrize(
    "start, most, ends", [(0, 10, True), (0, 9, False), (1, 9, True), (10, 0, True), (0, None, True)]
)
def test_loops_end_in_time(start, most, ends):
    run = interpret(LOOP, max_trips=most)
    if ends:
        assert run(start) == 10
        return
    with pytest.raises(DeadlineExceededError) as caught:
        run(start)
    assert caught.value.code == "DEADLINE_EXCEEDED"


RNG = """
ENTRY e {
  low = f32[] constant(0)
  high = f32[] constant(1)
  ROOT r = f32[64] rng(low, high), distribution=rng_uniform
}
"""


def test_random_numbers_start_from_the_seed():
    one, again, other = (interpret(RNG, seed=s)() for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert ((one >= 0) & (one < 1)).all()


@pytest.fixture
def little_memory():
    """Some systems promise any amount of memory, and end the process when it is used."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64 << 30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("body, culprit", [
    ("c = f32[100000000000] iota(), iota_dimension=0\n  ROOT r = f32[1] slice(c), slice={[2:3]}", "%c = "),
    ("x = f32[] parameter(0)\n  b = f32[100000000000] broadcast(x), dimensions={}\n  n = f32[100000000000] negate(b)\n"
     "  ROOT r = f32[1] slice(n), slice={[2:3]}", "%n = "),
    ("x = f32[] parameter(0)\n  ROOT b = f32[100000000000] broadcast(x), dimensions={}", "%b = "),  # as a result
])  # fmt: skip
def test_too_little_memory_is_an_error_that_names_the_instruction(body, culprit):
    program = interpret(f"ENTRY e {{\n  {body}\n}}")
    with pytest.raises(ResourceExhaustedError, match="GiB") as caught:
        program(*[np.float32(1)] * ("parameter" in body))
    assert culprit in caught.value.where


@pytest.mark.parametrize("body", [
    "ROOT r = f32[1000000000000,0] iota(), iota_dimension=0",
    "x = f32[1000000000000,0] iota(), iota_dimension=0 ROOT r = f32[1000000000000,0] add(x, x)",
    "x = f32[1000000000000,0] iota(), iota_dimension=0 ROOT r = f32[0,0] dot(x, x), "
    "lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "x = f32[1000000000000,0] iota(), iota_dimension=0 ROOT r = (f32[1000000000000,0], s32[1000000000000,0]) "
    "topk(x), k=0, largest=true",
])  # fmt: skip
def test_arrays_without_elements_take_no_memory(body):
    module = cyxla.hlo.parse_module(f"ENTRY e {{ {body} }}")
    result = cyxla.compile(module, platform="interpreter")()
    shapes = [part.shape for part in (result if isinstance(result, tuple) else (result,))]
    assert shapes == [leaf.dims for leaf in module.entry.root.shape.leaves()]


@pytest.mark.parametrize("body", [
    "x = f32[4000000000,0] iota(), iota_dimension=0 ROOT r = f32[4000000000,0,4000000000,0] dot(x, x)",
    "ROOT x = f32[4611686018427387904,0] iota(), iota_dimension=0",
])  # fmt: skip
def test_arrays_that_numpy_cannot_make_are_refused(body, backend):
    text = f"ENTRY e {{ {body} }}"
    with pytest.raises(ResourceExhaustedError, match="if no size were 0"):
        cyxla.compile(text, platform=backend)


SIZES = ",".join(["1"] * 64)


@pytest.mark.parametrize("body", [
    f"ROOT r = f32[{SIZES}] negate(x)",
    f"ROOT r = f32[{SIZES}] sort(x), dimensions={{0}}, to_apply=less",
    f"ROOT r = f32[{SIZES}] constant({'{' * 64}0{'}' * 64})",
])  # fmt: skip
def test_as_many_dimensions_as_numpy_has(body):
    less = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }\n"
    x = np.zeros((1,) * 64, np.float32)
    assert interpret(f"{less}ENTRY e {{ x = f32[{SIZES}] parameter(0) {body} }}")(x) == 0


def test_windows_over_more_dimensions_than_numpy_takes():
    add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    windows = f"reduce-window(x, z), window={{size={SIZES.replace(',', 'x')}}}, to_apply=add"
    body = f"x = f32[{SIZES}] parameter(0) z = f32[] constant(0) ROOT r = f32[{SIZES}] {windows}"
    with pytest.raises(UnimplementedError, match="windows over 64 dimensions"):
        interpret(f"{add}ENTRY e {{ {body} }}")(np.zeros((1,) * 64, np.float32))
