// Forecasts (submit --dry-run) and explanations over the wire, both ways. docs/api.md shows each
// shape by example.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/forecast.h"

namespace muster::api {

using base::Result;

std::string forecast_to_json(const job::Forecast& forecast);
Result<job::Forecast> forecast_from_json(std::string_view text);

std::string explanation_to_json(const job::Explanation& explanation);
Result<job::Explanation> explanation_from_json(std::string_view text);

}  // namespace muster::api
