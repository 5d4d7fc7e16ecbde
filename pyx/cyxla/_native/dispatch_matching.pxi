# Comparison of values with the nodes of a signature. A part of dispatch.pyx.

cdef PyObject *find_value(const Guard *guard, PyObject *const *args, PyObject **values) noexcept:
    """Return a new reference to the value of a guard; NULL if there is none."""
    cdef PyObject *value = NULL
    cdef PyObject *owner = NULL
    if guard.source == Source.ARGUMENT:
        value = args[guard.of]
        if value == NULL:
            return NULL
        value = object_of(value)
    elif guard.source == Source.GLOBAL:
        value = PyDict_GetItem(guard.owner, guard.key)
        if value == NULL:
            value = PyDict_GetItem(guard.builtins, guard.key)
    elif guard.source == Source.FIXED:
        value = guard.owner
    elif guard.source == Source.CELL:
        value = PyCell_GET(guard.owner)
    elif guard.source == Source.ATTRIBUTE:
        value = PyObject_GetAttr(values[guard.of], guard.key) if values[guard.of] != NULL else NULL
        if value == NULL:
            PyErr_Clear()
        return value
    else:
        owner = values[guard.of]
        if owner == NULL:
            return NULL
        if PyDict_Check(<object> owner):
            value = PyDict_GetItem(owner, guard.key)
        elif PyTuple_Check(<object> owner) or PyList_Check(<object> owner):
            return item_of(owner, guard.key)
    Py_XINCREF(value)
    return value


cdef inline PyObject *object_of(PyObject *value) noexcept:
    """Return a value passed, without the `Receiver` around it."""
    if Py_TYPE(value) == <PyTypeObject *> Receiver:
        return <PyObject *> (<Receiver> value).value
    return value


cdef PyObject *item_of(PyObject *sequence, PyObject *key) noexcept:
    """Return a new reference to an element of a list or tuple; NULL if there is none."""
    cdef Py_ssize_t at = PyLong_AsSsize_t(<object> key)
    cdef PyObject *value = PySequence_GetItem(sequence, at)
    if value == NULL:
        PyErr_Clear()
    return value


cdef inline bint is_array(PyObject *value, const SignatureNode *node) noexcept:
    cdef int k
    cdef npy_intp *dims
    if not PyArray_CheckExact(value):
        return False
    if PyArray_DESCR(<PyArrayObject *> value) != node.descr and PyArray_TYPE(<PyArrayObject *> value) != node.type_num:
        return False
    if PyArray_NDIM(<PyArrayObject *> value) != node.ndim:
        return False
    dims = PyArray_DIMS(<PyArrayObject *> value)
    for k in range(node.ndim):
        if dims[k] != node.dims[k] and node.dims[k] >= 0:
            return False
    if PyArray_IS_C_CONTIGUOUS(<PyArrayObject *> value):
        return node.axes == NULL
    return node.ndim < 2 or has_axes(<PyArrayObject *> value, node.axes)


cdef bint has_axes(PyArrayObject *array, const npy_intp *axes) noexcept:
    """Return True if `axes` is the order of an array's dimensions in memory; NULL stands for row-major order."""
    cdef int k
    cdef npy_intp actual[MAX_DIMENSIONS]
    if not find_axes(array, actual):
        return axes == NULL
    if axes == NULL:
        return False
    for k in range(PyArray_NDIM(array)):
        if axes[k] != actual[k]:
            return False
    return True


cdef bint find_axes(PyArrayObject *array, npy_intp *axes) noexcept:
    """Find the order of an array's dimensions in memory, slowest varying first; return False for row-major order.

    Dimensions of size 1 come first, and an array with a stride of 0 counts as row-major.
    """
    cdef int k, at, n = 0, ndim = PyArray_NDIM(array)
    cdef bint other = False
    cdef npy_intp step
    cdef npy_intp *dims = PyArray_DIMS(array)
    cdef npy_intp *strides = PyArray_STRIDES(array)
    if PyArray_IS_C_CONTIGUOUS(array) or ndim < 2:
        return False
    for k in range(ndim):
        if dims[k] == 1:
            axes[n] = k
            n += 1
    cdef int first = n
    for k in range(ndim):
        if dims[k] == 1:
            continue
        step = abs(strides[k])
        if step == 0:
            return False
        at = n
        while at > first and abs(strides[axes[at - 1]]) < step:
            axes[at] = axes[at - 1]
            at -= 1
        axes[at] = k
        other |= at != n
        n += 1
    return other


