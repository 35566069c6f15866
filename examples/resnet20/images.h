// The training images: CIFAR-10 in its binary version (A. Krizhevsky, "Learning multiple layers of
// features from tiny images", 2009; https://www.cs.toronto.edu/~kriz/cifar.html), or synthetic
// images. Independent of torch.
//
// Errors are one sentence for each invalid file, with the wrong value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"

namespace muster::resnet20 {

inline constexpr int kClasses = 10;
inline constexpr int kSide = 32;
inline constexpr int kChannels = 3;
inline constexpr std::size_t kPixels = std::size_t{kChannels} * kSide * kSide;

/// Pixels stay bytes, as in the files: a batch becomes floating point when it is used.
struct ImageSet {
  std::vector<std::uint8_t> pixels = {};  // image by image: all red, all green, all blue, by rows
  std::vector<std::uint8_t> labels = {};  // 0 .. kClasses - 1, one for each image

  std::size_t size() const { return labels.size(); }
};

struct Dataset {
  ImageSet train;
  ImageSet test;  // may be empty
};

/// Reads data_batch_1.bin and so on (as many as exist, numbered from 1) and test_batch.bin of a
/// folder. A file contains whole images, each one byte of label and 3072 bytes of pixels. CIFAR's
/// own files have 10,000 images.
collective::Result<Dataset, std::vector<std::string>> load_cifar(const std::string& folder);

/// Images that can be learned: a pattern for each class, with noise. Equal for equal seeds.
Dataset synthetic_images(std::size_t train, std::size_t test, std::uint64_t seed);

/// Fills `pixels` (kPixels for each sample, channel by channel) with values of mean 0 and deviation
/// 1 over CIFAR's training images, and `labels`.
void fill_batch(const ImageSet& set, std::span<const std::uint64_t> samples, float* pixels,
                std::int64_t* labels);

}  // namespace muster::resnet20
