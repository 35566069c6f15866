#include "report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace muster::resnet20 {
namespace {

constexpr const char* kRule = "----------------------------------------------------------------\n";

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> text;
  const int length = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), static_cast<std::size_t>(std::min<int>(length, text.size() - 1))};
}

// With as many digits as are needed to read the same number again.
std::string number_json(double number) {
  if (!std::isfinite(number)) return "null";
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), written.ptr};
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

Speed speed_of(const std::vector<double>& seconds, double images) {
  std::vector<double> speeds;
  for (const double step : seconds) speeds.push_back(images / step);
  const double mean = mean_of(speeds);
  double squares = 0;
  for (const double speed : speeds) squares += (speed - mean) * (speed - mean);
  const auto count = static_cast<double>(speeds.size());
  const double median = median_of(speeds);
  for (double& speed : speeds) speed = std::abs(speed - median);
  return {images / mean_of(seconds), std::sqrt(squares / count) / std::sqrt(count),
          1.4826 * median_of(speeds)};
}

std::string text_of_start(const Options& options, int ranks, std::size_t images) {
  std::string text = "Model:       resnet20\n";
  text += "Dataset:     " + std::string(options.data.empty() ? "synthetic" : "cifar10") + ", " +
          std::to_string(images) + " training images\n";
  text += "Mode:        training\n";
  text += "Batch size:  " + std::to_string(std::int64_t{options.batch_size} * ranks) + " global\n";
  text += "             " + std::to_string(options.batch_size) + " per rank, on " +
          std::to_string(ranks) + (ranks == 1 ? " rank\n" : " ranks\n");
  text += "Num batches: " + std::to_string(options.num_batches) + "\n";
  text += "Optimizer:   " + std::string(to_string(options.optimizer)) + "\n==========\n";
  return text + "Step\tImg/sec\ttotal_loss\n";
}

std::string text_of(const StepLine& line) {
  return format("%" PRIu64 "\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f\n", line.step,
                line.speed.mean, line.speed.uncertainty, line.speed.jitter, line.loss);
}

std::string text_of(const Summary& summary) {
  std::string text = kRule;
  text += format("total images/sec: %.2f\n", summary.images_per_second);
  text += kRule;
  if (!std::isnan(summary.test_accuracy)) {
    text += format("test accuracy: %.2f %%\n", 100 * summary.test_accuracy);
  }
  for (std::size_t rank = 0; rank < summary.checksums.size(); ++rank) {
    text += format("rank %zu: weights checksum 0x%016" PRIx64 "\n", rank, summary.checksums[rank]);
  }
  if (!all_equal(summary.checksums)) text += "the ranks have different weights\n";
  return text;
}

std::string json_of(const StepLine& line) {
  return "{\"step\": " + std::to_string(line.step) +
         ", \"images_per_second\": " + number_json(line.speed.mean) +
         ", \"uncertainty\": " + number_json(line.speed.uncertainty) +
         ", \"jitter\": " + number_json(line.speed.jitter) +
         ", \"loss\": " + number_json(line.loss) + "}\n";
}

std::string json_of(const Summary& summary) {
  std::string checksums;
  for (const std::uint64_t checksum : summary.checksums) {
    checksums += (checksums.empty() ? "" : ", ") + format("\"0x%016" PRIx64 "\"", checksum);
  }
  return "{\"total_images_per_second\": " + number_json(summary.images_per_second) +
         ", \"test_accuracy\": " + number_json(summary.test_accuracy) +
         ", \"weights_checksums\": [" + checksums + "]}\n";
}

std::uint64_t checksum_of(const void* bytes, std::size_t count, std::uint64_t hash) {
  const auto* const begin = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ begin[i]) * 0x100000001b3;
  return hash;
}

}  // namespace muster::resnet20
