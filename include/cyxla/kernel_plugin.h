/* Interface, version 2, of libraries of ops and kernels in C, which cyxla finds by name (libcyxlakernel*.so) or loads
 * from a path. kernel_plugin.hpp builds classes of C++ on it; docs/plugins.md has a longer example.
 *
 *     CYXLA_KERNEL_STAMP
 *     static int32_t twice_shape(cyxla_context *c) {
 *       return cyxla_set_shape(c, 0, c->shapes[0].rank, c->shapes[0].dims);
 *     }
 *     static int32_t twice(cyxla_context *c) {
 *       const cyxla_tensor *x = &c->inputs[0];
 *       float *y = (float *)cyxla_allocate_output(c, 0, x->rank, x->dims);
 *       if (!y) return CYXLA_FAILED;
 *       for (int64_t i = 0; i < x->size; ++i) y[i] = 2 * ((const float *)x->data)[i];
 *       return CYXLA_OK;
 *     }
 *     static const cyxla_op ops[] = {
 *         {.name = "Twice", .signature = "x: T -> y: T", .attrs = "T: {float}", .shape = twice_shape}};
 *     static const cyxla_kernel kernels[] = {
 *         {.op = "Twice", .device = "CPU", .types = "T=float", .compute = twice}};
 *     CYXLA_KERNEL_PLUGIN(ops, 1, kernels, 1, NULL, 0)
 *
 * Functions return CYXLA_OK, CYXLA_FAILED, or an error code without a message. CYXLA_FAILED says that the error is
 * recorded: by CYXLA_FAIL or CYXLA_REQUIRES, or by a function of this file that failed. Errors name the line that
 * called.
 *
 * Kernels may be called from several threads at once. Arrays are C-contiguous; inputs must not be written. A context
 * and all that it points to may be used until its function returns, that of an asynchronous kernel until it calls
 * `done`.
 */
#ifndef CYXLA_KERNEL_PLUGIN_H
#define CYXLA_KERNEL_PLUGIN_H

#ifndef CYXLA_KERNEL_ABI
#define CYXLA_KERNEL_ABI 2
#endif

#if CYXLA_KERNEL_ABI == 1
#include "kernel_plugin_1.h"
#else

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "plugin_stamp.h"

/* Results of functions: 0, -1, or one of TensorFlow's canonical codes. */
enum cyxla_code {
  CYXLA_FAILED = -1,
  CYXLA_OK = 0,
  CYXLA_CANCELLED = 1,
  CYXLA_UNKNOWN = 2,
  CYXLA_INVALID_ARGUMENT = 3,
  CYXLA_DEADLINE_EXCEEDED = 4,
  CYXLA_NOT_FOUND = 5,
  CYXLA_ALREADY_EXISTS = 6,
  CYXLA_PERMISSION_DENIED = 7,
  CYXLA_RESOURCE_EXHAUSTED = 8,
  CYXLA_FAILED_PRECONDITION = 9,
  CYXLA_ABORTED = 10,
  CYXLA_OUT_OF_RANGE = 11,
  CYXLA_UNIMPLEMENTED = 12,
  CYXLA_INTERNAL = 13,
  CYXLA_UNAVAILABLE = 14,
  CYXLA_DATA_LOSS = 15,
  CYXLA_UNAUTHENTICATED = 16
};

/* Types of elements: numbers of TensorFlow's DataType. */
enum cyxla_type {
  CYXLA_DT_FLOAT = 1,
  CYXLA_DT_DOUBLE = 2,
  CYXLA_DT_INT32 = 3,
  CYXLA_DT_UINT8 = 4,
  CYXLA_DT_INT16 = 5,
  CYXLA_DT_INT8 = 6,
  CYXLA_DT_STRING = 7, /* cyxla_string */
  CYXLA_DT_COMPLEX64 = 8,
  CYXLA_DT_INT64 = 9,
  CYXLA_DT_BOOL = 10, /* a byte, 0 or 1 */
  CYXLA_DT_QINT8 = 11,
  CYXLA_DT_QUINT8 = 12,
  CYXLA_DT_QINT32 = 13,
  CYXLA_DT_BFLOAT16 = 14,
  CYXLA_DT_QINT16 = 15,
  CYXLA_DT_QUINT16 = 16,
  CYXLA_DT_UINT16 = 17,
  CYXLA_DT_COMPLEX128 = 18,
  CYXLA_DT_HALF = 19,
  CYXLA_DT_RESOURCE = 20, /* cyxla_handle */
  CYXLA_DT_UINT32 = 22,
  CYXLA_DT_UINT64 = 23
};

