// What was measured of a task, on disk: a line for each moment, oldest first.
//
//   1769861696123456789 - cpu_percent=93.2 memory_bytes=104857600
//   1769861697000000000 0 epoch=3 epochs=10 loss=0.183
//
// The time in nanoseconds since the Unix epoch, the rank that reported it or '-', and the values.
// Written by the task's shim alone, and kept below kMaxMetricLog: when it is full, every second
// line of what is older than a minute is left out. A reader skips what is no such line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::engine {

inline constexpr int64_t kMaxMetricLog = 4 << 20;

/// What was measured at one time.
struct MetricSample {
  base::Time time;
  std::optional<int> rank;  ///< of those that the program reports, where it says so
  std::vector<std::pair<std::string, double>> values;

  bool operator==(const MetricSample&) const = default;
};

/// With its newline.
std::string encode_sample(const MetricSample& sample);
/// Without its newline. nullopt: it is no such line.
std::optional<MetricSample> decode_sample(std::string_view line);

/// The values that a program reports: "epoch=3 epochs=10 loss=0.183", with "rank=1" where it is one
/// of several. nullopt: it is no such text. Values that are no finite numbers are left out.
std::optional<MetricSample> reported_sample(std::string_view text, base::Time now);

/// The samples of a task, as they stand in a file; it may grow, and be made shorter at its front.
///
/// Not thread-safe.
class MetricReader {
 public:
  explicit MetricReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// All that came since the last call; `anew`: the file was written anew, and these are all that
  /// there are. A file that is not there yet has none.
  struct Read {
    std::vector<MetricSample> samples;
    bool anew = false;
  };
  base::Result<Read> read();

 private:
  std::filesystem::path file_;
  uint64_t inode_ = 0;
  int64_t offset_ = 0;
};

}  // namespace muster::engine