def axes_of(array):
    """Return the order of an array's dimensions in memory, slowest varying first; None for row-major order."""
    cdef npy_intp axes[MAX_DIMENSIONS]
    cdef PyArrayObject *pointer = <PyArrayObject *> <PyObject *> array
    if not find_axes(pointer, axes):
        return None
    return tuple([axes[k] for k in range(PyArray_NDIM(pointer))])


cdef bint match_node(const SignatureNode **at, PyObject *value, PyObject **inputs) noexcept:
    """Compare a value with the node that `at` points to, and advance `at` beyond the node and its parts."""
    cdef const SignatureNode *node = at[0]
    at[0] += 1
    cdef int kind = node.kind
    if kind <= Node.COMPLEX:
        if not is_leaf(value, node):
            return False
        Py_INCREF(<object> value)
        inputs[node.slot] = value
        return True
    if kind == Node.NONE:
        return value == Py_None
    if kind <= Node.RECORD:
        return match_container(node, at, value, inputs)
    if kind == Node.SAME:
        return value == node.key or (node.count and refers_to(node.key, value))
    if kind == Node.ANY:
        return True
    if kind == Node.MISSING:
        return False
    if kind == Node.NUMBERS:
        return match_numbers(node, value, inputs)
    if kind == Node.CLASS:
        return (<ClassGuard> node.key).holds()
    if kind == Node.FUNCTION:
        return is_function(value, <tuple> node.names)
    if kind == Node.METHOD:
        return PyMethod_Check(value) and PyMethod_GET_FUNCTION(value) == node.key
    return is_static(value, node)


cdef bint is_function(PyObject *value, tuple parts) noexcept:
    """Return True if a function has these code, defaults, defaults by name, and values of those; None for no defaults."""
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t at = 3
    cdef PyObject *key
    cdef PyObject *default
    cdef PyObject *defaults = PyFunction_GET_DEFAULTS(value)
    cdef PyObject *named = PyFunction_GET_KW_DEFAULTS(value)
    if (
        PyFunction_GET_CODE(value) != PyTuple_GET_ITEM(parts, 0)
        or (Py_None if defaults == NULL else defaults) != PyTuple_GET_ITEM(parts, 1)
        or (Py_None if named == NULL else named) != PyTuple_GET_ITEM(parts, 2)
    ):
        return False
    while named != NULL and PyDict_Next(<object> named, &position, &key, &default):
        if at == PyTuple_GET_SIZE(parts) or default != PyTuple_GET_ITEM(parts, at):
            return False
        at += 1
    return at == PyTuple_GET_SIZE(parts)


cdef bint refers_to(PyObject *reference, PyObject *value) noexcept:
    """Return True if a weak reference is one to a value."""
    cdef object target = (<object> reference)()
    return <PyObject *> target == value


cdef inline bint is_leaf(PyObject *value, const SignatureNode *node) noexcept:
    """Return True if a value is the array or number of a node."""
    if node.kind == Node.ARRAY:
        return is_array(value, node)
    if node.kind == Node.SCALAR:
        return Py_TYPE(value) == node.descr.typeobj
    return is_number(value, node.kind)


cdef bint is_number(PyObject *value, int kind) noexcept:
    cdef object number = <object> value
    cdef int overflow = 0
    if kind == Node.FLOAT:
        return PyFloat_CheckExact(number)
    if kind == Node.BOOL:
        return PyBool_Check(number)
    if kind == Node.COMPLEX:
        return PyComplex_CheckExact(number)
    if not PyLong_CheckExact(number):
        return False
    PyLong_AsLongLongAndOverflow(number, &overflow)
    return overflow == 0


cdef bint match_numbers(const SignatureNode *node, PyObject *value, PyObject **inputs) noexcept:
    """Compare a list with a node of numbers of one class, and make the array of them."""
    cdef Py_ssize_t k
    cdef npy_intp count
    cdef object container = <object> value
    if not PyList_CheckExact(container):
        return False
    count = PyList_GET_SIZE(container)
    if count != node.count and (node.count >= 0 or count == 0):  # an empty list has numbers of no class
        return False
    for k in range(count):
        if not is_number(PyList_GET_ITEM(container, k), node.type_num):
            return False
    if node.slot < 0:
        return True
    cdef PyObject *array = PyArray_SimpleNew(1, &count, type_of_numbers(node.type_num))
    if array == NULL:
        PyErr_Clear()
        return False
    fill_numbers(PyArray_DATA(<PyArrayObject *> array), container, count, node.type_num)
    inputs[node.slot] = array
    return True


