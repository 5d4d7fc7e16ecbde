"""Linear algebra on batches of matrices."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim, TensorShape
from cyxla.errors import ShapeError


def _square(c: InferenceContext, x: TensorShape) -> tuple[TensorShape, Dim]:
    """Return batch shape and size of square matrices."""
    x = c.with_rank_at_least(x, 2)
    return c.sub_shape(x, 0, -2), c.merge_dim(x[-1], x[-2])


def _square_shape(c: InferenceContext) -> None:
    batch, n = _square(c, c.input(0))
    c.set_output(0, c.concatenate(batch, (n, n)))


def _determinant_shape(c: InferenceContext) -> None:
    batch, _ = _square(c, c.input(0))
    for i in range(c.num_outputs):
        c.set_output(i, batch)


def _lu_shape(c: InferenceContext) -> None:
    """Set the packed factors, and the permutation of rows."""
    batch, n = _square(c, c.input(0))
    c.set_output(0, c.concatenate(batch, (n, n)))
    c.set_output(1, c.concatenate(batch, (n,)))


def _solve_shape(c: InferenceContext) -> None:
    batch, n = _square(c, c.input(0))
    rhs = c.with_rank_at_least(c.input(1), 2)
    batch = c.merge(batch, c.sub_shape(rhs, 0, -2))
    c.set_output(0, c.concatenate(batch, (c.merge_dim(n, rhs[-2]), rhs[-1])))


def _triangular_solve_shape(c: InferenceContext) -> None:
    """Broadcast the batches and merge the matrix sizes."""
    batch, n = _square(c, c.input(0))
    rhs = c.with_rank_at_least(c.input(1), 2)
    batch = c.broadcast(batch, c.sub_shape(rhs, 0, -2))
    c.set_output(0, c.concatenate(batch, (c.merge_dim(n, rhs[-2]), rhs[-1])))


def _qr_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.input(0), 2)
    batch, m, n = c.sub_shape(x, 0, -2), x[-2], x[-1]
    inner = m if c.attr("full_matrices") else c.min(m, n)
    c.set_output(0, c.concatenate(batch, (m, inner)))
    c.set_output(1, c.concatenate(batch, (inner, n)))


def _eigh_v1_shape(c: InferenceContext) -> None:
    """Set a row of eigenvalues above the eigenvectors."""
    batch, n = _square(c, c.input(0))
    c.set_output(0, c.concatenate(batch, (c.add(n, 1), n)))


def _eigh_shape(c: InferenceContext) -> None:
    batch, n = _square(c, c.input(0))
    c.set_output(0, c.concatenate(batch, (n,)))
    c.set_output(1, c.concatenate(batch, (n, n)) if c.attr("compute_v") else (0,))


def _svd_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.input(0), 2)
    batch, m, n = c.sub_shape(x, 0, -2), x[-2], x[-1]
    rank, full_matrices = c.min(m, n), c.attr("full_matrices")
    c.set_output(0, c.concatenate(batch, (rank,)))
    for i, size in ((1, m), (2, n)):
        shape = c.concatenate(batch, (size, size if full_matrices else rank))
        c.set_output(i, shape if c.attr("compute_uv") else (0,))


def _tridiagonal_product_shape(c: InferenceContext) -> None:
    """Check three diagonals, each a row, and set the shape of the right-hand side."""
    rhs = c.with_rank_at_least(c.input(3), 2)
    rows = rhs[-2]
    for i in range(3):
        diagonal = c.with_rank_at_least(c.input(i), 2)
        c.with_value(diagonal[-2], 1)
        rows = c.merge_dim(rows, diagonal[-1])
    c.set_output(0, c.concatenate(c.sub_shape(rhs, 0, -2), (rows, rhs[-1])))


def _tridiagonal_solve_shape(c: InferenceContext) -> None:
    """Check three diagonals, stacked as rows, against the right-hand side."""
    diagonals, rhs = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)
    batch = c.merge(c.sub_shape(diagonals, 0, -2), c.sub_shape(rhs, 0, -2))
    c.with_value(diagonals[-2], 3)
    c.set_output(0, c.concatenate(batch, (c.merge_dim(diagonals[-1], rhs[-2]), rhs[-1])))


# Einsum ----------------------------------------------------------------------------------------------------------


def _einsum_shape(c: InferenceContext) -> None:
    """Look up each output label's size among the inputs; ellipses broadcast."""
    equation = c.attr("equation").replace(" ", "")
    inputs_text, arrow, result = equation.partition("->")
    terms = inputs_text.split(",")
    if not arrow or len(terms) != c.num_inputs:
        raise ShapeError(f"Einsum: the equation {equation!r} has no terms for {c.num_inputs} inputs")
    sizes: dict[str, Dim] = {}
    dots: TensorShape = c.scalar()
    for term, shape in zip(terms, c.inputs("inputs"), strict=True):
        dots = c.broadcast(dots, _record_sizes(c, term, shape, sizes))
    before, ellipsis, after = result.partition("...")
    if any(label not in sizes for label in before + after):
        raise ShapeError(f"Einsum: the result {result!r} has labels that no input has")
    head, tail = ([sizes[label] for label in part] for part in (before, after))
    c.set_output(0, c.concatenate(c.concatenate(TensorShape(head), dots if ellipsis else ()), tail))


