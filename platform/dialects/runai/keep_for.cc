#include "dialects/runai/keep_for.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/units.h"

namespace muster::dialects::runai {

namespace {

using std::chrono::milliseconds;

/// "1h30m": a number with its unit, and again.
std::optional<milliseconds> parse_duration_parts(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  if (text.empty()) return std::nullopt;
  milliseconds sum{0};
  while (!text.empty()) {
    const size_t unit = std::min(text.find_first_not_of(kDigits), text.size());
    const size_t end = std::min(text.find_first_of(kDigits, unit), text.size());
    const auto part = base::parse_duration(text.substr(0, end));
    if (unit == 0 || unit == end || !part) return std::nullopt;
    sum += *part;
    text.remove_prefix(end);
  }
  return sum;
}

}  // namespace

std::optional<milliseconds> keep_for_of(cli::FlagReader& reader) {
  for (const char* flag : {"--ttl-after-finish", "--auto-deletion-time-after-completion"}) {
    if (!reader.has(flag)) continue;
    const std::string text = reader.text(flag);
    const auto time = parse_duration_parts(text);
    if (!time) reader.fault(flag, "'" + text + "' is not a time such as 30s, 2m or 1h30m");
    return time;
  }
  return std::nullopt;
}

}  // namespace muster::dialects::runai
