"""Every opcode's shape rule: programs that keep it, and one program for each numbered constraint that breaks it."""

# ruff: noqa: E501
from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import InvalidArgumentError, OpError, ShapeError
from cyxla.types import TOKEN, ElementType, Shape
from cyxla.xla.hlo import OPCODES, HloModule, infer_from_shapes, parse_module, verify
from cyxla.xla.hlo.attributes import SliceDim, WindowDim
from cyxla.xla.hlo.ops.window import window_count

# Computations that the cases call.
CALLEES = {
    "add": "{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y) }",
    "add_s32": "{ x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] add(x, y) }",
    "add_bf16": "{ x = bf16[] parameter(0)\n y = bf16[] parameter(1)\n ROOT r = bf16[] add(x, y) }",
    "add_two": """{ a = f32[] parameter(0)\n b = s32[] parameter(1)\n c = f32[] parameter(2)\n d = s32[] parameter(3)
        e = f32[] add(a, c)\n f = s32[] add(b, d)\n ROOT r = (f32[], s32[]) tuple(e, f) }""",
    "add_vectors": "{ x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n ROOT r = f32[2] add(x, y) }",
    "less": "{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = pred[] compare(x, y), direction=LT }",
    "less_two": """{ x = f32[] parameter(0)\n y = f32[] parameter(1)\n a = s32[] parameter(2)\n b = s32[] parameter(3)
        ROOT r = pred[] compare(x, y), direction=LT }""",
    "negate": "{ x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }",
    "truncate": "{ x = f32[] parameter(0)\n ROOT r = s32[] convert(x) }",
    "finite": "{ x = f32[] parameter(0)\n ROOT r = pred[] is-finite(x) }",
    "finite_s32": "{ x = s32[] parameter(0)\n y = f32[] convert(x)\n ROOT r = pred[] is-finite(y) }",
    "twice": "{ x = f32[] parameter(0)\n y = f32[] add(x, x)\n ROOT r = (f32[], f32[]) tuple(y, y) }",
    "step": """{ x = f32[2] parameter(0)\n c = f32[2] parameter(1)\n s = f32[2] add(x, c)
        ROOT r = (f32[2], f32[2]) tuple(s, s) }""",
    "step_wrong": """{ x = f32[2] parameter(0)\n c = f32[2] parameter(1)\n s = s32[2] convert(c)
        ROOT r = (f32[2], s32[2]) tuple(x, s) }""",
    "step_alone": "{ c = f32[2] parameter(0)\n ROOT r = (f32[2], f32[2]) tuple(c, c) }",
    "step_tokens": "{ x = f32[2] parameter(0)\n t = token[] after-all()\n ROOT r = (token[]) tuple(t) }",
}

