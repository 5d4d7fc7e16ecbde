/* Functions of a Python module made by `cyxla aot`: NumPy arrays in and out.
 *
 * The file that includes the parts defines
 *
 *   CYX_AOT_FUNCTIONS(X)  X(number, name, its C function, signature and docstring, the length of a call) for each
 *   CYX_AOT_MODULE        name of the module, a string
 *   CYX_AOT_INIT          name of the function that makes it
 *   CYX_AOT_LOAD          function that loads the file of weights, if there is one
 */
#ifndef CYXLA_AOT_PYTHON_FUNCTION_H
#define CYXLA_AOT_PYTHON_FUNCTION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

#include "../library.h"

#define SMALL_BYTES 4096 /* larger temporaries are kept for the next call */

#define MAX_ON_STACK 1000 /* arrays whose pointers are on the stack */

/* Kinds of trees: tuples of the kind, keys or a value, children, and a description for messages. */
enum { TREE_FIXED, TREE_TUPLE, TREE_LIST, TREE_DICT, TREE_ATTRIBUTES };

/* Lengths of calls: with Python's lock, without it, without it and with interrupts. */
enum { RUN_SHORT, RUN_LONG, RUN_INTERRUPTIBLE };

/* Kinds of results without dimensions. */
enum { RANK0_ARRAY, RANK0_SCALAR, RANK0_PYTHON };

/* Room for one number. */
typedef union {
  double real;
  float single;
  int64_t integer;
  int32_t small;
  char bytes[32];
} Number;

typedef struct {
  PyArray_Descr *type;
  int type_num;
  int rank;
  const int64_t *dims;
  const char *name;
  int64_t bytes;
} ArrayType;

/* Return a reference to the type of an array. */
static inline PyArray_Descr *new_type(const ArrayType *type) {
  Py_INCREF((PyObject *)type->type);
  return type->type;
}

/* Function of the module. Trees are numbers of arrays, or tuples: the kind of container, its keys, its children. */
typedef struct {
  const char *name;
  int32_t (*run)(const void *const *args, void *const *results, const cyx_aot_run *run);
  const cyx_aot_info *(*info)(void);
  int length; /* of a call, RUN_SHORT and so on */
  int is_bound;
  int num_parameters, num_args, num_results;
  int is_flat;      /* true if each parameter is one array, and they are in order */
  PyObject *names;  /* of the parameters */
  PyObject *trees;  /* of the parameters */
  PyObject *result; /* tree of the result */
  PyObject *slow;   /* object with the methods convert, check_written, write_out, finish and fail; or None */
  int finishes;     /* true if the result needs the method finish */
  char *rank0;      /* kinds of the results */
  int *written;     /* argument that a result is written to, or -1 */
  int num_written;
  ArrayType *args, *results;
  void *temp; /* temporaries of the last call; NULL while a call uses them */
} Function;

static int32_t num_threads; /* of each call, 0: one for each processor */

/* State of a call; the caller's arrays are kept alive for its duration. */
typedef struct {
  PyObject **leaves;  /* as given: references of the call */
  PyObject **arrays;  /* converted arguments, or NULL */
  Number *numbers;    /* arguments that are numbers */
  const void **data;  /* of the arguments */
  PyObject **results; /* arrays, or NULL for numbers */
  Number *result_numbers;
  void **result_data;
} Call;

#endif
