#include "record/input.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"
#include "record/rfc3339.h"
#include "record/table.h"

namespace muster::record {

namespace {

/// Up to this value, a double distinguishes thousandths, and their number is an exact integer.
constexpr int64_t kMostWithDecimals = 1'000'000'000'000;

std::string_view name_of_kind(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kObject:
      return "an object";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kText:
      return "text";
    case Value::Kind::kFlag:
      return "true or false";
    case Value::Kind::kInteger:
    case Value::Kind::kHugeInteger:
      return "a whole number";
    case Value::Kind::kReal:
      return "a number with a fraction";
    case Value::Kind::kNull:
      break;
  }
  return "null";
}

/// A job file is YAML, which calls JSON's objects maps.
std::string_view name_in_yaml(const Value& value) {
  if (value.is_object()) return "a map";
  if (value.is_list()) return "a list";
  return value.is_null() ? "nothing" : "a single value";
}

std::string out_of_range(const std::string& low, const std::string& high) {
  return "is out of range; give " + low + " to " + high;
}

/// The range that the faults of a number name: the limits of its row are usually narrower than
/// those of its type.
std::pair<int64_t, int64_t> range_within(const Input& input, int64_t low, int64_t high,
                                         int64_t unit = 1) {
  if (input.notes == nullptr) return {low, high};
  if (const auto least = input.notes->least) low = std::max(low, *least * unit);
  if (const auto most = input.notes->most; most && *most < high / unit) high = *most * unit;
  return {low, high};
}

void note_range(const Input& input, int64_t low, int64_t high) {
  const auto [least, most] = range_within(input, low, high);
  input.note(out_of_range(std::to_string(least), std::to_string(most)));
}

/// Notes why a floating-point number is not an integer.
void note_not_whole(const Input& input, int64_t low, int64_t high) {
  const double number = input.value.is_real() ? input.value.real() : 0.5;
  if (std::trunc(number) != number) return input.expected("a whole number");
  const auto [least, most] = range_within(input, low, high);
  if (number < static_cast<double>(least) || number > static_cast<double>(most)) {
    return note_range(input, low, high);
  }
  input.note("is too large for a number with a fraction or an exponent; write all of its digits");
}

/// The thousandths of `number`, or nothing if it has more decimals: the parser turns the text of N
/// thousandths into the nearest double, so `number` must equal that double.
std::optional<int64_t> thousandths_of(double number) {
  const int64_t rounded = std::llround(number * 1000);
  if (static_cast<double>(rounded) / 1000 != number) return std::nullopt;
  return rounded;
}

/// 451.0 is an integer like 451: JSON Schema defines it so, and clients with a single number type
/// write it. Above 2^53, a double does not distinguish integers.
bool is_whole(const Value& value) {
  if (!value.is_real()) return value.is_number();
  constexpr double kLastDistinctInteger = 9007199254740992.0;
  const double number = value.real();
  return std::trunc(number) == number && std::abs(number) <= kLastDistinctInteger;
}

std::optional<int64_t> typed_integer(const Input& input, int64_t low, int64_t high) {
  const auto text = read_text(input);
  if (!text) return std::nullopt;
  const auto number = base::number_of<int64_t>(*text);
  if (!number && !base::is_whole_number(*text)) {
    input.note("'" + base::shortened(*text) + "' is not a whole number");
    return std::nullopt;
  }
  if (!number || *number < low || *number > high) {
    const auto [least, most] = range_within(input, low, high);
    input.note(base::shortened(*text) + " " +
               out_of_range(std::to_string(least), std::to_string(most)));
    return std::nullopt;
  }
  return number;
}

}  // namespace

bool Input::has_all_faults() const {
  return faults.size() >= kMostFaults;
}

void Input::note(std::string what) const {
  if (has_all_faults()) return;
  faults.push_back({.field = path.text(), .what = std::move(what)});
}

void Input::expected(std::string_view what) const {
  const std::string_view is = form == Form::kHuman ? name_in_yaml(value) : name_of_kind(value);
  note("must be " + std::string(what) + ", not " + std::string(is));
}

size_t Input::items_to_read() const {
  const size_t count = value.size();
  const size_t most = notes == nullptr ? 0 : notes->most_items;
  // A stored document was accepted with the limits of its time.
  if (form == Form::kStore || most == 0 || count <= most) return count;
  note("has " + std::to_string(count) + " entries; at most " + std::to_string(most) +
       " are allowed");
  return most;
}

bool Input::is_null() const {
  return form != Form::kHuman && value.is_null();
}

bool Input::is_typed(std::string_view text) const {
  return form == Form::kHuman && value.is_text() && value.text() == text;
}