# fmt: off
GOOD = """
pred[4] is-finite(f16[4])
f32[4] abs(c64[4])
f64[4] real(c128[4])
f32[4] imag(f32[4])
c64[2,3] complex(f32[2,3], f32[2,3])
s8[2] convert(c64[2])
bf16[2] reduce-precision(bf16[2]), exponent_bits=5, mantissa_bits=0
pred[2] compare(c64[2], c64[2]), direction=NE
pred[2] compare(f32[2], f32[2]), direction=LT, type=TOTALORDER
s8[4] stochastic-convert(f32[4], u32[4])
f32[2,3] select(pred[], f32[2,3], f32[2,3])
f32[2,3] select(pred[2,3], f32[2,3], f32[2,3])
f32[3] clamp(f32[], f32[3], f32[3])
f32[<=3] add(f32[<=3], f32[3])
f32[?,3] add(f32[?,3], f32[?,3])
pred[2] add(pred[2], pred[2])
s4[2] iota(), iota_dimension=0
f32[2] constant({1, 2})
f32[5,2,3] broadcast(f32[3,2]), dimensions={2,1}
f32[<=4,3] broadcast(f32[<=4]), dimensions={0}
f32[6,1] reshape(f32[2,3])
f32[<=6] dynamic-reshape(f32[2,3], s32[])
s32[8] bitcast(f32[2,4])
u8[3,4] bitcast-convert(f32[3])
f64[3] bitcast-convert(u32[3,2])
s32[3] bitcast-convert(f32[3])
f32[3,<=4,2] transpose(f32[2,3,<=4]), dimensions={1,2,0}
f32[2,3] reverse(f32[2,3]), dimensions={1,0}
f32[0] slice(f32[4]), slice={[4:4]}
f32[2,3] slice(f32[5,3]), slice={[1:5:2], [0:3]}
f32[12,1] pad(f32[3,3], f32[]), padding=1_2_3x-1_-1
f32[2,5] concatenate(f32[2,3], f32[2,2]), dimensions={1}
f32[2] concatenate(f32[2]), dimensions={0}
f32[1,2] dynamic-slice(f32[3,4], s32[], s32[]), dynamic_slice_sizes={1,2}
f32[1,2] dynamic-slice(f32[3,4], u8[2]), dynamic_slice_sizes={1,2}
f32[] dynamic-slice(f32[]), dynamic_slice_sizes={}
f32[3,4] dynamic-update-slice(f32[3,4], f32[1,4], s64[], s64[])
f32[5,4] gather(f32[3,4], s32[5,1]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
f32[4,5] gather(f32[3,4], s32[5]), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
f32[2,5,1] gather(f32[2,3,4], s32[2,5,1]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,1}
f32[3,4] scatter(f32[3,4], s32[5,1], f32[5,4]), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
(f32[3], s32[3]) scatter(f32[3], s32[3], s32[5], f32[5], s32[5]), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_two
f32[2,3] scatter(f32[2,3], s32[2,5,1], f32[2,5]), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add
s32[] get-tuple-element((f32[2], s32[])), index=1
(f32[2], token[]) tuple(f32[2], token[])
() tuple()
s32[] get-dimension-size(f32[2,3]), dimensions={1}
f32[2,<=3] set-dimension-size(f32[2,3], s32[]), dimensions={1}
(f32[2], s32[]) copy((f32[2], s32[]))
(f32[2]) opt-barrier((f32[2]))
(f32[2], f32[2], u32[]) copy-start(f32[2])
f32[2,4] dot(f32[2,3], f32[3,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f32[2,3,4] dot(f32[2], f32[3,4])
s32[5,2,4] dot(s8[5,2,3], s8[5,3,4]), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
f32[] dot(bf16[3], bf16[3]), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={highest,default}
s8[2,3] dot(s32[2], s32[3])
f32[2] dot(f8e5m2[2,3], f8e4m3fn[3]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
f32[3,5,4] ragged-dot(f32[5,6], f32[6,4], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}
f32[7,5,4] ragged-dot(f32[7,5,6], f32[7,6,4], s32[3]), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}
f32[7,5,4] ragged-dot(f32[7,5,6], f32[7,3,6,4], s32[7,3]), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={1}
bf16[2,4] scaled-dot(f8e4m3fn[2,64], f8e4m3fn[64,4], f8e8m0fnu[2,2], f8e8m0fnu[2,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
f32[1,3,2,5] convolution(f32[1,6,5,4], f32[3,2,4,5]), window={size=3x2 stride=2x2 pad=1_0x0_0}, dim_labels=b01f_01io->b01f
f32[2,3,11,4] convolution(f32[2,6,6,3], f32[2,3,3,4]), window={size=2x3 stride=2x1 pad=1_0x2_0 lhs_dilate=1x2 rhs_dilate=1x1}, dim_labels=b01f_01io->b01f
f32[1,4,4] convolution(f32[1,4,4], f32[1,2,4]), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2
f32[2,4,4] convolution(f32[4,4,3], f32[1,3,4]), window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2
f32[2,4] convolution(f32[2,3], f32[3,4]), dim_labels=bf_io->bf
c64[4,3] fft(f32[4,4]), fft_type=RFFT, fft_length={4}
f64[4,5] fft(c128[4,3]), fft_type=IRFFT, fft_length={5}
c64[2,4,6] fft(c64[2,4,6]), fft_type=IFFT, fft_length={4,6}
f32[7,4,2] triangular-solve(f32[7,4,4], f32[7,4,2]), left_side=true
f32[2,4] triangular-solve(f32[4,4], f32[2,4]), left_side=false
c64[7,4,4] cholesky(c64[7,4,4]), lower=true
(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[3]), epsilon=0.1, feature_index=1
f32[2,3] batch-norm-inference(f32[2,3], f32[2], f32[2], f32[2], f32[2]), epsilon=0.1, feature_index=0
(f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], f32[2,3]), epsilon=0.1, feature_index=1
s32[2,3] map(f32[2,3]), dimensions={0,1}, to_apply=truncate
f32[3] reduce(f32[2,3,4], f32[]), dimensions={2,0}, to_apply=add
(f32[], s32[]) reduce(f32[2], s32[2], f32[], s32[]), dimensions={0}, to_apply=add_two
f32[2,<=3] reduce(f32[2,<=3,4], f32[]), dimensions={2}, to_apply=add
f32[3,4] reduce-window(f32[5,4], f32[]), window={size=2x1 stride=2x1 pad=1_0x0_0}, to_apply=add
f32[6] reduce-window(f32[4], f32[]), window={size=2 lhs_dilate=2}, to_apply=add
f32[3] reduce-window(f32[5], f32[]), window={size=2 pad=-1_0}, to_apply=add
f32[0] reduce-window(f32[3], f32[]), window={size=5}, to_apply=add
(f32[3], s32[3]) reduce-window(f32[4], s32[4], f32[], s32[]), window={size=2}, to_apply=add_two
f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=less, scatter=add
(f32[5,2], f32[2]) scan(f32[5,2], f32[2]), dimensions={0}, num_carries=1, to_apply=step
(f32[2,5], f32[2]) scan(f32[2]), dimensions={1}, num_carries=1, to_apply=step_alone
f32[2,3] sort(f32[2,3]), dimensions={0}, to_apply=less
(f32[3], s32[3]) sort(f32[3], s32[3]), dimensions={0}, is_stable=true, to_apply=less_two
(f32[2,3], s32[2,3]) topk(f32[2,9]), k=3, largest=true
f32[] call(f32[]), to_apply=negate
f32[] while(f32[]), body=negate, condition=finite
f32[] conditional(pred[], f32[], f32[]), true_computation=negate, false_computation=negate
s32[] conditional(s32[], f32[]), branch_computations={truncate}
f32[] fusion(f32[]), kind=kLoop, calls=negate
f32[] fusion(f32[]), kind=kLoop, calls=negate, output_to_operand_aliasing={{}: (0, {})}
(f32[2], token[]) custom-call(f32[2]), custom_call_target="t", output_to_operand_aliasing={{0}: (0, {})}
f32[2] custom-call(f32[2]), custom_call_target="t", operand_layout_constraints={f32[2]{0}}
token[] after-all(token[], token[])
(f32[2], s32[]) add-dependency((f32[2], s32[]), token[])
f32[2] rng(f32[], f32[]), distribution=rng_normal
pred[2] rng(pred[], pred[]), distribution=rng_uniform
(u64[2], u32[5]) rng-bit-generator(u64[2]), algorithm=rng_three_fry
(u64[3], u8[5]) rng-bit-generator(u64[3]), algorithm=rng_philox
u64[2] rng-get-and-update-state(), delta=4
((f32[2], s32[]), token[]) infeed(token[])
token[] outfeed(f32[2], token[]), outfeed_shape=f32[2]
(f32[2], u32[], token[]) send(f32[2], token[]), channel_id=1
token[] send-done((f32[2], u32[], token[])), channel_id=1
(f32[2], u32[], token[]) recv(token[]), channel_id=1
(f32[2], token[]) recv-done((f32[2], u32[], token[])), channel_id=1
f32[2] all-reduce(f32[2]), replica_groups={{0,1},{2,3}}, to_apply=add
(f32[2], f32[3]) all-reduce(f32[2], f32[3]), replica_groups={}, to_apply=add
f32[2,12] all-gather(f32[2,3]), dimensions={1}, replica_groups={{0,1,2,3}}
f32[2,12] all-gather(f32[2,3]), dimensions={1}, replica_groups=[2,4]<=[8]
f32[2,6] all-gather(f32[2,3]), dimensions={1}
f32[3] reduce-scatter(f32[6]), dimensions={0}, replica_groups={{0,1}}, to_apply=add
f32[2] reduce-scatter(f32[6]), dimensions={0}, channel_id=1, replica_groups={{0}}, to_apply=add
f32[4] all-to-all(f32[4]), dimensions={0}, replica_groups={{0,1}}
(f32[4], f32[4]) all-to-all(f32[4], f32[4]), replica_groups={{0,1}}
f32[6,2] ragged-all-to-all(f32[4,2], f32[6,2], s32[2], s32[2], s32[2], s32[2]), replica_groups={{0,1}}
f32[4] collective-broadcast(f32[4]), replica_groups={{0,1}}
f32[4] collective-permute(f32[4]), source_target_pairs={{0,1},{1,0}}
u32[] replica-id()
u32[] partition-id()
"""

