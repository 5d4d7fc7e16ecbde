"""Calls of traced functions: dispatch of an argument list to its compiled program, entirely in C.

A call signature is a tree of nodes for each argument, positional ones first. The signature of the last call is tried
first, then those with the same hash. Arguments that match none go to Python, which compiles a program and adds a
signature.
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
from cyxla._native.launch cimport Program, Spec, first_rows, matches, new_array

from cyxla._native import arguments

cdef extern from "Python.h":
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    PyObject *PyVectorcall_Call(PyObject *, PyObject *, PyObject *) noexcept
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    PyTypeObject *Py_TYPE(PyObject *) noexcept
    Py_hash_t PyObject_Hash(PyObject *) noexcept
    int PyObject_RichCompareBool(PyObject *, PyObject *, int) noexcept
    PyObject *PyObject_GetAttr(PyObject *, PyObject *) noexcept
    PyObject *Py_None
    PyObject *PyCell_GET(PyObject *) noexcept
    PyObject *PyDict_GetItem(PyObject *, PyObject *) noexcept
    PyObject *PySequence_GetItem(PyObject *, Py_ssize_t) noexcept
    bint PyList_Check(object) noexcept
    bint PyDict_Check(object) noexcept
    Py_ssize_t PyLong_AsSsize_t(object) noexcept
    void PyType_Modified(PyTypeObject *) noexcept

cdef extern from *:
    """
    /* Enables vectorcall for a Python subclass, which does not inherit it before Python 3.12. */
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
    MAX_INLINE = 64  # buffers or leaves on the stack; programs and signatures with more take a slow path
    CELL_BYTES = 16  # size of the largest number
    MAX_DEPTH = 32  # depth of containers up to which a hash includes their parts
    MAX_HASHED = 1 << 16  # values that a hash includes, since a container may contain itself several times
    MAX_SIGNATURES = 4096
    MAX_GUARDS = 64  # guards whose values are on the stack
    MAX_DIMENSIONS = 64  # dimensions of a NumPy array, at most


cpdef enum Node:
    ARRAY  # a NumPy array, by its dtype and sizes
    SCALAR  # a NumPy scalar, by its dtype
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
    STATIC  # a string, bytes or an int, by its value
    STATIC_KEY  # any other static value, by identity or by its `static_key`
    RECEIVER  # the object of a bound method, by identity
    OUT
    SAME  # an object from outside, by identity
    MISSING  # a name or an attribute that does not exist
    ANY  # an object that is used by later guards alone


cdef struct SignatureNode:
    # A node of a call signature; its pointers belong to the CallSignature.
    int kind
    int count
    Py_ssize_t slot
    PyObject *key
    PyObject *names
    PyArray_Descr *descr
    int type_num
    int ndim
    npy_intp *dims
    npy_intp *axes  # the dimensions from the slowest to the fastest varying; NULL for row-major order


cpdef enum Source:
    ARGUMENT  # a value passed, by its number; of a `Receiver` the object
    GLOBAL  # a value of a dict of globals, or of the dict of builtins behind it
    CELL  # the contents of a cell
    ATTRIBUTE  # an attribute of the object of an earlier guard
    ITEM  # an element of the list, tuple or dict of an earlier guard


cdef struct Guard:
    # A value from outside that a program depends on; its pointers belong to the CallSignature.
    int source
    Py_ssize_t of  # number of an earlier guard, or of an argument
    PyObject *owner  # globals, or a cell
    PyObject *builtins
    PyObject *key
    Py_ssize_t node  # number of the node that the value must match
    Py_ssize_t same_as  # number of an earlier guard with the same object, or -1


cdef int traces = 0  # number of functions being traced, on all threads
cdef object current_trace = None
cdef object static_key = None
cdef object trim = None
cdef object shares_memory = None


def install(current, key_of, trim_traceback, share_memory):
    """Set the Python functions that the dispatcher calls.

    Parameters
    ----------
    current : callable
        Function that returns the trace of this thread, or None.
    key_of : callable
        Function that returns the key by which static values are compared.
    trim_traceback : callable
        Function that returns an exception's traceback without the frames of this package.
    share_memory : callable
        Function of two arrays whose bounds overlap that returns True if they share an element.
    """
    global current_trace, static_key, trim, shares_memory
    current_trace, static_key, trim, shares_memory = current, key_of, trim_traceback, share_memory


