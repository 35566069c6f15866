#include "images.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

namespace muster::resnet20 {
namespace {

using collective::Result;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kRecord = 1 + kPixels;
constexpr int kMostFiles = 100;

// The mean of each channel of CIFAR-10's training images, as a fraction of 255, and the deviation.
constexpr std::array<float, kChannels> kMean = {0.4914F, 0.4822F, 0.4465F};
constexpr std::array<float, kChannels> kDeviation = {0.2470F, 0.2435F, 0.2616F};

Result<Bytes, std::string> read_file(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) return path + " is a folder";
  std::ifstream file(path, std::ios::binary);
  if (!file) return "cannot open " + path + ": " + std::generic_category().message(errno);
  Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return "cannot read " + path;
  return bytes;
}

// Adds the images of a file to `set`. Returns an error, or an empty text.
std::string take_file(const std::string& path, ImageSet& set) {
  const Result<Bytes, std::string> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (bytes->empty() || bytes->size() % kRecord != 0) {
    return path + " has " + std::to_string(bytes->size()) +
           " bytes, which is not a multiple of the image size of " + std::to_string(kRecord) +
           " bytes (the binary version of CIFAR-10 is required)";
  }
  for (std::size_t at = 0; at < bytes->size(); at += kRecord) {
    const std::uint8_t label = (*bytes)[at];
    if (label >= kClasses) {
      return path + " has the label " + std::to_string(label) + " at image " +
             std::to_string(at / kRecord) + "; the classes are 0 to " +
             std::to_string(kClasses - 1);
    }
    set.labels.push_back(label);
    const auto pixels = bytes->begin() + static_cast<std::ptrdiff_t>(at) + 1;
    set.pixels.insert(set.pixels.end(), pixels, pixels + static_cast<std::ptrdiff_t>(kPixels));
  }
  return "";
}

ImageSet made(std::size_t count, const std::vector<std::uint8_t>& patterns,
              std::mt19937_64& random) {
  ImageSet set;
  set.pixels.reserve(count * kPixels);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(i % kClasses);
    set.labels.push_back(label);
    const std::uint8_t* const pattern = patterns.data() + label * kPixels;
    for (std::size_t p = 0; p < kPixels; p += 8) {
      // Uses eight bytes of noise at a time.
      std::uint64_t noise = random();
      for (std::size_t j = p; j < p + 8; ++j, noise >>= 8) {
        set.pixels.push_back(static_cast<std::uint8_t>((pattern[j] + 3 * (noise & 0xff)) / 4));
      }
    }
  }
  return set;
}

}  // namespace

Result<Dataset, std::vector<std::string>> load_cifar(const std::string& folder) {
  const auto batch = [&](int i) { return folder + "/data_batch_" + std::to_string(i) + ".bin"; };
  Dataset data;
  std::vector<std::string> faults;
  const auto take = [&](const std::string& path, ImageSet& set) {
    std::string fault = take_file(path, set);
    if (!fault.empty()) faults.push_back(std::move(fault));
  };
  std::error_code failed;
  int files = 1;
  while (files < kMostFiles && std::filesystem::exists(batch(files + 1), failed)) ++files;
  for (int i = 1; i <= files; ++i) take(batch(i), data.train);
  take(folder + "/test_batch.bin", data.test);
  if (!faults.empty()) return faults;
  return data;
}

Dataset synthetic_images(std::size_t train, std::size_t test, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> patterns(kClasses * kPixels);
  for (std::uint8_t& value : patterns) value = static_cast<std::uint8_t>(random());
  ImageSet training = made(train, patterns, random);
  return {std::move(training), made(test, patterns, random)};
}

void fill_batch(const ImageSet& set, std::span<const std::uint64_t> samples, float* pixels,
                std::int64_t* labels) {
  constexpr std::size_t kPlane = kPixels / kChannels;
  for (const std::uint64_t sample : samples) {
    *labels++ = set.labels[sample];
    const std::uint8_t* from = set.pixels.data() + sample * kPixels;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const float slope = 1 / (255 * kDeviation[channel]);
      const float shift = -kMean[channel] / kDeviation[channel];
      for (std::size_t i = 0; i < kPlane; ++i)
        *pixels++ = static_cast<float>(*from++) * slope + shift;
    }
  }
}

}  // namespace muster::resnet20
