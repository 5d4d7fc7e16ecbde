# Results: layouts, containers, sizes known at run time, and memory that arrays share. A part of dispatch.pyx.

def with_layout(array, tuple layout):
    """Return a result with permuted dimensions, or read-only; see `Compiled`."""
    axes, writeable = layout
    if axes is not None:
        array = array.transpose(axes)
    if not writeable:
        array.flags.writeable = False
    return array


def drop_zero_imaginary(list results, tuple spectra):
    """Replace eigenvalues that are all real, and their eigenvectors, by real arrays; see `Compiled`."""
    cdef list real = [not results[spectrum].imag.any() for _, spectrum in spectra]
    for is_real, (k, _) in zip(real, spectra):
        if is_real:
            results[k] = results[k].real.copy("K")
    return results


cdef bint has_arguments(tuple plan):
    """Return True if a plan contains inputs themselves."""
    cdef int kind = plan[0]
    if kind == 0 or kind == 4:
        return False
    return kind == 6 or any([has_arguments(part) for part in plan[len(plan) - 1]])


cdef bint is_dense(object value, object axes):
    """Return True unless a value is an array whose elements, with its dimensions permuted, are not contiguous."""
    if not PyArray_Check(<PyObject *> value):
        return True
    if axes is not None:
        value = value.transpose(axes)
    return PyArray_IS_C_CONTIGUOUS(<PyArrayObject *> <PyObject *> value)


cdef bint overlap(PyObject *one, PyObject *other):
    """Return True if two arrays share an element."""
    cdef char *begin[2]
    cdef char *end[2]
    if not bounds(<PyArrayObject *> one, &begin[0], &end[0]) or not bounds(<PyArrayObject *> other, &begin[1], &end[1]):
        return False
    if end[0] <= begin[1] or end[1] <= begin[0]:
        return False
    return shares_memory(<object> one, <object> other)


cdef bint bounds(PyArrayObject *array, char **begin, char **end) noexcept:
    """Find the memory of an array; return False if it has no elements."""
    cdef int k
    cdef npy_intp extent
    begin[0] = <char *> PyArray_DATA(array)
    end[0] = begin[0] + PyArray_ITEMSIZE(array)
    for k in range(PyArray_NDIM(array)):
        if PyArray_DIMS(array)[k] == 0:
            return False
        extent = (PyArray_DIMS(array)[k] - 1) * PyArray_STRIDES(array)[k]
        if extent < 0:
            begin[0] += extent
        else:
            end[0] += extent
    return True


def build(tuple plan, leaves, list arguments=None):
    """Build the container of results from an iterator of leaves and the inputs; see `plan` of `Compiled`."""
    return build_result(plan, leaves, arguments, False)


cdef object build_result(tuple plan, leaves, list arguments, bint owned):
    """Build the container of results; nobody else has the leaves if they are owned."""
    cdef int kind = plan[0]
    if kind == 0:
        return next(leaves)
    if kind == 1:
        return tuple([build_result(part, leaves, arguments, owned) for part in plan[1]])
    if kind == 2:
        return [build_result(part, leaves, arguments, owned) for part in plan[1]]
    if kind == 3:
        return {key: build_result(part, leaves, arguments, owned) for key, part in zip(plan[1], plan[2])}
    if kind == 4:
        return None
    if kind == 6:
        return arguments[plan[1]]
    cdef list parts = [build_result(part, leaves, arguments, owned) for part in plan[3]]
    if kind == 7:
        array = sized(plan, parts, owned)
        if array is not None:
            return array
    return plan[1](plan[2], parts)


cdef object sized(tuple plan, list parts, bint owned):
    """Return an array of a size that the program computed; None if that is not the size of the first dimension."""
    cdef object data = parts[0]
    cdef tuple dimensions = plan[2]
    if len(dimensions) != 1 or dimensions[0] != 0 or not PyArray_CheckExact(<PyObject *> data):
        return None
    return first_rows(data, parts[1], owned and (<tuple> plan[3])[0][0] == 0)


cdef bint write_number(char *cell, PyObject *value, const Spec *spec) noexcept:
    """Write a Python number, or a NumPy scalar of exactly the type, to a cell; return False for other values."""
    cdef object number = <object> value
    if PyFloat_CheckExact(number):
        (<double *> cell)[0] = PyFloat_AS_DOUBLE(number)
    elif PyBool_Check(number):
        (<uint8_t *> cell)[0] = number is True
    elif PyLong_CheckExact(number):
        (<int64_t *> cell)[0] = PyLong_AsLongLong(number)
    elif PyComplex_CheckExact(number):
        # by parts: re + im * I would lose the signs of zeros, and infinities next to NaN
        (<double *> cell)[0] = PyComplex_RealAsDouble(number)
        (<double *> cell)[1] = PyComplex_ImagAsDouble(number)
    elif Py_TYPE(value) == spec.descr.typeobj and spec.type_num < NPY_USERDEF:
        PyArray_ScalarAsCtype(value, cell)
    else:
        return False
    return True
