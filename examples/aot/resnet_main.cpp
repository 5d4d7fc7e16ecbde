// The same in C++, with the image in memory of the caller.
#include <cstdio>
#include <vector>

#include "resnet.h"

int main() {
  std::vector<float> image(example::ResNet::arg0_count());
  for (std::size_t k = 0; k < image.size(); ++k) image[k] = static_cast<float>(k % 17) / 17;
  example::ResNet net(example::ResNet::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  net.set_arg0_data(image.data());
  for (int k = 0; k < 3; ++k) {
    net.set_threads(k);
    if (!net.Run()) return 1;
    for (int i = 0; i < 10; ++i) std::printf("%.4f%c", net.result0(0, i), i < 9 ? ' ' : '\n');
  }
  return 0;
}
