"""Programs and results that XLA's own tests of bounded dynamic dimensions state, on both platforms.

The specification are xla/service/dynamic_padder_test.cc, xla/tests/dynamic_reshape_test.cc,
xla/tests/set_dimension_size_test.cc and xla/tests/get_dimension_size_test.cc.
"""

import numpy as np
import pytest

import cyxla

# ruff: noqa: E501  programs read best a line at a time

COMPUTATIONS = """HloModule m
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
second { a = s32[] parameter(0) ROOT b = s32[] parameter(1) }
second_f32 { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
add_f16 { a = f16[] parameter(0) b = f16[] parameter(1) ROOT c = f16[] add(a, b) }
greater { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GT }
greater_first { a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=GT }
push { t = (s32[<=4,2]) parameter(0) x = s32[<=4,2] get-tuple-element(t), index=0
  n = s32[] get-dimension-size(x), dimensions={0} zero = s32[] constant(0) one = s32[] constant(1)
  row = s32[1,2] broadcast(n), dimensions={} y = s32[<=4,2] dynamic-update-slice(x, row, n, zero)
  m = s32[] add(n, one) z = s32[<=4,2] set-dimension-size(y, m), dimensions={0} ROOT r = (s32[<=4,2]) tuple(z) }
fewer { t = (s32[<=4,2]) parameter(0) x = s32[<=4,2] get-tuple-element(t), index=0
  n = s32[] get-dimension-size(x), dimensions={0} three = s32[] constant(3) ROOT p = pred[] compare(n, three), direction=LT }
pop { t = (s32[<=4,2]) parameter(0) x = s32[<=4,2] get-tuple-element(t), index=0 one = s32[] constant(1)
  n = s32[] get-dimension-size(x), dimensions={0} m = s32[] subtract(n, one)
  y = s32[<=4,2] set-dimension-size(x, m), dimensions={0} ROOT r = (s32[<=4,2]) tuple(y) }
more { t = (s32[<=4,2]) parameter(0) x = s32[<=4,2] get-tuple-element(t), index=0
  n = s32[] get-dimension-size(x), dimensions={0} two = s32[] constant(2) ROOT p = pred[] compare(n, two), direction=GT }
double { t = (s32[<=3,2]) parameter(0) x = s32[<=3,2] get-tuple-element(t), index=0 y = s32[<=3,2] add(x, x)
  ROOT r = (s32[<=3,2], s32[<=3,2]) tuple(y, y) }
"""


def s32(*values):
    return np.array(values, np.int32)


def f32(*values):
    return np.array(values, np.float32)