BROKEN = """
add types           | token[] add(token[], token[])
add C2              | f32[2] add(f32[2], f64[2])
add C3              | f32[2] add(f32[2], f32[3])
add C3              | f32[2] add(f32[2], f32[])
add result          | f32[3] add(f32[2], f32[2])
and types           | f32[2] and(f32[2], f32[2])
is-finite types     | pred[2] is-finite(s32[2])
convert C2          | (f32[2]) convert(f32[2])
reduce-precision C2 | f32[2] reduce-precision(f32[2]), exponent_bits=0, mantissa_bits=1
reduce-precision C3 | f32[2] reduce-precision(f32[2]), exponent_bits=1, mantissa_bits=-1
reduce-precision C2 | f32[2] reduce-precision(f32[2]), exponent_bits=2147483648, mantissa_bits=1
reduce-precision C3 | f32[2] reduce-precision(f32[2]), exponent_bits=1, mantissa_bits=9223372036854775807
complex C2          | c64[2] complex(f32[2], f64[2])
complex C3          | c64[2] complex(f32[2], f32[3])
complex C4          | c64[2] complex(f16[2], f16[2])
compare C1          | pred[] compare(token[], token[]), direction=EQ
compare C2          | pred[2] compare(f32[2], f64[2]), direction=EQ
compare C3          | pred[2] compare(f32[2], f32[3]), direction=EQ
compare C4          | pred[2] compare(c64[2], c64[2]), direction=LT
compare C5          | pred[2] compare(f32[2], f32[2]), direction=LT, type=SIGNED
compare C5          | pred[2] compare(s32[2], s32[2]), direction=LT, type=FLOAT
stochastic-convert C1 | s8[2] stochastic-convert(f32[2], token[])
stochastic-convert C2 | s8[2] stochastic-convert(f32[2], u32[3])
stochastic-convert C3 | s8[2] stochastic-convert(f32[2], u16[2])
stochastic-convert C4 | c64[2] stochastic-convert(f32[2], u32[2])
select C1           | f32[2] select(pred[2], f32[2], token[])
select C2           | f32[2] select(pred[2], f32[2], f64[2])
select C3           | f32[2] select(pred[2], f32[2], f32[3])
select C4           | f32[2] select(pred[3], f32[2], f32[2])
clamp C1            | f32[2] clamp(f32[], token[], f32[])
clamp C2            | f32[2] clamp(f32[], f32[2], f64[])
clamp C3            | f32[2] clamp(f32[1], f32[2], f32[])
iota C1             | (s32[2]) iota(), iota_dimension=0
iota C2             | pred[2] iota(), iota_dimension=0
iota C3             | s32[2] iota(), iota_dimension=1
broadcast C1        | f32[2] broadcast(token[]), dimensions={}
broadcast C2        | token[] broadcast(f32[]), dimensions={}
broadcast C3        | f32[2] broadcast(s32[]), dimensions={}
broadcast C4        | f32[2,3] broadcast(f32[3]), dimensions={}
broadcast C5        | f32[2,2] broadcast(f32[2,2]), dimensions={0,0}
broadcast C5        | f32[2,2] broadcast(f32[2]), dimensions={2}
broadcast C6        | f32[2,3] broadcast(f32[1]), dimensions={0}
reshape C1          | f32[2] reshape(token[])
reshape C2          | token[] reshape(f32[2])
reshape C3          | s32[2] reshape(f32[2])
reshape C4          | f32[2] reshape(f32[3])
reshape C4          | f32[3] reshape(f32[2])
dynamic-reshape C1  | f32[<=6] dynamic-reshape(token[], s32[])
dynamic-reshape C2  | token[] dynamic-reshape(f32[6], s32[])
dynamic-reshape C3  | s32[<=6] dynamic-reshape(f32[6], s32[])
dynamic-reshape C4  | f32[<=6] dynamic-reshape(f32[6], s32[], s32[])
dynamic-reshape C5  | f32[<=7] dynamic-reshape(f32[6], s32[])
bitcast C1          | f32[2] bitcast(token[])
bitcast C2          | token[] bitcast(f32[2])
bitcast C3          | f32[2] bitcast(f64[2])
bitcast-convert C1  | f32[2] bitcast-convert(token[])
bitcast-convert C2  | token[] bitcast-convert(f32[2])
bitcast-convert C3  | f64[2] bitcast-convert(c64[2])
bitcast-convert C4  | f64[2] bitcast-convert(f32[2,3])
bitcast-convert result | u8[3,2] bitcast-convert(f32[3])
transpose C1        | f32[2] transpose(token[]), dimensions={}
transpose C2        | f32[2,3] transpose(f32[2,3]), dimensions={0,0}
reverse C1          | f32[2] reverse(token[]), dimensions={}
reverse C2          | f32[2,3] reverse(f32[2,3]), dimensions={2}
slice C1            | f32[2] slice(token[]), slice={[0:1]}
slice C2            | f32[2] slice(f32[2]), slice={[0:1], [0:1]}
slice C3            | f32[2] slice(f32[4]), slice={[3:5]}
slice C3            | f32[2] slice(f32[4]), slice={[3:2]}
slice C4            | f32[2] slice(f32[4]), slice={[0:2:0]}
pad C1              | f32[2] pad(f32[2], token[]), padding=0_0
pad C2              | f32[2] pad(f32[2], f32[1]), padding=0_0
pad C3              | f32[2] pad(f32[2], s32[]), padding=0_0
pad C4              | f32[2] pad(f32[2], f32[]), padding=0_0x0_0
pad C5              | f32[2] pad(f32[2], f32[]), padding=0_0_-1
pad C6              | f32[2] pad(f32[2], f32[]), padding=-1_-2
concatenate C1      | f32[4] concatenate(f32[2], token[]), dimensions={0}
concatenate C2      | f32[4] concatenate(f32[2], f32[2]), dimensions={1}
concatenate C3      | f32[4] concatenate(f32[2], s32[2]), dimensions={0}
concatenate C4      | f32[4,3] concatenate(f32[2,3], f32[2,4]), dimensions={0}
concatenate C4      | f32[4] concatenate(f32[2], f32[2,1]), dimensions={0}
dynamic-slice C1    | f32[1] dynamic-slice(f32[2], token[]), dynamic_slice_sizes={1}
dynamic-slice C2    | f32[1] dynamic-slice(f32[2], f32[]), dynamic_slice_sizes={1}
dynamic-slice C2    | f32[1,1] dynamic-slice(f32[2,2], s32[], s64[]), dynamic_slice_sizes={1,1}
dynamic-slice C2    | f32[1,1] dynamic-slice(f32[2,2], s32[]), dynamic_slice_sizes={1,1}
dynamic-slice C3    | f32[1] dynamic-slice(f32[2], s32[]), dynamic_slice_sizes={1,1}
dynamic-slice C4    | f32[3] dynamic-slice(f32[2], s32[]), dynamic_slice_sizes={3}
dynamic-update-slice C1 | f32[2] dynamic-update-slice(f32[2], token[], s32[])
dynamic-update-slice C2 | f32[2] dynamic-update-slice(f32[2], f32[1], f32[])
dynamic-update-slice C3 | f32[2] dynamic-update-slice(f32[2], f32[], s32[])
dynamic-update-slice C4 | f32[2] dynamic-update-slice(f32[2], f32[3], s32[])
dynamic-update-slice C5 | f32[2] dynamic-update-slice(f32[2], s32[1], s32[])
get-tuple-element C1 | f32[2] get-tuple-element(f32[2]), index=0
get-tuple-element C2 | f32[2] get-tuple-element((f32[2])), index=1
get-dimension-size C1 | s32[] get-dimension-size(token[]), dimensions={0}
get-dimension-size C2 | s32[] get-dimension-size(f32[2]), dimensions={1}
set-dimension-size C1 | f32[<=2] set-dimension-size(f32[2], token[]), dimensions={0}
set-dimension-size C2 | f32[<=2] set-dimension-size(f32[2], s32[]), dimensions={1}
set-dimension-size C3 | f32[<=2] set-dimension-size(f32[2], s64[]), dimensions={0}
copy-start C1       | (token[], token[], u32[]) copy-start(token[])
copy-done C1        | f32[2] copy-done(f32[2])
dot C1              | f32[2] dot(f32[2], token[])
dot C2              | f32[2] dot(f32[2], f32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
dot C3              | f32[2] dot(f32[2], f32[2]), lhs_contracting_dims={0}, rhs_contracting_dims={1}
dot C3              | f32[2] dot(f32[2,2], f32[2]), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,0}
dot C4              | f32[2] dot(f32[2], f32[2]), lhs_batch_dims={0}
dot C5              | f32[2] dot(f32[2], f32[2]), lhs_contracting_dims={0}
dot C6              | f32[2] dot(f32[2], f32[3]), lhs_batch_dims={0}, rhs_batch_dims={0}
dot C7              | f32[] dot(f32[2], f32[3]), lhs_contracting_dims={0}, rhs_contracting_dims={0}
dot C8              | f32[2,3] dot(f32[2], f32[3]), operand_precision={high}
dot C9              | s32[2,3] dot(f32[2], f32[3])
dot C9              | f32[2,3] dot(c64[2], f32[3])
ragged-dot C1       | f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], token[]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
ragged-dot C9       | s32[5,4] ragged-dot(f32[5,6], f32[3,6,4], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
ragged-dot C10      | f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0,1}, rhs_group_dims={0}
ragged-dot C11      | f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}
ragged-dot C12      | f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
ragged-dot C12      | f32[5,4] ragged-dot(f32[5,6], f32[3,6,4], f32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
scaled-dot C1       | f32[2,4] scaled-dot(f32[2,6], f32[6,4], token[]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
scaled-dot C9       | s32[2,4] scaled-dot(f32[2,6], f32[6,4], f32[2,2]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
scaled-dot C10      | f32[2,4] scaled-dot(f32[2,6], f32[6,4], f32[2,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}
convolution C1      | f32[1,4,4] convolution(token[], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f
convolution C2      | f32[1,4,4] convolution(f32[1,4], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f
convolution C3      | f32[1,4,4] convolution(f32[1,4,4], f32[1,4,4]), window={size=1x1}, dim_labels=b0f_0io->b0f
convolution C4      | f32[1,4,4] convolution(f32[1,4,4], f32[1,4,4]), window={size=2}, dim_labels=b0f_0io->b0f
convolution C5      | f32[1,4,4] convolution(f32[1,4,4], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2, batch_group_count=2
convolution C6      | f32[1,4,4] convolution(f32[1,4,4], f32[1,3,4]), window={size=1}, dim_labels=b0f_0io->b0f
convolution C7      | f32[1,4,3] convolution(f32[1,4,4], f32[1,2,3]), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2
convolution C8      | f32[1,4,4] convolution(f32[3,4,4], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2
convolution C9      | f32[1,4,4] convolution(f32[1,4,4], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f, operand_precision={high}
convolution C10     | s32[1,4,4] convolution(f32[1,4,4], f32[1,4,4]), window={size=1}, dim_labels=b0f_0io->b0f
fft C2              | c64[2] fft(c64[2]), fft_type=FFT, fft_length={}
fft C2              | c64[2] fft(c64[2]), fft_type=FFT, fft_length={2,2}
fft C3              | c64[2] fft(c64[2]), fft_type=RFFT, fft_length={2}
fft C3              | c64[2] fft(f32[2]), fft_type=FFT, fft_length={2}
fft C4              | f32[2] fft(c64[2]), fft_type=IRFFT, fft_length={4}
triangular-solve C1 | f32[4,4] triangular-solve(f32[4,4], token[]), left_side=true
triangular-solve C2 | f32[4,4] triangular-solve(f32[4,4], f64[4,4]), left_side=true
triangular-solve C3 | f32[4] triangular-solve(f32[4,4], f32[4]), left_side=true
triangular-solve C4 | f32[4,4] triangular-solve(f32[4,3], f32[4,4]), left_side=true
triangular-solve C5 | f32[2,4,4] triangular-solve(f32[3,4,4], f32[2,4,4]), left_side=true
triangular-solve C6 | f32[3,4] triangular-solve(f32[4,4], f32[3,4]), left_side=true
cholesky C1         | f32[4] cholesky(f32[4])
cholesky C2         | f32[3,4] cholesky(f32[3,4])
batch-norm-training C1 | (f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], token[]), epsilon=0.1, feature_index=1
batch-norm-training C2 | (f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[3]), epsilon=0.1, feature_index=2
batch-norm-training C3 | (f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], s32[3]), epsilon=0.1, feature_index=1
batch-norm-training C4 | (f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[2]), epsilon=0.1, feature_index=1
batch-norm-inference C1 | f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], token[]), epsilon=0.1, feature_index=1
batch-norm-inference C2 | f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], f32[3]), epsilon=0.1, feature_index=-1
batch-norm-inference C3 | f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], s32[3]), epsilon=0.1, feature_index=1
batch-norm-inference C4 | f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], f32[]), epsilon=0.1, feature_index=1
batch-norm-grad C1  | (f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], token[]), epsilon=0.1, feature_index=1
batch-norm-grad C2  | (f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], f32[2,3]), epsilon=0.1, feature_index=2
batch-norm-grad C3  | (f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], s32[2,3]), epsilon=0.1, feature_index=1
batch-norm-grad C4  | (f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[2], f32[2,3]), epsilon=0.1, feature_index=1
batch-norm-grad C5  | (f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], f32[2,4]), epsilon=0.1, feature_index=1
map C1              | f32[2] map(token[]), dimensions={}, to_apply=negate
map C2              | f32[2] map(f32[2], f32[3]), dimensions={0}, to_apply=add
map C3              | f32[2,3] map(f32[2,3]), dimensions={0}, to_apply=negate
map C4              | f32[2] map(f32[2]), dimensions={0}, to_apply=add
map C4              | f32[2] map(f32[2]), dimensions={0}, to_apply=twice
reduce C1           | f32[] reduce(f32[2], f32[], f32[]), dimensions={0}, to_apply=add
reduce C2           | (f32[], s32[]) reduce(f32[2], s32[3], f32[], s32[]), dimensions={0}, to_apply=add_two
reduce C3           | f32[] reduce(f32[2], f32[1]), dimensions={0}, to_apply=add
reduce C3           | f32[] reduce(f32[2], s32[]), dimensions={0}, to_apply=add
reduce C4           | f32[2] reduce(f32[2], f32[]), dimensions={1}, to_apply=add
reduce C5           | s32[] reduce(s32[2], s32[]), dimensions={0}, to_apply=add
reduce C5           | f32[] reduce(f32[2], f32[]), dimensions={0}, to_apply=less
reduce C5           | f32[] reduce(f32[2], f32[]), dimensions={0}, to_apply=add_vectors
reduce-window C1    | f32[2] reduce-window(token[], f32[]), window={size=2}, to_apply=add
reduce-window C2    | (f32[3], s32[3]) reduce-window(f32[4], s32[5], f32[], s32[]), window={size=2}, to_apply=add_two
reduce-window C3    | f32[3] reduce-window(f32[4], f32[2]), window={size=2}, to_apply=add
reduce-window C4    | f32[3] reduce-window(f32[4], f32[]), window={size=2x2}, to_apply=add
reduce-window C4    | f32[3] reduce-window(f32[4], f32[]), window={size=0}, to_apply=add
reduce-window C5    | f32[3] reduce-window(f32[4], f32[]), window={size=2}, to_apply=negate
select-and-scatter C1 | f32[4] select-and-scatter(f32[4], token[], f32[]), window={size=2 stride=2}, select=less, scatter=add
select-and-scatter C2 | f32[4] select-and-scatter(f32[4], f64[2], f32[]), window={size=2 stride=2}, select=less, scatter=add
select-and-scatter C3 | f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2x2 stride=2x1}, select=less, scatter=add
select-and-scatter C4 | f32[4] select-and-scatter(f32[4], f32[3], f32[]), window={size=2 stride=2}, select=less, scatter=add
select-and-scatter C5 | f32[4] select-and-scatter(f32[4], f32[2], f32[1]), window={size=2 stride=2}, select=less, scatter=add
select-and-scatter C6 | f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=add, scatter=add
select-and-scatter C7 | f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=less, scatter=less
scan C1             | (f32[5,2], f32[2]) scan(f32[5,2], token[]), dimensions={0}, num_carries=1, to_apply=step
scan C2             | (f32[5,2], f32[2]) scan(f32[5,2], f32[2]), dimensions={0}, num_carries=3, to_apply=step
scan C3             | (f32[5,2], f32[2]) scan(f32[5,2], f32[2]), dimensions={0,1}, num_carries=1, to_apply=step
scan C4             | (f32[5,2], f32[2]) scan(f32[5,2], f32[2]), dimensions={2}, num_carries=1, to_apply=step
scan C5             | (f32[5,3], f32[2]) scan(f32[5,3], f32[2]), dimensions={0}, num_carries=1, to_apply=step
scan C6             | (f32[5,2], f32[2]) scan(f32[5,2], f32[2]), dimensions={0}, num_carries=1, to_apply=step_wrong
scan C6             | (token[]) scan(f32[5,2]), dimensions={0}, num_carries=0, to_apply=step_tokens
scan C7             | (f32[2], f32[2]) scan(f32[2]), dimensions={1}, num_carries=1, to_apply=step_alone
sort C1             | f32[2] sort(token[]), dimensions={0}, to_apply=less
sort C2             | (f32[3], s32[4]) sort(f32[3], s32[4]), dimensions={0}, to_apply=less_two
sort C3             | f32[2] sort(f32[2]), dimensions={1}, to_apply=less
sort C4             | f32[2] sort(f32[2]), dimensions={0}, to_apply=add
topk C1             | (f32[], s32[]) topk(f32[]), k=1, largest=true
topk C2             | (f32[3], s32[3]) topk(f32[2]), k=3, largest=true
call C1             | f32[] call(f32[], f32[]), to_apply=negate
call C1             | f32[] call(f64[]), to_apply=negate
while C1            | s32[] while(s32[]), body=negate, condition=finite_s32
while C2            | f32[] while(f32[]), body=truncate, condition=finite
while C3            | f32[] while(f32[]), body=negate, condition=finite_s32
while C4            | f32[] while(f32[]), body=negate, condition=negate
conditional C1      | f32[] conditional(s64[], f32[]), branch_computations={negate}
conditional C2      | f32[] conditional(s32[], f32[], f32[]), branch_computations={negate}
conditional C2      | f32[] conditional(pred[], f32[]), branch_computations={negate}
conditional C3      | f32[] conditional(s32[], s32[]), branch_computations={negate}
conditional C4      | f32[] conditional(s32[], f32[], f32[]), branch_computations={negate, truncate}
fusion C1           | f32[] fusion(s32[]), kind=kLoop, calls=negate
fusion C2           | s32[] fusion(f32[]), kind=kLoop, calls=truncate, output_to_operand_aliasing={{}: (0, {})}
custom-call C2      | f32[2] custom-call(f32[2]), custom_call_target="t", operand_layout_constraints={f32[3]{0}}
custom-call C3      | f32[2] custom-call(f32[2]), custom_call_target="t", output_to_operand_aliasing={{0}: (0, {})}
custom-call C3      | f32[2] custom-call(f32[2]), custom_call_target="t", output_to_operand_aliasing={{}: (1, {})}
custom-call C4      | (f32[2,3], s32[]) custom-call(f32[2,3]), custom_call_target="lapack_spotrf_ffi"
after-all C1        | token[] after-all(f32[])
add-dependency C1   | f32[] add-dependency(f32[], f32[])
rng C1              | f32[2] rng(f32[1], f32[]), distribution=rng_normal
rng C2              | token[] rng(f32[], f32[]), distribution=rng_normal
rng C3              | f64[2] rng(f32[], f32[]), distribution=rng_normal
rng C4              | s32[2] rng(s32[], s32[]), distribution=rng_normal
rng-bit-generator C1 | (u64[1,2], u32[5]) rng-bit-generator(u64[1,2]), algorithm=rng_three_fry
rng-bit-generator C2 | (u64[3], u32[5]) rng-bit-generator(u64[3]), algorithm=rng_three_fry
rng-bit-generator C3 | (u64[3], u32[5]) rng-bit-generator(u64[2]), algorithm=rng_three_fry
rng-bit-generator C4 | (u64[2], pred[5]) rng-bit-generator(u64[2]), algorithm=rng_three_fry
rng-get-and-update-state result | u64[3] rng-get-and-update-state(), delta=1
infeed C1           | (f32[2], token[]) infeed(f32[])
outfeed C1          | token[] outfeed(f32[2], f32[]), outfeed_shape=f32[2]
outfeed C2          | token[] outfeed(f32[2], token[]), outfeed_shape=f32[3]
send C1             | (f32[2], u32[], token[]) send(f32[2], f32[]), channel_id=1
send-done C1        | token[] send-done(f32[]), channel_id=1
recv C1             | (f32[2], u32[], token[]) recv(f32[]), channel_id=1
recv C2             | (f32[2], token[]) recv(token[]), channel_id=1
recv-done C1        | (f32[2], token[]) recv-done(f32[2]), channel_id=1
all-reduce C1       | token[] all-reduce(token[]), to_apply=add
all-reduce C2       | f32[2] all-reduce(f32[2]), replica_groups={{0,0}}, to_apply=add
all-reduce C2       | f32[2] all-reduce(f32[2]), use_global_device_ids=true, to_apply=add
all-reduce C3       | s32[2] all-reduce(s32[2]), to_apply=add
all-reduce-start C1 | token[] all-reduce-start(token[]), to_apply=add
all-reduce-start C2 | f32[2] all-reduce-start(f32[2]), replica_groups={{0,0}}, to_apply=add
all-reduce-start C3 | s32[2] all-reduce-start(s32[2]), to_apply=add
all-gather C1       | token[] all-gather(token[]), dimensions={0}
all-gather C2       | f32[2] all-gather(f32[2]), dimensions={1}
all-gather C3       | f32[4] all-gather(f32[2]), dimensions={0}, replica_groups={{0,1},{2}}
all-gather result   | f32[6] all-gather(f32[2]), dimensions={0}, replica_groups={{0,1}}
all-gather-done C1  | f32[2] all-gather-done(f32[2])
all-to-all C1       | token[] all-to-all(token[]), dimensions={0}
all-to-all C2       | f32[4] all-to-all(f32[4]), dimensions={0}, replica_groups={{0,1},{2}}
all-to-all C3       | f32[4] all-to-all(f32[4]), dimensions={0}, replica_groups={{0,1,2}}
all-to-all C4       | (f32[4]) all-to-all(f32[4]), replica_groups={{0,1}}
ragged-all-to-all C1 | f32[6,2] ragged-all-to-all(f32[4,2], f32[6,2], s32[2], s32[2], s32[2], token[])
ragged-all-to-all C2 | f32[6,2] ragged-all-to-all(f32[4,2], f32[6,2], s32[2], s32[2], s32[2], s32[2]), replica_groups={{0,0}}
ragged-all-to-all C3 | f32[6,3] ragged-all-to-all(f32[4,2], f32[6,3], s32[2], s32[2], s32[2], s32[2])
ragged-all-to-all C4 | f32[6,2] ragged-all-to-all(f32[4,2], f32[6,2], s32[2], s32[2], s32[2], s32[3])
collective-broadcast C1 | token[] collective-broadcast(token[])
collective-broadcast C2 | f32[2] collective-broadcast(f32[2]), replica_groups={{0},{0}}
collective-permute C1 | f32[2] collective-permute(f32[2]), source_target_pairs={{0,1},{0,2}}
collective-permute C2 | f32[2] collective-permute(f32[2]), source_target_pairs={{0,1}}, slice_sizes={{1}}
collective-permute-start C1 | (f32[2], f32[2]) collective-permute-start(f32[2]), source_target_pairs={{0,1},{0,2}}
collective-permute-start C2 | (f32[2], f32[2]) collective-permute-start(f32[2]), source_target_pairs={{0,1}}, slice_sizes={{1}}
collective-permute-done C1 | f32[2] collective-permute-done(f32[2])
reduce-scatter C1   | token[] reduce-scatter(token[]), dimensions={0}, to_apply=add
reduce-scatter C2   | f32[2] reduce-scatter(f32[4]), dimensions={0}, replica_groups={{0,0}}, to_apply=add
reduce-scatter C3   | s32[2] reduce-scatter(s32[4]), dimensions={0}, replica_groups={{0,1}}, to_apply=add
reduce-scatter C4   | f32[2] reduce-scatter(f32[5]), dimensions={0}, replica_groups={{0,1}}, to_apply=add
"""

