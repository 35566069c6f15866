#include "idx.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace muster::digits {
namespace {

using collective::Result;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;
// A digit has no larger image than this, and the products of larger sizes would overflow.
constexpr std::uint32_t kLargestSide = 4096;

std::string hex(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

std::string number(std::size_t value) {
  return std::to_string(value);
}

Result<Bytes, std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const std::string reason = std::generic_category().message(errno);
    std::error_code ignored;
    const bool zipped = std::filesystem::exists(path + ".gz", ignored);
    return "cannot open " + path + ": " + reason +
           (zipped ? " (unpack " + path + ".gz first)" : "");
  }
  Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return "cannot read " + path;
  return bytes;
}

std::uint32_t big_endian_at(const Bytes& bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[offset + i];
  return value;
}

// The sizes in the header, checked against the magic number and the length of the file.
Result<std::vector<std::uint32_t>, std::string> read_header(const std::string& path,
                                                            const Bytes& bytes,
                                                            std::uint32_t magic) {
  const std::size_t dimensions = magic & 0xff;
  const std::size_t header = 4 + 4 * dimensions;
  if (bytes.size() >= 4 && big_endian_at(bytes, 0) != magic) {
    return path + " begins with " + hex(big_endian_at(bytes, 0)) + ", not with " + hex(magic);
  }
  if (bytes.size() < header) {
    return path + " ends after " + number(bytes.size()) + " bytes, within its header of " +
           number(header);
  }
  std::vector<std::uint32_t> sizes;
  std::size_t item = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    sizes.push_back(big_endian_at(bytes, 4 + 4 * i));
    if (i == 0) continue;
    if (sizes[i] == 0 || sizes[i] > kLargestSide) {
      return path + " announces images with a side of " + number(sizes[i]) + " pixels";
    }
    item *= sizes[i];
  }
  if (sizes[0] == 0) return path + " announces no items";
  if (bytes.size() - header != sizes[0] * item) {
    return path + " has " + number(bytes.size()) + " bytes, but its header announces " +
           number(header + sizes[0] * item);
  }
  return sizes;
}

float largest_value(const ImageSet& set) {
  return static_cast<float>(*std::max_element(set.pixels.begin(), set.pixels.end()));
}

}  // namespace

Result<ImageSet, std::string> load_images(const std::string& images_path,
                                          const std::string& labels_path) {
  const Result<Bytes, std::string> images = read_file(images_path);
  if (!images) return images.error();
  const Result<Bytes, std::string> labels = read_file(labels_path);
  if (!labels) return labels.error();
  const auto sizes = read_header(images_path, *images, kImagesMagic);
  if (!sizes) return sizes.error();
  const auto count = read_header(labels_path, *labels, kLabelsMagic);
  if (!count) return count.error();
  if ((*sizes)[0] != (*count)[0]) {
    return images_path + " has " + number((*sizes)[0]) + " images, but " + labels_path + " has " +
           number((*count)[0]) + " labels";
  }
  ImageSet set{.rows = static_cast<int>((*sizes)[1]), .columns = static_cast<int>((*sizes)[2])};
  set.pixels.assign(images->begin() + 16, images->end());
  set.labels.assign(labels->begin() + 8, labels->end());
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set.labels[i] >= kClasses) {
      return labels_path + " has the label " + number(set.labels[i]) + " at item " + number(i);
    }
  }
  return set;
}

Result<Dataset, std::string> load_dataset(const std::string& folder) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  auto train = load_images(path("train-images-idx3-ubyte"), path("train-labels-idx1-ubyte"));
  if (!train) return train.error();
  auto test = load_images(path("t10k-images-idx3-ubyte"), path("t10k-labels-idx1-ubyte"));
  if (!test) return test.error();
  if (train->rows != test->rows || train->columns != test->columns) {
    return folder + " has training images of " + number(train->rows) + " x " +
           number(train->columns) + " pixels, but test images of " + number(test->rows) + " x " +
           number(test->columns);
  }
  const float largest = largest_value(*train);
  if (largest == 0) return folder + " has training images that are all black";
  return Dataset{*std::move(train), *std::move(test), 1 / largest};
}

}  // namespace muster::digits
