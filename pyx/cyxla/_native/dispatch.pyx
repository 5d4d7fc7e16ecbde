"""Calls of traced functions: which compiled program an argument list belongs to, found without leaving C.

A way is a signature as it is passed: a tree of nodes for each argument, positional ones first. The way used last is
tried first, then those under the same hash; what fits none goes to Python, which compiles and leaves a way behind.
"""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_CheckExact, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.dict cimport PyDict_CheckExact, PyDict_Next, PyDict_Size
from cpython.exc cimport PyErr_Clear, PyErr_Restore
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongLong, PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport Py_EQ, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF, PyObject
from cpython.tuple cimport PyTuple_Check, PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from cyxla._native.arrays cimport *
from cyxla._native.launch cimport Program, Spec, matches, new_array

from cyxla._native import arguments

cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    PyObject *PyVectorcall_Call(PyObject *, PyObject *, PyObject *) noexcept
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    PyTypeObject *Py_TYPE(PyObject *) noexcept
    Py_hash_t PyObject_Hash(PyObject *) noexcept
    int PyObject_RichCompareBool(PyObject *, PyObject *, int) noexcept
    PyObject *PyObject_GetAttr(PyObject *, PyObject *) noexcept
    PyObject *Py_None
    void PyType_Modified(PyTypeObject *) noexcept

cdef extern from *:
    """
    /* Python types whose calls skip the tuple of arguments: what a class statement does not hand on before 3.12. */
    static void cyx_set_vectorcall(PyTypeObject *type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
    }
    """
    void cyx_set_vectorcall(PyTypeObject *, Py_ssize_t) noexcept

_import_array()

cdef enum:
    INLINE = 64  # programs with more buffers, or ways with more leaves, go by way of lists
    CELL = 16  # bytes of the largest number
    DEEPEST = 32  # how far a hash looks into containers
    MOST_HASHED = 1 << 16  # values that it looks at: a container may contain itself several times
    MOST_WAYS = 4096
    MOST_DIMENSIONS = 64  # of NumPy's arrays


cpdef enum Node:
    ARRAY  # of a dtype and sizes
    SCALAR  # of NumPy's, by its dtype
    FLOAT
    INT
    BOOL
    COMPLEX
    NONE
    TUPLE
    LIST
    DICT
    NAMED  # a named tuple, by its type
    RECORD  # a dataclass, by its type and the names of its fields
    STATIC  # equal to a string, bytes or an int
    STATIC_KEY  # the same, or of equal `static_key`
    RECEIVER  # what a method is called on: that object and no other
    OUT


cdef struct Place:
    # A node of a way; what it points to belongs to the Way.
    int kind
    int count
    Py_ssize_t slot
    PyObject *key
    PyObject *names
    PyArray_Descr *descr
    int type_num
    int ndim
    npy_intp *dims
    npy_intp *axes  # the order in which the dimensions lie in memory; NULL for row-major order


cdef int traces = 0  # functions that are being traced now, by any thread
cdef object current_trace = None
cdef object static_key = None
cdef object trim = None


def install(current, key_of, trimmed):
    """Lend C the functions of Python that it cannot do without.

    Parameters
    ----------
    current : callable
        Tells whether this thread is tracing.
    key_of : callable
        From a static value to what two of them are compared by.
    trimmed : callable
        Takes frames out of an exception's traceback.
    """
    global current_trace, static_key, trim
    current_trace, static_key, trim = current, key_of, trimmed


def begin_trace():
    """One more function is being traced."""
    global traces
    traces += 1


def end_trace():
    """One less."""
    global traces
    traces -= 1


def set_traces(int count):
    """Say how many functions are being traced, in a forked child."""
    global traces
    traces = count


@cython.final
cdef class Receiver:
    """What a method is called on, where it is no container: static, by identity.

    Parameters
    ----------
    value : object
        The object.
    """

    cdef readonly object value

    def __init__(self, value):
        self.value = value


