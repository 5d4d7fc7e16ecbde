"""The part of NumPy's C API that calls use, for cimport; each module that uses it runs `_import_array` first."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport PyObject


cdef extern from "numpy/arrayobject.h":
    ctypedef Py_ssize_t npy_intp
    ctypedef struct PyArrayObject
    ctypedef struct PyArray_Descr:
        PyTypeObject *typeobj
    PyTypeObject PyArray_Type
    PyTypeObject PyGenericArrType_Type
    int _import_array() except -1
    bint PyArray_CheckExact(PyObject *)
    bint PyArray_Check(PyObject *)
    PyArray_Descr *PyArray_DESCR(PyArrayObject *) nogil
    int PyArray_TYPE(PyArrayObject *) nogil
    int PyArray_NDIM(PyArrayObject *) nogil
    npy_intp *PyArray_DIMS(PyArrayObject *) nogil
    npy_intp *PyArray_STRIDES(PyArrayObject *) nogil
    void *PyArray_DATA(PyArrayObject *) nogil
    PyObject *PyArray_BASE(PyArrayObject *) nogil
    npy_intp PyArray_NBYTES(PyArrayObject *) nogil
    bint PyArray_IS_C_CONTIGUOUS(PyArrayObject *) nogil
    bint PyArray_ISNOTSWAPPED(PyArrayObject *) nogil
    bint PyArray_ISWRITEABLE(PyArrayObject *) nogil
    bint PyArray_ISALIGNED(PyArrayObject *) nogil
    object PyArray_NewFromDescr(PyTypeObject *, PyArray_Descr *, int, npy_intp *, npy_intp *, void *, int, PyObject *)
    object PyArray_Scalar(void *, PyArray_Descr *, PyObject *)
    void PyArray_ScalarAsCtype(PyObject *, void *)
    int PyArray_SetBaseObject(PyArrayObject *, PyObject *) except -1
    npy_intp PyArray_ITEMSIZE(PyArrayObject *) nogil
    int PyArray_CopyInto(PyArrayObject *, PyArrayObject *) except -1
    void PyArray_UpdateFlags(PyArrayObject *, int)
    PyObject *PyArray_SimpleNew(int, npy_intp *, int) noexcept
    int NPY_ARRAY_CARRAY, NPY_ARRAY_ALIGNED, NPY_USERDEF
    int NPY_BOOL, NPY_INT64, NPY_DOUBLE, NPY_CDOUBLE
