// The same in C++.
#include <cstdio>

#include "sqrtm.h"

int main() {
  example::Sqrtm sqrtm;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 6; ++j) sqrtm.arg_a(i, j) = 1.0 / (1 + i + j) + (i == j);
  if (!sqrtm.Run()) {
    std::fprintf(stderr, "%s\n", sqrtm.error_msg().c_str());
    return 1;
  }
  for (int i = 0; i < 6; ++i) std::printf("%.6f%c", sqrtm.result0(i, i), i < 5 ? ' ' : '\n');
  std::printf("steps: %d\n", static_cast<int>(sqrtm.result1()));
  return 0;
}