cdef class Compiled:
    """What is compiled for one signature, whichever way the arguments come.

    A subclass has the methods ``run_slowly(arguments, out)`` and ``fail(code, number)``.

    Parameters
    ----------
    executable : Executable
        Takes the arrays and numbers among the arguments; gives one array, or a tuple.
    plan : tuple
        How the container of the results is built: ``(0,)`` is a leaf, ``(1, parts)`` a tuple, ``(2, parts)`` a list,
        ``(3, keys, parts)`` a dict, ``(4,)`` is None, ``(5, build, key, parts)`` anything else.
    fails : bool
        Whether the last result is a failure, s64[2].
    rank0 : bytes
        What each result is that has no dimensions: 0 for a NumPy scalar, 1 for an array, 2 for a Python number.
    input_axes : tuple of (tuple of int or None), optional
        For each input the order in which its dimensions go to the program; None for all or one as they are.
    layouts : tuple of (tuple of int or None, bool), optional
        For each result the order in which the dimensions of the program's come out, and whether it may be written to;
        None where all are as the program makes them.
    spectra : tuple of (int, int), optional
        Complex results that become real arrays if all imaginary parts of another result are zero: the index of each,
        and that of the other one.
    """

    cdef readonly object executable
    cdef readonly tuple plan, input_axes, layouts, spectra
    cdef readonly bint fails
    cdef Program program  # None where the executable is to be called as it is
    cdef Py_ssize_t n_results
    cdef bint single, flat
    cdef readonly bytes rank0
    cdef public unsigned long long stamp  # of the last call, by the clock of the dispatcher

    def __init__(
        self, executable, tuple plan, bint fails, bytes rank0, tuple input_axes=None, tuple layouts=None,
        tuple spectra=None,
    ):
        self.plan, self.fails, self.rank0 = plan, fails, rank0
        self.input_axes, self.layouts, self.spectra = input_axes, layouts, spectra
        self.single = plan[0] == 0
        self.flat = plan[0] == 1 and all(part[0] == 0 for part in plan[1])
        self.use(executable)

    def use(self, executable):
        """Run this from now on, which takes and gives the same; calls under way end with what they began with."""
        cdef Program program = None
        if isinstance(executable, Program) and type(executable).__call__ is Program.__call__:
            program = executable
            if program.nested or program.watched or program.donations is not None or program.n_buffers > INLINE:
                program = None
            else:
                self.n_results = program.n_outputs - self.fails
        self.executable, self.program = executable, program

    def __call__(self, list leaves, out=None):
        """Run on the arrays and numbers among the arguments, in the order of the program."""
        cdef Py_ssize_t k, count = len(leaves)
        cdef PyObject *inputs[INLINE]
        if self.input_axes is not None:
            leaves = [leaf if axes is None else leaf.transpose(axes) for leaf, axes in zip(leaves, self.input_axes)]
        if count > INLINE:
            return self.run_slowly(leaves, out)
        for k in range(count):
            inputs[k] = PyList_GET_ITEM(leaves, k)
        return self.run_in_order(inputs, count, out)

    cdef object run(self, PyObject **inputs, Py_ssize_t count, object out):
        if self.input_axes is not None:
            return self([<object> inputs[k] for k in range(count)], out)
        return self.run_in_order(inputs, count, out)

    cdef object run_in_order(self, PyObject **inputs, Py_ssize_t count, object out):
        """Run on inputs whose dimensions are in the order of the program's parameters."""
        cdef void *bufs[INLINE]
        cdef char memory[(INLINE + 4) * CELL]
        cdef Program program = self.program  # which may be another one before this ends
        if program is None or out is not None:
            return self.run_slowly([<object> inputs[k] for k in range(count)], out)
        memcpy(bufs, program.template, program.n_buffers * sizeof(void *))
        return self.run_on(program, bufs, <char *> ((<uint64_t> memory + 63) & ~<uint64_t> 63), inputs)

    cdef object run_on(self, Program program, void **bufs, char *cells, PyObject **inputs):
        """Run on buffers; numbers that come and go have cells of 16 bytes, each where its buffer has its number."""
        cdef Py_ssize_t k
        cdef Spec *spec
        cdef object held = None
        cdef list arrays = None
        for k in range(program.n_inputs):
            spec = &program.specs[k]
            if matches(inputs[k], spec):
                bufs[k] = PyArray_DATA(<PyArrayObject *> inputs[k])
            elif spec.ndim == 0 and write_number(cells + k * CELL, inputs[k], spec):
                bufs[k] = cells + k * CELL
            else:
                converted = arguments.convert(<object> inputs[k], *program.inputs[k], f"argument {k}")
                bufs[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> converted)
                held = (held, converted)
        spec = &program.specs[program.n_inputs]
        for k in range(self.n_results):
            if spec[k].ndim == 0:
                bufs[program.n_inputs + k] = cells + (program.n_inputs + k) * CELL
                continue
            made = new_array(&spec[k])
            bufs[program.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> made)
            if arrays is None:
                arrays = []
            arrays.append(made)
        cdef int64_t *failure = <int64_t *> (cells + (program.n_inputs + self.n_results) * CELL)
        if self.fails:
            bufs[program.n_inputs + self.n_results] = failure
        program.execute(bufs, None, None, None)  # no watched program
        if self.fails and failure[0] != 0:
            self.fail(failure[0], failure[1])
        if self.single:
            if spec.ndim:
                if self.layouts is not None:
                    arrays[0] = laid_out(arrays[0], self.layouts[0])
                return arrays[0] if self.spectra is None else real_where_all_are(arrays, self.spectra)[0]
            return self.unboxed(bufs[program.n_inputs], spec, 0)
        return self.container(program, bufs, arrays)

    cdef object container(self, Program program, void **bufs, list arrays):
        cdef Py_ssize_t k, at = 0
        cdef Spec *spec = &program.specs[program.n_inputs]
        cdef list leaves = []
        for k in range(self.n_results):
            if spec[k].ndim:
                leaves.append(arrays[at] if self.layouts is None else laid_out(arrays[at], self.layouts[k]))
                at += 1
            else:
                leaves.append(self.unboxed(bufs[program.n_inputs + k], &spec[k], k))
        if self.spectra is not None:
            real_where_all_are(leaves, self.spectra)
        return tuple(leaves) if self.flat else build(self.plan, iter(leaves))

    cdef object unboxed(self, void *cell, const Spec *spec, Py_ssize_t k):
        """Result `k`, which has no dimensions, as NumPy would give it."""
        cdef char rank0 = (<const char *> self.rank0)[k]
        if rank0 == 0:
            return PyArray_Scalar(cell, spec.descr, NULL)
        if rank0 == 2:
            return PyArray_Scalar(cell, spec.descr, NULL).item()
        array = new_array(spec)
        memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> array), cell, spec.bytes)
        return array


