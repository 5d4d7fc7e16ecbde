/* Results: new arrays and numbers, in the containers that the function returns. */
#include "function.h"

static int is_number(const Function *f, int k) { return f->results[k].rank == 0 && f->rank0[k] != RANK0_ARRAY; }

/* Allocate the results. */
static int make_results(const Function *f, Call *call) {
  for (int k = 0; k < f->num_results; ++k) {
    const ArrayType *type = f->results + k;
    if (is_number(f, k)) {
      call->result_data[k] = call->result_numbers + k;
      continue;
    }
    call->results[k] = PyArray_NewFromDescr(&PyArray_Type, new_type(type), type->rank, (const npy_intp *)type->dims,
                                            NULL, NULL, 0, NULL);
    if (!call->results[k]) return -1;
    call->result_data[k] = PyArray_DATA((PyArrayObject *)call->results[k]);
  }
  return 0;
}

/* Return a Python number if the function returns one, else a scalar of NumPy. */
static PyObject *number_of(const Function *f, int k, Number *number) {
  PyArray_Descr *type = f->results[k].type;
  if (f->rank0[k] == RANK0_PYTHON && type->type_num == NPY_DOUBLE) return PyFloat_FromDouble(number->real);
  if (f->rank0[k] == RANK0_PYTHON && type->type_num == NPY_LONG) return PyLong_FromLongLong(number->integer);
  PyObject *scalar = PyArray_Scalar(number, type, NULL);
  if (!scalar || f->rank0[k] != RANK0_PYTHON) return scalar;
  PyObject *python = PyObject_CallMethod(scalar, "item", NULL);
  Py_DECREF(scalar);
  return python;
}

/* Make the objects of results that are numbers. */
static int finish_numbers(const Function *f, Call *call) {
  for (int k = 0; k < f->num_results; ++k)
    if (!call->results[k] && !(call->results[k] = number_of(f, k, call->result_numbers + k))) return -1;
  return 0;
}

/* Write the new values of arguments that the function writes. */
static int write_arguments(const Function *f, Call *call) {
  for (int k = 0; k < f->num_results; ++k) {
    if (f->written[k] < 0) continue;
    PyArrayObject *target = (PyArrayObject *)call->leaves[f->written[k]];
    if (PyArray_CopyInto(target, (PyArrayObject *)call->results[k])) return -1;
  }
  return 0;
}

static PyObject *build(const Function *f, PyObject *tree, const Call *call);

static PyObject *build_dict(const Function *f, PyObject *tree, const Call *call) {
  PyObject *keys = PyTuple_GetItem(tree, 1), *children = PyTuple_GetItem(tree, 2), *made = PyDict_New();
  for (Py_ssize_t k = 0; made && k < PyTuple_Size(keys); ++k) {
    PyObject *part = build(f, PyTuple_GetItem(children, k), call);
    const int failed = !part || PyDict_SetItem(made, PyTuple_GetItem(keys, k), part);
    Py_XDECREF(part);
    if (failed) Py_CLEAR(made);
  }
  return made;
}

static PyObject *build_sequence(const Function *f, PyObject *tree, const Call *call, int is_list) {
  PyObject *children = PyTuple_GetItem(tree, 2);
  const Py_ssize_t size = PyTuple_Size(children);
  PyObject *made = is_list ? PyList_New(size) : PyTuple_New(size);
  for (Py_ssize_t k = 0; made && k < size; ++k) {
    PyObject *part = build(f, PyTuple_GetItem(children, k), call);
    if (!part || (is_list ? PyList_SetItem(made, k, part) : PyTuple_SetItem(made, k, part))) Py_CLEAR(made);
  }
  return made;
}

static PyObject *build(const Function *f, PyObject *tree, const Call *call) {
  if (PyLong_Check(tree)) return Py_NewRef(call->results[PyLong_AsSsize_t(tree)]);
  switch (PyLong_AsLong(PyTuple_GetItem(tree, 0))) {
    case TREE_TUPLE:
      return build_sequence(f, tree, call, 0);
    case TREE_LIST:
      return build_sequence(f, tree, call, 1);
    case TREE_DICT:
      return build_dict(f, tree, call);
    default:
      return Py_NewRef(PyTuple_GetItem(tree, 1));
  }
}

/* Return all results as a tuple, for Python code. */
static PyObject *all_results(const Function *f, const Call *call) {
  PyObject *made = PyTuple_New(f->num_results);
  for (int k = 0; made && k < f->num_results; ++k)
    if (PyTuple_SetItem(made, k, Py_NewRef(call->results[k]))) Py_CLEAR(made);
  return made;
}

/* Call a method with the results and another object. */
static PyObject *with_results(const Function *f, const Call *call, const char *method, PyObject *other) {
  PyObject *made = all_results(f, call);
  return made ? PyObject_CallMethod(f->slow, method, "NO", made, other) : NULL;
}

/* Return the function's result. */
static PyObject *finish(const Function *f, Call *call, PyObject *out) {
  if (finish_numbers(f, call) || write_arguments(f, call)) return NULL;
  if (out && out != Py_None) return with_results(f, call, "write_out", out);
  return f->finishes ? with_results(f, call, "finish", Py_None) : build(f, f->result, call);
}
