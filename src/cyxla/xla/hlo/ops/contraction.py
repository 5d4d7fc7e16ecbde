"""Opcodes that contract, transform or factorise: dot, convolution, fft, linear algebra, batch normalisation."""

from __future__ import annotations

from cyxla.xla.hlo.opcode import ANY, FLOAT, INEXACT, opcode, opt, req

DOT_ALGORITHMS = (
    "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32", "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9", "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64",
)  # fmt: skip

# fmt: off
_DOT = (opt("lhs_batch_dims", "dims", ()), opt("lhs_contracting_dims", "dims", ()),
        opt("rhs_batch_dims", "dims", ()), opt("rhs_contracting_dims", "dims", ()))
_PRECISION = (opt("operand_precision", "precision", ()),)  # () is the default for every operand
_ALGORITHM = (opt("algorithm", "enum:" + ",".join(DOT_ALGORITHMS)),)

opcode("dot",                  2, accepts=ANY, attrs=(*_DOT, *_PRECISION, *_ALGORITHM))
opcode("ragged-dot",           3, accepts=ANY, attrs=(*_DOT, opt("lhs_ragged_dims", "dims", ()), opt("rhs_group_dims", "dims", ()), *_PRECISION))
opcode("scaled-dot",           (3, 4), accepts=ANY, attrs=(*_DOT, *_PRECISION))
opcode("convolution",          2, accepts=ANY, attrs=(
    opt("window", "window", ()), req("dim_labels", "dim_labels"), opt("feature_group_count", "int", 1), opt("batch_group_count", "int", 1), *_PRECISION))
opcode("fft",                  1, accepts=INEXACT, attrs=(req("fft_type", "enum:FFT,IFFT,RFFT,IRFFT"), req("fft_length", "dims")))
opcode("triangular-solve",     2, accepts=INEXACT, attrs=(
    opt("left_side", "bool", False), opt("lower", "bool", False), opt("unit_diagonal", "bool", False),
    opt("transpose_a", "enum:NO_TRANSPOSE,TRANSPOSE,ADJOINT", "NO_TRANSPOSE")))
opcode("cholesky",             1, accepts=INEXACT, attrs=(opt("lower", "bool", False),))
_NORM = (req("epsilon", "float"), req("feature_index", "int"))
opcode("batch-norm-training",  3, accepts=FLOAT, attrs=_NORM)
opcode("batch-norm-inference", 5, accepts=FLOAT, attrs=_NORM)
opcode("batch-norm-grad",      5, accepts=FLOAT, attrs=_NORM)
# fmt: on
