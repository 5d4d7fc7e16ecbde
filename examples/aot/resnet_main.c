/* A residual network in the threads of the library, with memory that the caller keeps. */
#include <stdio.h>
#include <stdlib.h>

#include "resnet.h"

int main(void) {
  static float image[32 * 32 * 3];
  float scores[10];
  for (int k = 0; k < 32 * 32 * 3; ++k) image[k] = (float)(k % 17) / 17;
  const void *const args[] = {image};
  void *const results[] = {scores};
  cyx_aot_run run = {.size = sizeof(run)};
  run.temp = aligned_alloc(64, (size_t)(resnet_info()->temp_bytes + 63) / 64 * 64);
  for (int k = 0; k < 3; ++k) {
    run.threads = k; /* all processors, this thread alone, two threads: the same bits */
    const int status = resnet(args, results, &run);
    if (status) return status;
    for (int i = 0; i < 10; ++i) printf("%.4f%c", scores[i], i < 9 ? ' ' : '\n');
  }
  free(run.temp);
  return 0;
}
