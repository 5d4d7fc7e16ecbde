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
    PyObject *Py_True
    PyObject *PyCell_GET(PyObject *) noexcept
    PyObject *PyFunction_GET_CODE(PyObject *) noexcept
    bint PyMethod_Check(PyObject *) noexcept
    PyObject *PyMethod_GET_FUNCTION(PyObject *) noexcept
    PyObject *PyFunction_GET_DEFAULTS(PyObject *) noexcept
    PyObject *PyFunction_GET_KW_DEFAULTS(PyObject *) noexcept
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

    /* Lets an exception that is set propagate. */
    static int cyx_raise_current(void) { return -1; }

    /* Returns the number of a class's present attributes; 0 if Python has given it none since they changed last. */
    static unsigned int cyx_class_version(PyObject *type) { return ((PyTypeObject *) type)->tp_version_tag; }
    """
    int raise_current "cyx_raise_current"() except -1
    unsigned int cyx_class_version(object) noexcept
    void cyx_set_vectorcall(PyTypeObject *, Py_ssize_t) noexcept

_import_array()

cdef enum:
    MAX_INLINE = 64  # buffers or leaves on the stack; programs and signatures with more take a slow path
    CELL_BYTES = 16  # size of the largest number
    MAX_DEPTH = 32  # depth of containers up to which a hash includes their parts
    MAX_HASHED = 1 << 16  # values that a hash includes, since a container may contain itself several times
    MAX_SIGNATURES = 4096
    MAX_OPEN_SIGNATURES = 16  # each is compared at a call that no other signature matches
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
    RECEIVER  # an object, such as that of a bound method, by identity
    INSTANCE  # an object, by its class
    OUT
    SAME  # an object from outside, by identity
    MISSING  # a name or an attribute that does not exist
    ANY  # an object that is used by later guards alone
    NUMBERS  # a list of Python's numbers of one class, which is passed as an array
    CLASS  # a class, by its methods
    FUNCTION  # a function, by its code and defaults
    METHOD  # a bound method, by its function


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


cdef struct OpenDim:
    # A dimension of an input whose size a signature leaves open.
    Py_ssize_t slot
    int dim
    npy_intp least, bound  # smallest and greatest size
    bint same  # True if the size must be that of the open dimension before


cpdef enum Source:
    ARGUMENT  # a value passed, by its number; of a `Receiver` the object
    GLOBAL  # a value of a dict of globals, or of the dict of builtins behind it
    CELL  # the contents of a cell
    ATTRIBUTE  # an attribute of the object of an earlier guard
    ITEM  # an element of the list, tuple or dict of an earlier guard
    FIXED  # a class or a function, which is the same at every call


cdef struct Guard:
    # A value from outside that a program depends on; its pointers belong to the CallSignature.
    int source
    Py_ssize_t of  # number of an earlier guard, or of an argument
    PyObject *owner  # globals, a cell, or a class or function
    PyObject *builtins
    PyObject *key
    Py_ssize_t node  # number of the node that the value must match
    Py_ssize_t same_as  # number of an earlier guard with the same object, or -1
    Py_ssize_t other_than  # number of an earlier guard with another object, or -1


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
    """The object of a bound method that is not a container; it is static.

    Parameters
    ----------
    value : object
        Object on which the method is called.
    """

    cdef readonly object value

    def __init__(self, value):
        self.value = value


@cython.final
cdef class ClassGuard:
    """A class whose methods must be the ones that a program was compiled for.

    Parameters
    ----------
    kind : type
        Class.
    is_same : callable
        Function that compares the methods. It is called if an attribute of the class or of a base was assigned since
        the last call, which Python counts.
    """

    cdef object kind, is_same
    cdef unsigned int version  # of the attributes when they were compared; 0 if they were not

    def __init__(self, kind, is_same):
        self.kind, self.is_same = kind, is_same

    cdef bint holds(self) noexcept:
        cdef unsigned int version = cyx_class_version(self.kind)
        if version and version == self.version:
            return True
        try:
            self.kind.__init__  # a lookup gives the class a version
            version = cyx_class_version(self.kind)
            if not self.is_same():
                return False
        except Exception:
            return False
        self.version = version
        return True


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


include "dispatch_compiled.pxi"
include "dispatch_results.pxi"
include "dispatch_signatures.pxi"
include "dispatch_matching.pxi"
include "dispatch_hashing.pxi"
include "dispatch_calls.pxi"