# One attribute or operand of these is changed at a time.
GATHER = "f32[5,4] gather(f32[3,4], s32[5,1]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"
GATHER_BATCH = ("f32[2,5,1] gather(f32[2,3,4], s32[2,5,1]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
                "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,1}")
SCATTER = ("f32[3,4] scatter(f32[3,4], s32[5,1], f32[5,4]), update_window_dims={1}, inserted_window_dims={0}, "
           "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add")
SCATTER_BATCH = ("f32[2,3] scatter(f32[2,3], s32[2,5,1], f32[2,5]), update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, "
                 "scatter_dims_to_operand_dims={1}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add")
SCATTER_TWO = ("(f32[3], s32[3]) scatter(f32[3], s32[3], s32[5], f32[5], s32[5]), update_window_dims={}, inserted_window_dims={0}, "
               "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_two")
CHANGED = [
    ("gather C1", GATHER, "s32[5,1]", "token[]"),
    ("gather C2", GATHER, "s32[5,1]", "f32[5,1]"),
    ("gather C3", GATHER, "index_vector_dim=1", "index_vector_dim=3"),
    ("gather C4", GATHER, "start_index_map={0}", "start_index_map={0,1}"),
    ("gather C4", GATHER, "start_index_map={0}", "start_index_map={2}"),
    ("gather C5", GATHER, "offset_dims={1}", "offset_dims={2}"),
    ("gather C6", GATHER, "collapsed_slice_dims={0}", "collapsed_slice_dims={2}"),
    ("gather C6", GATHER, "collapsed_slice_dims={0}", "collapsed_slice_dims={1,0}"),
    ("gather C7", GATHER_BATCH, "operand_batching_dims={0}", "operand_batching_dims={3}"),
    ("gather C8", GATHER_BATCH, "operand_batching_dims={0}", "operand_batching_dims={1}"),
    ("gather C9", GATHER_BATCH, "start_indices_batching_dims={0}", "start_indices_batching_dims={2}"),
    ("gather C9", GATHER_BATCH, "start_indices_batching_dims={0}", "start_indices_batching_dims={1}"),
    ("gather C9", GATHER_BATCH, "start_indices_batching_dims={0}", "start_indices_batching_dims={0,1}"),
    ("gather C10", GATHER, "slice_sizes={1,4}", "slice_sizes={1,5}"),
    ("gather C10", GATHER, "slice_sizes={1,4}", "slice_sizes={1}"),
    ("gather C11", GATHER, "slice_sizes={1,4}", "slice_sizes={2,4}"),
    ("gather C12", GATHER, "collapsed_slice_dims={0}", "collapsed_slice_dims={}"),
    ("scatter C1", SCATTER, "s32[5,1], f32[5,4]", "s32[5,1], f32[5,4], f32[5,4]"),
    ("scatter C2", SCATTER, "s32[5,1]", "f32[5,1]"),
    ("scatter C3", SCATTER, "index_vector_dim=1", "index_vector_dim=3"),
    ("scatter C4", SCATTER, "operand_dims={0}", "operand_dims={0,1}"),
    ("scatter C5", SCATTER_TWO, "scatter(f32[3], s32[3]", "scatter(f32[3], s32[4]"),
    ("scatter C5", SCATTER_TWO, "f32[5], s32[5])", "f32[5], s32[4])"),
    ("scatter C6", SCATTER, "update_window_dims={1}", "update_window_dims={2}"),
    ("scatter C7", SCATTER, "inserted_window_dims={0}", "inserted_window_dims={2}"),
    ("scatter C8", SCATTER_BATCH, "input_batching_dims={0}", "input_batching_dims={1}"),
    ("scatter C9", SCATTER_BATCH, "scatter_indices_batching_dims={0}", "scatter_indices_batching_dims={1}"),
    ("scatter C10", SCATTER, "inserted_window_dims={0}", "inserted_window_dims={}"),
    ("scatter C11", SCATTER, "f32[5,4])", "f32[5,5])"),
    ("scatter C12", SCATTER, "f32[5,4])", "f32[6,4])"),
    ("scatter C13", SCATTER, "f32[5,4])", "s32[5,4])"),
    ("scatter C14", SCATTER, "to_apply=add", "to_apply=less"),
    ("scatter C14", SCATTER, "to_apply=add", "to_apply=negate"),
]
# fmt: on
LINES = GOOD.strip().split("\n")
BREAKS = [
    *(tuple(part.strip() for part in line.split("|")) for line in BROKEN.strip().split("\n")),
    *((rule, base.replace(old, new)) for rule, base, old, new in CHANGED),
]


