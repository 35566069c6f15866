#include "cli/common/format.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "job/job.h"
#include "record/rfc3339.h"

namespace muster::cli {

namespace {

std::string claim_words(const job::Resources& resources) {
  std::vector<std::string> parts;
  if (resources.gpus > 0) parts.push_back(std::to_string(resources.gpus) + " GPU");
  if (resources.gpu_share_milli > 0) {
    parts.push_back(base::format_milli(resources.gpu_share_milli) + " GPU");
  }
  if (resources.gpu_memory_bytes > 0) {
    parts.push_back(base::format_bytes(resources.gpu_memory_bytes) + " of a GPU");
  }
  if (resources.cpu_milli > 0) parts.push_back(base::format_milli(resources.cpu_milli) + " CPU");
  if (resources.memory_bytes > 0) parts.push_back(base::format_bytes(resources.memory_bytes));
  return base::joined(parts);
}

/// "2 x 1 GPU", "2-4 x 1 GPU"; empty if the workers request nothing.
std::string workers_words(const job::JobSpec& spec) {
  const std::string claim = claim_words(spec.resources);
  if (claim.empty() || spec.workers == 0) return "";
  return worker_range(spec) + " x " + claim;
}

}  // namespace

std::string worker_range(const job::JobSpec& spec) {
  const std::string most = std::to_string(spec.workers);
  return job::is_elastic(spec) ? std::to_string(*spec.scheduling.min_workers) + "-" + most : most;
}

std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes) {
  std::vector<std::string> parts{gpu_milli ? base::format_milli(*gpu_milli) + " GPU" : "unlimited"};
  if (cpu_milli) parts.push_back(base::format_milli(*cpu_milli) + " CPU");
  if (memory_bytes) parts.push_back(base::format_bytes(*memory_bytes));
  return base::joined(parts);
}

std::string needs_words(const job::JobSpec& spec) {
  std::string text =
      spec.kind == job::Kind::kSingle ? claim_words(spec.resources) : workers_words(spec);
  const auto add = [&text](const std::string& claim, const std::string& role) {
    if (!claim.empty()) text += (text.empty() ? "" : " + ") + claim + " (" + role + ")";
  };
  if (spec.kind != job::Kind::kSingle) {
    const job::TaskRole leader = job::tasks_of(spec).front().role;
    add(claim_words(spec.leader.resources), std::string(job::to_string(leader)));
  }
  if (spec.parameter_servers > 0) {
    const std::string claim = claim_words(spec.parameter_server.resources);
    add(claim.empty() ? "" : std::to_string(spec.parameter_servers) + " x " + claim, "ps");
  }
  if (spec.evaluators > 0) add(claim_words(spec.evaluator.resources), "evaluator");
  return text.empty() ? "-" : text;
}

namespace {

using base::Time;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string in_words(nanoseconds duration) {
  const auto whole = std::chrono::duration_cast<seconds>(std::max(duration, nanoseconds{0}));
  return whole.count() == 0 ? "0s" : base::format_duration(whole);
}

/// Also accepts a blank between date and time, as RFC 3339 allows.
std::optional<Time> typed_time(std::string text) {
  constexpr size_t kDateLength = 10;
  if (text.size() > kDateLength && text[kDateLength] == ' ') text[kDateLength] = 'T';
  const auto time = record::parse_rfc3339(text);
  return time && *time >= Time() ? time : std::nullopt;
}

}  // namespace

std::string moment_words(Time time) {
  return base::to_rfc3339(time, 0);
}

std::string age(Time then, Time now) {
  return in_words(now - then);
}

std::string run_time(const job::Job& job, Time now) {
  if (!job.started) return "-";
  return in_words(job.ended.value_or(now) - *job.started);
}

base::Result<Time> parse_moment(std::string_view text, Time now) {
  if (const auto ago = base::parse_duration(text)) {
    // Compared in milliseconds: the largest values would overflow as nanoseconds.
    const auto since_epoch = std::chrono::duration_cast<milliseconds>(now.time_since_epoch());
    return now - std::min(*ago, since_epoch);
  }
  if (const auto moment = typed_time(std::string(text))) return *moment;
  if (const auto midnight = typed_time(std::string(text) + "T00:00:00Z")) return *midnight;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "'" + std::string(text) +
                             "' is not a time; give a duration before now such as 10m, or a time "
                             "such as 2026-01-31T12:00:00Z or 2026-01-31, its midnight in UTC"};
}

