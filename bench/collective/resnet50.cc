#include "resnet50.h"

namespace bench {
namespace {

using Tensors = std::vector<std::uint64_t>;

// A convolution without bias, and the weight and bias of the batch normalisation after it. Of the
// smallest tensors, which have 64 elements, the first 11 are left out.
void add_convolution(Tensors& tensors, std::uint64_t from, std::uint64_t to, std::uint64_t width,
                     int& left_out) {
  tensors.push_back(from * to * width * width);
  for (int i = 0; i < 2; i++) {
    if (to == 64 && left_out > 0) {
      left_out--;
    } else {
      tensors.push_back(to);
    }
  }
}

}  // namespace

std::vector<std::uint64_t> resnet50_tensors() {
  Tensors tensors;
  int left_out = 11;
  add_convolution(tensors, 3, 64, 7, left_out);
  std::uint64_t channels = 64;
  std::uint64_t inner = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; block++) {
      add_convolution(tensors, channels, inner, 1, left_out);
      add_convolution(tensors, inner, inner, 3, left_out);
      add_convolution(tensors, inner, 4 * inner, 1, left_out);
      // The short cut of the first block of each stage.
      if (block == 0) add_convolution(tensors, channels, 4 * inner, 1, left_out);
      channels = 4 * inner;
    }
    inner *= 2;
  }
  return tensors;
}

}  // namespace bench
