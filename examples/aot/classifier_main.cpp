// The same in C++: a run gives the counter its new value.
#include <cstdio>

#include "classifier.h"

int main() {
  example::Classifier net;
  for (int k = 0; k < 32; ++k) net.arg_x(k / 8, k % 8) = static_cast<float>(k % 5) - 2;
  net.var_calls() = 0;
  for (int k = 0; k < 3; ++k) {
    if (!net.Run()) {
      std::fprintf(stderr, "%s\n", net.error_msg().c_str());
      return 1;
    }
  }
  for (int i = 0; i < 4; ++i)
    std::printf("%.4f %.4f %.4f\n", net.result0(i, 0), net.result0(i, 1), net.result0(i, 2));
  std::printf("calls: %g\n", net.var_calls());
  return 0;
}