namespace {

std::string printed(const char* format, int digits, double value) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, digits, value);
  return {text.data(), std::min(static_cast<size_t>(std::max(length, 0)), text.size() - 1)};
}

/// Removes zeros at the end of the fraction.
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// The number of decimals that gives four significant digits.
std::string four_digits(double value) {
  constexpr int kDigits = 4;
  const int before = value == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return without_trailing_zeros(printed("%.*f", std::clamp(kDigits - before, 0, 6), value));
}

std::string number_words(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kThousands{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e15)) return printed("%.*g", 3, value);
  for (const auto& [unit, name] : kThousands) {
    const double by = name == "k" ? 1e3 : unit;
    if (size >= unit) return four_digits(value / by) + std::string(name);
  }
  return four_digits(value);
}

std::string bytes_words(double value) {
  constexpr std::array<std::string_view, 6> kUnits{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || std::abs(value) >= 100 ? 0 : 1;
  return without_trailing_zeros(printed("%.*f", digits, value)) + std::string(kUnits[unit]);
}

}  // namespace

MetricUnit unit_of(std::string_view metric) {
  constexpr std::array<std::pair<std::string_view, MetricUnit>, 5> kEndings{
      {{"_bytes_per_second", MetricUnit::kBytesPerSecond},
       {"_bytes", MetricUnit::kBytes},
       {"_percent", MetricUnit::kPercent},
       {"_watts", MetricUnit::kWatts},
       {"_celsius", MetricUnit::kCelsius}}};
  if (metric == job::kGpuMemoryFree) return MetricUnit::kBytes;
  for (const auto& [ending, unit] : kEndings) {
    if (metric.ends_with(ending)) return unit;
  }
  return MetricUnit::kNumber;
}

std::string_view unit_words(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kBytes:
      return "bytes";
    case MetricUnit::kBytesPerSecond:
      return "bytes/s";
    case MetricUnit::kPercent:
      return "%";
    case MetricUnit::kWatts:
      return "W";
    case MetricUnit::kCelsius:
      return "C";
    case MetricUnit::kNumber:
      break;
  }
  return "";
}

std::string one_decimal(double value) {
  return printed("%.*f", 1, value);
}

std::string value_words(double value, MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kBytes:
      return bytes_words(value);
    case MetricUnit::kBytesPerSecond:
      return bytes_words(value) + "/s";
    case MetricUnit::kPercent:
      return without_trailing_zeros(printed("%.*f", std::abs(value) < 10 ? 1 : 0, value)) + "%";
    case MetricUnit::kWatts:
    case MetricUnit::kCelsius:
      return without_trailing_zeros(printed("%.*f", 1, value)) + std::string(unit_words(unit));
    case MetricUnit::kNumber:
      break;
  }
  return number_words(value);
}

std::string progress_words(const job::Progress& progress) {
  const double part = std::clamp(progress.done / progress.total, 0.0, 1.0);
  // Rounded down: 100% is printed only when everything is done.
  std::string percent = printed("%.*f", 0, std::floor(part * 100)) + "%";
  if (progress.unit.empty()) return percent;
  return progress.unit + " " + number_words(std::floor(progress.done)) + "/" +
         number_words(progress.total) + " " + percent;
}

std::string left_words(const job::Progress& progress, base::Time now) {
  if (!progress.ends || *progress.ends <= now || progress.done >= progress.total) return "";
  return age(now, *progress.ends) + " left";
}

std::string progress_line(const job::Progress& progress, base::Time now) {
  const std::string left = left_words(progress, now);
  return progress_words(progress) + (left.empty() ? "" : ", " + left);
}

std::string origin_words(const job::JobOrigin& origin) {
  switch (origin.kind) {
    case job::JobOrigin::Kind::kRerun:
      break;
    case job::JobOrigin::Kind::kArray:
      return "array " + origin.name + ", member " + std::to_string(origin.member);
    case job::JobOrigin::Kind::kSweep:
      return "sweep " + origin.name + ", trial " + std::to_string(origin.member);
    case job::JobOrigin::Kind::kSchedule:
      return "schedule " + origin.name;
  }
  return "rerun of " + origin.name;
}

}  // namespace muster::cli
