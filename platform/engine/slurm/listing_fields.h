// Lines of values that the programs print, as slurm_listing.h has it.
//
// Pure; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine::slurm {

inline constexpr char kFieldEnd = '\x1f';

/// As --Format has it: each with no width, and with what ends it.
template <size_t N>
std::string format_of(const std::array<std::string_view, N>& names) {
  std::string format;
  for (const std::string_view name : names) {
    if (!format.empty()) format += ',';
    format.append(name).append(":0").push_back(kFieldEnd);
  }
  return format;
}

/// The last may hold what ends the others. False: there are fewer.
template <size_t N>
bool fields_of(std::string_view line, std::array<std::string_view, N>& fields) {
  for (size_t i = 0; i < N; ++i) {
    const size_t end = i + 1 < N ? line.find(kFieldEnd) : line.size();
    if (end == std::string_view::npos) return false;
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (fields[N - 1].ends_with(kFieldEnd)) fields[N - 1].remove_suffix(1);
  return true;
}

/// Calls `take` with each line; kInternal where none of several is as it should be.
template <typename Take>
base::Result<void> for_each_line(std::string_view text, std::string_view program,
                                 const Take& take) {
  size_t taken = 0;
  std::string_view odd;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    if (take(line)) {
      ++taken;
    } else if (odd.empty()) {
      odd = line;
    }
  }
  if (taken > 0 || odd.empty()) return {};
  constexpr size_t kShown = 200;
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = std::string(program) + " prints what is not understood: '" +
                             std::string(odd.substr(0, kShown)) + "'",
                     .advice = "this Slurm may be older than 21.08: sinfo --version"};
}

/// Empty where Slurm has none.
inline std::string value_of(std::string_view field) {
  return field == "(null)" || field == "N/A" ? std::string() : std::string(field);
}

/// A sentence, which anybody may have typed.
inline std::string reason_of(std::string_view field) {
  return field == "None" || field == "none" ? std::string() : base::as_utf8(value_of(field));
}

template <typename Number>
Number number_or(std::string_view text, Number otherwise) {
  return base::number_of<Number>(text).value_or(otherwise);
}

}  // namespace muster::engine::slurm
