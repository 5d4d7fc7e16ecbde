/* Calls of functions, and the module that holds them. */
#include <string.h>

#include "function.h"

static int check_written(const Function *f, const Call *call) {
  PyObject *leaves = PyTuple_New(f->num_args);
  for (int k = 0; leaves && k < f->num_args; ++k)
    if (PyTuple_SetItem(leaves, k, Py_NewRef(call->leaves[k]))) Py_CLEAR(leaves);
  PyObject *none = leaves ? PyObject_CallMethod(f->slow, "check_written", "(N)", leaves) : NULL;
  Py_XDECREF(none);
  return none ? 0 : -1;
}

static PyObject *run_call(Function *f, PyObject *const *values, PyObject *out, Call *call) {
  if (set_leaves(f, values, call) || (f->num_written && check_written(f, call))) return NULL;
  if (read_arguments(f, call) || make_results(f, call) || run_program(f, call)) return NULL;
  return finish(f, call, out);
}

static PyObject *call_function(Function *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (!f->is_bound) return PyErr_Format(PyExc_RuntimeError, "%s() is not complete: import its package", f->name);
  PyObject *values[f->num_parameters + 1], *out = NULL;
  if (set_values(f, args, nargs, kwnames, values, &out)) return NULL;
  const size_t n = (size_t)f->num_args, m = (size_t)f->num_results, on_stack = n + m <= MAX_ON_STACK ? n + m : 0;
  PyObject *objects_on_stack[2 * on_stack + 1], **objects = objects_on_stack;
  Number numbers_on_stack[on_stack + 1], *numbers = numbers_on_stack;
  void *pointers_on_stack[on_stack + 1], **pointers = pointers_on_stack, *heap = NULL;
  if (on_stack < n + m) {
    heap = PyMem_Malloc((n + m) * (2 * sizeof(*objects) + sizeof(*numbers) + sizeof(*pointers)));
    if (!heap) return PyErr_NoMemory();
    numbers = heap, pointers = (void **)(numbers + n + m), objects = (PyObject **)(pointers + n + m);
  }
  memset(objects, 0, (2 * n + m) * sizeof(*objects));
  Call call = {objects, objects + n, numbers, (const void **)pointers, objects + 2 * n, numbers + n, pointers + n};
  PyObject *result = run_call(f, values, out, &call);
  for (size_t k = 0; k < 2 * n + m; ++k) Py_XDECREF(objects[k]);
  PyMem_Free(heap);
  return result;
}

/* --- the module --- */

#define CYX_DECLARE(number, label, function, text, length_) \
  {.name = label, .run = function, .info = function##_info, .length = length_},
static Function functions[] = {CYX_AOT_FUNCTIONS(CYX_DECLARE){.name = NULL}};

#define CYX_DEFINE(number, label, function, text, length_)                                                       \
  static PyObject *call_##number(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) { \
    (void)module;                                                                                                \
    return call_function(functions + number, args, nargs, kwnames);                                              \
  }
CYX_AOT_FUNCTIONS(CYX_DEFINE)

static int set_types(ArrayType *types, const cyx_aot_array *arrays, PyObject *dtypes, int count) {
  for (int k = 0; k < count; ++k) {
    PyArray_Descr *type = NULL;
    if (!PyArray_DescrConverter(PyTuple_GetItem(dtypes, k), &type)) return -1;
    types[k] = (ArrayType){type, type->type_num, arrays[k].rank, arrays[k].dims, arrays[k].name, arrays[k].bytes};
  }
  return 0;
}

static int is_flat(const Function *f) {
  if (f->num_parameters != f->num_args) return 0;
  for (int k = 0; k < f->num_args; ++k) {
    PyObject *tree = PyTuple_GetItem(f->trees, k);
    if (!PyLong_Check(tree) || PyLong_AsLong(tree) != k) return 0;
  }
  return 1;
}

