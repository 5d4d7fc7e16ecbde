/* Ops and kernels of tests/core/framework/plugins, in C99: everything that the interface offers. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cyxla/kernel_plugin.h"

CYXLA_KERNEL_STAMP

/* ---- ScaleRows: shape function, state, forwarding ---- */

static int32_t scale_rows_shape(cyxla_context *c) {
  const cyxla_shape *x = &c->shapes[0], *s = &c->shapes[1];
  int64_t axis;
  CYXLA_TRY(cyxla_attr_int(c, "axis", &axis));
  CYXLA_REQUIRES(c, s->rank < 0 || s->rank == 1, CYXLA_INVALID_ARGUMENT, "s must be a vector, but its rank is %d", s->rank);
  if (x->rank < 0) return cyxla_set_shape(c, 0, -1, NULL);
  CYXLA_REQUIRES(c, axis >= -x->rank && axis < x->rank, CYXLA_INVALID_ARGUMENT, "axis %" PRId64 " of rank %d", axis, x->rank);
  int64_t dims[8];
  CYXLA_REQUIRES(c, x->rank <= 8, CYXLA_UNIMPLEMENTED, "x has %d dimensions", x->rank);
  memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
  const int32_t at = (int32_t)(axis < 0 ? axis + x->rank : axis);
  const int64_t n = cyxla_dim(s, 0);
  if (dims[at] < 0) dims[at] = n;
  CYXLA_REQUIRES(c, n < 0 || dims[at] == n, CYXLA_INVALID_ARGUMENT, "%" PRId64 " scales for %" PRId64 " slices", n, dims[at]);
  return cyxla_set_shape(c, 0, x->rank, dims);
}

typedef struct {
  int64_t axis;
} scale_rows_state;

static int32_t scale_rows_create(cyxla_context *c) {
  scale_rows_state *state = (scale_rows_state *)malloc(sizeof *state);
  CYXLA_REQUIRES(c, state, CYXLA_RESOURCE_EXHAUSTED, "out of memory");
  c->state = state;
  return cyxla_attr_int(c, "axis", &state->axis);
}

#define SCALE_ROWS(T)                                                                         \
  static int32_t scale_rows_##T(cyxla_context *c) {                                           \
    const cyxla_tensor *x = &c->inputs[0], *s = &c->inputs[1];                                \
    const int64_t axis = ((const scale_rows_state *)c->state)->axis;                          \
    const int32_t at = (int32_t)(axis < 0 ? axis + x->rank : axis);                           \
    int64_t inner = 1;                                                                        \
    for (int32_t i = at + 1; i < x->rank; ++i) inner *= x->dims[i];                           \
    T *y = (T *)cyxla_forward_or_allocate_output(c, 0, 0, x->rank, x->dims);                  \
    if (!y) return CYXLA_FAILED;                                                              \
    for (int64_t i = 0; i < x->size; ++i)                                                     \
      y[i] = ((const T *)x->data)[i] * ((const T *)s->data)[i / inner % s->size];             \
    return CYXLA_OK;                                                                          \
  }
SCALE_ROWS(float)
SCALE_ROWS(double)

/* ---- Describe: attributes of all kinds, as text ---- */

typedef struct {
  char text[4096];
  size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  w->used += (size_t)vsnprintf(w->text + w->used, sizeof w->text - w->used, format, arguments);
  va_end(arguments);
}

static void put_shape(writer *w, const cyxla_shape *s) {
  put(w, "%d:", s->rank);
  for (int32_t i = 0; i < s->rank; ++i) put(w, "%" PRId64 ",", s->dims[i]);
}

static void put_tensor(writer *w, const cyxla_tensor *t) {
  const cyxla_shape shape = {t->dims, t->rank};
  put(w, "%d/", t->dtype);
  put_shape(w, &shape);
  for (int64_t i = 0; i < t->size; ++i) {
    if (t->dtype == CYXLA_DT_STRING) put(w, "%s,", ((const cyxla_string *)t->data)[i].data);
    if (t->dtype == CYXLA_DT_FLOAT) put(w, "%g,", (double)((const float *)t->data)[i]);
  }
}