cdef int type_of_numbers(int kind) noexcept:
    """Return NumPy's number of the dtype of Python's numbers."""
    if kind == Node.FLOAT:
        return NPY_DOUBLE
    if kind == Node.BOOL:
        return NPY_BOOL
    return NPY_CDOUBLE if kind == Node.COMPLEX else NPY_INT64


cdef void fill_numbers(void *data, object numbers, Py_ssize_t count, int kind) noexcept:
    """Store Python's numbers of one class in an array."""
    cdef Py_ssize_t k
    cdef PyObject *number
    cdef int overflow
    for k in range(count):
        number = PyList_GET_ITEM(numbers, k)
        if kind == Node.FLOAT:
            (<double *> data)[k] = PyFloat_AS_DOUBLE(<object> number)
        elif kind == Node.BOOL:
            (<char *> data)[k] = number == Py_True
        elif kind == Node.COMPLEX:
            (<double *> data)[2 * k] = PyComplex_RealAsDouble(<object> number)
            (<double *> data)[2 * k + 1] = PyComplex_ImagAsDouble(<object> number)
        else:
            (<int64_t *> data)[k] = PyLong_AsLongLongAndOverflow(<object> number, &overflow)


cdef bint match_container(
    const SignatureNode *node, const SignatureNode **at, PyObject *value, PyObject **inputs
) noexcept:
    cdef int k
    cdef object container = <object> value
    if node.kind == Node.DICT:
        return match_dict(node, at, container, inputs)
    if node.kind == Node.RECORD:
        return match_record(node, at, value, inputs)
    if node.kind == Node.LIST:
        if not PyList_CheckExact(container):
            return False
        for k in range(node.count):
            if k >= PyList_GET_SIZE(container) or not match_node(at, PyList_GET_ITEM(container, k), inputs):
                return False
        return PyList_GET_SIZE(container) == node.count
    if node.kind == Node.TUPLE and not PyTuple_CheckExact(container):
        return False
    if node.kind == Node.NAMED and <PyObject *> Py_TYPE(value) != node.key:
        return False
    if PyTuple_GET_SIZE(container) != node.count:
        return False
    for k in range(node.count):
        if not match_node(at, PyTuple_GET_ITEM(container, k), inputs):
            return False
    return True


cdef bint match_dict(const SignatureNode *node, const SignatureNode **at, object container, PyObject **inputs) noexcept:
    """Compare a dict with a node, by its keys in order and its values."""
    cdef Py_ssize_t position = 0
    cdef int k
    cdef PyObject *key
    cdef PyObject *value
    cdef PyObject *expected
    if not PyDict_CheckExact(container) or PyDict_Size(container) != node.count:
        return False
    for k in range(node.count):
        if not PyDict_Next(container, &position, &key, &value):
            return False
        expected = PyTuple_GET_ITEM(<tuple> node.key, k)
        if key != expected and not equal_keys(key, expected):
            return False
        if not match_node(at, value, inputs):
            return False
    return True


cdef bint equal_keys(PyObject *one, PyObject *other) noexcept:
    """Return True if two keys are equal strings or ints; other types could run arbitrary code in a comparison."""
    return (PyUnicode_CheckExact(<object> one) or PyLong_CheckExact(<object> one)) and equal(one, other)


cdef bint match_record(
    const SignatureNode *node, const SignatureNode **at, PyObject *value, PyObject **inputs
) noexcept:
    cdef int k
    cdef bint is_match
    cdef PyObject *part
    if <PyObject *> Py_TYPE(value) != node.key:
        return False
    for k in range(node.count):
        part = PyObject_GetAttr(value, PyTuple_GET_ITEM(<tuple> node.names, k))
        if part == NULL:
            PyErr_Clear()
            return False
        is_match = match_node(at, part, inputs)
        Py_XDECREF(part)
        if not is_match:
            return False
    return True


cdef bint equal(PyObject *one, PyObject *other) noexcept:
    """Return True if two values have the same type and are equal."""
    if Py_TYPE(one) != Py_TYPE(other):
        return False
    cdef int result = PyObject_RichCompareBool(one, other, Py_EQ)
    if result < 0:
        PyErr_Clear()
    return result > 0


cdef bint is_static(PyObject *value, const SignatureNode *node) noexcept:
    if node.kind == Node.RECEIVER:
        key = <object> node.key
        return (key() if node.count else key) is <object> object_of(value)
    if node.kind == Node.INSTANCE:
        return <PyObject *> Py_TYPE(object_of(value)) == node.key
    if node.kind == Node.STATIC:
        return value == node.key or equal(value, node.key)
    if node.names == value:
        return True
    try:
        return static_key(<object> value) == <object> node.key
    except Exception:
        return False
