# Hashes of the arguments of a call, by which signatures are found. A part of dispatch.pyx.

cdef inline uint64_t mix(uint64_t hash, uint64_t value) noexcept:
    hash = (hash ^ value) * <uint64_t> 0x9E3779B97F4A7C15
    return hash ^ (hash >> 29)


cdef uint64_t hash_value(uint64_t hash, PyObject *value, int depth, int *left) noexcept:
    """Return a hash that is equal for equal signatures; static parts of containers contribute only their types.

    `left` is the number of values that still contribute.
    """
    cdef Py_ssize_t k, position = 0
    cdef PyObject *key
    cdef PyObject *part
    cdef object container = <object> value
    if PyArray_CheckExact(value):
        hash = mix(hash, PyArray_TYPE(<PyArrayObject *> value) + 1)
        for k in range(PyArray_NDIM(<PyArrayObject *> value)):
            hash = mix(hash, PyArray_DIMS(<PyArrayObject *> value)[k] + 1)
        return hash if PyArray_IS_C_CONTIGUOUS(<PyArrayObject *> value) else hash_axes(hash, <PyArrayObject *> value)
    hash = mix(hash, <uint64_t> Py_TYPE(object_of(value)))
    left[0] -= 1
    if depth == MAX_DEPTH or left[0] < 0:
        return hash
    if PyTuple_Check(container):
        for k in range(PyTuple_GET_SIZE(container)):
            hash = hash_value(hash, PyTuple_GET_ITEM(container, k), depth + 1, left)
    elif PyList_CheckExact(container):
        for k in range(PyList_GET_SIZE(container)):
            hash = hash_value(hash, PyList_GET_ITEM(container, k), depth + 1, left)
    elif PyDict_CheckExact(container):
        while PyDict_Next(container, &position, &key, &part):
            hash = hash_value(hash_key(hash, key), part, depth + 1, left)
    return hash


cdef uint64_t hash_axes(uint64_t hash, PyArrayObject *array) noexcept:
    """Combine a hash with the order of an array's dimensions in memory."""
    cdef int k
    cdef npy_intp axes[MAX_DIMENSIONS]
    if find_axes(array, axes):
        for k in range(PyArray_NDIM(array)):
            hash = mix(hash, axes[k] + 1)
    return hash


cdef uint64_t hash_key(uint64_t hash, PyObject *value) noexcept:
    """Combine a hash with the type and the hash of a value."""
    cdef Py_hash_t value_hash = PyObject_Hash(value)
    if value_hash == -1:
        PyErr_Clear()
    return mix(mix(hash, <uint64_t> Py_TYPE(value)), <uint64_t> value_hash)