def begin_trace():
    """Increment the number of functions being traced."""
    global traces
    traces += 1


def end_trace():
    """Decrement the number of functions being traced."""
    global traces
    traces -= 1


def set_traces(int count):
    """Set the number of functions being traced, in a forked child."""
    global traces
    traces = count


@cython.final
cdef class Receiver:
    """The object of a bound method that is not a container; it is static, and compared by identity.

    Parameters
    ----------
    value : object
        Object on which the method is called.
    """

    cdef readonly object value

    def __init__(self, value):
        self.value = value


class CaughtError(Exception):
    """The error of a failed run, which the function itself may catch.

    Parameters
    ----------
    error : Exception
        Error.
    """

    def __init__(self, error):
        super().__init__(error)
        self.error = error


cdef class Compiled:
    """The compiled program of one signature, for all forms in which its arguments can be passed.

    A subclass defines the methods ``run_slowly(arguments, out, passed)``, where `arguments` have permuted dimensions
    and `passed` do not, ``fail(code, number)`` and, if `finishes` is set, ``finish(result)``.

    Parameters
    ----------
    executable : Executable
        Executable that takes the arrays and numbers among the arguments, and returns one array or a tuple.
    plan : tuple
        Structure of the container of results: ``(0,)`` is a leaf, ``(1, parts)`` a tuple, ``(2, parts)`` a list,
        ``(3, keys, parts)`` a dict, ``(4,)`` is None, ``(5, build, key, parts)`` anything else, ``(6, k)`` input k
        itself, or a leaf, which are numbered after the inputs, and ``(7, build, dimensions, parts)`` an array and its
        sizes at run time in some dimensions.
    fails : bool
        True if the last result is a failure code, s64[2].
    rank0 : bytes
        Type of each result of rank 0: 0 for a NumPy scalar, 1 for an array, 2 for a Python number.
    input_axes : tuple of (tuple of int or None), optional
        Permutation of each input's dimensions for the program; None for one or all inputs without a permutation.
    layouts : tuple of (tuple of int or None, bool), optional
        Permutation of each result's dimensions, and True if the result is writeable; None if all results are returned
        as the program computes them.
    spectra : tuple of (int, int), optional
        Complex results that become real arrays if all imaginary parts of another result are zero: pairs of the index
        of such a result and the index of that other result.
    writes : tuple of int, optional
        Inputs that are written: their new values are the last results of the program, before the failure.
    finishes : bool
        True if the result goes through ``finish``, which changes objects from outside.
    plain : bool
        True if no program runs, but ``call_plainly`` of the dispatcher.
    direct : callable, optional
        Function that is called with the arguments as they are passed, in place of ``call_plainly``.
    """

    cdef readonly object executable, direct
    cdef readonly tuple plan, input_axes, layouts, spectra
    cdef readonly bint fails, finishes, plain
    cdef readonly tuple writes
    cdef bint passes_arguments  # True if an argument itself is among the results
    cdef Py_ssize_t n_writes
    cdef Py_ssize_t *written  # numbers of the inputs that are written
    cdef Program program  # None if the executable must be called from Python
    cdef Py_ssize_t n_results
    cdef bint single, flat
    cdef bint unchanged  # True if each array of the results is returned as the program computes it
    cdef readonly bytes rank0
    cdef public unsigned long long stamp  # time of the last call, on the clock of the dispatcher

    def __init__(
        self, executable, tuple plan, bint fails, bytes rank0, tuple input_axes=None, tuple layouts=None,
        tuple spectra=None, tuple writes=(), bint finishes=False, bint plain=False, direct=None,
    ):
        self.writes, self.finishes, self.n_writes = writes, finishes, len(writes)
        self.plain, self.direct = plain, direct
        self.written = <Py_ssize_t *> PyMem_Calloc(len(writes) + 1, sizeof(Py_ssize_t))
        if self.written == NULL:
            raise MemoryError
        for k, number in enumerate(writes):
            self.written[k] = number
        self.passes_arguments = has_arguments(plan)
        self.plan, self.fails, self.rank0 = plan, fails, rank0
        self.input_axes, self.layouts, self.spectra = input_axes, layouts, spectra
        self.unchanged = layouts is None and spectra is None
        self.single = plan[0] == 0
        self.flat = plan[0] == 1 and all(part[0] == 0 for part in plan[1])
        self.use(executable)

    def __dealloc__(self):
        PyMem_Free(self.written)

    def use(self, executable):
        """Replace the executable by an equivalent one; running calls finish with the old one."""
        cdef Program program = None
        if isinstance(executable, Program) and type(executable).__call__ is Program.__call__:
            program = executable
            if program.nested or program.watched or program.n_buffers > MAX_INLINE:
                program = None
            elif program.donations is not None and not self.donates_writes_alone(program):
                program = None
            else:
                self.n_results = program.n_outputs - self.fails - self.n_writes
        self.executable, self.program = executable, program

    cdef bint donates_writes_alone(self, Program program):
        """Return True if the only donated inputs are written ones, each to its own new value."""
        cdef Py_ssize_t first = program.n_outputs - self.fails - self.n_writes
        return program.donations.items() <= {(k, first + n) for n, k in enumerate(self.writes)}

    def __call__(self, list leaves, out=None, list results=None):
        """Run on the arrays and numbers among the arguments, in the order of the program's parameters.

        Where an argument itself is a result, it is the one of `results`, by default of `leaves`.
        """
        cdef Py_ssize_t k, count = len(leaves)
        cdef PyObject *inputs[MAX_INLINE]
        cdef PyObject *passed[MAX_INLINE]
        cdef list permuted = leaves
        if results is None:
            results = leaves
        if self.input_axes is not None:
            permuted = [leaf if axes is None else leaf.transpose(axes) for leaf, axes in zip(leaves, self.input_axes)]
        if count > MAX_INLINE:
            result = self.run_slowly(permuted, out, results)
        else:
            for k in range(count):
                inputs[k], passed[k] = PyList_GET_ITEM(permuted, k), PyList_GET_ITEM(results, k)
            result = self.run_in_order(inputs, passed, count, out)
        return self.finish(result) if self.finishes else result

    cdef object run(self, PyObject **inputs, Py_ssize_t count, object out):
        if self.input_axes is not None or self.finishes:
            return self([<object> inputs[k] for k in range(count)], out)
        return self.run_in_order(inputs, inputs, count, out)

    cdef object run_in_order(self, PyObject **inputs, PyObject **passed, Py_ssize_t count, object out):
        """Run on inputs whose dimensions are permuted already; `passed` are those that were passed."""
        cdef void *bufs[MAX_INLINE]
        cdef char memory[(MAX_INLINE + 4) * CELL_BYTES]
        cdef Program program = self.program  # another thread may replace self.program meanwhile
        if program is None or out is not None:
            return self.run_slowly(
                [<object> inputs[k] for k in range(count)], out, [<object> passed[k] for k in range(count)]
            )
        memcpy(bufs, program.template, program.n_buffers * sizeof(void *))
        return self.run_on(program, bufs, <char *> ((<uint64_t> memory + 63) & ~<uint64_t> 63), inputs, passed)

    cdef object run_on(self, Program program, void **bufs, char *cells, PyObject **inputs, PyObject **passed):
        """Run on buffers; the cell of 16 bytes with the number of a buffer holds its value if it has rank 0."""
        cdef Py_ssize_t k
        cdef Spec *spec
        cdef object converted_inputs = None, only = None
        cdef list arrays = None
        for k in range(program.n_inputs):
            spec = &program.specs[k]
            if matches(inputs[k], spec):
                bufs[k] = PyArray_DATA(<PyArrayObject *> inputs[k])
            elif spec.ndim == 0 and write_number(cells + k * CELL_BYTES, inputs[k], spec):
                bufs[k] = cells + k * CELL_BYTES
            else:
                converted = arguments.convert(<object> inputs[k], *program.inputs[k], f"argument {k}")
                bufs[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> converted)
                converted_inputs = (converted_inputs, converted)
        spec = &program.specs[program.n_inputs]
        cdef Py_ssize_t first = 0
        if self.single and self.unchanged and spec.ndim:  # the most frequent case needs no list
            only = new_array(spec)
            bufs[program.n_inputs] = PyArray_DATA(<PyArrayObject *> <PyObject *> only)
            first = 1
        for k in range(first, self.n_results):
            if spec[k].ndim == 0:
                bufs[program.n_inputs + k] = cells + (program.n_inputs + k) * CELL_BYTES
                continue
            array = new_array(&spec[k])
            bufs[program.n_inputs + k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            if arrays is None:
                arrays = []
            arrays.append(array)
        cdef Py_ssize_t last = program.n_inputs + self.n_results + self.n_writes
        cdef int64_t *failure = <int64_t *> (cells + last * CELL_BYTES)
        if self.fails:
            bufs[last] = failure
        cdef list written = self.prepare_writes(program, bufs, inputs) if self.n_writes else None
        program.execute(bufs, None, None, None)  # the program is not watched
        if self.fails and failure[0] != 0:
            self.fail(failure[0], failure[1])
        if written is not None:
            self.copy_writes(inputs, written)
        if first:
            return only
        if self.single:
            if spec.ndim:
                if self.layouts is not None:
                    arrays[0] = with_layout(arrays[0], self.layouts[0])
                return arrays[0] if self.spectra is None else drop_zero_imaginary(arrays, self.spectra)[0]
            return self.unbox(bufs[program.n_inputs], spec, 0)
        return self.container(program, bufs, arrays, passed)

    cdef list prepare_writes(self, Program program, void **bufs, PyObject **inputs):
        """Set the buffers of inputs' new values, and return the arrays that must be copied to the inputs.

        A donated input is overwritten in place, unless the program cannot write to its memory.
        """
        cdef Py_ssize_t n, k, output
        cdef list copied = None
        cdef PyArrayObject *target
        for n in range(self.n_writes):
            k, output = self.written[n], program.n_inputs + self.n_results + n
            target = <PyArrayObject *> inputs[k]
            donated = program.donations is not None and k in program.donations
            if donated and matches(inputs[k], &program.specs[k]) and PyArray_ISALIGNED(target):
                bufs[output] = bufs[k]
                continue
            array = new_array(&program.specs[output])
            if donated:
                memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> array), bufs[k], program.specs[k].bytes)
                bufs[k] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            bufs[output] = PyArray_DATA(<PyArrayObject *> <PyObject *> array)
            if copied is None:
                copied = [None] * self.n_writes
            copied[n] = array
        return copied

    cdef int copy_writes(self, PyObject **inputs, list written) except -1:
        cdef Py_ssize_t n
        for n in range(self.n_writes):
            if written[n] is not None:
                PyArray_CopyInto(<PyArrayObject *> inputs[self.written[n]], <PyArrayObject *> <PyObject *> written[n])
        return 0

    cdef bint may_write(self, PyObject **inputs, Py_ssize_t count):
        """Return True if all inputs to write are writeable, and share no memory with other inputs."""
        cdef Py_ssize_t n, k
        cdef PyObject *target
        for n in range(self.n_writes):
            target = inputs[self.written[n]]
            if not PyArray_Check(target) or not PyArray_ISWRITEABLE(<PyArrayObject *> target):
                return False
            for k in range(count):
                if k != self.written[n] and PyArray_Check(inputs[k]) and overlap(target, inputs[k]):
                    return False
        return True

    def check_writes(self, list leaves):
        """Return True if all inputs to write are writeable, and share no memory with other inputs."""
        cdef PyObject **inputs = <PyObject **> PyMem_Malloc((len(leaves) + 1) * sizeof(PyObject *))
        if inputs == NULL:
            raise MemoryError
        try:
            for k in range(len(leaves)):
                inputs[k] = PyList_GET_ITEM(leaves, k)
            return self.may_write(inputs, len(leaves))
        finally:
            PyMem_Free(inputs)

    cdef object container(self, Program program, void **bufs, list arrays, PyObject **passed):
        cdef Py_ssize_t k, at = 0
        cdef Spec *spec = &program.specs[program.n_inputs]
        cdef list leaves = []
        for k in range(self.n_results):
            if spec[k].ndim:
                leaves.append(arrays[at] if self.layouts is None else with_layout(arrays[at], self.layouts[k]))
                at += 1
            else:
                leaves.append(self.unbox(bufs[program.n_inputs + k], &spec[k], k))
        if self.spectra is not None:
            drop_zero_imaginary(leaves, self.spectra)
        if self.flat:
            return tuple(leaves)
        cdef list arguments = None
        if self.passes_arguments:
            arguments = [<object> passed[k] for k in range(program.n_inputs)]
            arguments += leaves
        return build_result(self.plan, iter(leaves), arguments, True)

    cdef object unbox(self, void *cell, const Spec *spec, Py_ssize_t k):
        """Return result `k`, of rank 0, as the type that NumPy returns."""
        cdef char rank0 = (<const char *> self.rank0)[k]
        if rank0 == 0:
            return PyArray_Scalar(cell, spec.descr, NULL)
        if rank0 == 2:
            return PyArray_Scalar(cell, spec.descr, NULL).item()
        array = new_array(spec)
        memcpy(PyArray_DATA(<PyArrayObject *> <PyObject *> array), cell, spec.bytes)
        return array


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


