/* A graph with variables: the weights are in the library, the counter is an argument and a result. */
#include <stdio.h>

#include "classifier.h"

int main(void) {
  float x[4][8], calls = 0, probabilities[4][3], new_calls;
  for (int k = 0; k < 32; ++k) x[k / 8][k % 8] = (float)(k % 5) - 2;
  const void *const args[] = {x, &calls};
  void *const results[] = {probabilities, &new_calls};
  char message[CYX_AOT_MESSAGE_BYTES];
  const cyx_aot_run run = {.size = sizeof(run), .message = message};
  for (int k = 0; k < 3; ++k) {
    if (classifier(args, results, &run)) {
      fprintf(stderr, "%s\n", message);
      return 1;
    }
    calls = new_calls;
  }
  for (int i = 0; i < 4; ++i) printf("%.4f %.4f %.4f\n", probabilities[i][0], probabilities[i][1], probabilities[i][2]);
  printf("calls: %g\n", calls);
  return 0;
}