def laid_out(array, tuple layout):
    """Hand out a result with its dimensions in another order, or read-only; see `Compiled`."""
    axes, writeable = layout
    if axes is not None:
        array = array.transpose(axes)
    if not writeable:
        array.flags.writeable = False
    return array


def real_where_all_are(list results, tuple spectra):
    """Replace eigenvalues that are all real, and their eigenvectors, by real arrays; see `Compiled`."""
    cdef list real = [not results[by].imag.any() for _, by in spectra]
    for is_real, (k, _) in zip(real, spectra):
        if is_real:
            results[k] = results[k].real.copy("K")
    return results


def build(tuple plan, leaves):
    """Put leaves, an iterator, together as a plan says; see `Compiled`."""
    cdef int kind = plan[0]
    if kind == 0:
        return next(leaves)
    if kind == 1:
        return tuple([build(part, leaves) for part in plan[1]])
    if kind == 2:
        return [build(part, leaves) for part in plan[1]]
    if kind == 3:
        return {key: build(part, leaves) for key, part in zip(plan[1], plan[2])}
    if kind == 4:
        return None
    return plan[1](plan[2], [build(part, leaves) for part in plan[3]])


cdef bint write_number(char *cell, PyObject *value, const Spec *spec) noexcept:
    """Write a Python number of the kind that a type is for, or a NumPy scalar of the type itself; False for others."""
    cdef object number = <object> value
    if PyFloat_CheckExact(number):
        (<double *> cell)[0] = PyFloat_AS_DOUBLE(number)
    elif PyBool_Check(number):
        (<uint8_t *> cell)[0] = number is True
    elif PyLong_CheckExact(number):
        (<int64_t *> cell)[0] = PyLong_AsLongLong(number)
    elif PyComplex_CheckExact(number):
        # by its parts: re + im * I would lose signs of zeros, and infinities beside NaN
        (<double *> cell)[0] = PyComplex_RealAsDouble(number)
        (<double *> cell)[1] = PyComplex_ImagAsDouble(number)
    elif Py_TYPE(value) == spec.descr.typeobj and spec.type_num < NPY_USERDEF:
        PyArray_ScalarAsCtype(value, cell)
    else:
        return False
    return True