/* Bytes of an element; 0 for other types. */
static inline int64_t cyxla_type_size(int32_t dtype) {
  static const int8_t sizes[] = {0, 4, 8, 4, 1, 2, 1, 16, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 32, 0, 4, 8};
  return dtype >= 0 && dtype < 24 ? sizes[dtype] : dtype >= 24 && dtype <= 33 ? 1 : 0;
}

typedef struct cyxla_string {
  const char *data; /* any bytes; a zero follows them */
  int64_t size;
} cyxla_string;

typedef struct cyxla_handle {
  const char *device, *container, *name, *type; /* of a resource */
} cyxla_handle;

typedef struct cyxla_shape {
  const int64_t *dims; /* -1 for an unknown size */
  int32_t rank;        /* -1 if it is unknown */
} cyxla_shape;

typedef struct cyxla_tensor {
  const void *data; /* elements of the type, see cyxla_type; aligned to their size */
  const int64_t *dims;
  int64_t size; /* number of elements */
  int32_t rank;
  int32_t dtype; /* cyxla_type, or the number of another type of TensorFlow */
} cyxla_tensor;

/* Kinds of attributes, and the elements that `values` points to. */
enum cyxla_attr_kind {
  CYXLA_ATTR_ANY = 0,    /* an empty list whose kind is not known */
  CYXLA_ATTR_STRING = 1, /* cyxla_string */
  CYXLA_ATTR_INT = 2,    /* int64_t */
  CYXLA_ATTR_FLOAT = 3,  /* double */
  CYXLA_ATTR_BOOL = 4,   /* int64_t, 0 or 1 */
  CYXLA_ATTR_TYPE = 5,   /* int64_t, a cyxla_type */
  CYXLA_ATTR_SHAPE = 6,  /* cyxla_shape */
  CYXLA_ATTR_TENSOR = 7, /* cyxla_tensor */
  CYXLA_ATTR_FUNC = 8    /* cyxla_string, the name of a function */
};

typedef struct cyxla_attr {
  const char *name;
  const void *values;
  int64_t count; /* number of values: 1 unless it is a list */
  int32_t kind;
  int32_t is_list;
} cyxla_attr;

/* An argument of the op: one value, or a list of them, among all inputs or outputs. */
typedef struct cyxla_arg {
  const char *name;
  int32_t start, count, is_list;
} cyxla_arg;

typedef struct cyxla_node {
  const char *name, *op, *device; /* the name and device are empty in shape functions */
  const cyxla_attr *attrs;
  const cyxla_arg *input_args, *output_args;
  const int32_t *input_types, *output_types; /* lists are flattened */
  int32_t num_attrs, num_input_args, num_output_args;
  int32_t num_inputs, num_outputs;
} cyxla_node;

typedef struct cyxla_host cyxla_host;

/* Argument of all functions of a library. */
typedef struct cyxla_context {
  const cyxla_host *host;
  const cyxla_node *node;
  const cyxla_tensor *inputs; /* values of the inputs, for `compute`; else NULL */
  const cyxla_shape *shapes;  /* shapes of the inputs, for shape functions and XLA kernels; else NULL */
  void *state;                /* set by `create`, for `compute` */
  const void *data;           /* `data` of the row in the table */
  const char *file;           /* last line that called a function of this file */
  int32_t line;
} cyxla_context;

typedef int32_t (*cyxla_function)(cyxla_context *c);
typedef void (*cyxla_done)(cyxla_context *c, int32_t status);
typedef void (*cyxla_destructor)(void *value);
typedef int32_t (*cyxla_resource_creator)(cyxla_context *c, void *argument, void **value);

