/* Functions that read the typed attributes of a call, see call.h.
 *
 *   int64_t axis;
 *   double scale = 1;
 *   cyxla_call_attrs attrs = cyxla_call_attributes(info);
 *   if (!cyxla_call_get_i64(&attrs, "axis", &axis)) return;
 *   if (cyxla_call_has(&attrs, "scale") && !cyxla_call_get_f64(&attrs, "scale", &scale)) return;
 *
 * Each returns 1, or 0 if there is no attribute of that name and type; then info->message says so, which is the error
 * of the run. What they return belongs to the program, and is valid until the function returns.
 */
#ifndef CYXLA_CALL_ATTRIBUTES_H
#define CYXLA_CALL_ATTRIBUTES_H

#include "call.h"

/* The attributes of a call, or those of a dictionary among them. */
typedef struct {
  const cyxla_call_attr *attrs;
  int64_t count;
  char *message; /* of the call */
} cyxla_call_attrs;

static inline cyxla_call_attrs cyxla_call_attributes(const cyxla_call_info *info) {
  cyxla_call_attrs found = {info->attrs, info->attr_count, info->message};
  return found;
}

static inline const cyxla_call_attr *cyxla_call_find(const cyxla_call_attrs *attrs, const char *name) {
  for (int64_t k = 0; k < attrs->count; ++k) {
    const char *a = attrs->attrs[k].name, *b = name;
    while (*a && *a == *b) ++a, ++b;
    if (*a == *b) return &attrs->attrs[k];
  }
  return 0;
}

/* Return whether there is an attribute, of any type. */
static inline int cyxla_call_has(const cyxla_call_attrs *attrs, const char *name) {
  return cyxla_call_find(attrs, name) != 0;
}

static inline const char *cyxla_call_type_name(int32_t dtype) {
  switch (dtype) {
    case CYXLA_BOOL:
      return "bool";
    case CYXLA_I8:
      return "i8";
    case CYXLA_I16:
      return "i16";
    case CYXLA_I32:
      return "i32";
    case CYXLA_I64:
      return "i64";
    case CYXLA_U8:
      return "u8";
    case CYXLA_U16:
      return "u16";
    case CYXLA_U32:
      return "u32";
    case CYXLA_U64:
      return "u64";
    case CYXLA_F16:
      return "f16";
    case CYXLA_F32:
      return "f32";
    case CYXLA_F64:
      return "f64";
    case CYXLA_BF16:
      return "bf16";
    default:
      return "another type";
  }
}

static inline int cyxla_call_append(char *message, int at, const char *text) {
  for (; *text && at < CYXLA_MESSAGE_BYTES - 1; ++text) message[at++] = *text;
  message[at] = 0;
  return at;
}

static inline int cyxla_call_describe(char *message, int at, int32_t kind, int32_t dtype) {
  switch (kind) {
    case CYXLA_CALL_STRING:
      return cyxla_call_append(message, at, "a string");
    case CYXLA_CALL_DICT:
      return cyxla_call_append(message, at, "a dictionary");
    case CYXLA_CALL_DTYPE:
      return cyxla_call_append(message, at, "a dtype");
    default:
      break;
  }
  if (kind == CYXLA_CALL_ARRAY) at = cyxla_call_append(message, at, "an array of ");
  return cyxla_call_append(message, at, cyxla_call_type_name(dtype));
}

/* Return the attribute of a name, kind and type; 0 with a message if there is none. */
static inline const cyxla_call_attr *cyxla_call_require(const cyxla_call_attrs *attrs, const char *name, int32_t kind,
                                                        int32_t dtype) {
  const cyxla_call_attr *attr = cyxla_call_find(attrs, name);
  int is_typed = kind == CYXLA_CALL_SCALAR || kind == CYXLA_CALL_ARRAY;
  if (attr && attr->kind == kind && (!is_typed || attr->dtype == dtype)) return attr;
  int at = cyxla_call_append(attrs->message, 0, "attribute ");
  at = cyxla_call_append(attrs->message, at, name);
  if (attr) {
    at = cyxla_call_append(attrs->message, at, " is ");
    at = cyxla_call_describe(attrs->message, at, attr->kind, attr->dtype);
    at = cyxla_call_append(attrs->message, at, ", not ");
  } else {
    at = cyxla_call_append(attrs->message, at, " is missing; it is to be ");
  }
  cyxla_call_describe(attrs->message, at, kind, dtype);
  return 0;
}

