"""Calls of native programs: arguments lent, converted or refused; results; memory that is kept."""

import contextlib
import gc
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from support.interrupts import alarm, repeatedly

from cyxla import errors
from cyxla.xla.cpu.native import library as native

ADD_ONE = """
typedef float f32u __attribute__((aligned(1), may_alias));
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) {
  const f32u *x = b[0]; f32u *y = b[1];
  for (int k = 0; k < 6; ++k) y[k] = x[k] + 1.0f;
  return CYX_OK;
}
"""
COPY = """
void *memcpy(void *, const void *, unsigned long);
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) { memcpy(b[1], b[0], %d); return CYX_OK; }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def add_one(program):
    return program(ADD_ONE, [("f4", (2, 3))], [("f4", (2, 3))])


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


CONVERTED = {
    "as declared": X,
    "misaligned": misaligned(X),
    "strided": np.stack([X, X], axis=-1)[..., 0],
    "fortran": np.asfortranarray(X),
    "negative strides": X[::-1, ::-1].copy()[::-1, ::-1],
    "byteswapped": X.astype(">f4"),
    "read-only": np.frombuffer(X.tobytes(), np.float32).reshape(2, 3),
    "subclass": X.view(np.matrix),
    "list of floats": X.tolist(),
    "list of ints": [[0, 1, 2], [3, 4, 5]],
    "tuple of tuples": ((0, 1, 2), (3, 4.0, 5)),
    "buffer": memoryview(X),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("value", CONVERTED.values(), ids=CONVERTED)
def test_argument_is_lent_or_converted(add_one, value):
    np.testing.assert_array_equal(add_one(value), X + 1, strict=True)


REFUSED = {
    "dtype": (X.astype(np.float64), errors.DTypeError, r"argument 0: got float64\[2,3\], want float32\[2,3\]"),
    "integer array": (X.astype(np.int32), errors.DTypeError, r"got int32\[2,3\]"),
    "NumPy scalar": (np.float64(1), errors.DTypeError, r"got float64\[\]"),
    "shape": (X.T, errors.ShapeError, r"got float32\[3,2\], want float32\[2,3\]"),
    "rank": (X.ravel(), errors.ShapeError, r"got float32\[6\]"),
    "a number": (1.0, errors.ShapeError, r"got float32\[\]"),
    "complex numbers": ([[1j] * 3] * 2, errors.DTypeError, "want float32"),
    "ragged": ([[1, 2], [3]], errors.InvalidArgumentError, "argument 0"),
    "text": ("abc", errors.DTypeError, "got a str"),
    "None": (None, errors.DTypeError, "got a NoneType"),
    "objects": (X.astype(object), errors.DTypeError, r"got object\[2,3\]"),
}


@pytest.mark.parametrize("value, error, message", REFUSED.values(), ids=REFUSED)
def test_argument_is_refused(add_one, value, error, message):
    with pytest.raises(error, match=message) as caught:
        add_one(value)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("args, message", [((), "takes 1 argument, got 0"), ((X, X), "takes 1 argument, got 2")])
def test_count_of_arguments(add_one, args, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        add_one(*args)


SCALARS = [
    ("i1", 127, 127), ("i1", True, 1), ("i1", 128, None), ("i1", -129, None), ("u1", -1, None), ("i4", 2**31, None),
    ("i8", 2**63, None), ("i8", -(2**63), -(2**63)), ("u8", -1, None), ("i4", 1.5, None), ("i4", 1.0, None),
    ("u8", 2**64 - 1, 2**64 - 1), ("f4", 3, 3.0), ("f4", True, 1.0), ("f8", 1, 1),
    ("c8", 2, 2 + 0j), ("c8", 1j, 1j), ("f4", 1j, None), ("?", True, True), ("?", 1, None),
    (ml_dtypes.bfloat16, 1.5, 1.5), (ml_dtypes.int4, 7, 7), (ml_dtypes.int4, 8, None), (ml_dtypes.uint4, 15, 15),
]  # fmt: skip


@pytest.mark.parametrize("dtype, value, want", SCALARS)
def test_python_number_takes_the_declared_dtype_if_that_can_hold_it(program, dtype, value, want):
    dtype = np.dtype(dtype)
    copy = program(COPY % dtype.itemsize, [(dtype, ())], [(dtype, ())])
    if want is None:
        with pytest.raises(errors.InvalidArgumentError, match="argument 0"):
            copy(value)
    else:
        result = copy(value)
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result.dtype == dtype
        assert result == np.asarray(want).astype(dtype)


DTYPES = ["?", "i1", "u2", "i8", "q", "f2", "f8", "c16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_goes_through(program, dtype):
    x = (np.arange(12) % 3).reshape(3, 4).astype(dtype)
    copy = program(COPY % x.nbytes, [(x.dtype, x.shape)], [(x.dtype, x.shape)])
    np.testing.assert_array_equal(copy(x), x, strict=True)
    np.testing.assert_array_equal(copy(x[:, ::-1]), x[:, ::-1])


def test_int64_under_its_other_c_name(program):
    x = np.arange(3, dtype="l")
    np.testing.assert_array_equal(program(COPY % 24, [("l", (3,))], [("l", (3,))])(x.astype("q")), x)


@pytest.mark.parametrize("dims", [(0,), (3, 0, 2), (0, 0)])
def test_empty_arrays(program, dims):
    copy = program(COPY % 0, [("f4", dims)], [("f4", dims)])
    assert copy(np.zeros(dims, np.float32)).shape == dims
    assert copy(np.zeros(dims, np.float32), out=np.empty(dims, np.float32)).shape == dims


def test_no_arguments_and_constants(program):
    answer = program(
        "CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { *(int *)b[0] = *(int *)b[1]; return 0; }",
        [], [("i4", ())], constants=[np.array(42, np.int32)],
    )  # fmt: skip
    gc.collect()
    assert answer() == 42


@pytest.mark.parametrize("count", [1, 33, 70])
def test_many_arguments_and_results(program, count):
    text = """
    CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
      for (int k = 0; k < COUNT; ++k) *(int *)b[COUNT + k] = *(const int *)b[k] * 2;
      return CYX_OK;
    }"""
    specs = [("i4", ())] * count
    double = program(text.replace("COUNT", str(count)), specs, specs, tuple(range(count)))
    results = double(*range(count))
    assert type(results) is tuple
    assert [int(r) for r in results] == [2 * k for k in range(count)]


SWAP = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  for (int k = 0; k < 3; ++k) *(int *)b[3 + k] = *(const int *)b[2 - k];
  return CYX_OK;
}"""


