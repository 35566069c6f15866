#include "cli/flag_reader.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/time_words.h"

namespace muster::cli {

std::string FlagReader::text(const std::string& flag, const std::string& fallback) const {
  const auto found = arguments_.flags.find(flag);
  return found == arguments_.flags.end() ? fallback : found->second.back();
}

std::vector<std::string> FlagReader::texts(const std::string& flag) const {
  const auto found = arguments_.flags.find(flag);
  return found == arguments_.flags.end() ? std::vector<std::string>{} : found->second;
}

int FlagReader::number(const std::string& flag, int fallback) {
  if (!has(flag)) return fallback;
  const std::string value = text(flag);
  if (const auto number = base::number_of<int>(value)) return *number;
  fault(flag, "'" + value + "' is not a whole number");
  return fallback;
}

std::chrono::milliseconds FlagReader::duration(const std::string& flag,
                                               std::chrono::milliseconds fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_duration(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int64_t FlagReader::bytes(const std::string& flag, int64_t fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_bytes(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int64_t FlagReader::cpus(const std::string& flag, int64_t fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_cpus(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int FlagReader::share(const std::string& flag) {
  if (!has(flag)) return 0;
  const auto parsed = base::parse_milli(text(flag));
  if (parsed && *parsed > 0 && *parsed < 1000) return static_cast<int>(*parsed);
  fault(flag, "'" + text(flag) + "' is not a part of one; give 0.001 to 0.999");
  return 0;
}

std::string FlagReader::choice(const std::string& flag, const std::vector<std::string>& choices) {
  std::string value = text(flag, choices.front());
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string what = "'" + value + "' is none of";
  for (const std::string& known : choices) what += " " + known;
  const std::string meant = base::nearest(value, choices);
  if (!meant.empty()) what += "; did you mean '" + meant + "'?";
  fault(flag, what);
  return choices.front();
}

std::optional<base::Time> FlagReader::moment(const std::string& flag, base::Time now) {
  if (!has(flag)) return std::nullopt;
  const auto parsed = parse_moment(text(flag), now);
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return std::nullopt;
}

void FlagReader::fault(std::string field, std::string what) {
  faults_.push_back({.field = std::move(field), .what = std::move(what)});
}

bool FlagReader::is_at_fault(const std::string& field) const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](const base::Fault& known) { return known.field == field; });
}

}  // namespace muster::cli
