/* The status of a call of a registered C function: an error if it has written a message, which is copied to the
 * context.
 *
 * A template: define the parameter and include it, any number of times; it undefines it.
 *   CALL_PREFIX  prefix of all names; the entry point is `prefix_status(ctx, name, message)`
 */
#include "../../abi.h"
#include "../../call.h"
#include "../../compiler.h"

static cyx_status CYX_JOIN(CALL_PREFIX, status)(const cyx_ctx *ctx, const char *name, const char *message) {
  if (!message[0]) return CYX_OK;
  char *text = ctx->message;
  int n = 0;
  for (; name[n]; ++n) text[n] = name[n];
  text[n++] = ':';
  text[n++] = ' ';
  for (int k = 0; n < CYX_MESSAGE_BYTES - 1 && k < CYXLA_MESSAGE_BYTES && message[k]; ++k) text[n++] = message[k];
  text[n] = 0;
  return CYX_INVALID_ARGUMENT;
}

#undef CALL_PREFIX