def module_of(line: str) -> HloModule:
    """A module whose root is the instruction of a line, in which operands are written as their shapes."""
    head = re.match(r"(.*?) ([a-z][a-z0-9-]*)\(", line)
    assert head is not None, line
    operands, end = _split(line, head.end())
    given = ", ".join(f"p{i}" if head[2] != "constant" else s for i, s in enumerate(operands))
    body = [f"  p{i} = {s} parameter({i})" for i, s in enumerate(operands)] if head[2] != "constant" else []
    body.append(f"  ROOT r = {head[1]} {head[2]}({given}{line[end:]}")
    callees = [f"{name} {CALLEES[name]}" for name in CALLEES if re.search(rf"[={{ ]{name}\b", line[end:])]
    return parse_module("HloModule m\n" + "\n".join(callees) + "\nENTRY main {\n" + "\n".join(body) + "\n}\n")


def _split(line: str, start: int) -> tuple[list[str], int]:
    depth, parts, begin = 0, [], start
    for i in range(start, len(line)):
        if line[i] in "([{":
            depth += 1
        elif line[i] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and line[i] == ","):
            parts.append(line[begin:i].strip())
            begin = i + 1
        if depth < 0:
            return [p for p in parts if p], i
    raise AssertionError(line)


@pytest.mark.parametrize("line", LINES)
def test_right_programs_pass(line):
    module = module_of(line)
    verify(module)
    root = module.entry.root
    inferred = infer_from_shapes(root.opcode, [o.shape for o in root.operands], root.attrs, root.called, root.shape)
    assert inferred.static is root.shape.static