static int32_t put_attr(cyxla_context *c, writer *w, const char *name) {
  const cyxla_attr *a = cyxla_find_attr(c, name);
  CYXLA_REQUIRES(c, a, CYXLA_NOT_FOUND, "no %s", name);
  put(w, "%s=%s", name, a->is_list ? "[" : "");
  for (int64_t i = 0; i < a->count; ++i) {
    if (i) put(w, "; ");
    if (a->kind == CYXLA_ATTR_FLOAT) put(w, "%g", ((const double *)a->values)[i]);
    if (a->kind == CYXLA_ATTR_INT || a->kind == CYXLA_ATTR_BOOL || a->kind == CYXLA_ATTR_TYPE)
      put(w, "%" PRId64, ((const int64_t *)a->values)[i]);
    if (a->kind == CYXLA_ATTR_STRING || a->kind == CYXLA_ATTR_FUNC) {
      const cyxla_string *s = &((const cyxla_string *)a->values)[i];
      put(w, "%s/%" PRId64, s->data, s->size);
    }
    if (a->kind == CYXLA_ATTR_SHAPE) put_shape(w, &((const cyxla_shape *)a->values)[i]);
    if (a->kind == CYXLA_ATTR_TENSOR) put_tensor(w, &((const cyxla_tensor *)a->values)[i]);
  }
  put(w, "%s\n", a->is_list ? "]" : "");
  return CYXLA_OK;
}

static int32_t describe(cyxla_context *c) {
  static const char *const names[] = {"i", "f", "b", "s", "t", "h", "v", "li", "lf", "lb", "ls", "lt", "lh", "lv"};
  writer w = {{0}, 0};
  for (size_t k = 0; k < sizeof names / sizeof *names; ++k) CYXLA_TRY(put_attr(c, &w, names[k]));
  put(&w, "%s %s", c->node->op, c->node->name);
  const cyxla_string text = {w.text, (int64_t)w.used};
  return cyxla_set_strings(c, 0, 0, NULL, &text);
}