def test_trees_of_arguments_and_results(program):
    swap = program(SWAP, [("i4", ())] * 3, [("i4", ())] * 3, ((2,), (), (0, 1)), parameters=(1, (0, (2,))))
    assert swap(10, (20, (30,))) == ((20,), (), (30, 10))
    with pytest.raises(errors.InvalidArgumentError, match=r"argument 1\[1\]: got 3, want a tuple of 1"):
        swap(1, (2, 3))
    with pytest.raises(errors.ShapeError, match=r"argument 1\[1\]\[0\]"):
        swap(1, (2, ([3, 4],)))
    with pytest.raises(errors.InvalidArgumentError, match="takes 2 arguments, got 3"):
        swap(1, 2, 3)
    out = ((np.zeros((), "i4"),), (), (None, np.zeros((), "i4")))
    result = swap(10, (20, (30,)), out=out)
    assert result == ((20,), (), (30, 10))
    assert result[0][0] is out[0][0]
    assert result[2][1] is out[2][1]


def test_bound_inputs(program):
    swap = program(SWAP, [("i4", ())] * 3, [("i4", ())] * 3, (0, 1, 2), bound={1: 7})
    assert swap(1, 2) == (2, 7, 1)
    with pytest.raises(errors.InvalidArgumentError, match="takes 2 arguments"):
        swap(1, 2, 3)
    with pytest.raises(errors.ShapeError, match="bound input 1"):
        program(SWAP, [("i4", ())] * 3, [("i4", ())] * 3, (0, 1, 2), bound={1: [7, 8]})


def test_out_is_written_and_returned(add_one):
    out = np.empty((2, 3), np.float32)
    assert add_one(X, out=out) is out
    np.testing.assert_array_equal(out, X + 1)


