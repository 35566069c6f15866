#include "api/forecast_wire.h"

#include "words/job_table.h"

namespace muster::api {

using job::Explanation;
using job::Forecast;

std::string forecast_to_json(const Forecast& forecast) {
  return record::to_json(forecast);
}
Result<Forecast> forecast_from_json(std::string_view text) {
  return record::from_json<Forecast>(text, "forecast");
}

std::string explanation_to_json(const Explanation& explanation) {
  return record::to_json(explanation);
}
Result<Explanation> explanation_from_json(std::string_view text) {
  return record::from_json<Explanation>(text, "explanation");
}

}  // namespace muster::api
