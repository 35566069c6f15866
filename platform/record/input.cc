#include "record/input.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/number.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "record/rfc3339.h"

namespace muster::record {

namespace {

/// A list of a million wrong elements needs no million sentences.
constexpr size_t kMostFaults = 100;

/// Up to here a double tells thousandths apart, and their number is exact in one.
constexpr int64_t kMostWithDecimals = 1'000'000'000'000;

std::string_view name_of_type(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "text";
    case Json::value_t::boolean:
      return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "a whole number";
    case Json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "null";
  }
}

/// A job file is YAML: what JSON calls an object is a map there.
std::string_view name_in_yaml(const Json& value) {
  if (value.is_object()) return "a map";
  if (value.is_array()) return "a list";
  return value.is_null() ? "nothing" : "a single value";
}

std::string out_of_range(const std::string& low, const std::string& high) {
  return "is out of range; give " + low + " to " + high;
}

/// The thousandths of `number`, or nothing where it has finer parts: of all doubles the one nearest
/// to N thousandths is what the parser makes of their text.
std::optional<int64_t> thousandths_of(double number) {
  const int64_t rounded = std::llround(number * 1000);
  if (static_cast<double>(rounded) / 1000 != number) return std::nullopt;
  return rounded;
}

/// 451.0 is as whole as 451: JSON Schema says so, and clients whose numbers are all of one kind
/// write it. Beyond 2^53 a double does not tell whole numbers apart.
bool is_whole(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  constexpr double kTellsApart = 9007199254740992.0;
  const double number = value.get_ref<const double&>();
  return std::trunc(number) == number && std::abs(number) <= kTellsApart;
}

std::optional<int64_t> typed_integer(const Input& input, int64_t low, int64_t high) {
  const auto text = read_text(input);
  if (!text) return std::nullopt;
  const auto number = base::number_of<int64_t>(*text);
  if (!number) {
    input.note("'" + base::shortened(*text) + "' is not a whole number");
    return std::nullopt;
  }
  if (*number < low || *number > high) {
    input.note(*text + " is out of range; give " + std::to_string(low) + " to " +
               std::to_string(high));
    return std::nullopt;
  }
  return number;
}

}  // namespace

void Input::note(std::string what) const {
  if (faults.size() >= kMostFaults) return;
  faults.push_back({.field = path.text(), .what = std::move(what)});
}

void Input::expected(std::string_view what) const {
  const std::string_view is = form == Form::kHuman ? name_in_yaml(json) : name_of_type(json);
  note("must be " + std::string(what) + ", not " + std::string(is));
}

bool Input::is_null() const {
  return form != Form::kHuman && json.is_null();
}

bool Input::is_typed(std::string_view text) const {
  return form == Form::kHuman && json.is_string() && json.get_ref<const std::string&>() == text;
}

std::optional<std::string> read_text(const Input& input) {
  if (input.json.is_string()) return input.json.get_ref<const std::string&>();
  const auto base64 = input.json.is_object() && input.json.size() == 1 ? input.json.find("base64")
                                                                       : input.json.end();
  if (base64 == input.json.end()) {
    input.expected(input.form == Form::kHuman ? "a single value" : "text");
    return std::nullopt;
  }
  const Path path(input.path, "base64");
  return read_base64(input.at(*base64, path));
}

std::optional<std::string> read_base64(const Input& input) {
  if (!input.json.is_string()) {
    input.expected("base64 as text");
    return std::nullopt;
  }
  auto bytes = base::from_base64(input.json.get_ref<const std::string&>());
  if (!bytes) {
    input.note("is no base64");
    return std::nullopt;
  }
  return bytes;
}

std::optional<bool> read_flag(const Input& input) {
  if (input.form != Form::kHuman) {
    if (input.json.is_boolean()) return input.json.get_ref<const bool&>();
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
  if (input.json.is_number()) return input.json.get<double>();
  input.expected("a number");
  return std::nullopt;
}

std::optional<base::Time> read_time(const Input& input) {
  if (!input.json.is_string()) {
    input.expected("a time as text");
    return std::nullopt;
  }
  const auto& text = input.json.get_ref<const std::string&>();
  const auto time = parse_rfc3339(text);
  if (!time) {
    input.note("'" + base::shortened(text) + "' is not a time; write it as 2026-01-31T12:34:56Z");
  }
  return time;
}

std::optional<int64_t> read_integer(const Input& input, int64_t low, int64_t high) {
  if (input.form == Form::kHuman) return typed_integer(input, low, high);
  const Json& value = input.json;
  // The parser makes a floating-point number of a whole one that fits nowhere else.
  constexpr double kPastEveryInteger = 9.2e18;
  const bool huge =
      value.is_number_float() && std::abs(value.get_ref<const double&>()) >= kPastEveryInteger;
  if (!huge && !is_whole(value)) {
    input.expected("a whole number");
    return std::nullopt;
  }
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool past_int64 = value.is_number_unsigned() && value.get_ref<const uint64_t&>() > kMost;
  const int64_t number = huge || past_int64 ? 0 : value.get<int64_t>();
  if (huge || past_int64 || number < low || number > high) {
    input.note(out_of_range(std::to_string(low), std::to_string(high)));
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> read_milli(const Input& input, int64_t low, int64_t high) {
  if (!input.json.is_number()) {
    input.expected("a number");
    return std::nullopt;
  }
  low = std::max(low, -kMostWithDecimals * 1000);
  high = std::min(high, kMostWithDecimals * 1000);
  const auto number = input.json.get<double>();
  const bool huge = std::abs(number) > static_cast<double>(kMostWithDecimals);
  const std::optional<int64_t> thousandths = huge ? std::nullopt : thousandths_of(number);
  if (huge || (thousandths && (*thousandths < low || *thousandths > high))) {
    input.note(out_of_range(base::format_milli(low), base::format_milli(high)));
    return std::nullopt;
  }
  if (!thousandths) input.note("has more than three decimals");
  return thousandths;
}

std::optional<size_t> read_choice(const Input& input, const std::vector<std::string>& names) {
  if (!input.json.is_string()) {
    input.expected(input.form == Form::kHuman ? "a single value" : "text");
    return std::nullopt;
  }
  const auto& word = input.json.get_ref<const std::string&>();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) {
    input.note("'" + base::shortened(word) + "' is none of " + base::joined(names) +
               did_you_mean(word, names));
    return std::nullopt;
  }
  return static_cast<size_t>(found - names.begin());
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  // Nobody means a known word by a text of thousands of bytes, and comparing takes its square.
  if (word.size() > 64) return "";
  const std::string near = base::nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace muster::record