@cython.final
cdef class CallSignature:
    """A signature of calls, with its compiled program.

    Parameters
    ----------
    compiled : Compiled
        Program of the signature.
    nargs : int
        Number of positional arguments.
    kwnames : tuple of str
        Names of the keyword arguments.
    nodes : list of tuple
        Nodes ``(kind, count, slot, key, names)`` in the order of the arguments, containers before their parts. The key
        of an array is its ``(dtype, sizes, axes)``, see `axes_of`; `slot` is the number of an input of the program.
    inputs : int
        Number of inputs of the program.
    guards : list of tuple, optional
        Values from outside that the program depends on: ``(source, of, owner, key, node, same_as)`` as in `Guard`, where
        `node` is a number among `nodes`, behind those of the arguments.
    """

    cdef SignatureNode *nodes
    cdef Guard *guards
    cdef npy_intp *dims
    cdef Py_ssize_t nargs, inputs, n_guards
    cdef tuple kwnames
    cdef list kept_alive
    cdef readonly Compiled compiled

    def __init__(
        self, Compiled compiled, Py_ssize_t nargs, tuple kwnames, list nodes, Py_ssize_t inputs, list guards=None
    ):
        self.compiled, self.nargs, self.kwnames, self.inputs = compiled, nargs, kwnames, inputs
        self.kept_alive = [nodes, guards]
        self.set_guards(guards or [])
        self.nodes = <SignatureNode *> PyMem_Calloc(len(nodes) + 1, sizeof(SignatureNode))
        arrays = [row[3] for row in nodes if row[0] <= Node.SCALAR]
        self.dims = <npy_intp *> PyMem_Calloc(sum(2 * len(sizes) for _, sizes, _ in arrays) + 1, sizeof(npy_intp))
        if self.nodes == NULL or self.dims == NULL:
            raise MemoryError
        cdef npy_intp *next_dim = self.dims
        cdef SignatureNode *node = self.nodes
        for kind, count, slot, key, names in nodes:
            node.kind, node.count, node.slot = kind, count, slot
            node.key, node.names = <PyObject *> key, <PyObject *> names
            if kind <= Node.SCALAR:
                node.descr = <PyArray_Descr *> <PyObject *> key[0]
                node.type_num, node.ndim, node.dims = key[0].num, len(key[1]), next_dim
                for size in key[1]:
                    next_dim[0] = size
                    next_dim += 1
                if key[2] is not None:
                    node.axes = next_dim
                    for axis in key[2]:
                        next_dim[0] = axis
                        next_dim += 1
            node += 1

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.dims)
        PyMem_Free(self.guards)

    cdef int set_guards(self, list guards) except -1:
        self.n_guards = len(guards)
        self.guards = <Guard *> PyMem_Calloc(len(guards) + 1, sizeof(Guard))
        if self.guards == NULL:
            raise MemoryError
        cdef Guard *guard = self.guards
        for source, of, owner, key, node, same_as in guards:
            guard.source, guard.of, guard.node, guard.same_as = source, of, node, same_as
            guard.key = <PyObject *> key
            if source == Source.GLOBAL:
                guard.owner, guard.builtins = <PyObject *> owner[0], <PyObject *> owner[1]
            else:
                guard.owner = <PyObject *> owner
            guard += 1
        return 0

    cdef bint matches(
        self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t capacity,
        PyObject **out,
    ):
        """Return True if arguments have this signature; `inputs` then owns them, in the order of the program."""
        cdef Py_ssize_t k, count = nargs
        if nargs != self.nargs or self.inputs > capacity:
            return False
        if kwnames != NULL:
            if <PyObject *> self.kwnames != kwnames and self.kwnames != <tuple> kwnames:
                return False
            count += PyTuple_GET_SIZE(<tuple> kwnames)
        elif PyTuple_GET_SIZE(self.kwnames):
            return False
        memset(inputs, 0, self.inputs * sizeof(PyObject *))
        cdef const SignatureNode *at = self.nodes
        for k in range(count):
            if at.kind == Node.OUT:
                out[0] = args[k]
                at += 1
            elif not match_node(&at, args[k], inputs):
                self.release_inputs(inputs)
                return False
        if self.n_guards and not self.match_guards(args, inputs):
            self.release_inputs(inputs)
            return False
        return True

    def fetch(self, tuple args):
        """Return the inputs from outside, in a call that passes these values; None if a guard does not hold."""
        cdef Py_ssize_t k
        cdef PyObject **inputs = <PyObject **> PyMem_Calloc(self.inputs + 1, sizeof(PyObject *))
        if inputs == NULL:
            raise MemoryError
        cdef PyObject **passed = <PyObject **> PyMem_Calloc(len(args) + 1, sizeof(PyObject *))
        try:
            if passed == NULL:
                raise MemoryError
            for k in range(len(args)):
                passed[k] = PyTuple_GET_ITEM(args, k)
            if not self.match_guards(passed, inputs):
                return None
            return [<object> inputs[k] for k in range(self.inputs)]
        finally:
            self.release_inputs(inputs)
            PyMem_Free(inputs)
            PyMem_Free(passed)

    cdef bint match_guards(self, PyObject *const *args, PyObject **inputs):
        """Compare the values from outside, and add the arrays and numbers among them to `inputs`."""
        cdef PyObject *inline[MAX_GUARDS]
        cdef PyObject **values = inline
        cdef Py_ssize_t k, done = 0
        cdef const Guard *guard
        cdef const SignatureNode *node
        cdef bint is_match = True
        if self.n_guards > MAX_GUARDS:
            values = <PyObject **> PyMem_Malloc(self.n_guards * sizeof(PyObject *))
            if values == NULL:
                raise MemoryError
        while is_match and done < self.n_guards:
            guard = &self.guards[done]
            values[done] = find_value(guard, args, values)
            node = &self.nodes[guard.node]
            if guard.same_as >= 0:
                is_match = values[done] == values[guard.same_as]
            elif values[done] == NULL:
                is_match = node.kind == Node.MISSING
            else:
                is_match = match_node(&node, values[done], inputs)
            done += 1
        for k in range(done):
            Py_XDECREF(values[k])
        if values != inline:
            PyMem_Free(values)
        return is_match

    cdef void release_inputs(self, PyObject **inputs):
        cdef Py_ssize_t k
        for k in range(self.inputs):
            Py_XDECREF(inputs[k])


