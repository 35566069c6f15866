// The output of the training: the lines of tf_cnn_benchmarks, or one object per line for programs.
// Independent of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options.h"

namespace muster::resnet20 {

/// Images per second over the steps so far, computed as in tf_cnn_benchmarks.
struct Speed {
  double mean = 0;         // images per step, divided by the mean time of a step
  double uncertainty = 0;  // standard error of the steps' speeds
  double jitter = 0;       // 1.4826 times the median absolute deviation of the speeds
};

/// `seconds` has the time of each step and is not empty. Each step used `images` images.
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

/// The text above the lines of the steps.
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
