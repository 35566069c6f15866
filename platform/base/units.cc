#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

namespace muster::base {

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

/// A number followed by one of `units`; false if the text is anything else, or the value overflows.
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

/// The size that a near miss stands for: "2GB", "2gib" and "2g" mean 2G; empty: unknown.
std::string size_meant_by(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto is_letter = [&](size_t at, char letter) {
    return at < text.size() && (text[at] | 0x20) == letter;
  };
  const bool has_i = is_letter(digits + 1, 'i');
  const bool has_b = is_letter(digits + (has_i ? 2 : 1), 'b');
  const bool is_whole = text.size() == digits + 1 + (has_i ? 1 : 0) + (has_b ? 1 : 0);
  if (digits == 0 || digits == text.size() || !is_whole) return "";
  const std::string meant =
      std::string(text.substr(0, digits)) + static_cast<char>(text[digits] & ~0x20);
  int64_t bytes = 0;
  return parse(meant, kSizes, bytes) ? meant : "";
}

/// Digits, and up to three decimals, in thousandths.
bool parse_decimal(std::string_view text, int64_t& thousandths) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  const bool digits_only = std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || letter == '.';
  });
  constexpr size_t kMostDigits = 15;  // a thousand times such a number fits into 64 bits
  if (!digits_only || whole.empty() || whole.size() > kMostDigits) return false;
  if (decimals.size() > 3 || (decimals.empty() && point < text.size())) return false;
  decimals.resize(3, '0');
  const std::string all = std::string(whole) + decimals;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), thousandths);
  return error == std::errc{} && end == all.data() + all.size();
}

/// In the largest unit of which `amount` is a whole multiple.
template <size_t N>
std::string in_whole_units(int64_t amount, const std::array<Unit, N>& units, const char* smallest) {
  for (const Unit& unit : units) {
    if (amount != 0 && amount % unit.factor == 0) {
      return std::to_string(amount / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(amount) + smallest;
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  int64_t milliseconds = 0;
  if (!parse(text, kTimes, milliseconds))
    return invalid_text(text, "is not a time such as 30s, 5m or 2h");
  return std::chrono::milliseconds(milliseconds);
}

Result<int64_t> parse_bytes(std::string_view text) {
  int64_t bytes = 0;
  if (parse(text, kSizes, bytes)) return bytes;
  const std::string meant = size_meant_by(text);
  return invalid_text(text, "is not a size such as 512M or 16G" +
                                (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

Result<int64_t> parse_milli(std::string_view text) {
  int64_t thousandths = 0;
  if (!parse_decimal(text, thousandths)) {
    return invalid_text(text, "is not a number such as 2 or 0.5, with at most three decimals");
  }
  return thousandths;
}

Result<int64_t> parse_cpus(std::string_view text) {
  constexpr std::array<Unit, 1> kThousandths{{{"m", 1}}};
  int64_t thousandths = 0;
  if (parse_decimal(text, thousandths) || parse(text, kThousandths, thousandths)) {
    return thousandths;
  }
  return invalid_text(text, "is not a number of CPUs such as 4, 0.5 or 500m");
}

std::string format_milli(int64_t thousandths) {
  std::string text = std::to_string(thousandths / 1000);
  if (thousandths < 0 && thousandths > -1000) text = "-0";
  const int64_t rest = std::abs(thousandths % 1000);
  if (rest == 0) return text;
  std::string decimals = std::to_string(1000 + rest).substr(1);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return text + "." + decimals;
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<std::pair<int64_t, const char*>, 4> kUnits{
      {{1LL << 40, "Ti"}, {1LL << 30, "Gi"}, {1LL << 20, "Mi"}, {1LL << 10, "Ki"}}};
  for (const auto& [size, name] : kUnits) {
    if (bytes < size) continue;
    const int64_t tenths = bytes % size / (size / 10);
    return std::to_string(bytes / size) +
           (tenths == 0 ? "" : "." + std::to_string(std::min<int64_t>(tenths, 9))) + name;
  }
  return std::to_string(bytes);
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

std::string exact_bytes(int64_t bytes) {
  constexpr std::array<Unit, 4> kExact{
      {{"Ti", 1LL << 40}, {"Gi", 1LL << 30}, {"Mi", 1LL << 20}, {"Ki", 1LL << 10}}};
  return in_whole_units(bytes, kExact, "");
}

std::string exact_duration(std::chrono::milliseconds duration) {
  constexpr std::array<Unit, 4> kExact{
      {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}}};
  return in_whole_units(duration.count(), kExact, "ms");
}

}  // namespace muster::base