INDIRECT = {
    "the input itself": lambda x: x,
    "part of the input's memory": lambda x: x.base[3:9].reshape(2, 3),
    "strided": lambda x: np.zeros((2, 6), np.float32)[:, ::2],
    "fortran": lambda x: np.zeros((2, 3), np.float32, order="F"),
    "misaligned": lambda x: misaligned(X),
}


@pytest.mark.parametrize("place", INDIRECT.values(), ids=INDIRECT)
def test_out_in_an_awkward_place(program, place):
    reverse = program(
        """CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
             typedef float f32u __attribute__((aligned(1), may_alias));
             const f32u *restrict x = b[0]; f32u *restrict y = b[1];
             for (int k = 0; k < 6; ++k) y[k] = x[5 - k];
             return CYX_OK;
           }""",
        [("f4", (2, 3))], [("f4", (2, 3))],
    )  # fmt: skip
    x = np.arange(12, dtype=np.float32)[:6].reshape(2, 3)
    want = x[::-1, ::-1].copy()
    out = place(x)
    assert reverse(x, out=out) is out
    np.testing.assert_array_equal(out, want)


BAD_OUT = {
    "shape": (np.zeros((3, 2), np.float32), errors.ShapeError, r"out: got float32\[3,2\], want float32\[2,3\]"),
    "dtype": (np.zeros((2, 3)), errors.DTypeError, "out: got float64"),
    "kind": ([[0] * 3] * 2, errors.InvalidArgumentError, "out: got"),
    "read-only": (np.frombuffer(bytes(24), np.float32).reshape(2, 3), errors.InvalidArgumentError, "read-only"),
}


@pytest.mark.parametrize("out, error, message", BAD_OUT.values(), ids=BAD_OUT)
def test_out_is_refused(add_one, out, error, message):
    with pytest.raises(error, match=message):
        add_one(X, out=out)


STATUSES = [
    (3, "bad index", errors.InvalidArgumentError, "bad index"),
    (8, "", errors.ResourceExhaustedError, "RESOURCE_EXHAUSTED"),
    (12, "no such thing", errors.UnimplementedError, "no such thing"),
    (99, "odd", errors.UnknownError, "odd"),
    (13, "x" * 255, errors.InternalError, "x" * 255),
]


@pytest.mark.parametrize("status, text, error, message", STATUSES)
def test_status_becomes_the_error(program, status, text, error, message):
    fails = program(
        f"""CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {{
              const char *text = "{text}";
              for (int k = 0; (c->message[k] = text[k]); ++k) {{}}
              return {status};
            }}""",
        [], [], (), arena_bytes=100,
    )  # fmt: skip
    before = native.pool_stats()["in_use_blocks"]
    with pytest.raises(error, match=message):
        fails()
    assert native.pool_stats()["in_use_blocks"] == before


def test_functions_reach_the_program(program):
    import ctypes

    doubled = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: 2 * n)
    double = program(
        """CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
             *(int *)b[1] = ((int (*)(int))c->functions[1])(*(const int *)b[0]);
             return CYX_OK;
           }""",
        [("i4", ())], [("i4", ())],
        functions=[0, ctypes.cast(doubled, ctypes.c_void_p).value], keep=doubled,
    )  # fmt: skip
    del doubled
    gc.collect()
    assert double(21) == 42


def test_library_of_another_abi_is_refused():
    from cyxla.xla.cpu.c import prelude

    text = prelude.abi() + "CYX_EXPORT const uint32_t cyx_library_version = CYX_ABI_VERSION + 1;"
    with pytest.raises(OSError, match="ABI version"):
        native.build_library([text])
    with pytest.raises(OSError, match="cannot load"):
        native.Library("/nonexistent.so")


def test_result_memory_is_returned_and_used_again(program):
    n = 1 << 20
    copy = program(COPY % n, [("u1", (n,))], [("u1", (n,))])
    x = np.zeros(n, np.uint8)
    copy(x)
    before = native.pool_stats()
    for _ in range(10):
        y = copy(x)[5:]
        assert y.base.ctypes.data % (2 << 20) == 0
        del y
    after = native.pool_stats()
    assert after["in_use_bytes"] == before["in_use_bytes"]
    assert after["misses"] == before["misses"]


