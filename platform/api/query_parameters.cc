#include "api/query_parameters.h"

#include <utility>

#include "api/fields.h"
#include "base/text.h"
#include "record/input.h"

namespace muster::api {

std::vector<base::Fault> read_parameters(
    const Parameters& parameters,
    const std::function<std::string(const std::string& name, const std::string& value)>& take) {
  std::vector<base::Fault> faults;
  for (const auto& [name, value] : parameters) {
    std::string what = take(name, value);
    if (what.empty()) continue;
    faults.push_back({.field = shortened(as_utf8(name)), .what = std::move(what)});
  }
  return faults;
}

std::string unknown_parameter(const std::string& name, const std::vector<std::string>& known) {
  return "is not a parameter" + record::did_you_mean(shortened(name), known);
}

std::string take_flag(const std::string& value, bool& into) {
  into = value == "true";
  return into || value == "false" ? "" : in_quotes(value) + " is neither true nor false";
}

base::Error wrong_query(std::string what, std::vector<base::Fault> faults) {
  return {.code = base::ErrorCode::kInvalid,
          .what = std::move(what),
          .advice = {},
          .faults = std::move(faults)};
}

}  // namespace muster::api
