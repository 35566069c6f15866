// Amounts of several resources at once, and times, as people read them.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "job/job.h"
#include "job/metric.h"
#include "job/spec.h"

namespace muster::cli {

/// "2 GPU, 16 CPU, 64Gi". GPUs always, the others where they are said.
std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes);

/// How many workers it runs with: "4", "2-4" of an elastic one.
std::string worker_range(const job::JobSpec& spec);

/// What a job asks for: "2 x 1 GPU, 4 CPU", "2-4 x 1 GPU", "0.5 GPU", "1 x 1 GPU + 1 GPU (chief)";
/// "-" where it claims nothing.
std::string needs_words(const job::JobSpec& spec);

/// "2026-01-31T12:34:56Z".
std::string moment_words(base::Time time);

/// How long ago `then` was: "12s", "3h5m". A clock that was set back gives "0s".
std::string age(base::Time then, base::Time now);

/// How long the job has run, or ran; "-" where it never started.
std::string run_time(const job::Job& job, base::Time now);

/// "10m": so long before `now`; else RFC 3339, as in 2026-01-31T12:00:00+01:00.
base::Result<base::Time> parse_moment(std::string_view text, base::Time now);

// Measured values as people read them: bytes as sizes, parts of a hundred with their sign, counts
// with as many digits as say something.
//
// Pure.

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
