/* Arguments: from the values of a call to pointers to row-major arrays of the declared types. */
#include "function.h"

/* --- names --- */

/* Return the number of the parameter of a name; -1 if there is none, -2 for another error. */
static int parameter_named(const Function *f, PyObject *name) {
  for (int k = 0; k < f->num_parameters; ++k)
    if (PyTuple_GetItem(f->names, k) == name) return k;
  for (int k = 0; k < f->num_parameters; ++k) {
    const int order = PyUnicode_Compare(PyTuple_GetItem(f->names, k), name);
    if (PyErr_Occurred()) return -2;
    if (!order) return k;
  }
  return -1;
}

static int missing_argument(const Function *f, PyObject *const *values) {
  for (int k = 0; k < f->num_parameters; ++k)
    if (!values[k]) {
      PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%U'", f->name, PyTuple_GetItem(f->names, k));
      return -1;
    }
  return 0;
}

static int set_keyword(const Function *f, PyObject *name, PyObject *value, PyObject **values, PyObject **out) {
  const int k = parameter_named(f, name);
  if (k == -2) return -1;
  if (k >= 0 && values[k]) {
    PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", f->name, name);
    return -1;
  }
  if (k >= 0)
    values[k] = value;
  else if (!PyUnicode_CompareWithASCIIString(name, "out"))
    *out = value;
  else {
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", f->name, name);
    return -1;
  }
  return 0;
}

/* Set the value of each parameter, borrowed, and that of out=. */
static int set_values(const Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values,
                      PyObject **out) {
  if (nargs > f->num_parameters) {
    PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given", f->name, f->num_parameters,
                 f->num_parameters == 1 ? "" : "s", nargs);
    return -1;
  }
  for (int k = 0; k < f->num_parameters; ++k) values[k] = k < nargs ? args[k] : NULL;
  const Py_ssize_t count = kwnames ? PyTuple_Size(kwnames) : 0;
  for (Py_ssize_t k = 0; k < count; ++k)
    if (set_keyword(f, PyTuple_GetItem(kwnames, k), args[nargs + k], values, out)) return -1;
  return nargs < f->num_parameters ? missing_argument(f, values) : 0;
}

/* --- containers --- */

static int flatten(const Function *f, PyObject *tree, PyObject *value, PyObject **leaves, const char *what);

static int wrong_container(const Function *f, PyObject *tree, PyObject *value, const char *what) {
  PyErr_Format(PyExc_TypeError, "%s(): %s has a %R where the program has %S", f->name, what, Py_TYPE(value),
               PyTuple_GetItem(tree, 3));
  return -1;
}

static int flatten_attributes(const Function *f, PyObject *tree, PyObject *value, PyObject **leaves, const char *what) {
  PyObject *keys = PyTuple_GetItem(tree, 1), *children = PyTuple_GetItem(tree, 2);
  for (Py_ssize_t k = 0; k < PyTuple_Size(keys); ++k) {
    PyObject *part = PyObject_GetAttr(value, PyTuple_GetItem(keys, k));
    if (!part) return wrong_container(f, tree, value, what);
    const int failed = flatten(f, PyTuple_GetItem(children, k), part, leaves, what);
    Py_DECREF(part);
    if (failed) return -1;
  }
  return 0;
}

static int flatten_dict(const Function *f, PyObject *tree, PyObject *value, PyObject **leaves, const char *what) {
  PyObject *keys = PyTuple_GetItem(tree, 1), *children = PyTuple_GetItem(tree, 2);
  if (!PyDict_Check(value) || PyDict_Size(value) != PyTuple_Size(keys)) return wrong_container(f, tree, value, what);
  for (Py_ssize_t k = 0; k < PyTuple_Size(keys); ++k) {
    PyObject *part = PyDict_GetItemWithError(value, PyTuple_GetItem(keys, k));
    if (!part) return PyErr_Occurred() ? -1 : wrong_container(f, tree, value, what);
    if (flatten(f, PyTuple_GetItem(children, k), part, leaves, what)) return -1;
  }
  return 0;
}

static int flatten_sequence(const Function *f, PyObject *tree, PyObject *value, PyObject **leaves, const char *what) {
  PyObject *children = PyTuple_GetItem(tree, 2);
  const int is_list = PyList_Check(value);
  if (!is_list && !PyTuple_Check(value)) return wrong_container(f, tree, value, what);
  const Py_ssize_t size = is_list ? PyList_Size(value) : PyTuple_Size(value);
  if (size != PyTuple_Size(children)) return wrong_container(f, tree, value, what);
  for (Py_ssize_t k = 0; k < size; ++k) {
    PyObject *part = is_list ? PyList_GetItem(value, k) : PyTuple_GetItem(value, k);
    if (!part || flatten(f, PyTuple_GetItem(children, k), part, leaves, what)) return -1;
  }
  return 0;
}

/* A static value must equal that of the program. */
static int check_fixed(const Function *f, PyObject *tree, PyObject *value, const char *what) {
  PyObject *fixed = PyTuple_GetItem(tree, 1);
  const int equal = fixed == value ? 1 : PyObject_RichCompareBool(fixed, value, Py_EQ);
  if (equal > 0) return 0;
  if (!equal)
    PyErr_Format(PyExc_ValueError, "%s(): %s has %R where the program was compiled for %R", f->name, what, value,
                 fixed);
  return -1;
}

