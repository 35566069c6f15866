// The metrics of a task on disk: a line for each sample, oldest first.
//
//   1769861696123456789 - cpu_percent=93.2 memory_bytes=104857600
//   1769861697000000000 0 epoch=3 epochs=10 loss=0.183
//
// A line has the time in nanoseconds since the Unix epoch, the rank that reported it or '-', and
// the values. Only the task's shim writes the file (shim/task_metrics.h) and keeps it below
// kMaxMetricLog: when it is full, samples older than a minute are thinned evenly and the file is
// rewritten. A reader skips malformed lines.
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

/// The values of one time.
struct MetricSample {
  base::Time time;
  std::optional<int> rank;  ///< the rank that reported the values, if given
  std::vector<std::pair<std::string, double>> values;

  bool operator==(const MetricSample&) const = default;
};

/// The line, including its newline.
std::string encode_sample(const MetricSample& sample);
/// Parses a line without its newline. nullopt: it is malformed.
std::optional<MetricSample> decode_sample(std::string_view line);

/// Parses the values that a program reports: "epoch=3 epochs=10 loss=0.183", with "rank=1" if the
/// program has several ranks; commas may separate them. nullopt: malformed. Values that are not
/// finite numbers are left out; the result may be empty.
std::optional<MetricSample> reported_sample(std::string_view text, base::Time now);

/// Reads the samples of a file that may grow and may be rewritten.
///
/// Not thread-safe.
class MetricReader {
 public:
  explicit MetricReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// The samples since the last call. `anew`: the file was rewritten, and these are all its
  /// samples. A missing file has no samples.
  struct Read {
    std::vector<MetricSample> samples;
    bool anew = false;
    bool more = false;  ///< more samples follow
  };
  /// `most`: the limit in bytes, so that a large file can be read in several calls; must be longer
  /// than any line.
  base::Result<Read> read(int64_t most = kMaxMetricLog);

 private:
  std::filesystem::path file_;
  int64_t offset_ = 0;
  std::string last_;  ///< the bytes before offset_; if they differ, the file was rewritten
};

}  // namespace muster::engine