@pytest.mark.parametrize("value", [X, X.tolist(), X.T.copy().T, X.T], ids=["lent", "list", "strided", "refused"])
def test_nothing_leaks(add_one, value):
    def call():
        with contextlib.suppress(errors.ShapeError):
            add_one(value)

    def alive():
        gc.collect()
        return sys.getrefcount(value), sys.getrefcount(X.dtype), native.pool_stats()["in_use_bytes"]

    for _ in range(100):
        call()
    before, blocks = alive(), sys.getallocatedblocks()
    for _ in range(10_000 if value is X else 1_000):
        call()
    assert alive() == before
    assert sys.getallocatedblocks() - blocks < 100


def test_programs_and_libraries_are_released(program):
    import weakref

    constant = np.zeros(3)
    ref = weakref.ref(constant)
    built = program(ADD_ONE, [("f4", (2, 3))], [("f4", (2, 3))], constants=[constant])
    result = built(X)
    del built, constant
    gc.collect()
    assert ref() is None
    np.testing.assert_array_equal(result, X + 1)


ARENA = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  volatile int *t = (volatile int *)c->arena;
  for (int k = 0; k < 256; ++k) t[k] = *(const int *)b[0];
  for (int k = 0; k < 256; ++k) if (t[k] != *(const int *)b[0]) return CYX_INTERNAL;
  *(int *)b[1] = t[255];
  return CYX_OK;
}"""


@pytest.mark.parametrize("release_gil", [True, False])
def test_a_hundred_threads_with_arenas_of_their_own(program, release_gil):
    same = program(ARENA, [("i4", ())], [("i4", ())], arena_bytes=1024, release_gil=release_gil)

    def work(n):
        value = np.array(n, np.int32)
        return all(same(value) == n for _ in range(1000))

    before = native.pool_stats()["in_use_bytes"]
    with ThreadPoolExecutor(100) as pool:
        assert all(pool.map(work, range(100)))
    gc.collect()
    assert native.pool_stats()["in_use_bytes"] == before


FOREVER = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  for (;;) { cyx_status s = c->poll(c); if (s != CYX_OK) return s; }
}"""


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("release_gil", [True, False])
def test_a_signal_ends_an_endless_loop(program, release_gil, add_one):
    def interrupt(*_):
        raise Interrupted

    forever = program(FOREVER, [], [], (), release_gil=release_gil)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interrupted), alarm():
            forever()
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(add_one(X), X + 1)


def test_cancel_ends_calls_under_way_and_no_later_ones(program):
    forever = program(FOREVER, [], [], ())
    caught = []

    def call():
        try:
            forever()
        except errors.CancelledError as error:
            caught.append(error.code)

    for count in (1, 2):
        thread = threading.Thread(target=call)
        thread.start()
        with repeatedly(forever.cancel):
            thread.join()
        assert caught == ["CANCELLED"] * count


def test_subclass_in_python(program):
    class Named(native.Program):
        def __init__(self, name, *args, **kwargs):
            self.name = name
            super().__init__(*args, **kwargs)

    add_one = program(ADD_ONE, [("f4", (2, 3))], [("f4", (2, 3))])
    named = Named("n", add_one.library, "entry", add_one.inputs, add_one.outputs, 0)
    np.testing.assert_array_equal(named(X), X + 1)
    with pytest.raises(RuntimeError, match="initialised twice"):
        named.__init__("n", add_one.library, "entry", add_one.inputs, add_one.outputs, 0)
    with pytest.raises(RuntimeError, match="never initialised"):
        Named.__new__(Named)()


BAD_PLANS = {
    "input left over": (2, {"parameters": (0,)}),
    "input used twice": (1, {"parameters": (0, 0)}),
    "strided constant": (0, {"constants": [np.zeros((4, 4))[:, 1]]}),
}


@pytest.mark.parametrize("inputs, options", BAD_PLANS.values(), ids=BAD_PLANS)
def test_bad_plans_are_refused(program, inputs, options):
    with pytest.raises(ValueError, match=r"parameters|constant"):
        program(ADD_ONE, [("f4", ())] * inputs, [], (), **options)