/* Functions of cyxla; those below are shorter. They are only appended. */
struct cyxla_host {
  uint32_t bytes; /* sizeof(cyxla_host) of the host */
  uint32_t abi;
  int32_t (*fail)(cyxla_context *c, int32_t code, const char *message);
  void *(*allocate_output)(cyxla_context *c, int32_t index, int32_t rank, const int64_t *dims);
  void *(*allocate_temp)(cyxla_context *c, int32_t dtype, int32_t rank, const int64_t *dims);
  void *(*forward_input)(cyxla_context *c, int32_t input, int32_t output, int32_t rank, const int64_t *dims);
  int32_t (*set_strings)(cyxla_context *c, int32_t index, int32_t rank, const int64_t *dims,
                         const cyxla_string *values);
  int32_t (*set_handle)(cyxla_context *c, int32_t index, const char *container, const char *name, const char *type);
  int32_t (*output_required)(cyxla_context *c, int32_t index);
  int32_t (*is_cancelled)(cyxla_context *c);
  int32_t (*lookup_resource)(cyxla_context *c, const char *container, const char *name, const char *type, void **value);
  int32_t (*lookup_or_create_resource)(cyxla_context *c, const char *container, const char *name, const char *type,
                                       cyxla_resource_creator create, void *argument, cyxla_destructor destroy,
                                       void **value);
  int32_t (*create_resource)(cyxla_context *c, const char *container, const char *name, const char *type, void *value,
                             cyxla_destructor destroy);
  int32_t (*delete_resource)(cyxla_context *c, const char *container, const char *name, const char *type);
  int32_t (*set_shape)(cyxla_context *c, int32_t index, int32_t rank, const int64_t *dims);
  int32_t (*constant_input)(cyxla_context *c, int32_t index, cyxla_tensor *value);
  int32_t (*input_as_shape)(cyxla_context *c, int32_t index, cyxla_shape *shape);
  int32_t (*emit_module)(cyxla_context *c, const char *text);
  int32_t (*emit_call)(cyxla_context *c, const char *target, cyxla_call function, const char *opaque,
                       int64_t opaque_bytes, int32_t has_side_effect);
};

/* ---- tables of a library; fields that are not set are zero ---- */

enum cyxla_op_flags {
  CYXLA_OP_STATEFUL = 1, /* has state or side effects: never folded, merged or removed */
  CYXLA_OP_COMMUTATIVE = 2,
  CYXLA_OP_AGGREGATE = 4,
  CYXLA_OP_ALLOWS_UNINITIALIZED_INPUT = 8
};

typedef struct cyxla_op {
  const char *name;      /* "ScaleRows" */
  const char *signature; /* "x: T, s: T -> y: T" */
  const char *attrs;     /* "T: {float, double}; axis: int = 0", or NULL */
  const char *doc;       /* summary, description, "name: text" for arguments and attributes; or NULL */
  cyxla_function shape;  /* shape function; NULL: shapes are unknown */
  uint32_t flags;        /* cyxla_op_flags */
  const void *data;
} cyxla_op;

typedef struct cyxla_kernel {
  const char *op, *device; /* "ScaleRows", "CPU" */
  const char *types;       /* "T=float,double; N=int32", or NULL */
  const char *label;       /* or NULL */
  int32_t priority;
  cyxla_function compute;
  void (*compute_async)(cyxla_context *c, cyxla_done done); /* in place of compute; calls `done` once, on any thread */
  cyxla_function create;                                    /* reads attributes and sets c->state, once for each node */
  cyxla_destructor destroy;                                 /* is passed the state when no node needs it any more */
  const char *host_memory;                                  /* "axis; shape": arguments in host memory, or NULL */
  const void *data;
} cyxla_kernel;

/* Kernel that compiles the op: it calls cyxla_emit_module or cyxla_emit_call. */
typedef struct cyxla_xla_kernel {
  const char *op;
  const char *types;     /* as for kernels */
  const char *constants; /* "axis; shape": inputs that must be known when the op is compiled, or NULL */
  cyxla_function emit;
  const void *data;
} cyxla_xla_kernel;

typedef struct cyxla_plugin {
  int32_t abi;
  int32_t num_ops, num_kernels, num_xla_kernels;
  uint32_t op_bytes, kernel_bytes, xla_kernel_bytes; /* sizes of the rows, to which later versions append */
  const cyxla_op *ops;
  const cyxla_kernel *kernels;
  const cyxla_xla_kernel *xla_kernels;
} cyxla_plugin;

