// muster metrics: what is measured of a job.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "job/metric.h"

namespace muster::cli::metrics {

struct MetricsCommand {
  enum class Format { kPicture, kJson, kCsv };

  std::string name;
  std::string project = {};
  job::MetricQuery query;          ///< without a metric: the newest value of each
  std::optional<std::string> svg;  ///< the picture is written to this file
  bool follow = false;
  bool unicode = true;  ///< the caller's terminal shows more than ASCII
  Format format = Format::kPicture;
};

Result<int> execute(const MetricsCommand& command, const Hooks& hooks);

Command metrics_command();

}  // namespace muster::cli::metrics
