// The fields that are numbers: whole ones to the last digit, decimals to the thousandth.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/fields.h"
#include "job/units.h"

namespace muster::api {

namespace {

template <class Number>
constexpr Number kLeast = std::numeric_limits<Number>::min();
template <class Number>
constexpr Number kMost = std::numeric_limits<Number>::max();

/// Up to here a double tells thousandths apart, and their number is exact in one.
constexpr int64_t kMostWithDecimals = 1'000'000'000'000;

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
bool is_whole(const nlohmann::json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  constexpr double kTellsApart = 9007199254740992.0;
  const double number = value.get_ref<const double&>();
  return std::trunc(number) == number && std::abs(number) <= kTellsApart;
}

}  // namespace

void Fields::read(std::string_view name, int& into, Need need) {
  if (const auto value = integer(name, kLeast<int>, kMost<int>, need)) {
    into = static_cast<int>(*value);
  }
}

void Fields::read(std::string_view name, int64_t& into, Need need) {
  if (const auto value = integer(name, kLeast<int64_t>, kMost<int64_t>, need)) into = *value;
}

void Fields::read(std::string_view name, std::chrono::milliseconds& into, Need need) {
  if (const auto value = integer(name, kLeast<int64_t>, kMost<int64_t>, need)) {
    into = std::chrono::milliseconds(*value);
  }
}

void Fields::read(std::string_view name, std::vector<int>& into) {
  const Json* value = find(name, Need::kOptional);
  if (value == nullptr) return;
  const std::string path = path_ + std::string(name);
  if (!value->is_array()) return expected("a list of whole numbers", *value, path);
  into.clear();
  for (size_t i = 0; i < value->size(); ++i) {
    const auto number =
        integer_of((*value)[i], kLeast<int>, kMost<int>, path + "[" + std::to_string(i) + "]");
    if (number) into.push_back(static_cast<int>(*number));
  }
}

void Fields::read(std::string_view name, double& into, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return;
  if (!value->is_number()) return expected("a number", *value, path_ + std::string(name));
  into = value->get<double>();
}

void Fields::read_milli(std::string_view name, int64_t& into, Need need) {
  const int64_t most = kMostWithDecimals * 1000;
  if (const auto value = milli(name, -most, most, need)) into = *value;
}

void Fields::read_milli(std::string_view name, int& into, Need need) {
  if (const auto value = milli(name, kLeast<int>, kMost<int>, need))
    into = static_cast<int>(*value);
}

std::optional<int64_t> Fields::milli(std::string_view name, int64_t low, int64_t high, Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return std::nullopt;
  const std::string path = path_ + std::string(name);
  if (!value->is_number()) {
    expected("a number", *value, path);
    return std::nullopt;
  }
  const auto number = value->get<double>();
  const bool huge = std::abs(number) > static_cast<double>(kMostWithDecimals);
  const std::optional<int64_t> thousandths = huge ? std::nullopt : thousandths_of(number);
  if (huge || (thousandths && (*thousandths < low || *thousandths > high))) {
    note(path, out_of_range(job::format_milli(low), job::format_milli(high)));
    return std::nullopt;
  }
  if (!thousandths) note(path, "has more than three decimals");
  return thousandths;
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t low, int64_t high,
                                       Need need) {
  const Json* value = find(name, need);
  if (value == nullptr) return std::nullopt;
  return integer_of(*value, low, high, path_ + std::string(name));
}

std::optional<int64_t> Fields::integer_of(const Json& value, int64_t low, int64_t high,
                                          const std::string& path) {
  // The parser makes a floating-point number of a whole one that fits nowhere else.
  constexpr double kPastEveryInteger = 9.2e18;
  const bool huge =
      value.is_number_float() && std::abs(value.get_ref<const double&>()) >= kPastEveryInteger;
  if (!huge && !is_whole(value)) {
    expected("a whole number", value, path);
    return std::nullopt;
  }
  const bool past_int64 = value.is_number_unsigned() &&
                          value.get_ref<const uint64_t&>() > static_cast<uint64_t>(kMost<int64_t>);
  const int64_t number = huge || past_int64 ? 0 : value.get<int64_t>();
  if (huge || past_int64 || number < low || number > high) {
    note(path, out_of_range(std::to_string(low), std::to_string(high)));
    return std::nullopt;
  }
  return number;
}

}  // namespace muster::api
