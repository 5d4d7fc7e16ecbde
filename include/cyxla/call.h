/* Interface of C functions that compiled programs call, see cyxla.register_c_call.
 *
 *   void f(void **out, const void **in, const cyxla_call_info *info);
 *
 * in[k] and out[k] are the elements of an array in row-major order; info has their numbers and types. No
 * pointer may be used after the function has returned, and in[k] must not be written. The function is called without
 * Python's lock, possibly by several threads at once. To report an error, write a text to info->message.
 *
 * Fields of cyxla_call_info are only appended.
 */
#ifndef CYXLA_CALL_H
#define CYXLA_CALL_H

#ifndef CYXLA_ABI_H
#include <stdint.h>
#endif

#define CYXLA_CALL_VERSION 1
#define CYXLA_MESSAGE_BYTES 256

enum cyxla_dtype {
  CYXLA_BOOL = 1, /* a byte, 0 or 1 */
  CYXLA_I8 = 2,
  CYXLA_I16 = 3,
  CYXLA_I32 = 4,
  CYXLA_I64 = 5,
  CYXLA_U8 = 6,
  CYXLA_U16 = 7,
  CYXLA_U32 = 8,
  CYXLA_U64 = 9,
  CYXLA_F16 = 10,
  CYXLA_F32 = 11,
  CYXLA_F64 = 12,
  CYXLA_C64 = 15, /* two floats */
  CYXLA_BF16 = 16,
  CYXLA_C128 = 18 /* two doubles */
};

typedef struct {
  int32_t dtype;       /* one of cyxla_dtype, or another number for rarer types */
  int32_t rank;        /* number of dimensions */
  const int64_t *dims; /* their sizes */
  int64_t size;        /* number of elements */
} cyxla_array;

enum cyxla_call_attr_kind {
  CYXLA_CALL_SCALAR = 1,
  CYXLA_CALL_STRING = 2,
  CYXLA_CALL_ARRAY = 3,
  CYXLA_CALL_DICT = 4,
  CYXLA_CALL_DTYPE = 5
};

/* Typed attribute of a call; call_attributes.h has functions that read them. */
typedef struct {
  const char *name; /* zero-terminated */
  int32_t kind;     /* one of cyxla_call_attr_kind */
  int32_t dtype;    /* of a scalar or of the elements of an array; the value of a dtype */
  int64_t count;    /* elements of an array, bytes of a string, attributes of a dictionary */
  const void *data; /* elements, text (zero-terminated), or cyxla_call_attr of a dictionary */
} cyxla_call_attr;

typedef struct {
  uint32_t version; /* CYXLA_CALL_VERSION of the caller */
  uint32_t bytes;   /* sizeof(cyxla_call_info) of the caller */
  int32_t inputs;   /* number of arrays in `in` */
  int32_t outputs;  /* number of arrays in `out` */
  const cyxla_array *input;
  const cyxla_array *output;
  const char *opaque; /* text of the call's backend configuration, zero-terminated */
  int64_t opaque_bytes;
  char *message;                /* CYXLA_MESSAGE_BYTES zeros: a text written here becomes the error of the run */
  const cyxla_call_attr *attrs; /* typed attributes */
  int64_t attr_count;
} cyxla_call_info;

typedef void (*cyxla_call)(void **out, const void **in, const cyxla_call_info *info);

#endif
