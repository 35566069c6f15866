// What was measured of a task, on disk: a line for each moment, oldest first.
//
//   1769861696123456789 - cpu_percent=93.2 memory_bytes=104857600
//   1769861697000000000 0 epoch=3 epochs=10 loss=0.183
//
// The time in nanoseconds since the Unix epoch, the rank that reported it or '-', and the values.
// Written by the task's shim alone (shim/metric_writer.h), and kept below kMaxMetricLog: when it is
// full, what is older than a minute is thinned evenly, and the file written anew. A reader skips
// what is no such line.
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
/// of several; commas may stand between them. nullopt: it is no such text. Values that are no
/// finite numbers are left out; where none remains, the sample has none.
std::optional<MetricSample> reported_sample(std::string_view text, base::Time now);

/// The samples of a task, as they stand in a file; it may grow, and be made shorter at its front.
///
/// Not thread-safe.
class MetricReader {
 public:
  explicit MetricReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// What came since the last call; `anew`: the file was written anew, and these are all that there
  /// are. A file that is not there yet has none.
  struct Read {
    std::vector<MetricSample> samples;
    bool anew = false;
    bool more = false;  ///< there is more than was asked for
  };
  /// `most`: of bytes, for whoever must not wait for all of a large file at once; longer than any
  /// line.
  base::Result<Read> read(int64_t most = kMaxMetricLog);

 private:
  std::filesystem::path file_;
  int64_t offset_ = 0;
  std::string last_;  ///< the bytes before offset_: others there mean another file
};

}  // namespace muster::engine
