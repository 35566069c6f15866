#include "job/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"

namespace muster::job {

namespace {

struct QuantitySuffix {
  std::string_view text;
  long double factor;
};

constexpr std::array<QuantitySuffix, 16> kSuffixes{{{"", 1},
                                                    {"n", 1e-9L},
                                                    {"u", 1e-6L},
                                                    {"m", 1e-3L},
                                                    {"k", 1e3L},
                                                    {"M", 1e6L},
                                                    {"G", 1e9L},
                                                    {"T", 1e12L},
                                                    {"P", 1e15L},
                                                    {"E", 1e18L},
                                                    {"Ki", 1024.0L},
                                                    {"Mi", 1048576.0L},
                                                    {"Gi", 1073741824.0L},
                                                    {"Ti", 1099511627776.0L},
                                                    {"Pi", 1125899906842624.0L},
                                                    {"Ei", 1152921504606846976.0L}}};

/// "e3", "E-2" as a factor.
std::optional<long double> exponent_factor(std::string_view text) {
  if (text.size() < 2 || (text.front() != 'e' && text.front() != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  const auto exponent = base::number_of<int>(text);
  if (!exponent || *exponent < -30 || *exponent > 30) return std::nullopt;
  return std::pow(10.0L, static_cast<long double>(*exponent));
}

std::optional<long double> factor_of(std::string_view suffix) {
  const auto* const found =
      std::find_if(kSuffixes.begin(), kSuffixes.end(),
                   [&](const QuantitySuffix& one) { return one.text == suffix; });
  return found == kSuffixes.end() ? exponent_factor(suffix) : found->factor;
}

/// In parts of which `parts` are one, rounded up.
std::optional<int64_t> amount_of(std::string_view text, long double parts) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view digits = text.substr(0, end);
  constexpr size_t kMostDigits = 30;
  const bool has_digit = digits.find_first_of("0123456789") != std::string_view::npos;
  if (!has_digit || digits.size() > kMostDigits ||
      std::count(digits.begin(), digits.end(), '.') > 1) {
    return std::nullopt;
  }
  const auto factor = factor_of(text.substr(end));
  if (!factor) return std::nullopt;
  long double value = 0;
  long double place = 1;
  bool in_fraction = false;
  for (const char digit : digits) {
    if (digit == '.') {
      in_fraction = true;
      continue;
    }
    value = value * 10 + (digit - '0');
    if (in_fraction) place *= 10;
  }
  const long double amount = value * *factor * parts / place;
  constexpr long double kMost = 9.2e18L;
  // A remainder of the arithmetic is not a fraction.
  return amount > kMost ? std::nullopt
                        : std::optional(static_cast<int64_t>(std::ceil(amount - 1e-9L)));
}

}  // namespace

std::optional<int64_t> milli_of_quantity(std::string_view text) {
  return amount_of(text, 1000);
}

std::optional<int64_t> whole_of_quantity(std::string_view text) {
  return amount_of(text, 1);
}

}  // namespace muster::job
