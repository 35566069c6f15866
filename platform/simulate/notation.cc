#include "simulate/notation.h"

#include <charconv>
#include <cmath>

namespace muster::simulate::notation {

using base::Error;
using base::ErrorCode;
using base::Result;

Error fault(std::string what) {
  return {.code = ErrorCode::kInvalid, .what = std::move(what)};
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<std::string_view> outer_parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[' || text[at] == '{') ++depth;
    if (text[at] == ')' || text[at] == ']' || text[at] == '}') --depth;
    if (depth != 0 || text[at] != separator) continue;
    parts.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  if (!trimmed(text).empty()) parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair{trimmed(text.substr(0, at)), trimmed(text.substr(at + separator.size()))};
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

namespace {

template <class Number>
Result<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fault(single_quoted(text) + " is no number");
  return value;
}

}  // namespace

Result<int64_t> whole(std::string_view text, int64_t most) {
  MUSTER_TRY(const int64_t value, number<int64_t>(text));
  if (value < 0 || value > most)
    return fault(single_quoted(text) + " is not between 0 and " + std::to_string(most));
  return value;
}

Result<int64_t> thousandths(std::string_view text) {
  MUSTER_TRY(const double value, number<double>(text));
  if (!(value >= 0 && value <= 1e9)) return fault(single_quoted(text) + " is no amount");
  return std::llround(value * 1000);
}

Result<int> sum(std::string_view text) {
  constexpr int64_t kMost = 1'000'000;
  const size_t sign = text.find_first_of("+-", 1);
  MUSTER_TRY(const int64_t base, whole(text.substr(0, sign), kMost));
  if (sign == std::string_view::npos) return static_cast<int>(base);
  MUSTER_TRY(const int64_t step, whole(text.substr(sign + 1), kMost));
  return static_cast<int>(text[sign] == '+' ? base + step : base - step);
}

}  // namespace muster::simulate::notation