static int set_results(Function *f, PyObject *rank0, PyObject *written) {
  for (int k = 0; k < f->num_results; ++k) {
    f->rank0[k] = (char)PyLong_AsLong(PyTuple_GetItem(rank0, k));
    f->written[k] = (int)PyLong_AsLong(PyTuple_GetItem(written, k));
    f->num_written += f->written[k] >= 0;
  }
  return PyErr_Occurred() ? -1 : 0;
}

/* Complete a function: bind(number, names, trees, dtypes, result, result dtypes, rank0, written, finishes, slow). */
static PyObject *bind(PyObject *module, PyObject *args) {
  int number;
  PyObject *types, *result_types, *rank0, *written;
  Function made = {0};
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!O!O!OO!O!O!pO", &number, &PyTuple_Type, &made.names, &PyTuple_Type, &made.trees,
                        &PyTuple_Type, &types, &made.result, &PyTuple_Type, &result_types, &PyTuple_Type, &rank0,
                        &PyTuple_Type, &written, &made.finishes, &made.slow))
    return NULL;
  Function *f = functions + number;
  const cyx_aot_info *info = f->info();
  made.name = f->name, made.run = f->run, made.info = f->info, made.length = f->length;
  made.num_parameters = (int)PyTuple_Size(made.names);
  made.num_args = info->num_args, made.num_results = info->num_results;
  if (PyTuple_Size(types) != made.num_args || PyTuple_Size(result_types) != made.num_results ||
      PyTuple_Size(rank0) != made.num_results || PyTuple_Size(written) != made.num_results) {
    return PyErr_Format(PyExc_SystemError, "%s() has other arrays than its description", f->name);
  }
  made.args = PyMem_Calloc((size_t)made.num_args + 1, sizeof(ArrayType));
  made.results = PyMem_Calloc((size_t)made.num_results + 1, sizeof(ArrayType));
  made.rank0 = PyMem_Calloc((size_t)made.num_results + 1, sizeof(char));
  made.written = PyMem_Calloc((size_t)made.num_results + 1, sizeof(int));
  if (!made.args || !made.results || !made.rank0 || !made.written) return PyErr_NoMemory();
  if (set_types(made.args, info->args, types, made.num_args)) return NULL;
  if (set_types(made.results, info->results, result_types, made.num_results)) return NULL;
  if (set_results(&made, rank0, written)) return NULL;
  Py_INCREF(made.names), Py_INCREF(made.trees), Py_INCREF(made.result), Py_INCREF(made.slow);
  made.is_flat = is_flat(&made);
  made.is_bound = 1;
  *f = made;
  Py_RETURN_NONE;
}

static PyObject *set_threads(PyObject *module, PyObject *count) {
  (void)module;
  const long threads = PyLong_AsLong(count);
  if (threads == -1 && PyErr_Occurred()) return NULL;
  if (threads < 0 || threads > INT32_MAX) return PyErr_Format(PyExc_ValueError, "threads must not be negative");
  num_threads = (int32_t)threads;
  Py_RETURN_NONE;
}

#ifdef CYX_AOT_LOAD
/* Load the file of weights; return the status. */
static PyObject *load_weights(PyObject *module, PyObject *path) {
  PyObject *bytes = NULL;
  (void)module;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  const int32_t status = CYX_AOT_LOAD(PyBytes_AsString(bytes));
  Py_DECREF(bytes);
  return PyLong_FromLong(status);
}
#endif

#define CYX_METHOD(number, label, function, text, length_) \
  {label, (PyCFunction)(void (*)(void))call_##number, METH_FASTCALL | METH_KEYWORDS, text},
static PyMethodDef methods[] = {
    CYX_AOT_FUNCTIONS(CYX_METHOD){"_bind", bind, METH_VARARGS, NULL},
    {"_set_threads", set_threads, METH_O, NULL},
#ifdef CYX_AOT_LOAD
    {"_load", load_weights, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, CYX_AOT_MODULE, NULL, -1, methods, NULL, NULL, NULL, NULL};

__attribute__((visibility("default"))) PyObject *CYX_AOT_INIT(void) {
  import_array();
  return PyModule_Create(&definition);
}
