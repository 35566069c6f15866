// The query of a URL, read into a value: every parameter that is wrong or unknown is a fault.
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

/// Hands over each parameter; `take` says what is wrong with it, or nothing once it is taken.
std::vector<base::Fault> read_parameters(
    const Parameters& parameters,
    const std::function<std::string(const std::string& name, const std::string& value)>& take);

/// What is wrong with a parameter that is none of `known`.
std::string unknown_parameter(const std::string& name, const std::vector<std::string>& known);

using base::in_quotes;

/// kInvalid. `what`: "the query for jobs is wrong".
base::Error wrong_query(std::string what, std::vector<base::Fault> faults);

}  // namespace muster::api