#ifdef __cplusplus
extern "C" {
#endif

#define CYXLA_KERNEL_PLUGIN(ops, num_ops, kernels, num_kernels, xla_kernels, num_xla_kernels)                    \
  CYXLA_EXPORT const cyxla_plugin *cyxla_kernel_plugin(void);                                                    \
  const cyxla_plugin *cyxla_kernel_plugin(void) {                                                                \
    static const cyxla_plugin plugin = {                                                                         \
        CYXLA_KERNEL_ABI,         num_ops, num_kernels, num_xla_kernels, sizeof(cyxla_op), sizeof(cyxla_kernel), \
        sizeof(cyxla_xla_kernel), ops,     kernels,     xla_kernels};                                            \
    return &plugin;                                                                                              \
  }

/* ---- errors ---- */

/* The context, after it has noted the line. */
#define CYXLA_AT(c) ((c)->file = __FILE__, (c)->line = __LINE__, (c))

/* return CYXLA_FAIL(c, CYXLA_INVALID_ARGUMENT, "axis is %d", axis); */
#define CYXLA_FAIL(c, ...) cyxla_fail_(CYXLA_AT(c), __VA_ARGS__)

/* CYXLA_REQUIRES(c, rank > 0, CYXLA_INVALID_ARGUMENT, "x must not be a scalar"); */
#define CYXLA_REQUIRES(c, condition, ...)                           \
  do {                                                              \
    if (!(condition)) return cyxla_fail_(CYXLA_AT(c), __VA_ARGS__); \
  } while (0)

/* CYXLA_TRY(cyxla_attr_int(c, "axis", &axis)); */
#define CYXLA_TRY(call)                                  \
  do {                                                   \
    const int32_t cyxla_status_ = (call);                \
    if (cyxla_status_ != CYXLA_OK) return cyxla_status_; \
  } while (0)

__attribute__((format(printf, 3, 4))) static inline int32_t cyxla_fail_(cyxla_context *c, int32_t code,
                                                                        const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return c->host->fail(c, code, message);
}

/* ---- the node ---- */

static inline const cyxla_attr *cyxla_find_attr(const cyxla_context *c, const char *name) {
  for (int32_t i = 0; i < c->node->num_attrs; ++i)
    if (strcmp(c->node->attrs[i].name, name) == 0) return &c->node->attrs[i];
  return NULL;
}

/* Index of the first value of an input or output by its name; -1 if there is none. */
static inline int32_t cyxla_index_(const cyxla_arg *args, int32_t count, const char *name) {
  for (int32_t i = 0; i < count; ++i)
    if (strcmp(args[i].name, name) == 0) return args[i].start;
  return -1;
}

static inline int32_t cyxla_input_index(const cyxla_context *c, const char *name) {
  return cyxla_index_(c->node->input_args, c->node->num_input_args, name);
}

static inline int32_t cyxla_output_index(const cyxla_context *c, const char *name) {
  return cyxla_index_(c->node->output_args, c->node->num_output_args, name);
}

static inline const char *cyxla_kind_name_(int32_t kind) {
  static const char *const names[] = {"any", "string", "int", "float", "bool", "type", "shape", "tensor", "func"};
  return kind >= 0 && kind < 9 ? names[kind] : "unknown";
}

static inline const void *cyxla_attr_values_(cyxla_context *c, const char *name, int32_t kind, int32_t is_list,
                                             int64_t *count) {
  const cyxla_attr *attr = cyxla_find_attr(c, name);
  if (attr == NULL) {
    cyxla_fail_(c, CYXLA_NOT_FOUND, "the node has no attribute '%s'", name);
    return NULL;
  }
  if (attr->is_list != is_list || (attr->kind != kind && (attr->kind != CYXLA_ATTR_ANY || attr->count))) {
    cyxla_fail_(c, CYXLA_INVALID_ARGUMENT,
                is_list ? "the attribute '%s' is %s%s, not a list(%s)" : "the attribute '%s' is %s%s, not %s", name,
                attr->is_list ? "a list of " : "", cyxla_kind_name_(attr->kind), cyxla_kind_name_(kind));
    return NULL;
  }
  if (count) *count = attr->count;
  return attr->values;
}

/* cyxla_attr_int(c, "axis", &axis) and cyxla_attr_ints(c, "axes", &axes, &count), for each kind. */
#define CYXLA_ATTR_GETTERS_(name, KIND, type)                                                          \
  static inline int32_t cyxla_attr_##name##_(cyxla_context *c, const char *attr, type *value) {        \
    const void *found = cyxla_attr_values_(c, attr, KIND, 0, NULL);                                    \
    if (found == NULL) return CYXLA_FAILED;                                                            \
    *value = *(const type *)found;                                                                     \
    return CYXLA_OK;                                                                                   \
  }                                                                                                    \
  static inline int32_t cyxla_attr_##name##s_(cyxla_context *c, const char *attr, const type **values, \
                                              int64_t *count) {                                        \
    const void *found = cyxla_attr_values_(c, attr, KIND, 1, count);                                   \
    if (found == NULL) return CYXLA_FAILED;                                                            \
    *values = (const type *)found;                                                                     \
    return CYXLA_OK;                                                                                   \
  }