@pytest.mark.parametrize("rule, line", BREAKS, ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(BREAKS)])
def test_every_constraint_is_kept_watch_over(rule, line):
    module = module_of(line)
    with pytest.raises(InvalidArgumentError) as error:
        verify(module)
    assert error.value.rule == rule, str(error.value)
    assert "computation main" in error.value.where


@pytest.mark.parametrize("name", sorted(OPCODES))
def test_every_row_has_a_rule_with_numbered_constraints(name):
    rule = OPCODES[name].rule
    assert rule is not None
    assert rule.__doc__
    assert "(C1)" in rule.__doc__ or "o constraint" in rule.__doc__ or "the constraints are those" in rule.__doc__


# What text cannot say, or what only the verifier's own checks or a missing shape can break; see the tests below.
ELSEWHERE = {
    "parameter C1", "parameter C2", "constant C1", "convert C1", "custom-call C1", "fft C1", "domain C1", "concatenate C1",
    "real C1", "imag C1", "abs C1", "reduce-precision C1", "async-start C1", "async-start C2", "async-update C1", "async-done C1",
    "complex C1", "infeed C2", "is-finite C1", "is-finite C2", "is-finite C3",
}  # fmt: skip


def test_every_numbered_constraint_is_broken_by_a_case():
    broken = {rule for rule, _ in BREAKS}
    missing = []
    for name, row in OPCODES.items():
        if row.elementwise and row.rule is OPCODES["add"].rule:
            continue
        labels = set(re.findall(r"\((C\d+)\)", row.rule.__doc__))
        missing += [f"{name} {c}" for c in sorted(labels) if f"{name} {c}" not in broken | ELSEWHERE]
    assert missing == []