/* Set references to the leaves of a value. */
static int flatten(const Function *f, PyObject *tree, PyObject *value, PyObject **leaves, const char *what) {
  if (PyLong_Check(tree)) {
    const Py_ssize_t leaf = PyLong_AsSsize_t(tree);
    Py_XDECREF(leaves[leaf]);
    leaves[leaf] = Py_NewRef(value);
    return 0;
  }
  switch (PyLong_AsLong(PyTuple_GetItem(tree, 0))) {
    case TREE_TUPLE:
    case TREE_LIST:
      return flatten_sequence(f, tree, value, leaves, what);
    case TREE_DICT:
      return flatten_dict(f, tree, value, leaves, what);
    case TREE_ATTRIBUTES:
      return flatten_attributes(f, tree, value, leaves, what);
    default:
      return check_fixed(f, tree, value, what);
  }
}

/* Set references to all arrays and numbers among the arguments. */
static int set_leaves(const Function *f, PyObject *const *values, Call *call) {
  if (f->is_flat) {
    for (int k = 0; k < f->num_args; ++k) call->leaves[k] = Py_NewRef(values[k]);
    return 0;
  }
  for (int k = 0; k < f->num_parameters; ++k) {
    PyObject *name = PyUnicode_AsUTF8String(PyTuple_GetItem(f->names, k));
    if (!name) return -1;
    const int failed = flatten(f, PyTuple_GetItem(f->trees, k), values[k], call->leaves, PyBytes_AsString(name));
    Py_DECREF(name);
    if (failed) return -1;
  }
  return 0;
}

/* --- arrays --- */

static int has_dims(PyArrayObject *array, const ArrayType *type) {
  if (PyArray_NDIM(array) != type->rank) return 0;
  const npy_intp *dims = PyArray_DIMS(array);
  for (int k = 0; k < type->rank; ++k)
    if (dims[k] != type->dims[k]) return 0;
  return 1;
}

static int is_native(PyArrayObject *array, const ArrayType *type) {
  PyArray_Descr *descr = PyArray_DESCR(array);
  return descr == type->type ||
         (PyArray_EquivTypenums(descr->type_num, type->type_num) && PyArray_ISNBO(descr->byteorder));
}

/* Return true for an array that the program reads as it is. */
static int is_as_declared(PyObject *value, const ArrayType *type) {
  if (!PyArray_CheckExact(value)) return 0;
  PyArrayObject *array = (PyArrayObject *)value;
  return PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISALIGNED(array) && is_native(array, type) && has_dims(array, type);
}

/* Store a float if the type is one of floats. */
static int store_real(double real, const ArrayType *type, Number *number) {
  if (type->type_num == NPY_DOUBLE)
    number->real = real;
  else if (type->type_num == NPY_FLOAT)
    number->single = (float)real;
  else
    return 0;
  return 1;
}

/* Store an integer if the type has it; floats take what all of them round alike. */
static int store_integer(int64_t integer, const ArrayType *type, Number *number) {
  const int is_small = integer >= INT32_MIN && integer <= INT32_MAX;
  if (type->type_num == NPY_LONG)
    number->integer = integer;
  else if (type->type_num == NPY_INT && is_small)
    number->small = (int32_t)integer;
  else
    return is_small && store_real((double)integer, type, number);
  return 1;
}

/* Read a Python number of the most frequent kinds; return false for others, which Python code converts. */
static int read_number(PyObject *value, const ArrayType *type, Number *number) {
  if (type->rank) return 0;
  if (PyFloat_CheckExact(value)) return store_real(PyFloat_AsDouble(value), type, number);
  if (PyBool_Check(value) && type->type_num == NPY_BOOL) {
    number->bytes[0] = value == Py_True;
    return 1;
  }
  if (!PyLong_CheckExact(value)) return 0;
  int overflow;
  const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  return !overflow && store_integer(integer, type, number);
}

/* Read a scalar of NumPy; return false for one of another type, or of a type that another package has defined. */
static int read_scalar(PyObject *value, const ArrayType *type, Number *number) {
  if (type->rank || type->type_num >= NPY_USERDEF || !PyArray_CheckScalar(value) || PyArray_Check(value)) return 0;
  PyArray_Descr *descr = PyArray_DescrFromScalar(value);
  const int equal = descr && descr->type_num == type->type_num && type->bytes <= (int64_t)sizeof(*number);
  Py_XDECREF((PyObject *)descr);
  PyErr_Clear();
  if (equal) PyArray_ScalarAsCtype(value, number);
  return equal;
}

/* Return a row-major array of the declared type with the values of any other array or number. */
static PyObject *converted(const Function *f, PyObject *value, const ArrayType *type, int k) {
  if (PyArray_CheckExact(value)) {
    PyArrayObject *array = (PyArrayObject *)value;
    if (PyArray_EquivTypenums(PyArray_DESCR(array)->type_num, type->type_num) && has_dims(array, type))
      return PyArray_FromArray(array, new_type(type), NPY_ARRAY_CARRAY_RO);
  }
  return PyObject_CallMethod(f->slow, "convert", "Oi", value, k);
}

static int read_argument(const Function *f, Call *call, int k) {
  const ArrayType *type = f->args + k;
  PyObject *value = call->leaves[k];
  if (is_as_declared(value, type)) {
    call->data[k] = PyArray_DATA((PyArrayObject *)value);
    return 0;
  }
  call->data[k] = call->numbers + k;
  if (read_number(value, type, call->numbers + k) || read_scalar(value, type, call->numbers + k)) return 0;
  call->arrays[k] = converted(f, value, type, k);
  if (!call->arrays[k]) return -1;
  if (!is_as_declared(call->arrays[k], type)) {
    PyErr_Format(PyExc_SystemError, "%s(): argument %s was not converted", f->name, type->name);
    return -1;
  }
  call->data[k] = PyArray_DATA((PyArrayObject *)call->arrays[k]);
  return 0;
}

/* Set the pointers to the data of all arguments. */
static int read_arguments(const Function *f, Call *call) {
  for (int k = 0; k < f->num_args; ++k)
    if (read_argument(f, call, k)) return -1;
  return 0;
}
