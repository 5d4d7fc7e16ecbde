"""Bounded programs: padded arrays under masks agree with the interpreter on arrays of the present sizes."""

import numpy as np
import pytest
from support.hlo.bounded import COMBINERS, check

import cyxla
from cyxla.errors import ShapeError, UnimplementedError
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.dynamic import pad_dynamic

# ruff: noqa: E501  programs read best a line at a time

X, Y, Z = "x = f32[<=6,4] parameter(0)", "y = f32[<=6,4] parameter(1)", "z = f32[] constant(0)"
V = "v = f32[<=12] parameter(0)"
SPD = (
    "x = f32[<=2,<=4,<=4] parameter(0) t = f32[<=2,<=4,<=4] transpose(x), dimensions={0,2,1} "
    "p = f32[<=2,<=4,<=4] dot(x, t), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} "
    "i = s32[4,4] iota(), iota_dimension=0 j = s32[4,4] iota(), iota_dimension=1 q = pred[4,4] compare(i, j), direction=EQ "
    "e = f32[4,4] convert(q) w = f32[2,4,4] broadcast(e), dimensions={1,2} a = f32[<=2,<=4,<=4] add(p, w)"
)
CASES = {
    # element-wise
    "element-wise": f"{X} a = f32[<=6,4] exponential(x) ROOT r = f32[<=6,4] add(a, x)",
    "least of two sizes": f"{X} {Y} ROOT r = f32[<=6,4] add(x, y)",
    "static and dynamic": f"{X} y = f32[6,4] parameter(1) ROOT r = f32[<=6,4] add(x, y)",
    "scalar predicate": f"{X} {Y} p = pred[] constant(true) ROOT r = f32[<=6,4] select(p, x, y)",
    "map": f"{X} {Y} ROOT r = f32[<=6,4] map(x, y), dimensions={{0,1}}, to_apply=odd",
    "parts of bits": f"{X} ROOT r = u16[<=6,4,2] bitcast-convert(x)",
    "bits of parts": "x = u16[<=6,2] parameter(0) ROOT r = f32[<=6] bitcast-convert(x)",
    # movement
    "transpose": "x = f32[<=3,4,<=5] parameter(0) ROOT r = f32[<=5,<=3,4] transpose(x), dimensions={2,0,1}",
    "reverse": "x = f32[<=3,4,<=5] parameter(0) ROOT r = f32[<=3,4,<=5] reverse(x), dimensions={0,1,2}",
    "broadcast": f"{V} ROOT r = f32[2,<=12,3] broadcast(v), dimensions={{1}}",
    "iota of a bound": f"{V} i = f32[<=12] iota(), iota_dimension=0 ROOT r = f32[<=12] add(i, v)",
    "pad": f"{X} n = f32[] constant(7) ROOT r = f32[<=12,5] pad(x, n), padding=1_0_1x0_1",
    "pad by less than nothing": f"{X} n = f32[] constant(7) ROOT r = f32[<=4,4] pad(x, n), padding=-1_-1x0_0",
    "concatenate": "x = f32[<=3,2] parameter(0) y = f32[4,2] parameter(1) w = f32[<=2,2] parameter(2) "
    "ROOT r = f32[<=9,2] concatenate(x, y, w), dimensions={0}",
    "concatenate across": f"{X} {Y} ROOT r = f32[<=6,8] concatenate(x, y), dimensions={{1}}",
    # sizes
    "get": f"{X} a = s32[] get-dimension-size(x), dimensions={{0}} b = s32[] get-dimension-size(x), dimensions={{1}} "
    "ROOT r = (s32[], s32[]) tuple(a, b)",
    "set": "x = f32[6,4] parameter(0) n = s32[] parameter(1) "
    "ROOT r = f32[<=6,4] set-dimension-size(x, n), dimensions={0}",
    "set again": f"{X} n = s32[] parameter(1) ROOT r = f32[<=6,4] set-dimension-size(x, n), dimensions={{0}}",
    "set to the bound": f"{X} n = s32[] constant(6) ROOT r = f32[6,4] set-dimension-size(x, n), dimensions={{0}}",
    "set two": "x = f32[6,4] parameter(0) n = s32[] parameter(1) m = s32[] parameter(2) "
    "a = f32[<=6,4] set-dimension-size(x, n), dimensions={0} "
    "ROOT r = f32[<=6,<=4] set-dimension-size(a, m), dimensions={1}",
    "grown beyond the elements": f"{X} five = s32[] constant(5) {Z} "
    "o = f32[<=6,4] set-dimension-size(x, five), dimensions={0} c = f32[<=6,4] cosine(o) "
    "ROOT r = f32[] reduce(c, z), dimensions={0,1}, to_apply=add",
    "padded to static": f'{X} ROOT r = (f32[6,4], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic"',
    "sliced to dynamic": "x = f32[6,4] parameter(0) n = s32[] parameter(1) four = s32[] constant(4) "
    'ROOT r = f32[<=6,4] custom-call(x, n, four), custom_call_target="SliceToDynamic"',
    # slices
    "part of a slice": f"{X} ROOT r = f32[3,2] slice(x), slice={{[1:4],[0:4:2]}}",
    "whole slice": f"{X} ROOT r = f32[<=6,2] slice(x), slice={{[0:6],[1:3]}}",
    "part of a dynamic slice": f"{X} i = s32[] parameter(1) j = s32[] parameter(2) "
    "ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}",
    "whole dynamic slice": f"{X} i = s32[] parameter(1) j = s32[] parameter(2) "
    "ROOT r = f32[<=6,3] dynamic-slice(x, i, j), dynamic_slice_sizes={6,3}",
    "update": f"{X} u = f32[2,3] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) "
    "ROOT r = f32[<=6,4] dynamic-update-slice(x, u, i, j)",
    "dynamic update": f"{X} u = f32[<=3,4] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) "
    "ROOT r = f32[<=6,4] dynamic-update-slice(x, u, i, j)",
    "dynamic update of a static array": "x = f32[6,4] parameter(0) u = f32[<=3,4] parameter(1) i = s32[] parameter(2) "
    "j = s32[] parameter(3) ROOT r = f32[6,4] dynamic-update-slice(x, u, i, j)",
    # reshapes
    "empty, a dimension more": "x = f32[<=3,<=0,<=3] parameter(0) ROOT r = f32[<=3,<=0,<=3,1] reshape(x)",
    "rows in one": f"{X} ROOT r = f32[<=24] reshape(x)",
    "columns in one": "x = f32[4,<=6] parameter(0) ROOT r = f32[<=24] reshape(x)",
    "both in one": "x = f32[<=4,<=6] parameter(0) ROOT r = f32[<=24] reshape(x)",
    "middle in one": "x = f32[2,<=3,4] parameter(0) ROOT r = f32[<=24] reshape(x)",
    "one in rows": f"{V} ROOT r = f32[<=6,2] reshape(v)",
    "one in columns": f"{V} ROOT r = f32[2,<=6] reshape(v)",
    "one in the middle": f"{V} ROOT r = f32[2,<=3,2] reshape(v)",
    "columns in columns": "x = f32[4,<=6] parameter(0) ROOT r = f32[3,<=8] reshape(x)",
    "dimensions of one element": "x = f32[<=4,1,<=6] parameter(0) ROOT r = f32[1,<=4,<=6,1] reshape(x)",
    "groups": "x = f32[<=4,6,2,<=5] parameter(0) ROOT r = f32[<=24,<=10] reshape(x)",
    "dynamic reshape": "x = f32[3,<=4] parameter(0) d = s32[] get-dimension-size(x), dimensions={1} "
    "three = s32[] constant(3) ROOT r = f32[<=4,<=3] dynamic-reshape(x, d, three)",
    # reductions
    "sum": f"{X} {Z} ROOT r = f32[] reduce(x, z), dimensions={{0,1}}, to_apply=add",
    "sum of rows": f"{X} {Z} ROOT r = f32[<=6] reduce(x, z), dimensions={{1}}, to_apply=add",
    "sum from one": f"{X} o = f32[] constant(1) ROOT r = f32[4] reduce(x, o), dimensions={{0}}, to_apply=add",
    "maximum from one": f"{X} o = f32[] constant(1) ROOT r = f32[4] reduce(x, o), dimensions={{0}}, to_apply=max",
    "last": f"{X} {Z} ROOT r = f32[4] reduce(x, z), dimensions={{0}}, to_apply=second",
    "two at once": f"{X} {Y} {Z} l = f32[] constant(-inf) "
    "ROOT r = (f32[4], f32[4]) reduce(x, y, z, l), dimensions={0}, to_apply=both",
    "windows": f"{V} l = f32[] constant(-inf) ROOT r = f32[<=6] reduce-window(v, l), "
    "window={size=3 stride=2 pad=1_1}, to_apply=max",
    "dilated windows": f"{V} {Z} ROOT r = f32[<=9] reduce-window(v, z), "
    "window={size=3 stride=2 pad=0_0 lhs_dilate=2 rhs_dilate=3}, to_apply=add",
    "windows from one": f"{V} o = f32[] constant(1) ROOT r = f32[<=10] reduce-window(v, o), "
    "window={size=3}, to_apply=add",
    "running sums": f"{V} {Z} ROOT r = f32[<=12] reduce-window(v, z), window={{size=12 pad=11_0}}, to_apply=add",
    "chosen and scattered": "v = f32[<=8] parameter(0) s = f32[<=4] parameter(1) o = f32[] constant(1) ROOT r = "
    "f32[<=8] select-and-scatter(v, s, o), window={size=2 stride=2}, select=atleast, scatter=add",
    "scan": "v = f32[<=5] parameter(0) c = f32[] parameter(1) "
    "ROOT r = (f32[<=5], f32[]) scan(v, c), dimensions={0}, num_carries=1, to_apply=step",
    "scan backwards": "v = f32[<=5] parameter(0) c = f32[] parameter(1) "
    "ROOT r = (f32[<=5], f32[]) scan(v, c), dimensions={0}, num_carries=1, is_reverse=true, to_apply=step",
    # sorts
    "sort": f"{V} ROOT r = f32[<=12] sort(v), dimensions={{0}}, to_apply=less",
    "sort of rows": f"{X} ROOT r = f32[<=6,4] sort(x), dimensions={{1}}, to_apply=less",
    "sort with values": f"{V} w = s32[12] iota(), iota_dimension=0 n = s32[] get-dimension-size(v), dimensions={{0}} "
    "u = s32[<=12] set-dimension-size(w, n), dimensions={0} "
    "ROOT r = (f32[<=12], s32[<=12]) sort(v, u), dimensions={0}, is_stable=true, to_apply=pair",
    # products
    "dot of rows": "x = f32[<=6,4] parameter(0) y = f32[4,3] parameter(1) "
    "ROOT r = f32[<=6,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot of columns": "x = f32[6,<=4] parameter(0) y = f32[<=4,3] parameter(1) "
    "ROOT r = f32[6,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot of batches": "x = f32[<=3,<=6,4] parameter(0) y = f32[<=3,4,<=5] parameter(1) ROOT r = f32[<=3,<=6,<=5] "
    "dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    "convolution of a batch": "x = f32[<=3,2,8] parameter(0) k = f32[4,2,3] parameter(1) ROOT r = f32[<=3,4,6] "
    "convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0",
    "convolution of a space": "x = f32[2,2,<=8] parameter(0) k = f32[4,2,3] parameter(1) ROOT r = f32[2,4,<=4] "
    "convolution(x, k), window={size=3 stride=2 pad=1_1}, dim_labels=bf0_oi0->bf0",
    "convolution of features": "x = f32[2,<=5,8] parameter(0) k = f32[<=4,<=5,3] parameter(1) ROOT r = f32[2,<=4,6] "
    "convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0",
    # indices
    "gather of rows": "x = f32[<=5,3] parameter(0) i = s32[<=4] parameter(1) ROOT r = f32[<=4,3] gather(x, i), "
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
    "gather of columns": "x = f32[<=5,3] parameter(0) i = s32[4] parameter(1) ROOT r = f32[4,<=5] gather(x, i), "
    "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}",
    "scatter": "x = f32[<=5,3] parameter(0) i = s32[<=4] parameter(1) u = f32[<=4,3] parameter(2) ROOT r = f32[<=5,3] "
    "scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add",
    "scatter that replaces": "x = f32[5,3] parameter(0) i = u8[<=4] parameter(1) u = f32[4,3] parameter(2) "
    "ROOT r = f32[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second",
    "scatter of windows": "x = f32[5,3] parameter(0) i = s32[4] parameter(1) u = f32[4,<=3] parameter(2) "
    "ROOT r = f32[5,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    # control
    "call": f"{X} ROOT r = f32[<=6,4] call(x), to_apply=twice",
    "loop": "x = f32[<=6] parameter(0) n = s32[] parameter(1) i = s32[] constant(0) "
    "t = (s32[], f32[<=6]) tuple(i, x) w = (s32[], f32[<=6]) while(t), condition=below, body=shrink "
    "ROOT r = f32[<=6] get-tuple-element(w), index=1",
    "branches": "p = pred[] parameter(0) x = f32[<=6,4] parameter(1) y = f32[6,4] parameter(2) "
    "ROOT r = f32[<=6,4] conditional(p, x, y), true_computation=twice, false_computation=whole",
    "branch by size": f"{X} n = s32[] get-dimension-size(x), dimensions={{0}} "
    "ROOT r = f32[<=6,4] conditional(n, x, x), branch_computations={twice, same}",
    "tuples": "x = f32[<=6] parameter(0) n = s32[] parameter(1) y = f32[2,<=3] parameter(2) "
    "i = (s32[], f32[2,<=3]) tuple(n, y) t = (f32[<=6], (s32[], f32[2,<=3])) tuple(x, i) "
    "o = (f32[<=6], (s32[], f32[2,<=3])) opt-barrier(t) a = f32[<=6] get-tuple-element(o), index=0 "
    "b = (s32[], f32[2,<=3]) get-tuple-element(o), index=1 ROOT r = ((s32[], f32[2,<=3]), f32[<=6]) tuple(b, a)",
    # sizes of one element
    "one repeated": "x = f32[<=4,<=3] parameter(0) y = f32[<=4,<=3] parameter(1) ROOT r = f32[<=4,<=3] subtract(x, y)",
    "one compared": "x = f32[<=4] parameter(0) y = f32[<=4] parameter(1) ROOT r = pred[<=4] compare(x, y), direction=LT",
    "a static operand stated as dynamic": "x = f32[<=4] parameter(0) o = f32[] constant(1) "
    "y = f32[<=4] broadcast(o), dimensions={} ROOT r = f32[<=4] subtract(x, y)",
    "ones of three": "p = pred[] constant(true) x = f32[<=4] parameter(0) y = f32[<=4] parameter(1) q = pred[<=4] compare(x, y), "
    "direction=GT ROOT r = f32[<=4] select(q, x, y)",
    # what grows
    "written beyond the size": "x = f32[<=5] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2) n = s32[] parameter(3) "
    "y = f32[<=5] dynamic-update-slice(x, u, i) ROOT r = f32[<=5] set-dimension-size(y, n), dimensions={0}",
    "written twice": "x = f32[<=5,<=3] parameter(0) u = f32[<=2,3] parameter(1) i = s32[] parameter(2) n = s32[] parameter(3) "
    "y = f32[<=5,<=3] dynamic-update-slice(x, u, i, i) z = f32[<=5,<=3] dynamic-update-slice(y, u, n, i) "
    "a = f32[<=5,<=3] set-dimension-size(z, n), dimensions={0} b = f32[<=5,<=3] set-dimension-size(a, i), dimensions={1} "
    "ROOT r = f32[<=5,<=3] set-dimension-size(b, i), dimensions={0}",
    "written and read": "x = f32[<=5] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2) n = s32[] parameter(3) "
    "y = f32[<=5] dynamic-update-slice(x, u, i) c = f32[<=5] copy(y) a = f32[<=5] set-dimension-size(c, n), dimensions={0} "
    "b = f32[<=5] set-dimension-size(y, n), dimensions={0} ROOT r = (f32[<=5], f32[<=5]) tuple(a, b)",
    # stated sizes
    "several stated in a group": f"{V} ROOT r = f32[<=6,<=2] reshape(v)",
    "several stated, one inferred": f"{V} ROOT r = f32[<=6,<=2] reshape(v), inferred_dimension=0",
    "stated too late": f"{V} a = f32[12] negate(v) b = f32[12] add(a, v) ROOT r = f32[<=12] copy(b)",
    "called": f"{X} y = f32[6,4] call(x), to_apply=stated ROOT r = f32[<=6,4] copy(y)",
    "bitcast": f"{V} a = f32[<=3,4] bitcast(v) ROOT r = s32[<=3,4] bitcast(a)",
    "sort of a dynamic and a static array": "x = f32[<=6] parameter(0) y = f32[6] parameter(1) "
    "ROOT r = (f32[<=6], f32[<=6]) sort(x, y), dimensions={0}, is_stable=true, to_apply=before",
    "static convolution with padding for its size": "x = f32[<=8] parameter(0) i = f32[1,1,8] iota(), iota_dimension=2 k = f32[1,1,3] parameter(1) "
    "c = f32[1,1,<=8] custom-call(i, k), window={size=3}, dim_labels=bf0_oi0->bf0, padding_type=PADDING_SAME, "
    'custom_call_target="DynamicConvolutionForward" d = f32[8] reshape(c) ROOT r = f32[<=8] add(d, x)',
    # transforms
    "FFT of a batch": "x = c64[<=3,4] parameter(0) ROOT r = c64[<=3,4] fft(x), fft_type=FFT, fft_length={4}",
    "FFT of rows": "x = f32[<=3,<=6] parameter(0) ROOT r = c64[<=3,4] fft(x), fft_type=RFFT, fft_length={6}",
    "FFT of all": "x = f32[<=2,<=3,4] parameter(0) a = c64[<=2,<=3,3] fft(x), fft_type=RFFT, fft_length={3,4} "
    "ROOT r = f32[<=2,3,4] fft(a), fft_type=IRFFT, fft_length={3,4}",
    "Cholesky": f"{SPD} ROOT r = f32[<=2,<=4,<=4] cholesky(a), lower=true",
    "Cholesky of a batch": "x = f32[<=3] parameter(0) m = f32[2,2] constant({{4,2},{2,3}}) b = f32[<=3,2,2] broadcast(m), dimensions={1,2} "
    "n = f32[<=3,2,2] broadcast(x), dimensions={0} o = f32[<=3,2,2] abs(n) a = f32[<=3,2,2] add(b, o) "
    "ROOT r = f32[<=3,2,2] cholesky(a), lower=false",
    "triangular solve": f"{SPD} y = f32[<=2,<=4,<=3] parameter(1) ROOT r = f32[<=2,<=4,<=3] triangular-solve(a, y), "
    "left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "triangular solve from the right": f"{SPD} y = f32[2,<=3,4] parameter(1) ROOT r = f32[<=2,<=3,<=4] triangular-solve(a, y), "
    "left_side=false, lower=true, transpose_a=TRANSPOSE",
    "batch norm inference": "x = f32[<=3,<=4] parameter(0) s = f32[4] parameter(1) o = f32[<=4] parameter(2) v = f32[4] exponential(s) "
    "ROOT r = f32[<=3,<=4] batch-norm-inference(x, s, o, s, v), epsilon=0.1, feature_index=1",
    "batch norm training": "x = f32[<=3,4,<=5] parameter(0) s = f32[4] parameter(1) ROOT r = (f32[<=3,4,<=5], f32[4], f32[4]) "
    "batch-norm-training(x, s, s), epsilon=0.1, feature_index=1",
    "batch norm of features": "x = f32[3,<=4] parameter(0) s = f32[<=4] parameter(1) ROOT r = (f32[3,<=4], f32[<=4], f32[<=4]) "
    "batch-norm-training(x, s, s), epsilon=0.1, feature_index=1",
    "batch norm gradient": "x = f32[<=3,4] parameter(0) s = f32[4] parameter(1) v = f32[4] exponential(s) d = f32[<=3,4] parameter(2) "
    "ROOT r = (f32[<=3,4], f32[4], f32[4]) batch-norm-grad(x, s, s, v, d), epsilon=0.1, feature_index=1",
    # choices
    "top": "x = f32[<=3,<=6] parameter(0) ROOT r = (f32[<=3,3], s32[<=3,3]) topk(x), k=3, largest=true",
    "bottom": "x = f32[<=6] parameter(0) ROOT r = (f32[6], s32[6]) topk(x), k=6, largest=false",
    "top of integers": "x = s32[<=6] parameter(0) ROOT r = (s32[4], s32[4]) topk(x), k=4, largest=true",
    "replaced windows": "x = f32[5,3] parameter(0) i = s32[4] parameter(1) u = f32[4,<=3] parameter(2) ROOT r = f32[5,3] "
    "scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=second",
    "windows of two arrays": "x = f32[<=5,3] parameter(0) y = f32[<=5,3] parameter(1) i = s32[<=4] parameter(2) u = f32[<=4,<=3] parameter(3) "
    "v = f32[4,<=3] parameter(4) ROOT r = (f32[<=5,3], f32[<=5,3]) scatter(x, y, i, u, v), update_window_dims={1}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both",
    # scans
    "scan of rows": "x = f32[5,<=4] parameter(0) c = f32[<=4] parameter(1) ROOT r = (f32[5,<=4], f32[<=4]) scan(x, c), dimensions={0}, "
    "num_carries=1, to_apply=step_of_rows",
    "scan of a dynamic number of rows": "x = f32[<=5,<=4] parameter(0) c = f32[<=4] parameter(1) "
    "ROOT r = (f32[<=5,<=4], f32[<=4]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step_of_rows",
    "scan of columns": "x = f32[<=4,<=5] parameter(0) c = f32[4] parameter(1) "
    "ROOT r = (f32[<=4,<=5], f32[<=4]) scan(x, c), dimensions={1}, num_carries=1, is_reverse=true, to_apply=step_of_rows",
    "scan that shrinks": "x = f32[<=3] parameter(0) c = f32[<=4] parameter(1) "
    "ROOT r = (f32[<=3,<=4], f32[<=4]) scan(x, c), dimensions={0}, num_carries=1, to_apply=shrinking_step",
    "scan of static rows": "c = f32[<=4] parameter(0) x = f32[3,4] iota(), iota_dimension=1 "
    "ROOT r = (f32[3,<=4], f32[<=4]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step_of_rows",
    # convolutions
    "convolution of a batch by groups": "x = f32[<=3,4,8] parameter(0) k = f32[4,1,3] parameter(1) ROOT r = f32[<=3,4,6] "
    "convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=4",
    "convolution of features by groups of the batch": "x = f32[4,<=3,8] parameter(0) k = f32[4,<=3,3] parameter(1) ROOT r = f32[2,4,6] "
    "convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0, batch_group_count=2",
    "dynamic convolution": "x = f32[<=2,2,<=8] parameter(0) k = f32[4,2,3] parameter(1) ROOT r = f32[<=2,4,<=4] custom-call(x, k), "
    'window={size=3 stride=2 rhs_dilate=2}, dim_labels=bf0_oi0->bf0, padding_type=PADDING_SAME, custom_call_target="DynamicConvolutionForward"',
    "dynamic convolution with wide strides": "x = f32[1,1,<=8,<=3] parameter(0) k = f32[1,1,2,4] parameter(1) ROOT r = f32[1,1,<=3,<=3] "
    "custom-call(x, k), window={size=2x4 stride=3x1}, dim_labels=bf01_oi01->bf01, padding_type=PADDING_SAME, "
    'custom_call_target="DynamicConvolutionForward"',
    "dynamic convolution without padding": "x = f32[2,<=2,<=8] parameter(0) k = f32[4,2,3] parameter(1) ROOT r = f32[2,4,<=6] "
    'custom-call(x, k), window={size=3}, dim_labels=bf0_oi0->bf0, padding_type=PADDING_VALID, custom_call_target="DynamicConvolutionForward"',
    # custom calls
    "error function": f'{X} ROOT r = f32[<=6,4] custom-call(x), custom_call_target="mhlo.erf"',
    "sharding": f'{X} ROOT r = f32[<=6,4] custom-call(x), custom_call_target="Sharding"',
    "top by custom call": 'x = f32[<=3,<=6] parameter(0) ROOT r = (f32[<=3,3], s32[<=3,3]) custom-call(x), custom_call_target="TopK", called_computations={greater}',
}
FUNCTIONS = """
stated { x = f32[<=6,4] parameter(0) ROOT y = f32[6,4] add(x, x) }
before { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
greater { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GT }
step_of_rows { x = f32[<=4] parameter(0) c = f32[<=4] parameter(1) s = f32[<=4] subtract(x, c)
  ROOT t = (f32[<=4], f32[<=4]) tuple(s, s) }
shrinking_step { x = f32[] parameter(0) c = f32[<=4] parameter(1) b = f32[4] broadcast(x), dimensions={} s = f32[<=4] add(b, c)
  n = s32[] get-dimension-size(s), dimensions={0} one = s32[] constant(1) m = s32[] subtract(n, one)
  d = f32[<=4] set-dimension-size(s, m), dimensions={0} ROOT t = (f32[<=4], f32[<=4]) tuple(s, d) }
both { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  s = f32[] add(a, c) m = f32[] maximum(b, d) ROOT t = (f32[], f32[]) tuple(s, m) }
step { x = f32[] parameter(0) c = f32[] parameter(1) s = f32[] add(x, c) ROOT t = (f32[], f32[]) tuple(s, s) }
pair { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT }
twice { x = f32[<=6,4] parameter(0) ROOT y = f32[<=6,4] add(x, x) }
same { ROOT x = f32[<=6,4] parameter(0) }
whole { x = f32[6,4] parameter(0) ROOT y = f32[<=6,4] negate(x) }
below { t = (s32[], f32[<=6]) parameter(0) i = s32[] get-tuple-element(t), index=0 n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
shrink { t = (s32[], f32[<=6]) parameter(0) i = s32[] get-tuple-element(t), index=0 one = s32[] constant(1)
  x = f32[<=6] get-tuple-element(t), index=1 j = s32[] add(i, one) n = s32[] get-dimension-size(x), dimensions={0}
  m = s32[] subtract(n, one) y = f32[<=6] add(x, x) z = f32[<=6] set-dimension-size(y, m), dimensions={0}
  ROOT r = (s32[], f32[<=6]) tuple(j, z) }
"""


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", CASES)
def test_compiled_agrees_with_interpreter(name):
    check(f"{COMBINERS}{FUNCTIONS}ENTRY e {{ {CASES[name]} }}")