cdef PyObject *find_value(const Guard *guard, PyObject *const *args, PyObject **values) noexcept:
    """Return a new reference to the value of a guard; NULL if there is none."""
    cdef PyObject *value = NULL
    cdef PyObject *owner = NULL
    if guard.source == Source.ARGUMENT:
        value = args[guard.of]
        if value == NULL:
            return NULL
        if Py_TYPE(value) == <PyTypeObject *> Receiver:
            value = <PyObject *> (<Receiver> value).value
    elif guard.source == Source.GLOBAL:
        value = PyDict_GetItem(guard.owner, guard.key)
        if value == NULL:
            value = PyDict_GetItem(guard.builtins, guard.key)
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
        if dims[k] != node.dims[k]:
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
    if kind == Node.ARRAY:
        if not is_array(value, node):
            return False
        store_input(inputs, node.slot, value)
        return True
    if kind == Node.SCALAR:
        if Py_TYPE(value) != node.descr.typeobj:
            return False
        store_input(inputs, node.slot, value)
        return True
    if kind <= Node.COMPLEX:
        if not is_number(value, kind):
            return False
        store_input(inputs, node.slot, value)
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
    return is_static(value, node)


cdef bint refers_to(PyObject *reference, PyObject *value) noexcept:
    """Return True if a weak reference is one to a value."""
    cdef object target = (<object> reference)()
    return <PyObject *> target == value


