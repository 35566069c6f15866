// What `gradient experiments metrics` is asked for.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command/arguments.h"

namespace muster::dialects::gradient {

struct MetricQuery {
  std::vector<std::string> metrics;
  std::chrono::milliseconds interval{0};
  std::optional<base::Time> start;  ///< nothing: since the experiment has started
  std::optional<base::Time> end;

  bool operator==(const MetricQuery&) const = default;
};

/// Reads --metric, --interval, --start and --end. Every fault goes into `reader`. `known`: the
/// metrics there are; empty: any name may be one.
MetricQuery read_metric_query(cli::FlagReader& reader, const std::vector<std::string>& known);

/// "2026-01-31", "2026-01-31T12:00:00" or "2026-01-31 12:00:00", in UTC.
base::Result<base::Time> parse_metric_time(std::string_view text);

}  // namespace muster::dialects::gradient
