#include "job/units.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace muster::job {

using base::Error;
using base::ErrorCode;

namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr std::array<Unit, 6> kTimes{
    {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

constexpr std::array<Unit, 9> kSizes{{{"", 1},
                                      {"K", 1LL << 10},
                                      {"M", 1LL << 20},
                                      {"G", 1LL << 30},
                                      {"T", 1LL << 40},
                                      {"Ki", 1LL << 10},
                                      {"Mi", 1LL << 20},
                                      {"Gi", 1LL << 30},
                                      {"Ti", 1LL << 40}}};

/// A number and one of `units`; false where the text is anything else or overflows.
template <size_t N>
bool parse(std::string_view text, const std::array<Unit, N>& units, int64_t& result) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return false;
  const std::string_view name(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (number > std::numeric_limits<int64_t>::max() / unit.factor) return false;
    result = number * unit.factor;
    return true;
  }
  return false;
}

Error fault(std::string_view text, std::string what) {
  return {.code = ErrorCode::kInvalid, .what = "'" + std::string(text) + "' " + std::move(what)};
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  int64_t milliseconds = 0;
  if (!parse(text, kTimes, milliseconds)) return fault(text, "is not a time such as 30s, 5m or 2h");
  return std::chrono::milliseconds(milliseconds);
}

Result<int64_t> parse_bytes(std::string_view text) {
  int64_t bytes = 0;
  if (!parse(text, kSizes, bytes)) return fault(text, "is not a size such as 512M or 16G");
  return bytes;
}

std::string format_duration(std::chrono::milliseconds duration) {
  const int64_t total = duration.count();
  if (total < 1000) return std::to_string(total) + "ms";
  constexpr std::array<std::pair<int64_t, char>, 4> kUnits{
      {{86'400'000, 'd'}, {3'600'000, 'h'}, {60'000, 'm'}, {1000, 's'}}};
  std::string text;
  int64_t rest = total;
  int shown = 0;
  for (const auto& [size, letter] : kUnits) {
    if (shown == 2) break;
    if (rest < size) {
      if (shown > 0) ++shown;
      continue;
    }
    text += std::to_string(rest / size) + letter;
    rest %= size;
    ++shown;
  }
  return text;
}

}  // namespace muster::job