cdef inline void store_input(PyObject **inputs, Py_ssize_t slot, PyObject *value) noexcept:
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
        if Py_TYPE(value) != <PyTypeObject *> Receiver:
            return False
        key = <object> node.key
        return (key() if node.count else key) is (<Receiver> value).value
    if node.kind == Node.STATIC:
        return value == node.key or equal(value, node.key)
    if node.names == value:
        return True
    try:
        return static_key(<object> value) == <object> node.key
    except Exception:
        return False


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
    hash = mix(hash, <uint64_t> Py_TYPE(value))
    left[0] -= 1
    if depth == MAX_DEPTH or left[0] < 0:
        return hash
    if Py_TYPE(value) == <PyTypeObject *> Receiver:
        return mix(hash, <uint64_t> <PyObject *> (<Receiver> value).value)
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


cdef class Dispatcher:
    """A function that caches a compiled program for each signature of its arguments.

    A subclass defines the method ``call_slowly(args, kwnames, hash)``, which returns the result, and adds
    signatures; and ``call_plainly(compiled, args, kwnames)``, which calls the function itself: always, or where a
    program would write to arrays that are read-only or share memory. ``call_after_failure(error, args, kwnames)`` calls
    it after a failed run, whose error the function may catch.

    Parameters
    ----------
    static_positions : bytes
        Flag for each positional argument, 1 if it is static.
    static_rest : bool
        True if all further positional arguments are static.
    static_names : set of str
        Names of static keyword arguments.
    """

    cdef vectorcallfunc vectorcall
    cdef CallSignature last
    cdef dict signatures  # list of CallSignature by hash
    cdef Py_ssize_t count, max_inputs
    cdef bytes static_positions
    cdef bint static_rest
    cdef object static_names
    cdef readonly unsigned long long hits, clock

    def __cinit__(self):
        self.vectorcall = call
        self.signatures = {}

    def set_static(self, bytes positions, bint rest, names):
        """Set the static arguments."""
        self.static_positions, self.static_rest, self.static_names = positions, rest, names or None

    def add_signature(self, uint64_t hash, CallSignature signature):
        """Add a signature under its hash; all others are dropped first if there are too many."""
        if self.count >= MAX_SIGNATURES:
            self.forget()
        self.max_inputs = max(self.max_inputs, signature.inputs)
        self.signatures.setdefault(hash, []).append(signature)
        self.count += 1

    def forget(self, compiled=None):
        """Drop the signatures of a compiled program, or all of them."""
        self.last = None
        remaining = {} if compiled is None else {
            hash: [s for s in bucket if s.compiled is not compiled] for hash, bucket in self.signatures.items()
        }
        self.signatures = {hash: bucket for hash, bucket in remaining.items() if bucket}
        self.count = sum(map(len, self.signatures.values()))

    cdef uint64_t hash_of(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) noexcept:
        cdef Py_ssize_t k
        cdef uint64_t hash = nargs
        cdef int left = MAX_HASHED
        cdef PyObject *name
        for k in range(nargs):
            if self.is_static_position(k):
                hash = hash_key(hash, args[k])
            else:
                hash = hash_value(hash, args[k], 0, &left)
        if kwnames != NULL:
            for k in range(PyTuple_GET_SIZE(<tuple> kwnames)):
                name = PyTuple_GET_ITEM(<tuple> kwnames, k)
                hash = hash_key(hash, name)
                if self.static_names is not None and <object> name in self.static_names:
                    hash = hash_key(hash, args[nargs + k])
                else:
                    hash = hash_value(hash, args[nargs + k], 0, &left)
        return hash

    cdef inline bint is_static_position(self, Py_ssize_t k) noexcept:
        if self.static_positions is None:
            return False
        return (<char *> self.static_positions)[k] if k < len(self.static_positions) else self.static_rest

    cdef object invoke(self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
        cdef PyObject *inline[MAX_INLINE]
        cdef PyObject **inputs = inline
        cdef Py_ssize_t capacity = max(MAX_INLINE, self.max_inputs)  # read once: other threads may increase max_inputs
        if capacity > MAX_INLINE:
            inputs = <PyObject **> PyMem_Malloc(capacity * sizeof(PyObject *))
            if inputs == NULL:
                raise MemoryError
        try:
            return self.dispatch(args, nargs, kwnames, inputs, capacity)
        finally:
            if inputs != inline:
                PyMem_Free(inputs)

    cdef object dispatch(
        self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs, Py_ssize_t capacity
    ):
        cdef PyObject *out = NULL
        cdef CallSignature signature = self.last
        cdef uint64_t hash = 0
        if traces == 0 or current_trace() is None:
            if signature is not None and signature.matches(args, nargs, kwnames, inputs, capacity, &out):
                return self.run(signature, args, nargs, kwnames, inputs, out)
            hash = self.hash_of(args, nargs, kwnames)
            for signature in self.signatures.get(hash, ()):
                if signature.matches(args, nargs, kwnames, inputs, capacity, &out):
                    self.last = signature
                    return self.run(signature, args, nargs, kwnames, inputs, out)
        return self.call_slowly(
            passed_values(args, nargs, kwnames), () if kwnames == NULL else <tuple> kwnames, hash
        )

    cdef object run(
        self, CallSignature signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **inputs,
        PyObject *out,
    ):
        cdef Compiled compiled = signature.compiled
        self.hits += 1
        self.clock += 1
        compiled.stamp = self.clock
        try:
            if compiled.direct is not None:
                return PyObject_Vectorcall(compiled.direct, args, nargs, kwnames)
            if compiled.plain or (compiled.n_writes and not compiled.may_write(inputs, signature.inputs)):
                return self.call_plainly(
                    compiled, passed_values(args, nargs, kwnames), () if kwnames == NULL else <tuple> kwnames
                )
            return signature.compiled.run(inputs, signature.inputs, None if out == NULL else <object> out)
        except CaughtError as failure:
            return self.call_after_failure(
                failure.error, passed_values(args, nargs, kwnames), () if kwnames == NULL else <tuple> kwnames
            )
        finally:
            signature.release_inputs(inputs)


cdef tuple passed_values(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
    """Return the values of a call, keywords after the others."""
    cdef Py_ssize_t k, count = nargs + (0 if kwnames == NULL else PyTuple_GET_SIZE(<tuple> kwnames))
    return tuple([<object> args[k] for k in range(count)])


cdef PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) noexcept:
    """Implement vectorcall; exceptions propagate without the frames of this file."""
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
    """Raise an exception with a traceback, or without one if it is None."""
    cdef PyObject *frames = NULL if trace is None else <PyObject *> trace
    Py_INCREF(kind)
    Py_INCREF(error)
    Py_XINCREF(frames)
    PyErr_Restore(<PyObject *> kind, <PyObject *> error, frames)


def enable_vectorcall(type cls):
    """Enable vectorcall for instances of a subclass of `Dispatcher`, so that calls create no tuple of arguments."""
    cdef Dispatcher sample = Dispatcher.__new__(Dispatcher)
    cyx_set_vectorcall(<PyTypeObject *> cls, <char *> &sample.vectorcall - <char *> <PyObject *> sample)


enable_vectorcall(Dispatcher)