@cython.final
cdef class Way:
    """A form of call, and the compiled program of arguments that fit it.

    Parameters
    ----------
    compiled : Compiled
        What to run.
    nargs : int
        Positional arguments.
    kwnames : tuple of str
        Names of the others.
    nodes : list of tuple
        In the order in which the arguments come, containers before their parts: ``(kind, count, slot, key, names)``.
        The key of an array is its ``(dtype, sizes, axes)``, see `axes_of`; `slot` is the number of an input of the program.
    inputs : int
        Inputs of the program.
    """

    cdef Place *places
    cdef npy_intp *dims
    cdef Py_ssize_t nargs, inputs
    cdef tuple kwnames
    cdef list kept
    cdef readonly Compiled compiled

    def __init__(self, Compiled compiled, Py_ssize_t nargs, tuple kwnames, list nodes, Py_ssize_t inputs):
        self.compiled, self.nargs, self.kwnames, self.inputs = compiled, nargs, kwnames, inputs
        self.kept = nodes
        self.places = <Place *> PyMem_Calloc(len(nodes) + 1, sizeof(Place))
        arrays = [node[3] for node in nodes if node[0] <= Node.SCALAR]
        self.dims = <npy_intp *> PyMem_Calloc(sum(2 * len(sizes) for _, sizes, _ in arrays) + 1, sizeof(npy_intp))
        if self.places == NULL or self.dims == NULL:
            raise MemoryError
        cdef npy_intp *dims_at = self.dims
        cdef Place *place = self.places
        for kind, count, slot, key, names in nodes:
            place.kind, place.count, place.slot = kind, count, slot
            place.key, place.names = <PyObject *> key, <PyObject *> names
            if kind <= Node.SCALAR:
                place.descr = <PyArray_Descr *> <PyObject *> key[0]
                place.type_num, place.ndim, place.dims = key[0].num, len(key[1]), dims_at
                for size in key[1]:
                    dims_at[0] = size
                    dims_at += 1
                if key[2] is not None:
                    place.axes = dims_at
                    for axis in key[2]:
                        dims_at[0] = axis
                        dims_at += 1
            place += 1

    def __dealloc__(self):
        PyMem_Free(self.places)
        PyMem_Free(self.dims)

    cdef bint fits(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t room, PyObject **out):
        """Tell whether arguments are of this form; if so `inputs` holds on to them, in the order of the program."""
        cdef Py_ssize_t k, given = nargs
        if nargs != self.nargs or self.inputs > room:
            return False
        if kwnames != NULL:
            if <PyObject *> self.kwnames != kwnames and self.kwnames != <tuple> kwnames:
                return False
            given += PyTuple_GET_SIZE(<tuple> kwnames)
        elif PyTuple_GET_SIZE(self.kwnames):
            return False
        memset(inputs, 0, self.inputs * sizeof(PyObject *))
        cdef const Place *at = self.places
        for k in range(given):
            if at.kind == Node.OUT:
                out[0] = args[k]
                at += 1
            elif not walk(&at, args[k], inputs):
                self.let_go(inputs)
                return False
        return True

    cdef void let_go(self, PyObject **inputs):
        cdef Py_ssize_t k
        for k in range(self.inputs):
            Py_XDECREF(inputs[k])


cdef inline bint is_array(PyObject *value, const Place *place) noexcept:
    cdef int k
    cdef npy_intp *dims
    if not PyArray_CheckExact(value):
        return False
    if PyArray_DESCR(<PyArrayObject *> value) != place.descr and PyArray_TYPE(<PyArrayObject *> value) != place.type_num:
        return False
    if PyArray_NDIM(<PyArrayObject *> value) != place.ndim:
        return False
    dims = PyArray_DIMS(<PyArrayObject *> value)
    for k in range(place.ndim):
        if dims[k] != place.dims[k]:
            return False
    if PyArray_IS_C_CONTIGUOUS(<PyArrayObject *> value):
        return place.axes == NULL
    return place.ndim < 2 or lies_as(<PyArrayObject *> value, place.axes)


cdef bint lies_as(PyArrayObject *array, const npy_intp *axes) noexcept:
    """Whether the dimensions of an array lie in an order; NULL for row-major order."""
    cdef int k
    cdef npy_intp found[MOST_DIMENSIONS]
    if not find_axes(array, found):
        return axes == NULL
    if axes == NULL:
        return False
    for k in range(PyArray_NDIM(array)):
        if axes[k] != found[k]:
            return False
    return True


