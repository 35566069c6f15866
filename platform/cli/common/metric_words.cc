#include "cli/common/metric_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/units.h"
#include "cli/common/amount_words.h"

namespace muster::cli {

namespace {

std::string printed(const char* format, int digits, double value) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, digits, value);
  return {text.data(), std::min(static_cast<size_t>(std::max(length, 0)), text.size() - 1)};
}

/// Without zeros at the end of its fraction.
std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Of four digits that count, the decimals.
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
  // Rounded down: all of it is done when all of it is done.
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

}  // namespace muster::cli
