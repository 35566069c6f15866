// Durations, sizes and fractions in users' notation: 30s, 500ms, 1h; 512M, 16Gi; 0.5.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"

namespace muster::base {

/// "500ms", "30s", "5m", "1h", "2d"; a number without a unit counts seconds. kInvalid contains the
/// text.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "1048576", "512M", "16G", "16Gi" (K, M, G, T and Ki, Mi, Gi, Ti are all powers of 1024).
Result<int64_t> parse_bytes(std::string_view text);

/// "2", "0.5", "0.125" in thousandths; refuses more decimals and negative numbers.
Result<int64_t> parse_milli(std::string_view text);

/// The same, also with the suffix "m" for thousandths of a CPU: "0.5", "500m".
Result<int64_t> parse_cpus(std::string_view text);

/// 500 -> "0.5", 2000 -> "2".
std::string format_milli(int64_t thousandths);

/// In the largest unit that is not greater than the amount, with one decimal if it is not a whole
/// multiple: "16Gi", "1.5Gi", "100".
std::string format_bytes(int64_t bytes);

/// "1h2m", "12s", "350ms": the two largest units.
std::string format_duration(std::chrono::milliseconds duration);

/// The text that reads back as exactly this amount: "16Gi", "1500Mi", "1025".
std::string exact_bytes(int64_t bytes);
/// "30s", "1500ms", "36h".
std::string exact_duration(std::chrono::milliseconds duration);

// Texts that are numbers and nothing else.
//
// Pure; thread-safe.

/// The number in `text`; nothing if it contains anything else ("+1", " 1", "1x"), or the number
/// does not fit.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last) return std::nullopt;
  return number;
}

}  // namespace muster::base
