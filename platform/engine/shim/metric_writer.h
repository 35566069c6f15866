// Appends to a task's metrics (metric_log.h), and never stands in the task's way: what a full disk
// does not take is lost, and no other line with it.
//
// One writer a file; not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "engine/metric_log.h"

namespace muster::engine {

/// `log` with fewer lines, at most `most` bytes of them. Of what is older than a minute before
/// `now`, lines of one kind (one rank and the same names) that stand too close in time are left
/// out: however often that is done, all of the past is there, equally dense. The newest of each
/// kind stays. Where that is not enough, the last minute is thinned, too, and in the end the oldest
/// lines go.
///
/// Pure.
std::string thinned_log(std::string_view log, base::Time now, size_t most);

class MetricWriter {
 public:
  /// Made with the first sample, for its owner alone. `most`: bytes that the file never exceeds.
  explicit MetricWriter(std::filesystem::path file, int64_t most = kMaxMetricLog);

  void write(const MetricSample& sample);

 private:
  bool is_open();
  bool thin(base::Time now);

  std::filesystem::path path_;
  int64_t most_;
  base::UniqueFd file_;
  int64_t size_ = 0;  ///< end of the last whole line
};

}  // namespace muster::engine