def _record_sizes(c: InferenceContext, term: str, shape: TensorShape, sizes: dict[str, Dim]) -> TensorShape:
    """Record the sizes of a term's labels, and return the shape covered by its ellipsis."""
    before, ellipsis, after = term.partition("...")
    if not ellipsis:
        shape = c.with_rank(shape, len(term))
    shape = c.with_rank_at_least(shape, len(before + after))
    tail = c.sub_shape(shape, -len(after)) if after else c.scalar()
    for label, size in zip(before + after, (*c.sub_shape(shape, 0, len(before)), *tail), strict=True):
        sizes[label] = c.merge_dim(sizes.get(label), size)
    if not ellipsis:
        return c.scalar()
    return c.sub_shape(shape, len(before), -len(after) if after else None)


op("Cholesky", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", shape=_square_shape,
    doc="Compute the lower Cholesky factors of positive definite matrices.",
)  # fmt: skip
op("CholeskyGrad", "l: T, grad: T -> output: T", "T: {half, float, double}", shape=_square_shape,
    doc="Compute the gradient of Cholesky from its result.",
)  # fmt: skip
op("Einsum", "inputs: N * T -> output: T", "equation: string", "N: int", "T: type", shape=_einsum_shape,
    doc="Evaluate an Einstein summation.",
)  # fmt: skip
op("LogMatrixDeterminant", "input: T -> sign: T, log_abs_determinant: T",
    "T: {half, float, double, complex64, complex128}", shape=_determinant_shape,
    doc="Compute sign and logarithm of the determinants of matrices.",
)  # fmt: skip
op("Lu", "input: T -> lu: T, p: output_idx_type", "T: {double, float, half, complex64, complex128}",
    "output_idx_type: {int32, int64} = DT_INT32", shape=_lu_shape,
    doc="Compute LU factors of matrices, packed into one matrix, and the row permutations.",
)  # fmt: skip
op("MatrixDeterminant", "input: T -> output: T", "T: {half, float, double, complex64, complex128}",
    shape=_determinant_shape, doc="Compute the determinants of matrices.",
)  # fmt: skip
op("MatrixExponential", "input: T -> output: T", "T: {double, float, half, complex64, complex128}",
    deprecated=(27, "Compose it from other ops."), shape=_square_shape, doc="Compute the exponentials of matrices.",
)  # fmt: skip
op("MatrixInverse", "input: T -> output: T", "adjoint: bool = false", "T: {double, float, half, complex64, complex128}",
    shape=_square_shape, doc="Invert matrices, or their adjoints.",
)  # fmt: skip
op("MatrixLogarithm", "input: T -> output: T", "T: {complex64, complex128}", shape=_square_shape,
    doc="Compute the logarithms of matrices.",
)  # fmt: skip
op("MatrixSolve", "matrix: T, rhs: T -> output: T", "adjoint: bool = false",
    "T: {double, float, half, complex64, complex128}", shape=_solve_shape,
    doc="Solve systems of linear equations.",
)  # fmt: skip
op("MatrixSquareRoot", "input: T -> output: T", "T: {double, float, half, complex64, complex128}", shape=_square_shape,
    doc="Compute the square roots of matrices.",
)  # fmt: skip
op("MatrixTriangularSolve", "matrix: T, rhs: T -> output: T", "lower: bool = true", "adjoint: bool = false",
    "T: {bfloat16, double, float, half, complex64, complex128}", shape=_triangular_solve_shape,
    doc="Solve triangular systems of linear equations.",
)  # fmt: skip
op("Qr", "input: T -> q: T, r: T", "full_matrices: bool = false", "T: {double, float, half, complex64, complex128}",
    shape=_qr_shape, doc="Compute QR decompositions of matrices.",
)  # fmt: skip
op("SelfAdjointEig", "input: T -> output: T", "T: {double, float, half}", deprecated=(11, "Use SelfAdjointEigV2."),
    shape=_eigh_v1_shape, doc="Compute the eigenvalues of self-adjoint matrices, stacked above the eigenvectors.",
)  # fmt: skip
op("SelfAdjointEigV2", "input: T -> e: T, v: T", "compute_v: bool = true",
    "T: {double, float, half, complex64, complex128}", shape=_eigh_shape,
    doc="Compute eigenvalues and eigenvectors of self-adjoint matrices.",
)  # fmt: skip
op("Svd", "input: T -> s: T, u: T, v: T", "compute_uv: bool = true", "full_matrices: bool = false",
    "T: {double, float, half, complex64, complex128}", shape=_svd_shape,
    doc="Compute singular value decompositions of matrices.",
)  # fmt: skip
op("TridiagonalMatMul", "superdiag: T, maindiag: T, subdiag: T, rhs: T -> output: T",
    "T: {double, float, complex64, complex128}", shape=_tridiagonal_product_shape,
    doc="Multiply by tridiagonal matrices.",
)  # fmt: skip
op("TridiagonalSolve", "diagonals: T, rhs: T -> output: T", "partial_pivoting: bool = true",
    "perturb_singular: bool = false", "T: {double, float, complex64, complex128}", shape=_tridiagonal_solve_shape,
    doc="Solve tridiagonal systems of linear equations.",
)  # fmt: skip
