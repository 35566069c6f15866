// How the training is shown: the lines of tf_cnn_benchmarks, or an object a line for programs.
// Knows nothing of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options.h"

namespace muster::resnet20 {

/// Images per second over the steps so far, as tf_cnn_benchmarks counts them.
struct Speed {
  double mean = 0;         // images of a step over the mean time of one
  double uncertainty = 0;  // standard error of the steps' speeds
  double jitter = 0;       // 1.4826 times their median deviation from the median
};

/// `seconds` of each step, not empty, in each of which `images` were learned from.
Speed speed_of(const std::vector<double>& seconds, double images);

struct StepLine {
  std::uint64_t step;
  Speed speed;
  double loss;
};

struct Summary {
  double images_per_second;
  double test_accuracy;                  // NaN: there were no test images
  std::vector<std::uint64_t> checksums;  // of the weights, by rank
};

/// What stands above the steps.
std::string text_of_start(const Options& options, int ranks, std::size_t images);

std::string text_of(const StepLine& line);
std::string text_of(const Summary& summary);
std::string json_of(const StepLine& line);
std::string json_of(const Summary& summary);

/// FNV-1a, 64 bits, continued from `hash` (G. Fowler, L. C. Noll, K.-P. Vo).
inline constexpr std::uint64_t kChecksumStart = 0xcbf29ce484222325;
std::uint64_t checksum_of(const void* bytes, std::size_t count,
                          std::uint64_t hash = kChecksumStart);

}  // namespace muster::resnet20