/* cyxla_call_get_i64(attrs, name, &value), cyxla_call_get_i64_array(attrs, name, &elements, &count) */
#define CYXLA_CALL_READERS(name_, type, number)                                                            \
  static inline int cyxla_call_get_##name_(const cyxla_call_attrs *attrs, const char *name, type *value) { \
    const cyxla_call_attr *attr = cyxla_call_require(attrs, name, CYXLA_CALL_SCALAR, number);              \
    if (attr) *value = *(const type *)attr->data;                                                          \
    return attr != 0;                                                                                      \
  }                                                                                                        \
  static inline int cyxla_call_get_##name_##_array(const cyxla_call_attrs *attrs, const char *name,        \
                                                   const type **elements, int64_t *count) {                \
    const cyxla_call_attr *attr = cyxla_call_require(attrs, name, CYXLA_CALL_ARRAY, number);               \
    if (attr) *elements = (const type *)attr->data, *count = attr->count;                                  \
    return attr != 0;                                                                                      \
  }

CYXLA_CALL_READERS(bool, uint8_t, CYXLA_BOOL)
CYXLA_CALL_READERS(i8, int8_t, CYXLA_I8)
CYXLA_CALL_READERS(i16, int16_t, CYXLA_I16)
CYXLA_CALL_READERS(i32, int32_t, CYXLA_I32)
CYXLA_CALL_READERS(i64, int64_t, CYXLA_I64)
CYXLA_CALL_READERS(u8, uint8_t, CYXLA_U8)
CYXLA_CALL_READERS(u16, uint16_t, CYXLA_U16)
CYXLA_CALL_READERS(u32, uint32_t, CYXLA_U32)
CYXLA_CALL_READERS(u64, uint64_t, CYXLA_U64)
CYXLA_CALL_READERS(f16, uint16_t, CYXLA_F16)   /* bits */
CYXLA_CALL_READERS(bf16, uint16_t, CYXLA_BF16) /* bits */
CYXLA_CALL_READERS(f32, float, CYXLA_F32)
CYXLA_CALL_READERS(f64, double, CYXLA_F64)

/* Read a text, which is zero-terminated and may hold further zero bytes. */
static inline int cyxla_call_get_string(const cyxla_call_attrs *attrs, const char *name, const char **text,
                                        int64_t *bytes) {
  const cyxla_call_attr *attr = cyxla_call_require(attrs, name, CYXLA_CALL_STRING, 0);
  if (attr) *text = (const char *)attr->data, *bytes = attr->count;
  return attr != 0;
}

/* Read a type, one of cyxla_dtype. */
static inline int cyxla_call_get_dtype(const cyxla_call_attrs *attrs, const char *name, int32_t *dtype) {
  const cyxla_call_attr *attr = cyxla_call_require(attrs, name, CYXLA_CALL_DTYPE, 0);
  if (attr) *dtype = attr->dtype;
  return attr != 0;
}

/* Read a dictionary, whose attributes are read by the same functions. */
static inline int cyxla_call_get_dict(const cyxla_call_attrs *attrs, const char *name, cyxla_call_attrs *dict) {
  const cyxla_call_attr *attr = cyxla_call_require(attrs, name, CYXLA_CALL_DICT, 0);
  if (!attr) return 0;
  dict->attrs = (const cyxla_call_attr *)attr->data;
  dict->count = attr->count;
  dict->message = attrs->message;
  return 1;
}

#endif