/* Each getter once: the sum of what it returns, or its error. */
static int32_t get(cyxla_context *c) {
  cyxla_string kind, name;
  CYXLA_TRY(cyxla_attr_string(c, "kind", &kind));
  CYXLA_TRY(cyxla_attr_string(c, "which", &name));
  double sum = 0;
  int64_t count = 1;
#define GET(NAME, type, expression)                                      \
  if (strcmp(kind.data, #NAME) == 0) {                                   \
    type v;                                                              \
    CYXLA_TRY(cyxla_attr_##NAME(c, name.data, &v));                      \
    sum += (double)(expression);                                         \
  }                                                                      \
  if (strcmp(kind.data, #NAME "s") == 0) {                               \
    const type *vs;                                                      \
    CYXLA_TRY(cyxla_attr_##NAME##s(c, name.data, &vs, &count));          \
    for (int64_t i = 0; i < count; ++i) {                                \
      const type v = vs[i];                                              \
      sum += (double)(expression);                                       \
    }                                                                    \
  }
  GET(int, int64_t, v)
  GET(float, double, v)
  GET(bool, int64_t, v)
  GET(type, int64_t, v)
  GET(string, cyxla_string, v.size)
  GET(shape, cyxla_shape, v.rank)
  GET(tensor, cyxla_tensor, v.size)
  double *y = (double *)cyxla_allocate_output(c, 0, -1, NULL);
  if (!y) return CYXLA_FAILED;
  *y = sum;
  return CYXLA_OK;
}

/* ---- Tally: the state of a kernel, and how often states were destroyed ---- */

static int destroyed;

typedef struct {
  int64_t runs, step;
} tally_state;

static int32_t tally_create(cyxla_context *c) {
  int64_t step;
  CYXLA_TRY(cyxla_attr_int(c, "step", &step));
  CYXLA_REQUIRES(c, step > 0, CYXLA_INVALID_ARGUMENT, "step is %" PRId64, step);
  tally_state *state = (tally_state *)calloc(1, sizeof *state);
  CYXLA_REQUIRES(c, state, CYXLA_RESOURCE_EXHAUSTED, "out of memory");
  state->step = step;
  c->state = state;
  return CYXLA_OK;
}

static void tally_destroy(void *state) {
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
  free(state);
}

static int32_t tally(cyxla_context *c) {
  tally_state *state = (tally_state *)c->state;
  int64_t *y = (int64_t *)cyxla_allocate_output(c, 0, 0, NULL);
  if (!y) return CYXLA_FAILED;
  *y = __atomic_add_fetch(&state->runs, state->step, __ATOMIC_SEQ_CST);
  return CYXLA_OK;
}

static int32_t count_destroyed(cyxla_context *c) {
  int64_t *y = (int64_t *)cyxla_allocate_output(c, 0, 0, NULL);
  if (!y) return CYXLA_FAILED;
  *y = __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST);
  return CYXLA_OK;
}

/* ---- Delayed: an asynchronous kernel ---- */

typedef struct {
  cyxla_context *c;
  cyxla_done done;
  int64_t mode;
} delayed_run;

static int32_t delayed_compute(cyxla_context *c, int64_t mode) {
  CYXLA_REQUIRES(c, mode != 1, CYXLA_UNAVAILABLE, "the other thread fails");
  if (mode == 2) return CYXLA_ABORTED;
  const cyxla_tensor *x = &c->inputs[0];
  int64_t *y = (int64_t *)cyxla_allocate_output(c, 0, x->rank, x->dims);
  if (!y) return CYXLA_FAILED;
  for (int64_t i = 0; i < x->size; ++i) y[i] = ((const int64_t *)x->data)[i] + 1;
  return CYXLA_OK;
}

static void *delayed_thread(void *argument) {
  delayed_run run = *(delayed_run *)argument;
  const struct timespec pause = {0, 2000000};
  free(argument);
  if (run.mode != 4) nanosleep(&pause, NULL);
  if (run.mode == 5)
    while (!cyxla_is_cancelled(run.c)) nanosleep(&pause, NULL);
  run.done(run.c, run.mode == 5 ? CYXLA_CANCELLED : delayed_compute(run.c, run.mode));
  return NULL;
}

static void delayed(cyxla_context *c, cyxla_done done) {
  int64_t mode;
  if (cyxla_attr_int(c, "mode", &mode)) {
    done(c, CYXLA_FAILED);
    return;
  }
  if (mode == 3) { /* at once, on this thread */
    done(c, delayed_compute(c, mode));
    return;
  }
  delayed_run *run = (delayed_run *)malloc(sizeof *run);
  pthread_t thread;
  run->c = c, run->done = done, run->mode = mode;
  if (pthread_create(&thread, NULL, delayed_thread, run) != 0) {
    free(run);
    done(c, CYXLA_FAIL(c, CYXLA_RESOURCE_EXHAUSTED, "no thread"));
    return;
  }
  pthread_detach(thread);
}

/* ---- Accumulate: a resource ---- */

static int accumulators;

typedef struct {
  pthread_mutex_t lock;
  int64_t total;
} accumulator;

static int32_t accumulator_create(cyxla_context *c, void *argument, void **value) {
  CYXLA_REQUIRES(c, *(const int64_t *)argument >= 0, CYXLA_OUT_OF_RANGE, "an accumulator cannot begin with a negative number");
  accumulator *made = (accumulator *)calloc(1, sizeof *made);
  CYXLA_REQUIRES(c, made, CYXLA_RESOURCE_EXHAUSTED, "out of memory");
  pthread_mutex_init(&made->lock, NULL);
  __atomic_add_fetch(&accumulators, 1, __ATOMIC_SEQ_CST);
  *value = made;
  return CYXLA_OK;
}

static void accumulator_destroy(void *value) {
  __atomic_sub_fetch(&accumulators, 1, __ATOMIC_SEQ_CST);
  free(value);
}

static int32_t accumulate(cyxla_context *c) {
  cyxla_string container, name, mode;
  void *found = NULL;
  int64_t x = *(const int64_t *)c->inputs[0].data;
  CYXLA_TRY(cyxla_attr_string(c, "container", &container));
  CYXLA_TRY(cyxla_attr_string(c, "shared_name", &name));
  CYXLA_TRY(cyxla_attr_string(c, "mode", &mode));
  const char *type = "tests.Accumulator";
  if (strcmp(mode.data, "add") == 0)
    CYXLA_TRY(cyxla_lookup_or_create_resource(c, container.data, name.data, type, accumulator_create, &x,
                                              accumulator_destroy, &found));
  if (strcmp(mode.data, "lookup") == 0) CYXLA_TRY(cyxla_lookup_resource(c, container.data, name.data, type, &found));
  if (strcmp(mode.data, "variable") == 0)
    CYXLA_TRY(cyxla_lookup_resource(c, container.data, name.data, "Var", &found));
  if (strcmp(mode.data, "delete") == 0) CYXLA_TRY(cyxla_delete_resource(c, container.data, name.data, type));
  if (strcmp(mode.data, "outlive") == 0) { /* the value outlives its name until the end of the call */
    CYXLA_TRY(cyxla_lookup_resource(c, container.data, name.data, type, &found));
    CYXLA_TRY(cyxla_delete_resource(c, container.data, name.data, type));
    found = NULL;
  }
  if (strcmp(mode.data, "create") == 0) {
    CYXLA_TRY(accumulator_create(c, &x, &found));
    if (cyxla_create_resource(c, container.data, name.data, type, found, accumulator_destroy)) {
      accumulator_destroy(found);
      return CYXLA_FAILED;
    }
  }
  int64_t *y = (int64_t *)cyxla_allocate_output(c, 0, 0, NULL);
  if (!y) return CYXLA_FAILED;
  *y = __atomic_load_n(&accumulators, __ATOMIC_SEQ_CST);
  if (found) {
    accumulator *a = (accumulator *)found;
    pthread_mutex_lock(&a->lock);
    *y = a->total += x;
    pthread_mutex_unlock(&a->lock);
  }
  return CYXLA_OK;
}

static int32_t accumulator_handle(cyxla_context *c) {
  return cyxla_set_handle(c, 0, "", "handled", "tests.Accumulator");
}

static int32_t name_of_handle(cyxla_context *c) {
  const cyxla_handle *handle = (const cyxla_handle *)c->inputs[0].data;
  const cyxla_string text[2] = {{handle->name, (int64_t)strlen(handle->name)},
                                {handle->type, (int64_t)strlen(handle->type)}};
  const int64_t dims[] = {2};
  return cyxla_set_strings(c, 0, 1, dims, text);
}

/* ---- Forward: says whether the memory of the input was reused ---- */

static int32_t forward(cyxla_context *c) {
  const cyxla_tensor *x = &c->inputs[0];
  const float *from = (const float *)x->data;
  const int64_t size = x->size;
  float *y = (float *)cyxla_forward_input(c, 0, 0, 1, &size);
  CYXLA_REQUIRES(c, !y || !cyxla_forward_input(c, 0, 2, 1, &size), CYXLA_INTERNAL, "two outputs share their memory");
  if (!cyxla_allocate_output(c, 2, 0, NULL)) return CYXLA_FAILED;
  int32_t *reused = (int32_t *)cyxla_allocate_output(c, 1, 0, NULL);
  if (!reused) return CYXLA_FAILED;
  *reused = y != NULL;
  if (!y) y = (float *)cyxla_allocate_output(c, 0, 1, &size);
  if (!y) return CYXLA_FAILED;
  for (int64_t i = 0; i < size; ++i) y[i] = from[i] + 1;
  return CYXLA_OK;
}

/* ---- Join: strings ---- */

static int32_t join(cyxla_context *c) {
  const cyxla_tensor *a = &c->inputs[0], *b = &c->inputs[1];
  CYXLA_REQUIRES(c, a->size == b->size, CYXLA_INVALID_ARGUMENT, "%" PRId64 " and %" PRId64 " strings", a->size, b->size);
  cyxla_string *rows = (cyxla_string *)malloc(sizeof *rows * (size_t)(a->size + 1));
  for (int64_t i = 0; i < a->size; ++i) {
    const cyxla_string *x = (const cyxla_string *)a->data + i, *y = (const cyxla_string *)b->data + i;
    char *text = (char *)malloc((size_t)(x->size + y->size + 1));
    memcpy(text, x->data, (size_t)x->size);
    memcpy(text + x->size, y->data, (size_t)y->size);
    rows[i].data = text, rows[i].size = x->size + y->size;
  }
  const int32_t status = cyxla_set_strings(c, 0, a->rank, a->dims, rows);
  for (int64_t i = 0; i < a->size; ++i) free((char *)rows[i].data);
  free(rows);
  return status;
}

/* ---- Fill: a shape that depends on a value ---- */

static int32_t fill_shape(cyxla_context *c) {
  cyxla_shape shape;
  CYXLA_TRY(cyxla_input_as_shape(c, 0, &shape));
  return cyxla_set_shape(c, 0, shape.rank, shape.dims);
}

static int32_t fill(cyxla_context *c) {
  const cyxla_tensor *dims = &c->inputs[0];
  float *y = (float *)cyxla_allocate_output(c, 0, -1, NULL);
  if (!y) return CYXLA_FAILED;
  int64_t size = 1;
  for (int64_t i = 0; i < dims->size; ++i) size *= ((const int32_t *)dims->data)[i];
  for (int64_t i = 0; i < size; ++i) y[i] = *(const float *)c->inputs[1].data;
  return CYXLA_OK;
}

static int32_t repeat_shape(cyxla_context *c) {
  cyxla_tensor n;
  int64_t size = -1;
  const int32_t known = cyxla_constant_input(c, 1, &n);
  if (known < 0) return CYXLA_FAILED;
  if (known) size = *(const int32_t *)n.data;
  return cyxla_set_shape(c, 0, 1, &size);
}

static int32_t repeat(cyxla_context *c) {
  float *y = (float *)cyxla_allocate_output(c, 0, -1, NULL);
  if (!y) return CYXLA_FAILED;
  for (int32_t i = 0; i < *(const int32_t *)c->inputs[1].data; ++i) y[i] = *(const float *)c->inputs[0].data;
  return CYXLA_OK;
}

/* ---- Copy: every type of plain data; Lists: arguments that are lists ---- */

static int32_t copy(cyxla_context *c) {
  const cyxla_tensor *x = &c->inputs[0];
  void *y = cyxla_allocate_output(c, 0, -1, NULL);
  if (!y) return CYXLA_FAILED;
  memcpy(y, x->data, (size_t)(x->size * cyxla_type_size(x->dtype)));
  return CYXLA_OK;
}

static int32_t lists(cyxla_context *c) {
  const cyxla_node *node = c->node;
  const int32_t xs = cyxla_input_index(c, "xs"), ys = cyxla_input_index(c, "ys");
  const int32_t sums = cyxla_output_index(c, "sums"), types = cyxla_output_index(c, "types");
  CYXLA_REQUIRES(c, cyxla_input_index(c, "zs") == -1, CYXLA_INTERNAL, "there is no zs");
  for (int32_t k = 0; k < node->input_args[0].count; ++k) {
    float *y = (float *)cyxla_allocate_output(c, sums + k, 0, NULL);
    if (!y) return CYXLA_FAILED;
    *y = 0;
    for (int64_t i = 0; i < c->inputs[xs + k].size; ++i) *y += ((const float *)c->inputs[xs + k].data)[i];
  }
  const int64_t count = node->input_args[1].count;
  int32_t *dtypes = (int32_t *)cyxla_allocate_output(c, types, 1, &count);
  if (!dtypes) return CYXLA_FAILED;
  for (int64_t i = 0; i < count; ++i) dtypes[i] = node->input_args[1].is_list ? c->inputs[ys + i].dtype : -1;
  return CYXLA_OK;
}

/* ---- Misuse: errors ---- */

static int32_t misuse(cyxla_context *c) {
  int64_t mode, i;
  double f;
  const int64_t three = 3, negative = -2;
  CYXLA_TRY(cyxla_attr_int(c, "mode", &mode));
  switch (mode) {
    case 0:
      return cyxla_allocate_output(c, 0, 1, &three) ? CYXLA_OK : CYXLA_FAILED; /* line of case 0 */
    case 1:
      return cyxla_allocate_output(c, 7, 0, NULL) ? CYXLA_OK : CYXLA_FAILED; /* line of case 1 */
    case 2:
      return CYXLA_ABORTED;
    case 3:
      return CYXLA_FAILED;
    case 4:
      return cyxla_set_shape(c, 0, 0, NULL); /* line of case 4 */
    case 5:
      return cyxla_attr_float(c, "mode", &f); /* line of case 5 */
    case 6:
      return cyxla_attr_int(c, "unheard", &i); /* line of case 6 */
    case 7:
      return CYXLA_OK; /* without an output */
    case 8:
      return CYXLA_FAIL(c, CYXLA_DATA_LOSS, "%s %d", "lost", 8); /* line of case 8 */
    case 9:
      return cyxla_allocate_output(c, 0, 1, &negative) ? CYXLA_OK : CYXLA_FAILED; /* line of case 9 */
    case 10:
      return cyxla_set_handle(c, 0, "", "h", "H"); /* line of case 10 */
    default:
      return cyxla_allocate_temp(c, CYXLA_DT_STRING, 1, &three) ? CYXLA_OK : CYXLA_FAILED; /* line of case 11 */
  }
}

/* ---- XLA kernels: modules as text, and a call of a function in this file ---- */

static void module_dims(char *text, size_t bytes, const cyxla_shape *s) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t i = 0; i < s->rank; ++i)
    used += (size_t)snprintf(text + used, bytes - used, "%" PRId64 "x", s->dims[i]);
}

static int32_t scale_rows_emit(cyxla_context *c) {
  char x[256], s[256], text[2048];
  int64_t axis;
  const char *T = c->node->input_types[0] == CYXLA_DT_FLOAT ? "f32" : "f64";
  CYXLA_TRY(cyxla_attr_int(c, "axis", &axis));
  module_dims(x, sizeof x, &c->shapes[0]);
  module_dims(s, sizeof s, &c->shapes[1]);
  snprintf(text, sizeof text,
           "func.func @main(%%x: tensor<%s%s>, %%s: tensor<%s%s>) -> tensor<%s%s> {\n"
           "  %%0 = stablehlo.broadcast_in_dim %%s, dims = [%" PRId64 "] : (tensor<%s%s>) -> tensor<%s%s>\n"
           "  %%1 = stablehlo.multiply %%x, %%0 : tensor<%s%s>\n"
           "  return %%1 : tensor<%s%s>\n}\n",
           x, T, s, T, x, T, axis < 0 ? axis + c->shapes[0].rank : axis, s, T, x, T, x, T, x, T);
  return cyxla_emit_module(c, text);
}

static int32_t affine_emit(cyxla_context *c) {
  int64_t mode;
  char text[1024];
  CYXLA_TRY(cyxla_attr_int(c, "mode", &mode));
  CYXLA_REQUIRES(c, c->shapes[0].rank == 1, CYXLA_UNIMPLEMENTED, "rank %d", c->shapes[0].rank);
  const int64_t n = c->shapes[0].dims[0];
  const char *T = mode == 1 ? "f64" : "f32";
  if (mode == 2) return CYXLA_OK; /* emits nothing */
  snprintf(text, sizeof text,
           "HloModule affine\nENTRY e {\n  x = %s[%" PRId64 "] parameter(0)\n  y = %s[%" PRId64 "] add(x, x)\n"
           "  ROOT t = (%s[%" PRId64 "], %s[%" PRId64 "]) tuple(y, x)\n}\n",
           T, n, T, n, T, n, T, n);
  if (mode == 3) strcpy(text, "HloModule affine ENTRY e { x = nonsense }");
  if (mode == 4) snprintf(text, sizeof text, "ENTRY e { ROOT x = f32[%" PRId64 "] parameter(0) }", n);
  return cyxla_emit_module(c, text);
}

static int32_t affine(cyxla_context *c) {
  const cyxla_tensor *x = &c->inputs[0];
  for (int32_t k = 0; k < 2; ++k) {
    float *y = (float *)cyxla_allocate_output(c, k, x->rank, x->dims);
    if (!y) return CYXLA_FAILED;
    for (int64_t i = 0; i < x->size; ++i) y[i] = (float)(2 - k) * ((const float *)x->data)[i];
  }
  return CYXLA_OK;
}

static void power_call(void **out, const void **in, const cyxla_call_info *info) {
  const int n = atoi(info->opaque);
  if (n > 9) {
    snprintf(info->message, CYXLA_MESSAGE_BYTES, "the power %d is too high", n);
    return;
  }
  for (int64_t i = 0; i < info->input[0].size; ++i) {
    float y = 1;
    for (int k = 0; k < n; ++k) y *= ((const float *)in[0])[i];
    ((float *)out[0])[i] = y;
  }
}

static int32_t power_emit(cyxla_context *c) {
  int64_t n;
  char opaque[32];
  CYXLA_TRY(cyxla_attr_int(c, "n", &n));
  snprintf(opaque, sizeof opaque, "%" PRId64, n);
  return cyxla_emit_call(c, "tests.power", power_call, opaque, (int64_t)strlen(opaque), 0);
}

static int32_t power(cyxla_context *c) {
  int64_t n;
  const cyxla_tensor *x = &c->inputs[0];
  CYXLA_TRY(cyxla_attr_int(c, "n", &n));
  float *y = (float *)cyxla_allocate_output(c, 0, x->rank, x->dims);
  if (!y) return CYXLA_FAILED;
  for (int64_t i = 0; i < x->size; ++i) {
    y[i] = 1;
    for (int64_t k = 0; k < n; ++k) y[i] *= ((const float *)x->data)[i];
  }
  return CYXLA_OK;
}

static int32_t repeat_emit(cyxla_context *c) {
  cyxla_tensor n;
  char text[512];
  const int32_t known = cyxla_constant_input(c, 1, &n);
  CYXLA_REQUIRES(c, known == 1, CYXLA_INTERNAL, "n is a compile-time constant");
  snprintf(text, sizeof text,
           "ENTRY e { x = f32[] parameter(0) n = s32[] parameter(1) ROOT y = f32[%d] broadcast(x), dimensions={} }",
           *(const int32_t *)n.data);
  return cyxla_emit_module(c, text);
}

/* ---- tables ---- */

static const cyxla_op ops[] = {
    {.name = "CScaleRows",
     .signature = "x: T, s: T -> y: T",
     .attrs = "T: {float, double}; axis: int = 0",
     .doc = "Multiply slices.\n\naxis: Dimension of the slices.",
     .shape = scale_rows_shape},
    {.name = "CDescribe",
     .signature = "-> y: string",
     .attrs = "i: int = -7; f: float = 0.5; b: bool = true; s: string = 'a;b'; t: type = DT_INT64; "
              "h: shape = { unknown_rank: true }; v: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 }; "
              "li: list(int) = []; lf: list(float) = [1.5, -2.0]; lb: list(bool) = [true, false]; "
              "ls: list(string) = ['', 'xyz']; lt: list(type) = [DT_FLOAT, DT_STRING]; "
              "lh: list(shape) = []; lv: list(tensor) = []",
     .shape = cyxla_scalar_shape,
     .flags = CYXLA_OP_STATEFUL},
    {.name = "CGet",
     .signature = "-> y: double",
     .attrs = "kind: string; which: string; i: int = 3; f: float = 0.5; b: bool = true; s: string = 'four'; t: type = "
              "DT_INT64; h: shape = { dim { size: 2 } dim { size: -1 } }; v: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 5 } } float_val: 1 }; "
              "li: list(int) = [1, 2]; lf: list(float) = [1.5, -2.0]; lb: list(bool) = [true, true]; "
              "ls: list(string) = ['', 'xyz']; lt: list(type) = [DT_FLOAT, DT_STRING]; lh: list(shape) = []; "
              "lv: list(tensor) = []",
     .shape = cyxla_scalar_shape},
    {.name = "CTally", .signature = "-> y: int64", .attrs = "step: int = 1", .flags = CYXLA_OP_STATEFUL},
    {.name = "CDestroyed", .signature = "-> y: int64", .flags = CYXLA_OP_STATEFUL},
    {.name = "CDelayed", .signature = "x: int64 -> y: int64", .attrs = "mode: int = 0", .shape = cyxla_unchanged_shape},
    {.name = "CAccumulate",
     .signature = "x: int64 -> y: int64",
     .attrs = "container: string = ''; shared_name: string = 'acc'; mode: string = 'add'",
     .shape = cyxla_scalar_shape,
     .flags = CYXLA_OP_STATEFUL},
    {.name = "CAccumulatorHandle", .signature = "-> y: resource", .flags = CYXLA_OP_STATEFUL},
    {.name = "CNameOfHandle", .signature = "x: resource -> y: string"},
    {.name = "CForward", .signature = "x: float -> y: float, reused: int32, other: float"},
    {.name = "CJoin", .signature = "a: string, b: string -> y: string", .shape = cyxla_unchanged_shape},
    {.name = "CFill", .signature = "dims: int32, value: float -> y: float", .shape = fill_shape},
    {.name = "CRepeat", .signature = "x: float, n: int32 -> y: float", .shape = repeat_shape},
    {.name = "CCopy", .signature = "x: T -> y: T", .attrs = "T: type", .shape = cyxla_unchanged_shape},
    {.name = "CLists",
     .signature = "xs: N * float, ys: Ts -> sums: N * float, types: int32",
     .attrs = "N: int >= 0; Ts: list(type) >= 0"},
    {.name = "CMisuse", .signature = "-> y: float", .attrs = "mode: int", .shape = cyxla_scalar_shape, .flags = CYXLA_OP_STATEFUL},
    {.name = "CAffine", .signature = "x: float -> twice: float, same: float", .attrs = "mode: int = 0", .shape = cyxla_unchanged_shape},
    {.name = "CPower", .signature = "x: float -> y: float", .attrs = "n: int = 3", .shape = cyxla_unchanged_shape},
};

static const cyxla_kernel kernels[] = {
    {.op = "CScaleRows", .device = "CPU", .types = "T=float", .compute = scale_rows_float, .create = scale_rows_create, .destroy = free},
    {.op = "CScaleRows", .device = "CPU", .types = "T=double", .compute = scale_rows_double, .create = scale_rows_create, .destroy = free},
    {.op = "CDescribe", .device = "CPU", .compute = describe},
    {.op = "CGet", .device = "CPU", .compute = get},
    {.op = "CTally", .device = "CPU", .compute = tally, .create = tally_create, .destroy = tally_destroy},
    {.op = "CDestroyed", .device = "CPU", .compute = count_destroyed},
    {.op = "CDelayed", .device = "CPU", .compute_async = delayed},
    {.op = "CAccumulate", .device = "CPU", .compute = accumulate},
    {.op = "CAccumulatorHandle", .device = "CPU", .compute = accumulator_handle},
    {.op = "CNameOfHandle", .device = "CPU", .compute = name_of_handle},
    {.op = "CForward", .device = "CPU", .compute = forward},
    {.op = "CJoin", .device = "CPU", .compute = join},
    {.op = "CFill", .device = "CPU", .compute = fill, .host_memory = "dims"},
    {.op = "CRepeat", .device = "CPU", .compute = repeat},
    {.op = "CCopy", .device = "CPU", .compute = copy},
    {.op = "CLists", .device = "CPU", .compute = lists},
    {.op = "CMisuse", .device = "CPU", .compute = misuse},
    {.op = "CAffine", .device = "CPU", .compute = affine},
    {.op = "CPower", .device = "CPU", .compute = power},
};

static const cyxla_xla_kernel xla_kernels[] = {
    {.op = "CScaleRows", .types = "T=float,double", .emit = scale_rows_emit},
    {.op = "CAffine", .emit = affine_emit},
    {.op = "CPower", .emit = power_emit},
    {.op = "CRepeat", .constants = "n", .emit = repeat_emit},
};

#define COUNT(rows) (int32_t)(sizeof rows / sizeof *rows)
CYXLA_KERNEL_PLUGIN(ops, COUNT(ops), kernels, COUNT(kernels), xla_kernels, COUNT(xla_kernels))