cdef bint find_axes(PyArrayObject *array, npy_intp *axes) noexcept:
    """Find the order in which the dimensions of an array lie, outermost first; False for row-major order.

    Dimensions of size 1 come first, and an array whose elements share memory lies in row-major order.
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
    """Find the order in which the dimensions of an array lie in memory, outermost first; None for row-major order."""
    cdef npy_intp axes[MOST_DIMENSIONS]
    cdef PyArrayObject *given = <PyArrayObject *> <PyObject *> array
    if not find_axes(given, axes):
        return None
    return tuple([axes[k] for k in range(PyArray_NDIM(given))])


cdef bint walk(const Place **at, PyObject *value, PyObject **inputs) noexcept:
    """Compare a value with the node that `at` points to, and go on to the one behind it and its parts."""
    cdef const Place *place = at[0]
    at[0] += 1
    cdef int kind = place.kind
    if kind == Node.ARRAY:
        if not is_array(value, place):
            return False
        keep(inputs, place.slot, value)
        return True
    if kind == Node.SCALAR:
        if Py_TYPE(value) != place.descr.typeobj:
            return False
        keep(inputs, place.slot, value)
        return True
    if kind <= Node.COMPLEX:
        if not is_number(value, kind):
            return False
        keep(inputs, place.slot, value)
        return True
    if kind == Node.NONE:
        return value == Py_None
    if kind <= Node.RECORD:
        return walk_container(place, at, value, inputs)
    return is_static(value, place)


cdef inline void keep(PyObject **inputs, Py_ssize_t slot, PyObject *value) noexcept:
    Py_XINCREF(value)
    inputs[slot] = value


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


cdef bint walk_container(const Place *place, const Place **at, PyObject *value, PyObject **inputs) noexcept:
    cdef int k
    cdef object container = <object> value
    if place.kind == Node.DICT:
        return walk_dict(place, at, container, inputs)
    if place.kind == Node.RECORD:
        return walk_record(place, at, value, inputs)
    if place.kind == Node.LIST:
        if not PyList_CheckExact(container):
            return False
        for k in range(place.count):
            if k >= PyList_GET_SIZE(container) or not walk(at, PyList_GET_ITEM(container, k), inputs):
                return False
        return PyList_GET_SIZE(container) == place.count
    if place.kind == Node.TUPLE and not PyTuple_CheckExact(container):
        return False
    if place.kind == Node.NAMED and <PyObject *> Py_TYPE(value) != place.key:
        return False
    if PyTuple_GET_SIZE(container) != place.count:
        return False
    for k in range(place.count):
        if not walk(at, PyTuple_GET_ITEM(container, k), inputs):
            return False
    return True


cdef bint walk_dict(const Place *place, const Place **at, object container, PyObject **inputs) noexcept:
    """The keys count, and their order."""
    cdef Py_ssize_t position = 0
    cdef int k
    cdef PyObject *key
    cdef PyObject *value
    if not PyDict_CheckExact(container) or PyDict_Size(container) != place.count:
        return False
    for k in range(place.count):
        if not PyDict_Next(container, &position, &key, &value):
            return False
        if key != PyTuple_GET_ITEM(<tuple> place.key, k) and not equal_keys(key, PyTuple_GET_ITEM(<tuple> place.key, k)):
            return False
        if not walk(at, value, inputs):
            return False
    return True


cdef bint equal_keys(PyObject *one, PyObject *other) noexcept:
    """Whether keys are equal; of those whose comparison is code of somebody's, no two are."""
    return (PyUnicode_CheckExact(<object> one) or PyLong_CheckExact(<object> one)) and equal(one, other)


cdef bint walk_record(const Place *place, const Place **at, PyObject *value, PyObject **inputs) noexcept:
    cdef int k
    cdef bint found
    cdef PyObject *part
    if <PyObject *> Py_TYPE(value) != place.key:
        return False
    for k in range(place.count):
        part = PyObject_GetAttr(value, PyTuple_GET_ITEM(<tuple> place.names, k))
        if part == NULL:
            PyErr_Clear()
            return False
        found = walk(at, part, inputs)
        Py_XDECREF(part)
        if not found:
            return False
    return True


cdef bint equal(PyObject *one, PyObject *other) noexcept:
    """Whether two values are of one type and equal."""
    if Py_TYPE(one) != Py_TYPE(other):
        return False
    cdef int found = PyObject_RichCompareBool(one, other, Py_EQ)
    if found < 0:
        PyErr_Clear()
    return found > 0


