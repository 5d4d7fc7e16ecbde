"""Numbers stored in arrays of integers: those that do not fit raise NumPy's errors, or wrap where NumPy's do."""

import warnings

import numpy as np
import pytest

import cyxla


def set_element(v, s):
    v[0] = s
    return v


def set_element_of_matrix(v, s):
    matrix = v.reshape(2, 2)
    matrix[0, 1] = s
    return v


def set_traced_element(v, s):
    v[v[1]] = s
    return v


def set_slice(v, s):
    v[:2] = s
    return v


def set_empty_slice(v, s):
    v[:0] = s
    return v


def set_slice_of_run_time_length(v, s):
    v[: v[1]] = s
    return v


def set_all(v, s):
    v[...] = s
    return v


def set_elements_of_a_loop(v, s):
    for i in range(3):
        v[i] = s
    return v


def set_if(v, s):
    if v[0] == 0:
        v[1] = s
    return v


def set_unless(v, s):
    if v[0] != 0:
        v[1] = s
    return v


def set_in_array_of_run_time_size(v, s):
    selected = v[v > 0]
    selected[1:] = s
    return selected


def set_masked_of_run_time_size(v, s):
    selected = v[v > 0]
    selected[selected > 2] = s
    return selected


def set_by_mask(v, s):
    v[v == 1] = s
    return v


def set_by_even_indices(v, s):
    v[[0, 1]] = s
    return v


def set_by_traced_indices(v, s):
    v[v[:2]] = s
    return v


def set_list(v, s):
    v[:2] = [1, s]
    return v


def make_array(v, s):
    return np.array(s, v.dtype)


def make_array_of_list(v, s):
    return np.array([[s, 1], [2, s]], v.dtype)


def fill(v, s):
    v.fill(s)
    return v


def make_full(v, s):
    return np.full(3, s, v.dtype)


def copy_to(v, s):
    np.copyto(v, s, casting="unsafe")
    return v


def put(v, s):
    np.put(v, [0, 1], s)
    return v


def insert(v, s):
    return np.insert(v, 1, s)


def add_and_set(v, s):
    v[0] += s
    return v


def set_python_number(v, s):
    v[0] = s * 1
    return v


FUNCTIONS = [
    set_element, set_element_of_matrix, set_traced_element, set_slice, set_empty_slice, set_slice_of_run_time_length,
    set_all, set_elements_of_a_loop, set_if, set_unless, set_in_array_of_run_time_size, set_masked_of_run_time_size,
    set_by_mask, set_by_even_indices, set_by_traced_indices, set_list, make_array, make_array_of_list, fill, make_full,
    copy_to, put, insert, add_and_set, set_python_number,
]  # fmt: skip
_FLOATS = (np.nan, np.inf, -np.inf, 1e30, 2.0**63, -(2.0**63), 300.5, -1.5, 127.9, -128.9)
NUMBERS = [
    *[kind(x) for kind in (float, np.float64, np.float32) for x in _FLOATS], *map(np.float16, (np.nan, 300.5, -1.5)),
    300, 7, np.int64(300), np.int64(-1), np.int64(1 << 40), np.int16(300), np.uint8(200), np.uint64(2**63), True,
    np.bool_(True), np.complex128(300.5), np.complex128(complex(np.nan, 1)), 2j,
]  # fmt: skip


def _outcome(function, dtype, number):
    try:
        return function(np.arange(4).astype(dtype), number)
    except (ValueError, OverflowError, TypeError) as error:
        return type(error), str(error).splitlines()[0]


def _has_undefined_value(dtype, number):
    """Return True for floats out of range of an unsigned dtype: C and NumPy define no value for them."""
    is_float = isinstance(number, (float, np.floating, np.complexfloating))
    return dtype.startswith("u") and is_float and not -1 < np.real(number) < np.iinfo(dtype).max + 1


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_numbers_that_do_not_fit(function, dtype):
    compiled = cyxla.jit(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns of values that wrap
        for number in NUMBERS:
            expected = _outcome(function, dtype, number)
            if isinstance(expected, np.ndarray) and _has_undefined_value(dtype, number):
                continue
            actual = _outcome(compiled, dtype, number)
            message = f"{function.__name__} of {number!r} ({type(number).__name__})"
            if isinstance(expected, tuple) or isinstance(actual, tuple):
                assert actual == expected, message
            else:
                np.testing.assert_array_equal(actual, expected, message, strict=True)


def test_constants_that_do_not_fit():
    def set_constant(v):
        v[:2] = np.float64("nan")
        return v

    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        cyxla.jit(set_constant)(np.arange(3))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_complex_numbers_of_python_are_not_real(dtype):
    with pytest.raises(TypeError, match="number, not 'complex'"):
        cyxla.jit(set_element)(np.zeros(4, dtype), 1j)


def test_elements_of_flat():
    def set_flat(v, s):
        v.flat[1] = s
        return v

    compiled = cyxla.jit(set_flat)
    np.testing.assert_array_equal(compiled(np.arange(3), 7.5), [0, 7, 2])
    for function in (set_flat, compiled):
        with pytest.raises(ValueError):  # noqa: PT011 (NumPy names no reason)
            function(np.arange(3), np.float64(np.nan))


def test_number_beyond_64_bits_as_an_int():
    def set_int(v, s):
        v[0] = int(s)
        return v

    compiled = cyxla.jit(set_int)
    np.testing.assert_array_equal(compiled(np.arange(3), np.uint64(9)), [9, 1, 2])
    with pytest.raises(OverflowError):
        compiled(np.arange(3), np.uint64(2**63))


def test_unchecked_bounds_check_no_numbers():
    compiled = cyxla.jit(set_element, bounds="clamp")
    assert compiled(np.arange(4), np.float64(2.5))[0] == 2
    compiled(np.arange(4), np.float64(np.nan))