CYXLA_ATTR_GETTERS_(int, CYXLA_ATTR_INT, int64_t)
CYXLA_ATTR_GETTERS_(float, CYXLA_ATTR_FLOAT, double)
CYXLA_ATTR_GETTERS_(bool, CYXLA_ATTR_BOOL, int64_t)
CYXLA_ATTR_GETTERS_(type, CYXLA_ATTR_TYPE, int64_t)
CYXLA_ATTR_GETTERS_(string, CYXLA_ATTR_STRING, cyxla_string)
CYXLA_ATTR_GETTERS_(shape, CYXLA_ATTR_SHAPE, cyxla_shape)
CYXLA_ATTR_GETTERS_(tensor, CYXLA_ATTR_TENSOR, cyxla_tensor)

#define cyxla_attr_int(c, name, value) cyxla_attr_int_(CYXLA_AT(c), name, value)
#define cyxla_attr_float(c, name, value) cyxla_attr_float_(CYXLA_AT(c), name, value)
#define cyxla_attr_bool(c, name, value) cyxla_attr_bool_(CYXLA_AT(c), name, value)
#define cyxla_attr_type(c, name, value) cyxla_attr_type_(CYXLA_AT(c), name, value)
#define cyxla_attr_string(c, name, value) cyxla_attr_string_(CYXLA_AT(c), name, value)
#define cyxla_attr_shape(c, name, value) cyxla_attr_shape_(CYXLA_AT(c), name, value)
#define cyxla_attr_tensor(c, name, value) cyxla_attr_tensor_(CYXLA_AT(c), name, value)
#define cyxla_attr_ints(c, name, values, count) cyxla_attr_ints_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_floats(c, name, values, count) cyxla_attr_floats_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_bools(c, name, values, count) cyxla_attr_bools_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_types(c, name, values, count) cyxla_attr_types_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_strings(c, name, values, count) cyxla_attr_strings_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_shapes(c, name, values, count) cyxla_attr_shapes_(CYXLA_AT(c), name, values, count)
#define cyxla_attr_tensors(c, name, values, count) cyxla_attr_tensors_(CYXLA_AT(c), name, values, count)

/* ---- kernels ---- */

/* Uninitialised memory of an output; NULL after an error. The rank -1 asks for the shape that the op's shape function
 * gives. If the library has a shape function for the op, another shape than that is an error. */
#define cyxla_allocate_output(c, index, rank, dims) (c)->host->allocate_output(CYXLA_AT(c), index, rank, dims)

/* Uninitialised memory until the end of the call; NULL after an error. */
#define cyxla_allocate_temp(c, dtype, rank, dims) (c)->host->allocate_temp(CYXLA_AT(c), dtype, rank, dims)

/* The memory of an input, which becomes that of an output, with a new shape, if nobody else needs it and the types and
 * sizes agree; else NULL, without an error. The rank -1 keeps the shape of the input. */
#define cyxla_forward_input(c, input, output, rank, dims) \
  (c)->host->forward_input(CYXLA_AT(c), input, output, rank, dims)

/* The same, or new memory. */
#define cyxla_forward_or_allocate_output(c, input, output, rank, dims) \
  cyxla_forward_or_allocate_output_(CYXLA_AT(c), input, output, rank, dims)

static inline void *cyxla_forward_or_allocate_output_(cyxla_context *c, int32_t input, int32_t output, int32_t rank,
                                                      const int64_t *dims) {
  void *data = c->host->forward_input(c, input, output, rank, dims);
  if (data == NULL && rank < 0) rank = c->inputs[input].rank, dims = c->inputs[input].dims;
  return data ? data : c->host->allocate_output(c, output, rank, dims);
}

/* Set an output of strings, which are copied. */
#define cyxla_set_strings(c, index, rank, dims, values) (c)->host->set_strings(CYXLA_AT(c), index, rank, dims, values)