TOTAL = "zero = s32[] constant(0) ROOT r = s32[] reduce(y, zero), dimensions={0}, to_apply=add"
TEN = s32([[[1], [2], [3], [4], [5]], [[2], [4], [6], [7], [8]]])
PAIRS = "param = s32[2,3,3] parameter(0) two = s32[] constant(2)"
NINES = s32(np.arange(9).reshape(3, 3), np.arange(9).reshape(3, 3))
UPDATE = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply"
)
SCATTER = (
    "x = s32[3,3] parameter(0) i0 = s32[4] parameter(1) u0 = s32[4,3] parameter(2) n = s32[] parameter(3) "
    "i = s32[<=4] set-dimension-size(i0, n), dimensions={0} u = s32[<=4,3] set-dimension-size(u0, n), dimensions={0} "
    f"ROOT r = s32[3,3] scatter(x, i, u), {UPDATE}=second"
)
#: Body of the entry, arguments, and the result.
CASES = {
    # scatters and gathers
    "scatter of halves": (
        f"one = s32[1] constant({{1}}) x = f16[1,1] constant({{{{0.099976}}}}) n = s32[] reshape(one) "
        f"y = f16[<=1,1] set-dimension-size(x, n), dimensions={{0}} ROOT r = f16[<=1,1] scatter(y, one, x), {UPDATE}=add_f16",
        [], np.float16([[0.099976]]),
    ),
    "scatter of two of four rows": (
        SCATTER,
        [s32([1, 2, 3], [4, 5, 6], [7, 8, 9]), s32(0, 2, 0, 4), s32([10, 20, 30], [70, 80, 90], [30, 22, 11], [-1, 20, -1]), s32(2)[0]],
        s32([10, 20, 30], [4, 5, 6], [70, 80, 90]),
    ),
    "scatter of one of two rows": (
        "x = f32[3,3] parameter(0) i0 = s32[2] parameter(1) u0 = f32[2,3] parameter(2) n = s32[] parameter(3) "
        "i = s32[<=2] set-dimension-size(i0, n), dimensions={0} u = f32[<=2,3] set-dimension-size(u0, n), dimensions={0} "
        f"ROOT r = f32[3,3] scatter(x, i, u), {UPDATE}=second_f32",
        [f32([1, 2, 3], [4, 5, 6], [7, 8, 9]), s32(0, 2), f32([10, 20, 30], [70, 80, 90]), s32(1)[0]],
        f32([10, 20, 30], [4, 5, 6], [7, 8, 9]),
    ),
    "scatter of windows": (
        "x0 = s32[1,2,3] parameter(0) i = s32[1] parameter(1) u0 = s32[2,3,1] parameter(2) n = s32[] constant(1) "
        "x = s32[1,<=2,3] set-dimension-size(x0, n), dimensions={1} u = s32[<=2,3,1] set-dimension-size(u0, n), dimensions={0} "
        "ROOT r = s32[1,<=2,3] scatter(x, i, u), to_apply=second, update_window_dims={0,1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        [s32([[0] * 3] * 2), s32(0), s32([[10], [20], [30]], [[70], [80], [90]])], s32([[10, 20, 30]]),
    ),
    "gather of a whole dimension": (
        "x = s32[3,2,1] parameter(0) n = s32[] constant(1) d = s32[3,2,1] set-dimension-size(x, n), dimensions={1} "
        "y = s32[2,1] gather(d, n), offset_dims={0,1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, "
        "slice_sizes={1,2,1} zero = s32[] constant(0) ROOT r = s32[] reduce(y, zero), dimensions={0,1}, to_apply=add",
        [s32([[1], [2]], [[3], [4]], [[5], [6]])], s32(3)[0],
    ),
    # reductions
    "two dimensions": (
        "x0 = s32[4,4] parameter(0) n = s32[] parameter(1) x1 = s32[<=4,4] set-dimension-size(x0, n), dimensions={0} "
        "x = s32[<=4,<=4] set-dimension-size(x1, n), dimensions={1} zero = s32[] constant(0) "
        "ROOT r = s32[] reduce(x, zero), dimensions={0,1}, to_apply=add",
        [s32([1, 2, 3, 4], [4, 5, 6, 7], [1, 2, 3, 4], [4, 5, 6, 7]), s32(2)[0]], s32(12)[0],
    ),
    "clamp": (
        f"x = s32[5] parameter(0) n = s32[] constant(3) d = s32[5] set-dimension-size(x, n), dimensions={{0}} y = s32[5] clamp(d, d, d) {TOTAL}",
        [s32(1, 2, 3, 4, 5)], s32(6)[0],
    ),
    "reduce": (
        f"x = s32[5] parameter(0) n = s32[] constant(3) y = s32[<=5] set-dimension-size(x, n), dimensions={{0}} {TOTAL}",
        [s32(1, 2, 3, 4, 5)], s32(6)[0],
    ),
    # movement
    "concatenate": (
        "x0 = s32[3] parameter(0) y = s32[3] parameter(1) z0 = s32[3] parameter(2) n = s32[] constant(2) "
        "x = s32[<=3] set-dimension-size(x0, n), dimensions={0} z = s32[<=3] set-dimension-size(z0, n), dimensions={0} "
        "ROOT r = s32[<=9] concatenate(x, y, z), dimensions={0}",
        [s32(1, 2, -1), s32(3, 4, 5), s32(6, 7, -1)], s32(1, 2, 3, 4, 5, 6, 7),
    ),
    "reverse": (
        "x = s32[3] parameter(0) n = s32[] constant(2) y = s32[<=3] set-dimension-size(x, n), dimensions={0} "
        "ROOT r = s32[<=3] reverse(y), dimensions={0}",
        [s32(1, 2, -1)], s32(2, 1),
    ),
    "reverse of two dimensions": (
        "x = s32[3,3] parameter(0) n = s32[] constant(2) y = s32[<=3,3] set-dimension-size(x, n), dimensions={0} "
        "z = s32[<=3,<=3] set-dimension-size(y, n), dimensions={1} ROOT r = s32[<=3,<=3] reverse(z), dimensions={0,1}",
        [s32([1, 2, -1], [3, 4, -1], [-1, -1, -1])], s32([4, 3], [2, 1]),
    ),
    "slice of one element": (
        "x = s32[5] parameter(0) n = s32[] constant(3) y = s32[5] set-dimension-size(x, n), dimensions={0} "
        "ROOT r = s32[1] slice(y), slice={[0:1]}",
        [s32(0, 1, 2, 3, 4)], s32(0),
    ),
    "pad": (
        "x = s32[4] parameter(0) n = s32[] constant(3) two = s32[] constant(2) d = s32[<=4] set-dimension-size(x, n), dimensions={0} "
        f"y = s32[<=6] pad(d, two), padding=1_1 {TOTAL}",
        [s32(1, 4, 3, 5)], s32(12)[0],
    ),
    "pad inside": (
        "x = s32[4] parameter(0) n = s32[] constant(3) two = s32[] constant(2) d = s32[<=4] set-dimension-size(x, n), dimensions={0} "
        f"y = s32[<=7] pad(d, two), padding=0_0_1 {TOTAL}",
        [s32(1, 4, 3, 5)], s32(12)[0],
    ),
    # reshapes
    "reshape of a minor dimension": (
        "x = s32[1,2,5,1] parameter(0) n = s32[] constant(3) d = s32[1,2,5,1] set-dimension-size(x, n), dimensions={2} "
        f"y = s32[10] reshape(d) {TOTAL}",
        [TEN], s32(18)[0],
    ),
    "reshape to a minor dimension": (
        "x = s32[12] parameter(0) n = s32[] constant(8) d = s32[12] set-dimension-size(x, n), dimensions={0} "
        "y = s32[2,3,2] reshape(d), inferred_dimension=1 zero = s32[] constant(0) "
        "ROOT r = s32[2,2] reduce(y, zero), dimensions={1}, to_apply=add",
        [np.arange(12, dtype="i4")], s32([2, 4], [10, 12]),
    ),
    "reshape below a dimension": (
        "x = s32[2,6] parameter(0) n = s32[] constant(4) d = s32[2,6] set-dimension-size(x, n), dimensions={1} "
        "y = s32[2,2,3] reshape(d), inferred_dimension=2 zero = s32[] constant(0) "
        "ROOT r = s32[2,2] reduce(y, zero), dimensions={2}, to_apply=add",
        [np.arange(12, dtype="i4").reshape(2, 6)], s32([1, 5], [13, 17]),
    ),
    "reshape above a dimension": (
        "x = s32[6,2] parameter(0) n = s32[] constant(4) d = s32[6,2] set-dimension-size(x, n), dimensions={0} "
        "y = s32[2,3,2] reshape(d), inferred_dimension=1 zero = s32[] constant(0) "
        "ROOT r = s32[2,2] reduce(y, zero), dimensions={1}, to_apply=add",
        [np.arange(12, dtype="i4").reshape(6, 2)], s32([2, 4], [10, 12]),
    ),
    "reshape of a dimension that stays": (
        "x = s32[1,2,5,1] parameter(0) n = s32[] constant(3) d = s32[1,2,5,1] set-dimension-size(x, n), dimensions={2} "
        "y = s32[2,5] reshape(d) zero = s32[] constant(0) ROOT r = s32[2] reduce(y, zero), dimensions={1}, to_apply=add",
        [TEN], s32(6, 12),
    ),
    "reshape of a dimension of one element": (
        "x = s32[1,2,5,1] parameter(0) n = s32[] constant(0) d = s32[1,2,5,1] set-dimension-size(x, n), dimensions={0} "
        f"y = s32[10] reshape(d) {TOTAL}",
        [TEN], s32(0)[0],
    ),
    "reshape that splits and combines": (
        "x = s32[4,2,2] parameter(0) two = s32[] constant(2) one = s32[] constant(1) "
        "d = s32[<=4,2,2] set-dimension-size(x, two), dimensions={0} e = s32[<=4,2,<=2] set-dimension-size(d, one), dimensions={2} "
        "y = s32[2,<=2,<=4] reshape(e), inferred_dimension=1 zero = s32[] constant(0) "
        "ROOT r = s32[] reduce(y, zero), dimensions={0,1,2}, to_apply=add",
        [s32([[0, -1], [1, -1]], [[2, -1], [3, -1]], [[-1, -1], [-1, -1]], [[-1, -1], [-1, -1]])], s32(6)[0],
    ),
    "reshape in several ways": (
        "x = s32[2,4,4] parameter(0) two = s32[] constant(2) d = s32[2,<=4,4] set-dimension-size(x, two), dimensions={1} "
        "y = s32[<=16,2] reshape(d), inferred_dimension=0 zero = s32[] constant(0) "
        "ROOT r = s32[] reduce(y, zero), dimensions={0,1}, to_apply=add",
        [s32([[1, 2, 3, 4], [5, 6, 7, 8], [-1] * 4, [-1] * 4], [[9, 10, 11, 12], [13, 14, 15, 16], [-1] * 4, [-1] * 4])], s32(136)[0],
    ),
    "reshape of two dimensions": (
        f"{PAIRS} d = s32[2,3,3] set-dimension-size(param, two), dimensions={{1}} e = s32[2,3,3] set-dimension-size(d, two), dimensions={{2}} "
        f"y = s32[18] reshape(e) {TOTAL}",
        [NINES], s32(16)[0],
    ),
    "reshape of two dimensions, the first of which is stated": (
        f"{PAIRS} d = s32[2,<=3,3] set-dimension-size(param, two), dimensions={{1}} e = s32[2,3,<=3] set-dimension-size(d, two), dimensions={{2}} "
        f"y = s32[<=18] reshape(e) {TOTAL}",
        [NINES], s32(16)[0],
    ),
    "dynamic reshape of one dimension": (
        "x = s32[2,3,3] parameter(0) n = s32[] parameter(1) m = s32[] parameter(2) "
        "d = s32[2,<=3,3] set-dimension-size(x, n), dimensions={1} ROOT r = s32[<=18] dynamic-reshape(d, m)",
        # of 12 present elements, the first 9
        [np.arange(18, dtype="i4").reshape(2, 3, 3), s32(2)[0], s32(9)[0]], s32(0, 1, 2, 3, 4, 5, 9, 10, 11),
    ),
    "dynamic reshape of two dimensions": (
        f"{PAIRS} n = s32[] constant(8) d = s32[2,<=3,3] set-dimension-size(param, two), dimensions={{1}} "
        "e = s32[2,<=3,<=3] set-dimension-size(d, two), dimensions={2} ROOT r = s32[<=18] dynamic-reshape(e, n)",
        [NINES], s32(0, 1, 3, 4, 0, 1, 3, 4),
    ),
    "dynamic reshape to two dimensions": (
        "x = s32[18] parameter(0) n = s32[] constant(8) two = s32[] constant(2) d = s32[<=18] set-dimension-size(x, n), dimensions={0} "
        "ROOT r = s32[2,<=3,<=3] dynamic-reshape(d, two, two, two)",
        [s32(0, 1, 3, 4, 0, 1, 3, 4, *[-1] * 10)], s32([[0, 1], [3, 4]], [[0, 1], [3, 4]]),
    ),
    "dynamic reshape of all dimensions": (
        "x = s32[3,4,4] parameter(0) two = s32[] parameter(1) three = s32[] parameter(2) six = s32[] parameter(3) "
        "d = s32[<=3,4,4] set-dimension-size(x, two), dimensions={0} e = s32[<=3,<=4,4] set-dimension-size(d, three), dimensions={1} "
        "f = s32[<=3,<=4,<=4] set-dimension-size(e, three), dimensions={2} ROOT r = s32[<=6,<=8] dynamic-reshape(f, three, six)",
        [np.arange(48, dtype="i4").reshape(3, 4, 4), s32(2)[0], s32(3)[0], s32(6)[0]],
        s32([0, 1, 2, 4, 5, 6], [8, 9, 10, 16, 17, 18], [20, 21, 22, 24, 25, 26]),
    ),
    # sizes
    "set and get": (
        "x = s32[3] parameter(0) n = s32[] constant(2) y = s32[3] set-dimension-size(x, n), dimensions={0} "
        "ROOT r = s32[] get-dimension-size(y), dimensions={0}",
        [s32(1, 2, 3)], s32(2)[0],
    ),
    "set": (
        "x = f32[1,8] parameter(0) n = s32[] parameter(1) ROOT r = f32[1,<=8] set-dimension-size(x, n), dimensions={1}",
        [np.arange(8, dtype="f4")[None], s32(5)[0]], np.arange(5, dtype="f4")[None],
    ),
    "get of a static dimension": (
        "x = f32[1,8] parameter(0) y = f32[1,8] convert(x) ROOT r = s32[] get-dimension-size(y), dimensions={1}",
        [np.zeros((1, 8), "f4")], s32(8)[0],
    ),
    "set to the size": (
        "x = s32[3,4] parameter(0) n = s32[] get-dimension-size(x), dimensions={0} y = s32[3,4] copy(x) "
        "z = s32[<=3,4] set-dimension-size(y, n), dimensions={0} m = s32[] get-dimension-size(z), dimensions={0} ROOT r = s32[] multiply(n, m)",
        [np.zeros((3, 4), "i4")], s32(9)[0],
    ),
    # element-wise
    "one row and three": (
        "zero = s32[] constant(0) one = s32[] constant(1) two = s32[] constant(2) three = s32[] constant(3) "
        "x0 = s32[4,2] iota(), iota_dimension=0 ones = s32[4,2] broadcast(one), dimensions={} x1 = s32[4,2] add(x0, ones) "
        "x = s32[<=4,2] set-dimension-size(x1, one), dimensions={0} y0 = s32[4,2] broadcast(two), dimensions={} "
        "y = s32[<=4,2] set-dimension-size(y0, three), dimensions={0} z = s32[<=4,2] add(x, y) "
        "ROOT r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add",
        [], s32(9, 9),
    ),
    "three rows and two": (
        "zero = s32[] constant(0) one = s32[] constant(1) two = s32[] constant(2) three = s32[] constant(3) "
        "x0 = s32[4,2] broadcast(one), dimensions={} x = s32[<=4,2] set-dimension-size(x0, three), dimensions={0} "
        "y0 = s32[4,2] broadcast(two), dimensions={} y = s32[<=4,2] set-dimension-size(y0, two), dimensions={0} "
        "z = s32[<=4,2] add(x, y) ROOT r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add",
        [], s32(6, 6),
    ),
    # control
    "push to a stack": (
        "zero = s32[] constant(0) no = s32[] constant(-1) x = s32[4,2] broadcast(no), dimensions={} "
        "y = s32[<=4,2] set-dimension-size(x, zero), dimensions={0} t = (s32[<=4,2]) tuple(y) "
        "w = (s32[<=4,2]) while(t), condition=fewer, body=push z = s32[<=4,2] get-tuple-element(w), index=0 "
        "ROOT r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add",
        [], s32(3, 3),
    ),
    "pop from a stack": (
        "zero = s32[] constant(0) one = s32[] constant(1) x = s32[4,2] broadcast(one), dimensions={} t = (s32[4,2]) tuple(x) "
        "w = (s32[4,2]) while(t), condition=more, body=pop z = s32[<=4,2] get-tuple-element(w), index=0 "
        "ROOT r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add",
        [], s32(2, 2),
    ),
    "branches": (
        "x = s32[3,2] parameter(0) two = s32[] constant(2) p = pred[] constant(false) y = s32[<=3,2] set-dimension-size(x, two), dimensions={0} "
        "t = (s32[<=3,2]) tuple(y) c = (s32[<=3,2], s32[<=3,2]) conditional(p, t, t), true_computation=double, false_computation=double "
        "z = s32[<=3,2] get-tuple-element(c), index=1 zero = s32[] constant(0) ROOT r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add",
        [s32([0, 1], [2, 3], [4, 5])], s32(4, 8),
    ),
    # sorts
    "sort": (
        "x = s32[4] parameter(0) n = s32[] constant(3) y = s32[<=4] set-dimension-size(x, n), dimensions={0} "
        "ROOT r = s32[<=4] sort(y), dimensions={0}, to_apply=greater",
        [s32(1, 4, 3, 2)], s32(4, 3, 1),
    ),
    "sort of pairs": (
        "x = s32[3] parameter(0) n = s32[] constant(2) y = s32[3] set-dimension-size(x, n), dimensions={0} "
        "t = (s32[3], s32[3]) sort(y, y), dimensions={0}, is_stable=true, to_apply=greater_first "
        "z = s32[<=3] get-tuple-element(t), index=0 ROOT r = s32[<=3] copy(z)",
        [s32(0, 4, 2)], s32(4, 0),
    ),
    # products
    "bytes times bytes": (
        "x = s8[<=16,32] parameter(0) y = s8[32,64] parameter(1) "
        "ROOT r = s32[<=16,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        [np.full((5, 32), 100, "i1"), np.full((32, 64), -100, "i1")], np.full((5, 64), -320000, "i4"),
    ),
    "convolution of features": (
        "x = f32[1,1,5] parameter(0) n = s32[] constant(5) one = f32[] constant(1) k = f32[1,5,1] broadcast(one), dimensions={} "
        "y = f32[1,1,<=5] set-dimension-size(x, n), dimensions={2} ROOT r = f32[1,1,1] custom-call(y, k), window={size=1 pad=0_0}, "
        'dim_labels=b0f_0io->b0f, padding_type=PADDING_VALID, custom_call_target="DynamicConvolutionForward"',
        [f32([[1, 2, 3, 4, 5]])], f32([[15]]),
    ),
}  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_xla(name, backend):
    body, arguments, want = CASES[name]
    got = cyxla.compile(f"{COMPUTATIONS}ENTRY e {{ {body} }}", platform=backend)(*arguments)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
