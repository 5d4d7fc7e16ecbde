"""Functions of SciPy in traced functions: those written in NumPy run, others say what stops them."""

import contextlib

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial
import scipy.spatial.distance
import scipy.stats

import cyxla
from cyxla.errors import FallbackWarning, TraceError

X = np.arange(6.0) + 1
A = X.reshape(2, 3)
RUN = {
    "stats.zscore": lambda x: scipy.stats.zscore(x),
    "stats.skew": lambda x: scipy.stats.skew(x),
    "integrate.simpson": lambda x: scipy.integrate.simpson(x),
    "integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, dx=0.5),
    "optimize.rosen": lambda x: scipy.optimize.rosen(x),
}
REFUSED = {
    "scipy.signal.hilbert": lambda x: scipy.signal.hilbert(x),
    "scipy.linalg.expm": lambda x: scipy.linalg.expm(x.reshape(2, 3)[:, :2]),
    "scipy.linalg.solve": lambda x: scipy.linalg.solve(np.eye(2) * x[0], x[:2]),
    "scipy.linalg.inv": lambda x: scipy.linalg.inv(np.eye(2) * x[0]),
    "scipy.linalg.cholesky": lambda x: scipy.linalg.cholesky(np.eye(2) * x[0]),
    "scipy.ndimage.gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "scipy.signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x),
    "scipy.signal.lfilter": lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x),
    "scipy.signal.savgol_filter": lambda x: scipy.signal.savgol_filter(x, 3, 1),
    "scipy.spatial.distance.cdist": lambda x: scipy.spatial.distance.cdist(x.reshape(2, 3), x.reshape(2, 3)),
    "scipy.optimize.newton": lambda x: scipy.optimize.newton(lambda v: v**2 - x[0], 1.0),
    "scipy.fft.fft": lambda x: scipy.fft.fft(x),
}
#: Functions of Qhull, whose class crashes where it gets what is no array
OF_QHULL = {
    "Delaunay": lambda x: scipy.spatial.Delaunay(x).simplices,
    "ConvexHull": lambda x: scipy.spatial.ConvexHull(x).volume,
    "Voronoi": lambda x: scipy.spatial.Voronoi(x).vertices,
    "HalfspaceIntersection": lambda x: scipy.spatial.HalfspaceIntersection(HALVES, x[0]).intersections,
    "LinearNDInterpolator": lambda x: scipy.interpolate.LinearNDInterpolator(x, x[:, 0])(x * 0.5),
    "griddata": lambda x: scipy.interpolate.griddata(x, x[:, 0], x * 0.5),
}
HALVES = np.array([[-1.0, 0, 0], [0, -1, 0], [1, 1, -1]])
POINTS = np.array([[0.25, 0.25], [0, 0], [1, 0], [0, 1], [0.5, 0.75]])


@pytest.mark.parametrize("name", RUN)
def test_functions_written_in_numpy_run(name):
    function = cyxla.jit(RUN[name])
    for _ in range(2):
        np.testing.assert_allclose(function(X), RUN[name](X), rtol=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_need_values_are_named(name):
    with pytest.raises(TraceError) as caught:
        cyxla.jit(REFUSED[name])(X)
    text = str(caught.value)
    assert name.rpartition(".")[2] in text
    assert "call it outside of the traced function, or in one by cyxla.custom_call" in text
    assert f"at:   {__file__}:" in text
    assert ("use np.linalg." in text) == (name in ("scipy.linalg.solve", "scipy.linalg.inv"))


@pytest.mark.parametrize("name", OF_QHULL)
def test_functions_of_qhull_refuse_traced_arrays(name):
    with pytest.raises(TraceError, match="cannot be converted to a NumPy array"):
        cyxla.jit(fallback="error")(OF_QHULL[name])(POINTS)
    with pytest.warns(FallbackWarning):
        np.testing.assert_array_equal(cyxla.jit(fallback="numpy")(OF_QHULL[name])(POINTS), OF_QHULL[name](POINTS))


def test_errors_of_libraries_themselves_are_kept():
    with pytest.raises(ValueError, match="Order must be an int") as caught:
        cyxla.jit(lambda x: scipy.signal.argrelextrema(x, np.greater, order=0))(X)
    assert not isinstance(caught.value, TraceError)


def test_libraries_call_jitted_functions():
    solution = scipy.integrate.solve_ivp(cyxla.jit(lambda t, y: -2 * y + t), (0, 1), [1.0, 2.0], rtol=1e-8)
    expected = scipy.integrate.solve_ivp(lambda t, y: -2 * y + t, (0, 1), [1.0, 2.0], rtol=1e-8)
    np.testing.assert_allclose(solution.y, expected.y, rtol=1e-12)
    root = scipy.optimize.newton(cyxla.jit(lambda v: v**2 - 2), 1.0)
    assert abs(root - np.sqrt(2)) < 1e-8
    f = cyxla.jit(lambda x: ((x - 3) ** 2).sum())
    assert np.allclose(scipy.optimize.minimize(f, np.zeros(2), jac=cyxla.grad(f)).x, 3)


def test_values_are_checked_in_every_run():
    function = cyxla.jit(lambda x: np.asarray_chkfinite(x) * 2)
    np.testing.assert_array_equal(function(X), X * 2)
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
            function(np.array([1, 2, bad, 4, 5, 6]))
    np.testing.assert_array_equal(cyxla.jit(np.asarray_chkfinite)(np.arange(3)), np.arange(3))


def _difference(t, x):
    return t - 0.1 * x.sum()


def _handled(x):
    try:
        return scipy.optimize.brentq(_difference, 0, 10, args=(x,))
    except ValueError:
        return -1.0


def _suppressed(x):
    with contextlib.suppress(ValueError):
        return scipy.optimize.brentq(_difference, 0, 10, args=(x,))
    return -1.0


def _in_a_loop(x):
    for _ in range(2):
        try:
            root = scipy.optimize.brentq(_difference, 0, 10, args=(x,))
        except ValueError:
            continue
        return root
    return -1.0


def _by_compiled_code(x):
    try:
        return scipy.optimize.bisect(lambda t: t - 0.1, 0, x.sum())
    except RuntimeError:
        return -1.0


def _by_any_handler(x):
    try:
        return scipy.linalg.solve(np.diag(x), x)
    except:  # noqa: E722
        return x * 0


def _by_the_second_handler(x):
    try:
        return scipy.linalg.inv(np.diag(x))
    except ValueError:
        return np.zeros((6, 6))
    except TypeError:
        return np.ones((6, 6))


def _by_operator(x):
    try:
        return (np.polynomial.Polynomial(x) + np.polynomial.Polynomial(x)).coef
    except TypeError:
        return x * 0


def _by_numpy(x):
    try:
        return np.vectorize(lambda a: a + 1)(x)
    except TypeError:
        return x * 0


HANDLERS = [
    _handled, _suppressed, _in_a_loop, _by_compiled_code, _by_any_handler, _by_the_second_handler, _by_operator,
    _by_numpy,
]  # fmt: skip


@pytest.mark.parametrize("function", HANDLERS)
def test_errors_of_tracing_that_the_function_catches(function):
    f = cyxla.jit(function, fallback="numpy")
    with pytest.warns(FallbackWarning):
        np.testing.assert_array_equal(f(X), function(X))