/* Set an output to the handle of a resource, a scalar. */
#define cyxla_set_handle(c, index, container, name, type) \
  (c)->host->set_handle(CYXLA_AT(c), index, container, name, type)

/* 1 if an output has users; others may stay unset. */
#define cyxla_output_required(c, index) (c)->host->output_required(CYXLA_AT(c), index)

/* 1 if the step has failed or was cancelled: a long computation should end. */
#define cyxla_is_cancelled(c) (c)->host->is_cancelled(CYXLA_AT(c))

/* ---- resources: values that outlive a step, by container, name and type ----
 *
 * The session owns them; `destroy` is called when one was deleted, or its session closed, and no call uses it any more.
 * A value that a call looked up may be used until the end of the call. The container NULL or "" is the default one. The
 * type is a name such as "mylib.Counter", under which one library stores one type of values. */

/* NOT_FOUND if there is none. */
#define cyxla_lookup_resource(c, container, name, type, value) \
  (c)->host->lookup_resource(CYXLA_AT(c), container, name, type, value)

/* The value, made by `create` if there is none; calls on other threads wait for it. */
#define cyxla_lookup_or_create_resource(c, container, name, type, create, argument, destroy, value) \
  (c)->host->lookup_or_create_resource(CYXLA_AT(c), container, name, type, create, argument, destroy, value)

/* ALREADY_EXISTS if there is one; the caller then keeps the value. */
#define cyxla_create_resource(c, container, name, type, value, destroy) \
  (c)->host->create_resource(CYXLA_AT(c), container, name, type, value, destroy)

/* NOT_FOUND if there is none. */
#define cyxla_delete_resource(c, container, name, type) (c)->host->delete_resource(CYXLA_AT(c), container, name, type)

/* ---- shape functions, and XLA kernels ---- */

/* Set the shape of an output; sizes of -1 and a rank of -1 are unknown. In an XLA kernel, the shape of a result of the
 * call to emit. */
#define cyxla_set_shape(c, index, rank, dims) (c)->host->set_shape(CYXLA_AT(c), index, rank, dims)

/* Get the value of an input: 1 if it is known, 0 if it is not, or CYXLA_FAILED. */
#define cyxla_constant_input(c, index, value) (c)->host->constant_input(CYXLA_AT(c), index, value)

/* Get the shape that an input holds, unknown sizes where its values are. */
#define cyxla_input_as_shape(c, index, shape) (c)->host->input_as_shape(CYXLA_AT(c), index, shape)

/* A size of a shape, from the end for a negative index; -1 if it is unknown. */
static inline int64_t cyxla_dim(const cyxla_shape *shape, int32_t index) {
  if (index < 0) index += shape->rank;
  return shape->rank < 0 || index < 0 || index >= shape->rank ? -1 : shape->dims[index];
}

/* A shape function: the shape of the first input is that of all outputs. */
static inline int32_t cyxla_unchanged_shape(cyxla_context *c) {
  for (int32_t i = 0; i < c->node->num_outputs; ++i)
    CYXLA_TRY(c->host->set_shape(CYXLA_AT(c), i, c->shapes[0].rank, c->shapes[0].dims));
  return CYXLA_OK;
}

/* A shape function: all outputs are scalars. */
static inline int32_t cyxla_scalar_shape(cyxla_context *c) {
  for (int32_t i = 0; i < c->node->num_outputs; ++i) CYXLA_TRY(c->host->set_shape(CYXLA_AT(c), i, 0, NULL));
  return CYXLA_OK;
}

/* Compile the op to a module in the text of HLO or StableHLO, with a parameter for each input of the node, in order, of
 * its type and shape, and a result for each output (in HLO, a tuple of several). */
#define cyxla_emit_module(c, text) (c)->host->emit_module(CYXLA_AT(c), text)

/* Compile the op to a call of a C function with the interface of call.h, which gets all inputs and sets all outputs.
 * The shapes of the outputs, which must be fully known, are those of cyxla_set_shape, else of the op's shape function.
 * The target is a name for the function that no other function has, such as "mylib.scale_rows"; opaque is text in
 * UTF-8. */
#define cyxla_emit_call(c, target, function, opaque, opaque_bytes, has_side_effect) \
  (c)->host->emit_call(CYXLA_AT(c), target, function, opaque, opaque_bytes, has_side_effect)

#ifdef __cplusplus
}
#endif

#endif
#endif
