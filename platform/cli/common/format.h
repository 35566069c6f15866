// Amounts, times, metrics and progress as text for people.
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

/// "2 GPU, 16 CPU, 64Gi". Always with GPUs, with the others if given.
std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes);

/// The number of workers: "4", or "2-4" for an elastic job.
std::string worker_range(const job::JobSpec& spec);

/// What a job claims: "2 x 1 GPU, 4 CPU", "2-4 x 1 GPU", "0.5 GPU", "1 x 1 GPU + 1 GPU (chief)";
/// "-" if nothing.
std::string needs_words(const job::JobSpec& spec);

/// "2026-01-31T12:34:56Z".
std::string moment_words(base::Time time);

/// The time since `then`: "12s", "3h5m". "0s" if `then` is after `now`.
std::string age(base::Time then, base::Time now);

/// How long the job has run; "-" if it never started.
std::string run_time(const job::Job& job, base::Time now);

/// Parses "10m" (before `now`), RFC 3339, such as 2026-01-31T12:00:00+01:00, or a date: its
/// midnight in UTC.
base::Result<base::Time> parse_moment(std::string_view text, base::Time now);

enum class MetricUnit { kNumber, kBytes, kBytesPerSecond, kPercent, kWatts, kCelsius };

/// The unit of a metric, by the end of its name: "_bytes", "_bytes_per_second", "_percent", "_watts",
/// "_celsius". This includes metrics that a program reports.
MetricUnit unit_of(std::string_view metric);

/// The unit in a chart's title: "bytes", "%"; empty for a number.
std::string_view unit_words(MetricUnit unit);

/// "1.5Gi", "1.5Mi/s", "93%", "250W", "61C"; numbers have four significant digits: "0.1834", "12.5k",
/// "3.2e-06".
std::string value_words(double value, MetricUnit unit);

/// "12.5": one decimal digit.
std::string one_decimal(double value);

/// "array train, member 17", "rerun of train".
std::string origin_words(const job::JobOrigin& origin);

/// "epoch 3/10 31%", or "31%".
std::string progress_words(const job::Progress& progress);
/// "12m left"; empty if unknown or zero.
std::string left_words(const job::Progress& progress, base::Time now);
/// progress_words() and left_words().
std::string progress_line(const job::Progress& progress, base::Time now);

}  // namespace muster::cli