ARRAYS = [e for e in ElementType if e.is_array]
SAME_SHAPE = [n for n, r in OPCODES.items() if r.elementwise and r.rule is OPCODES["add"].rule]


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_elementwise_opcodes_take_exactly_the_types_of_their_row(name):
    row = OPCODES[name]
    for dtype in ARRAYS:
        shapes = [Shape.array(dtype, (2, 3))] * row.arity[0]
        if dtype in row.accepts:
            assert infer_from_shapes(name, shapes) is shapes[0]
        else:
            with pytest.raises(OpError, match="not accepted") as error:
                infer_from_shapes(name, shapes)
            assert error.value.rule == f"{name} types"


@pytest.mark.parametrize(
    "name, operands, attrs, rule",
    [
        ("add", ["f32[2]"], {}, "add arity"),
        ("call", ["f32[2]"], {}, "call calls"),
        ("parameter", [], {"parameter_number": 0}, "parameter C1"),
        ("iota", [], {"iota_dimension": 0}, "iota C1"),
        ("reshape", ["f32[2]"], {}, "reshape C2"),
        ("broadcast", ["f32[]"], {}, "broadcast C2"),
        ("convert", ["f32[]"], {}, "convert C2"),
        ("custom-call", [], {"custom_call_target": "t"}, "custom-call C1"),
        ("infeed", ["token[]"], {}, "infeed C2"),
        ("recv", ["token[]"], {}, "recv C2"),
        ("rng-bit-generator", ["u64[2]"], {"algorithm": "rng_default"}, "rng-bit-generator C3"),
    ],
)
def test_missing_attributes_are_named(name, operands, attrs, rule):
    shapes = [TOKEN if s == "token[]" else Shape.array(*_array(s)) for s in operands]
    with pytest.raises(ShapeError) as error:
        infer_from_shapes(name, shapes, attrs)
    assert error.value.rule == rule


