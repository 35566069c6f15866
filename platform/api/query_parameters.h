// Reads the query of a URL into a value: every parameter that is invalid or unknown is a fault.
//
// Pure; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "http/url.h"

namespace muster::api {

using Parameters = http::Query;

/// Calls `take` with each parameter; it returns the parameter's fault, or an empty text.
std::vector<base::Fault> read_parameters(
    const Parameters& parameters,
    const std::function<std::string(const std::string& name, const std::string& value)>& take);

/// The fault of a parameter that is not in `known`.
std::string unknown_parameter(const std::string& name, const std::vector<std::string>& known);

using base::in_quotes;

/// Sets `into` to the value "true" or "false". Any other value is false, and its fault is returned.
std::string take_flag(const std::string& value, bool& into);

/// kInvalid. `what`: "the query for jobs is invalid".
base::Error wrong_query(std::string what, std::vector<base::Fault> faults);

}  // namespace muster::api