cdef bint is_static(PyObject *value, const Place *place) noexcept:
    if place.kind == Node.RECEIVER:
        if Py_TYPE(value) != <PyTypeObject *> Receiver:
            return False
        referred = <object> place.key
        return (referred() if place.count else referred) is (<Receiver> value).value
    if place.kind == Node.STATIC:
        return value == place.key or equal(value, place.key)
    if place.names == value:
        return True
    try:
        return static_key(<object> value) == <object> place.key
    except Exception:
        return False


cdef inline uint64_t mixed(uint64_t hash, uint64_t value) noexcept:
    hash = (hash ^ value) * <uint64_t> 0x9E3779B97F4A7C15
    return hash ^ (hash >> 29)


cdef uint64_t hashed(uint64_t hash, PyObject *value, int depth, int *left) noexcept:
    """What equal signatures have in common; static parts inside of containers count by their types alone.

    What comes after so many values that `left` is 0 does not count.
    """
    cdef Py_ssize_t k, position = 0
    cdef PyObject *key
    cdef PyObject *part
    cdef object whole = <object> value
    if PyArray_CheckExact(value):
        hash = mixed(hash, PyArray_TYPE(<PyArrayObject *> value) + 1)
        for k in range(PyArray_NDIM(<PyArrayObject *> value)):
            hash = mixed(hash, PyArray_DIMS(<PyArrayObject *> value)[k] + 1)
        return hash if PyArray_IS_C_CONTIGUOUS(<PyArrayObject *> value) else hashed_axes(hash, <PyArrayObject *> value)
    hash = mixed(hash, <uint64_t> Py_TYPE(value))
    left[0] -= 1
    if depth == DEEPEST or left[0] < 0:
        return hash
    if Py_TYPE(value) == <PyTypeObject *> Receiver:
        return mixed(hash, <uint64_t> <PyObject *> (<Receiver> value).value)
    if PyTuple_Check(whole):
        for k in range(PyTuple_GET_SIZE(whole)):
            hash = hashed(hash, PyTuple_GET_ITEM(whole, k), depth + 1, left)
    elif PyList_CheckExact(whole):
        for k in range(PyList_GET_SIZE(whole)):
            hash = hashed(hash, PyList_GET_ITEM(whole, k), depth + 1, left)
    elif PyDict_CheckExact(whole):
        while PyDict_Next(whole, &position, &key, &part):
            hash = hashed(hashed_key(hash, key), part, depth + 1, left)
    return hash


cdef uint64_t hashed_axes(uint64_t hash, PyArrayObject *array) noexcept:
    """The order of the dimensions in memory."""
    cdef int k
    cdef npy_intp axes[MOST_DIMENSIONS]
    if find_axes(array, axes):
        for k in range(PyArray_NDIM(array)):
            hash = mixed(hash, axes[k] + 1)
    return hash


cdef uint64_t hashed_key(uint64_t hash, PyObject *value) noexcept:
    """The hash of a value that counts by itself."""
    cdef Py_hash_t own = PyObject_Hash(value)
    if own == -1:
        PyErr_Clear()
    return mixed(mixed(hash, <uint64_t> Py_TYPE(value)), <uint64_t> own)