def _array(text: str) -> tuple[str, tuple[int, ...]]:
    dtype, dims = text.rstrip("]").split("[")
    return dtype, tuple(int(d) for d in dims.split(",") if d)


def test_missing_and_unknown_attributes_are_named():
    x = Shape.array("f32", (2,))
    with pytest.raises(ShapeError, match="transpose needs the attribute 'dimensions'"):
        infer_from_shapes("transpose", [x])
    with pytest.raises(ShapeError, match="negate has no attribute 'dimensions'"):
        infer_from_shapes("negate", [x], {"dimensions": (0,)})


def test_sizes_beyond_64_bits_end_in_a_clean_error():
    x = Shape.array("f32", (2**40,))
    with pytest.raises(ShapeError, match="more than 2\\^63"):
        infer_from_shapes("dot", [x, x])


@given(st.data())
def test_a_window_takes_as_many_places_as_fit(data):
    number = st.integers
    window = WindowDim(
        data.draw(number(1, 4)), data.draw(number(1, 3)), data.draw(number(-2, 3)), data.draw(number(-2, 3)),
        data.draw(number(1, 3)), data.draw(number(1, 3)),
    )  # fmt: skip
    size = data.draw(number(0, 8))
    cells = max(0, (size - 1) * window.base_dilation + 1) if size else 0
    end = cells + window.padding_high
    reach = (window.size - 1) * window.window_dilation
    places = [p for p in range(-window.padding_low, end, window.stride) if p + reach < end]
    assert window_count(size, window) == len(places)


@given(st.integers(0, 9), st.data())
def test_slices_are_as_long_as_in_numpy(size, data):
    limit = data.draw(st.integers(0, size))
    start = data.draw(st.integers(0, limit))
    stride = data.draw(st.integers(1, 4))
    x = np.zeros((2, size), np.float32)
    shape = infer_from_shapes("slice", [Shape.of(x)], {"slice": (SliceDim(0, 2), SliceDim(start, limit, stride))})
    assert shape is Shape.of(x[:, start:limit:stride])


@given(st.permutations("abcd"), st.permutations("abce"))
def test_dot_has_the_shape_of_einsum(lhs, rhs):
    sizes = dict(zip("abcde", (2, 3, 4, 5, 6), strict=True))
    x, y = (np.zeros([sizes[d] for d in dims], np.float32) for dims in (lhs, rhs))
    attrs = {
        "lhs_batch_dims": (lhs.index("a"),), "rhs_batch_dims": (rhs.index("a"),),
        "lhs_contracting_dims": (lhs.index("b"), lhs.index("c")), "rhs_contracting_dims": (rhs.index("b"), rhs.index("c")),
    }  # fmt: skip
    shape = infer_from_shapes("dot", [Shape.of(x), Shape.of(y)], attrs)
    assert shape is Shape.of(np.einsum(f"{''.join(lhs)},{''.join(rhs)}->ade", x, y))
