/* Version 1 of the interface of kernels in C, for sources that were written for it; kernel_plugin.h includes this file
 * if CYXLA_KERNEL_ABI is defined as 1. Libraries built with it are still loaded. It cannot be used together with
 * call.h, which has another cyxla_call.
 *
 * A library has a stamp, which is checked before any of its code runs, and a function that returns its contents:
 *
 *     CYXLA_KERNEL_STAMP
 *     static int32_t twice(cyxla_call *call) {
 *       const cyxla_tensor *x = &call->inputs[0];
 *       float *y = call->allocate_output(call, 0, x->rank, x->dims);
 *       if (!y) return CYXLA_FAILED;
 *       for (int64_t i = 0; i < cyxla_elements(x); ++i) y[i] = 2 * ((const float *)x->data)[i];
 *       return 0;
 *     }
 *     static const cyxla_kernel kernels[] = {{"Twice", "CPU", "T=float", 0, 0, twice}};
 *     CYXLA_KERNEL_PLUGIN(0, 0, kernels, 1)
 *
 * Kernels may be called from several threads at once. Arrays are C-contiguous; inputs must not be written.
 */
#ifndef CYXLA_KERNEL_PLUGIN_1_H
#define CYXLA_KERNEL_PLUGIN_1_H

#include <stdint.h>

#include "plugin_stamp.h"

#ifndef CYXLA_KERNEL_ABI
#define CYXLA_KERNEL_ABI 1
#endif
#define CYXLA_FAILED (-1) /* the error was reported by a callback that failed or by fail() */

typedef struct cyxla_tensor {
  const void *data;
  const int64_t *dims;
  int32_t rank;
  int32_t dtype; /* number of TensorFlow's DataType: 1 float, 2 double, 3 int32 ... */
} cyxla_tensor;

typedef struct cyxla_call cyxla_call;
struct cyxla_call {
  const cyxla_tensor *inputs;
  int32_t num_inputs, num_outputs;
  /* Uninitialised memory of an output, aligned to its elements; if it is NULL, return CYXLA_FAILED. */
  void *(*allocate_output)(cyxla_call *call, int32_t index, int32_t rank, const int64_t *dims);
  /* Report an error with one of TensorFlow's canonical codes (3 INVALID_ARGUMENT ...); returns CYXLA_FAILED. */
  int32_t (*fail)(cyxla_call *call, int32_t code, const char *message);
  /* Attributes (ints, bools and types as int64): returns 0, or CYXLA_FAILED without such an attribute. */
  int32_t (*attr_int)(cyxla_call *call, const char *name, int64_t *value);
  int32_t (*attr_float)(cyxla_call *call, const char *name, double *value);
  void *host; /* private to the host */
};

/* 0, CYXLA_FAILED, or a canonical code without a message. */
typedef int32_t (*cyxla_compute)(cyxla_call *call);

typedef struct cyxla_op {
  const char *name;      /* "ScaleRows" */
  const char *signature; /* "x: T, s: T -> y: T" */
  const char *attrs;     /* "T: {float, double}; axis: int = 0", or NULL */
  const char *doc;       /* or NULL */
} cyxla_op;

typedef struct cyxla_kernel {
  const char *op, *device;
  const char *types; /* "T=float,double; N=int32", or NULL */
  const char *label; /* or NULL */
  int32_t priority;
  cyxla_compute compute;
} cyxla_kernel;

typedef struct cyxla_plugin {
  int32_t abi, num_ops, num_kernels;
  const cyxla_op *ops;
  const cyxla_kernel *kernels;
} cyxla_plugin;

static inline int64_t cyxla_elements(const cyxla_tensor *tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  return count;
}

#define CYXLA_KERNEL_PLUGIN(ops, num_ops, kernels, num_kernels)                                \
  CYXLA_EXPORT const cyxla_plugin *cyxla_kernel_plugin(void) {                                 \
    static const cyxla_plugin plugin = {CYXLA_KERNEL_ABI, num_ops, num_kernels, ops, kernels}; \
    return &plugin;                                                                            \
  }

#endif
