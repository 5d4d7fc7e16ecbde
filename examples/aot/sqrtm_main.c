/* A NumPy function with a loop that ends when the result is good enough. */
#include <stdio.h>

#include "sqrtm.h"

int main(void) {
  double a[6][6], root[6][6];
  int64_t steps;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) a[i][j] = 1.0 / (1 + i + j) + (i == j);
  const void *const args[] = {a};
  void *const results[] = {root, &steps};
  char message[CYX_AOT_MESSAGE_BYTES];
  const cyx_aot_run run = {.size = sizeof(run), .message = message};
  if (sqrtm(args, results, &run)) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  for (int i = 0; i < 6; ++i) printf("%.6f%c", root[i][i], i < 5 ? ' ' : '\n');
  printf("steps: %d\n", (int)steps);
  return 0;
}
