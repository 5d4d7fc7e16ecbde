"""Declarations of compiled programs, for modules that call them from C."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t

from cyxla._native.abi cimport *
from cyxla._native.arrays cimport *


cdef struct Spec:
    # Type of one array of the signature; its pointers belong to the Program.
    PyArray_Descr *descr
    int type_num
    int ndim
    npy_intp *dims
    size_t bytes
    size_t pages  # of a result: flag of the pool for the pages of its block


cdef inline bint matches(PyObject *value, const Spec *spec) noexcept:
    """Return True if an argument can be passed to the program without a conversion. Misaligned data is allowed."""
    if not PyArray_CheckExact(value):
        return False
    cdef PyArrayObject *array = <PyArrayObject *> value
    if PyArray_DESCR(array) != spec.descr and (
        PyArray_TYPE(array) != spec.type_num or not PyArray_ISNOTSWAPPED(array)
    ):
        return False
    if PyArray_NDIM(array) != spec.ndim or not PyArray_IS_C_CONTIGUOUS(array):
        return False
    cdef npy_intp *dims = PyArray_DIMS(array)
    cdef int k
    for k in range(spec.ndim):
        if dims[k] != spec.dims[k]:
            return False
    return True


cdef object new_array(const Spec *spec)
cdef object first_rows(object array, npy_intp rows, bint owned)


cdef class Program:
    cdef cyx_entry entry
    cdef Py_ssize_t n_inputs, n_outputs, n_buffers, n_leaves
    cdef Spec *specs  # inputs, then outputs
    cdef npy_intp *dims
    cdef void **template  # buffers of a call, with those of constants and bound inputs filled in
    cdef void **functions
    cdef int *slots  # number of the input for each leaf of a call
    cdef bint nested, single, flat, release_gil, watched, abandonable
    cdef size_t arena_bytes, arena_request  # arena_request: for the pool, with its flag
    cdef size_t new_bytes  # size of the arena and the results
    cdef uint32_t cancel_epoch
    cdef cyx_call call
    cdef readonly object library
    cdef readonly tuple inputs, outputs, parameters
    cdef readonly object results
    cdef object kept_alive, output_range
    cdef dict donations  # None if there are none

    cdef int set_parameters(self, parameters, dict bound) except -1
    cdef int set_specs(self, bint sparse) except -1
    cdef int set_buffers(self, list constants, dict bound) except -1
    cdef int set_functions(self, list addresses) except -1
    cdef int set_donations(self, dict donations, dict bound) except -1
    cdef object run_inline(self, tuple args, object out)
    cdef object run(self, void **bufs, tuple args, object out)
    cdef object set_argument_buffers(self, void **bufs, tuple args)
    cdef tuple new_results(self, void **bufs)
    cdef object run_into(self, void **bufs, object args, object owners, object out)
    cdef object run_donating(self, void **bufs, tuple args, object out)
    cdef int check_no_overlap(self, void **bufs) except -1
    cdef object result_in_memory_of(self, object donated_array, Py_ssize_t index)
    cdef bint may_write_to(self, void **bufs, object out, Py_ssize_t index)
    cdef int execute(self, void **bufs, object args, object owners, object results) except -1
    cdef cyx_status execute_watched(self, void **bufs, cyx_call *call, tuple keep) noexcept