std::optional<std::string> read_text(const Input& input) {
  if (input.value.is_text()) return std::string(input.value.text());
  const Value* base64 = input.value.size() == 1 ? input.value.find("base64") : nullptr;
  if (base64 == nullptr) {
    input.expected(input.form == Form::kHuman ? "a single value" : "text");
    return std::nullopt;
  }
  const Path path(input.path, "base64");
  return read_base64(input.at(*base64, path));
}

std::optional<std::string> read_base64(const Input& input) {
  if (!input.value.is_text()) {
    input.expected("base64 as text");
    return std::nullopt;
  }
  auto bytes = base::from_base64(input.value.text());
  if (!bytes) {
    input.note("is not base64");
    return std::nullopt;
  }
  return bytes;
}

std::optional<bool> read_flag(const Input& input) {
  if (input.form != Form::kHuman) {
    if (input.value.is_flag()) return input.value.flag();
    input.expected("true or false");
    return std::nullopt;
  }
  const auto text = read_text(input);
  if (!text) return std::nullopt;
  if (*text == "true" || *text == "false") return *text == "true";
  input.note("'" + base::shortened(*text) + "' is neither true nor false");
  return std::nullopt;
}

std::optional<double> read_real(const Input& input) {
  if (input.value.is_number()) return input.value.real();
  if (input.form == Form::kHuman && input.value.is_text()) {
    const auto number = base::number_of<double>(input.value.text());
    if (number && std::isfinite(*number)) return number;
  }
  input.expected("a number");
  return std::nullopt;
}

std::optional<base::Time> read_time(const Input& input) {
  if (!input.value.is_text()) {
    input.expected("a time as text");
    return std::nullopt;
  }
  const std::string_view text = input.value.text();
  const auto time = parse_rfc3339(text);
  if (!time) {
    input.note("'" + base::shortened(text) + "' is not a time such as 2026-01-31T12:34:56Z");
  }
  return time;
}

std::optional<int64_t> read_integer(const Input& input, int64_t low, int64_t high) {
  if (input.form == Form::kHuman) return typed_integer(input, low, high);
  const Value& value = input.value;
  // The parser turns an integer that is too large into a floating-point number.
  constexpr double kPastEveryInteger = 9.2e18;
  const bool huge =
      value.is_huge_integer() || (value.is_real() && std::abs(value.real()) >= kPastEveryInteger);
  if (!huge && !is_whole(value)) {
    note_not_whole(input, low, high);
    return std::nullopt;
  }
  const int64_t number = huge              ? 0
                         : value.is_real() ? static_cast<int64_t>(value.real())
                                           : value.integer();
  if (huge || number < low || number > high) {
    note_range(input, low, high);
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> read_milli(const Input& input, int64_t low, int64_t high) {
  if (!input.value.is_number()) {
    input.expected("a number");
    return std::nullopt;
  }
  low = std::max(low, -kMostWithDecimals * 1000);
  high = std::min(high, kMostWithDecimals * 1000);
  const double number = input.value.real();
  const bool huge = std::abs(number) > static_cast<double>(kMostWithDecimals);
  const std::optional<int64_t> thousandths = huge ? std::nullopt : thousandths_of(number);
  if (huge || (thousandths && (*thousandths < low || *thousandths > high))) {
    const auto [least, most] = range_within(input, low, high, 1000);
    input.note(out_of_range(base::format_milli(least), base::format_milli(most)));
    return std::nullopt;
  }
  if (!thousandths) input.note("has more than three decimals");
  return thousandths;
}

std::optional<size_t> read_choice(const Input& input, const std::vector<std::string>& names) {
  if (!input.value.is_text()) {
    input.expected(input.form == Form::kHuman ? "a single value" : "text");
    return std::nullopt;
  }
  const std::string_view word = input.value.text();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    if (!input.has_all_faults()) input.note(not_a_choice(word, names));
    return std::nullopt;
  }
  return static_cast<size_t>(found - names.begin());
}

bool is_within(std::string_view field, std::string_view outer) {
  return field.starts_with(outer) &&
         (field.size() == outer.size() || field[outer.size()] == '.' || field[outer.size()] == '[');
}

std::string not_a_choice(std::string_view word, const std::vector<std::string>& names) {
  return "'" + base::shortened(word) + "' is invalid: expected one of " + base::joined(names) +
         did_you_mean(word, names);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  // Very long words are not typos, and comparing them takes quadratic time.
  if (word.size() > 64) return "";
  const std::string near = base::nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

void Path::append_to(std::string& out) const {
  if (parent_ != nullptr) parent_->append_to(out);
  if (is_element_) {
    out += "[" + std::to_string(index_) + "]";
  } else if (!name_.empty()) {
    if (!out.empty()) out += '.';
    // A key in a request may be a megabyte long.
    out += base::shortened(name_);
  }
}

std::string Path::text() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace muster::record
