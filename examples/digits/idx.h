// Reads images and labels from IDX files, the format of MNIST (Y. LeCun, C. Cortes, C. Burges:
// http://yann.lecun.com/exdb/mnist/): a big-endian header of a magic number and the size of each
// dimension, then unsigned bytes.
//
// Errors are one sentence with the name of the file and the wrong value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/collective/result.h"

namespace muster::digits {

inline constexpr int kClasses = 10;

/// Images of one size and their labels. Pixels stay bytes, as in the file: a batch becomes floating
/// point when it is used, which keeps 60,000 images of MNIST at 47 MB.
struct ImageSet {
  int rows = 0;
  int columns = 0;
  std::vector<std::uint8_t> pixels = {};  // image by image, row by row
  std::vector<std::uint8_t> labels = {};  // 0 .. kClasses - 1, one for each image

  std::size_t size() const { return labels.size(); }
  std::size_t pixels_per_image() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
};

struct Dataset {
  ImageSet train;
  ImageSet test;
  float scale = 1;  // brings the largest value of the training images to 1
};

/// Reads a pair of files.
collective::Result<ImageSet, std::string> load_images(const std::string& images_path,
                                                      const std::string& labels_path);

/// Reads the four files of a folder, under their names in MNIST: train-images-idx3-ubyte,
/// train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte.
collective::Result<Dataset, std::string> load_dataset(const std::string& folder);

}  // namespace muster::digits
