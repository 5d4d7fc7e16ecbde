"""NumPy's functions on traced arrays; each module is imported when one of its functions is first called."""

from __future__ import annotations

from typing import Final

from cyxla.numpy.tracing.registry import register_modules

# fmt: off
FUNCTIONS: Final[dict[str, str]] = {
    "bit_packing": "packbits unpackbits",
    "products.contractions":
        "dot inner kron linalg.matmul linalg.multi_dot linalg.outer linalg.tensordot linalg.trace linalg.vecdot matmul "
        "matvec outer tensordot trace vdot vecdot vecmat",
    "creation":
        "array array2string array_repr array_str asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray "
        "astype copy copyto empty_like full full_like geomspace linspace logspace may_share_memory ones_like require "
        "zeros_like",
    "diagonals":
        "diag diag_indices_from diagflat diagonal fill_diagonal ix_ linalg.diagonal meshgrid tril tril_indices_from "
        "triu triu_indices_from vander",
    "differences": "diff ediff1d gradient interp trapezoid unwrap",
    "products.einsum": "einsum einsum_path",
    "linalg.equations":
        "linalg.det linalg.inv linalg.lstsq linalg.matrix_power linalg.pinv linalg.slogdet linalg.solve "
        "linalg.tensorinv linalg.tensorsolve",
    "linalg.factorisations":
        "linalg.cholesky linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.qr linalg.svd linalg.svdvals",
    "fft":
        "fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift "
        "fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn",
    "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "indices":
        "argwhere choose compress extract flatnonzero nonzero place put put_along_axis putmask ravel_multi_index take "
        "take_along_axis unravel_index where",
    "joining":
        "append array_split block column_stack concatenate dsplit dstack hsplit hstack insert resize "
        "roll split stack tile unstack vsplit vstack",
    "logic":
        "allclose array_equal array_equiv can_cast common_type isclose iscomplex iscomplexobj isneginf isposinf isreal "
        "isrealobj min_scalar_type result_type",
    "mathematics":
        "angle apply_along_axis apply_over_axes around clip cross fix i0 imag linalg.cross nan_to_num piecewise real "
        "round select sinc",
    "movement":
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to expand_dims flip fliplr flipud "
        "lib.stride_tricks.as_strided lib.stride_tricks.sliding_window_view linalg.matrix_transpose matrix_transpose "
        "moveaxis ndim ravel reshape rollaxis rot90 shape size squeeze swapaxes transpose",
    "linalg.norms": "linalg.cond linalg.matrix_norm linalg.matrix_rank linalg.norm linalg.vector_norm",
    "padding": "pad",
    "polynomials": "poly polyadd polyder polyfit polyint polymul polysub polyval roots",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "reductions":
        "all amax amin any argmax argmin count_nonzero cumprod cumsum cumulative_prod cumulative_sum max min nanargmax "
        "nanargmin nancumprod nancumsum nanmax nanmin nanprod nansum prod ptp sum",
    "sets": "isin",
    "unique":
        "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values",
    "resizing": "delete repeat trim_zeros",
    "sorting": "argpartition argsort digitize lexsort partition searchsorted sort sort_complex",
    "statistics": "average corrcoef cov mean nanmean nanstd nanvar std var",
    "convolutions": "convolve correlate",
}  # functions of each module of this package
# fmt: on
register_modules(__name__, {module: names.split() for module, names in FUNCTIONS.items()})