cdef class Dispatcher:
    """A function that keeps a compiled program for each signature of its arguments.

    A subclass has the method ``call_slowly(args, kwnames, hash)``, which gives the result, and may `learn` a way.

    Parameters
    ----------
    static_positions : bytes
        For each positional argument whether it is static.
    static_rest : bool
        Whether those behind them are.
    static_names : set of str
        Names of static arguments.
    """

    cdef vectorcallfunc vectorcall
    cdef Way last
    cdef dict ways  # hash -> list of Way
    cdef Py_ssize_t count, most_inputs
    cdef bytes static_positions
    cdef bint static_rest
    cdef object static_names
    cdef readonly unsigned long long hits, clock

    def __cinit__(self):
        self.vectorcall = call
        self.ways = {}

    def set_static(self, bytes positions, bint rest, names):
        """Say which arguments are static."""
        self.static_positions, self.static_rest, self.static_names = positions, rest, names or None

    def learn(self, uint64_t hash, Way way):
        """Find a way by its hash from now on."""
        if self.count >= MOST_WAYS:
            self.forget()
        self.most_inputs = max(self.most_inputs, way.inputs)
        self.ways.setdefault(hash, []).append(way)
        self.count += 1

    def forget(self, compiled=None):
        """Drop the ways to a compiled program, or all of them."""
        self.last = None
        kept = {h: [w for w in some if compiled is not None and w.compiled is not compiled] for h, some in self.ways.items()}
        self.ways = {h: some for h, some in kept.items() if some}
        self.count = sum(map(len, self.ways.values()))

    cdef uint64_t hash_of(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) noexcept:
        cdef Py_ssize_t k
        cdef uint64_t hash = nargs
        cdef int left = MOST_HASHED
        cdef PyObject *name
        for k in range(nargs):
            if self.is_static_position(k):
                hash = hashed_key(hash, args[k])
            else:
                hash = hashed(hash, args[k], 0, &left)
        if kwnames != NULL:
            for k in range(PyTuple_GET_SIZE(<tuple> kwnames)):
                name = PyTuple_GET_ITEM(<tuple> kwnames, k)
                hash = hashed_key(hash, name)
                if self.static_names is not None and <object> name in self.static_names:
                    hash = hashed_key(hash, args[nargs + k])
                else:
                    hash = hashed(hash, args[nargs + k], 0, &left)
        return hash

    cdef inline bint is_static_position(self, Py_ssize_t k) noexcept:
        if self.static_positions is None:
            return False
        return (<char *> self.static_positions)[k] if k < len(self.static_positions) else self.static_rest

    cdef object invoke(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
        cdef PyObject *inline[INLINE]
        cdef PyObject **inputs = inline
        cdef Py_ssize_t room = max(INLINE, self.most_inputs)  # which other threads may raise meanwhile
        if room > INLINE:
            inputs = <PyObject **> PyMem_Malloc(room * sizeof(PyObject *))
            if inputs == NULL:
                raise MemoryError
        try:
            return self.find(args, nargs, kwnames, inputs, room)
        finally:
            if inputs != inline:
                PyMem_Free(inputs)

    cdef object find(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t room):
        cdef PyObject *out = NULL
        cdef Way way = self.last
        cdef uint64_t hash = 0
        if traces == 0 or current_trace() is None:
            if way is not None and way.fits(args, nargs, kwnames, inputs, room, &out):
                return self.follow(way, inputs, out)
            hash = self.hash_of(args, nargs, kwnames)
            for way in self.ways.get(hash, ()):
                if way.fits(args, nargs, kwnames, inputs, room, &out):
                    self.last = way
                    return self.follow(way, inputs, out)
        cdef Py_ssize_t k, given = nargs + (0 if kwnames == NULL else PyTuple_GET_SIZE(<tuple> kwnames))
        return self.call_slowly(
            tuple([<object> args[k] for k in range(given)]), () if kwnames == NULL else <tuple> kwnames, hash
        )

    cdef object follow(self, Way way, PyObject **inputs, PyObject *out):
        self.hits += 1
        self.clock += 1
        way.compiled.stamp = self.clock
        try:
            return way.compiled.run(inputs, way.inputs, None if out == NULL else <object> out)
        finally:
            way.let_go(inputs)


cdef PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) noexcept:
    """What Python calls; exceptions leave it without the frames of this file."""
    cdef object result = None, error = None
    try:
        result = (<Dispatcher> self).invoke(args, PyVectorcall_NARGS(nargsf), kwnames)
    except BaseException as raised:
        error = raised
    if error is None:
        Py_INCREF(result)
        return <PyObject *> result
    try:
        trace = trim(error)
    except Exception:
        trace = error.__traceback__
    restore(type(error), error, trace)
    return NULL


cdef void restore(object kind, object error, object trace) noexcept:
    """Raise an exception with a traceback, None for none."""
    cdef PyObject *frames = NULL if trace is None else <PyObject *> trace
    Py_INCREF(kind)
    Py_INCREF(error)
    Py_XINCREF(frames)
    PyErr_Restore(<PyObject *> kind, <PyObject *> error, frames)


def skip_tuples(type cls):
    """Let instances of a class be called without a tuple of the arguments being made."""
    cdef Dispatcher sample = Dispatcher.__new__(Dispatcher)
    cyx_set_vectorcall(<PyTypeObject *> cls, <char *> &sample.vectorcall - <char *> <PyObject *> sample)


skip_tuples(Dispatcher)
