"""Linear algebra on batches of matrices."""

from cyxla.core.framework.op import op

op("Cholesky", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", shape=None)
op("CholeskyGrad", "l: T, grad: T -> output: T", "T: {half, float, double}", shape=None)
op("Einsum", "inputs: N * T -> output: T", "equation: string", "N: int", "T: type", shape=None)
op("LogMatrixDeterminant", "input: T -> sign: T, log_abs_determinant: T",
    "T: {half, float, double, complex64, complex128}", shape=None,
)  # fmt: skip
op("Lu", "input: T -> lu: T, p: output_idx_type", "T: {double, float, half, complex64, complex128}",
    "output_idx_type: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("MatrixDeterminant", "input: T -> output: T", "T: {half, float, double, complex64, complex128}", shape=None)
op("MatrixExponential", "input: T -> output: T", "T: {double, float, half, complex64, complex128}",
    deprecated=(27, "Compose it from other ops."), shape=None,
)  # fmt: skip
op("MatrixInverse", "input: T -> output: T", "adjoint: bool = false", "T: {double, float, half, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("MatrixLogarithm", "input: T -> output: T", "T: {complex64, complex128}", shape=None)
op("MatrixSolve", "matrix: T, rhs: T -> output: T", "adjoint: bool = false",
    "T: {double, float, half, complex64, complex128}", shape=None,
)  # fmt: skip
op("MatrixSquareRoot", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", shape=None)
op("MatrixTriangularSolve", "matrix: T, rhs: T -> output: T", "lower: bool = true", "adjoint: bool = false",
    "T: {bfloat16, double, float, half, complex64, complex128}", shape=None,
)  # fmt: skip
op("Qr", "input: T -> q: T, r: T", "full_matrices: bool = false", "T: {double, float, half, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("SelfAdjointEig", "input: T -> output: T", "T: {double, float, half}", deprecated=(11, "Use SelfAdjointEigV2."),
    shape=None,
)  # fmt: skip
op("SelfAdjointEigV2", "input: T -> e: T, v: T", "compute_v: bool = true",
    "T: {double, float, half, complex64, complex128}", shape=None,
)  # fmt: skip
op("Svd", "input: T -> s: T, u: T, v: T", "compute_uv: bool = true", "full_matrices: bool = false",
    "T: {double, float, half, complex64, complex128}", shape=None,
)  # fmt: skip
op("TridiagonalMatMul", "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T",
    "T: {double, float, complex64, complex128}", shape=None,
)  # fmt: skip
op("TridiagonalSolve", "diagonals: T, rhs: T -> output: T", "partial_pivoting: bool = true",
    "perturb_singular: bool = false", "T: {double, float, complex64, complex128}", shape=None,
)  # fmt: skip