REFUSED = {
    "?": ("v = f32[?] parameter(0) ROOT r = f32[?] negate(v)", "has no bound"),
    "large bound": ("v = pred[<=2147483648] parameter(0) ROOT r = pred[<=2147483648] not(v)", "no s32 number"),
    "no size in a group": (f"{V} ROOT r = f32[6,2] reshape(v)", "no dynamic dimension among them"),
    "stated as static": (f"{V} ROOT r = f32[12] negate(v)", "static dimension 0"),
    "size of a static shape": (
        "v = f32[12] parameter(0) n = s32[] parameter(1) ROOT r = f32[12] set-dimension-size(v, n), dimensions={0}",
        "static dimension 0",
    ),
    "bitcast": ("v = f32[<=3,4]{0,1} parameter(0) ROOT r = f32[<=3,4]{1,0} bitcast(v)", "change their order"),
    "collective": (f"{V} ROOT r = f32[<=12] all-reduce(v), replica_groups={{{{0}}}}, to_apply=add", "all-reduce"),
    "custom call": (f'{V} ROOT r = f32[<=12] custom-call(v), custom_call_target="erf_of_mine"', "erf_of_mine"),
    "window of dynamic size": (
        "x = f32[1,1,8] parameter(0) k = f32[1,1,<=3] parameter(1) "
        "ROOT r = f32[1,1,6] convolution(x, k), window={size=3}, dim_labels=bf0_oi0->bf0",
        "window has a dynamic size",
    ),
    "grouped features": (
        "x = f32[1,<=4,8] parameter(0) k = f32[4,1,3] parameter(1) ROOT r = f32[1,4,6] convolution(x, k), "
        "window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=4",
        "split into groups",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_instruction_and_the_reason(name):
    body, reason = REFUSED[name]
    with pytest.raises(UnimplementedError) as caught:
        cyxla.compile(f"{COMBINERS}{FUNCTIONS}ENTRY e {{ {body} }}")
    assert reason in str(caught.value)
    assert "%r" in str(caught.value) or "%t" in str(caught.value) or "%v" in str(caught.value)


WRONG = {
    "dynamic reshape to more elements": (
        "v = f32[<=6] parameter(0) n = s32[] constant(4) ROOT r = f32[<=6] dynamic-reshape(v, n)",
        "dynamic-reshape of 3",
    ),
    "static shape of fewer elements": ("v = f32[<=6] parameter(0) ROOT r = f32[6] negate(v)", "present sizes"),
    "set size of a static shape": (
        "v = f32[<=6] parameter(0) n = s32[] constant(4) ROOT r = f32[6] set-dimension-size(v, n), dimensions={0}",
        "stated as f32[6]",
    ),
    "static element of a tuple": (
        "v = f32[<=6] parameter(0) w = f32[6] negate(v) t = (f32[6]) tuple(w) ROOT r = ((f32[6])) tuple(t)",
        "present sizes",
    ),
    "static reshape of fewer elements": ("v = f32[<=6] parameter(0) ROOT r = f32[3,2] reshape(v)", "cannot become"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_interpreter_refuses_present_sizes_that_do_not_fit(name):
    body, reason = WRONG[name]
    run = cyxla.compile(f"{COMBINERS}ENTRY e {{ {body} }}", platform="interpreter")
    with pytest.raises(ShapeError) as caught:
        run(np.zeros(3, "f4"))
    assert reason in str(caught.value)


def test_programs_without_dynamic_dimensions_stay_as_they_are():
    module = parse_module("ENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }")
    before = module.to_text()
    assert not pad_dynamic.run(module)
    assert module.to_text() == before


def test_masks_are_selections_by_a_comparison_with_the_size():
    module = parse_module(
        f"{COMBINERS}ENTRY e {{ {X} {Z} ROOT r = f32[] reduce(x, z), dimensions={{0,1}}, to_apply=add }}"
    )
    assert pad_dynamic.run(module)
    module.verify()
    masked = module.entry.root.operands[0]
    assert masked.opcode == "select"
    inside, _, filler = masked.operands
    assert (inside.opcode, inside.attrs["direction"], filler.opcode) == ("compare", "LT", "broadcast")
    assert [o.opcode for o in inside.operands] == ["iota", "broadcast"]


@pytest.mark.parametrize("opcode", ["reshape", "bitcast"])
@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_empty_arrays_keep_their_present_sizes(opcode, platform):
    text = f"ENTRY e {{ x = s32[<=3,<=0,<=3] parameter(0) ROOT r = s32[<=3,<=0,<=3,1] {opcode}(x) }}"
    run = cyxla.compile(f"HloModule m\n{text}", platform=platform)
    assert run(np.zeros((2, 0, 1), np.int32)).shape == (2, 0, 1, 1)
