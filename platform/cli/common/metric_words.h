// Measured values as people read them: bytes as sizes, parts of a hundred with their sign, counts
// with as many digits as say something.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "job/job.h"
#include "job/metric.h"

namespace muster::cli {

enum class MetricUnit { kNumber, kBytes, kBytesPerSecond, kPercent, kWatts, kCelsius };

/// By the end of its name: "_bytes", "_bytes_per_second", "_percent", "_watts", "_celsius". So a
/// program's own are shown as such, too.
MetricUnit unit_of(std::string_view metric);

/// What stands behind a chart's title: "bytes", "%"; empty for a number.
std::string_view unit_words(MetricUnit unit);

/// "1.5Gi", "1.5Mi/s", "93%", "250W", "61C"; of a number four digits that count: "0.1834", "12.5k",
/// "3.2e-06".
std::string value_words(double value, MetricUnit unit);

/// "12.5": one digit behind the point.
std::string one_decimal(double value);

/// "epoch 3/10 31%", or "31%".
std::string progress_words(const job::Progress& progress);
/// "12m left"; empty where it is not known, or nothing is left.
std::string left_words(const job::Progress& progress, base::Time now);
/// Both, as far as there are any.
std::string progress_line(const job::Progress& progress, base::Time now);

}  // namespace muster::cli
