#include "api/forecast_wire.h"

#include <nlohmann/json.hpp>

#include "api/wire_parts.h"
#include "job/fact_json.h"
#include "words/sentence.h"

namespace muster::api {

using job::Explanation;
using job::Forecast;
using job::Placing;

namespace {

void write_placing(JsonWriter& json, const Placing& placing) {
  json.open('{');
  json.key("task").text(placing.task);
  json.key("node").text(placing.node);
  json.key("devices").numbers(placing.devices);
  json.key("gpu_share").milli(placing.gpu_share_milli);
  json.close('}');
}

void read_placing(Fields& fields, Placing& placing) {
  fields.read("task", placing.task, Need::kRequired);
  fields.read("node", placing.node, Need::kRequired);
  fields.read("devices", placing.devices);
  fields.read_milli("gpu_share", placing.gpu_share_milli);
}

void write_expected_eviction(JsonWriter& json, const job::ExpectedEviction& eviction) {
  json.open('{');
  job::write_data(json.key("job"), eviction.job);
  job::write_data(json.key("why"), eviction.why);
  json.close('}');
}

void read_expected_eviction(Fields& fields, job::ExpectedEviction& eviction) {
  if (const record::Value* const job = fields.value("job")) {
    eviction.job = job::job_ref_of(*job).value_or(job::JobRef{});
  }
  if (const record::Value* const why = fields.value("why")) {
    eviction.why = job::eviction_of(*why).value_or(job::Eviction{});
  }
}

void read_forecast(Fields& fields, Forecast& forecast) {
  fields.read("starts_now", forecast.starts_now, Need::kRequired);
  fields.each("placing",
              [&](Fields& inner) { read_placing(inner, forecast.placing.emplace_back()); });
  fields.ignore("evictions");
  fields.each("eviction_facts", [&](Fields& inner) {
    read_expected_eviction(inner, forecast.evictions.emplace_back());
  });
  fields.read("hides_evictions", forecast.hides_evictions);
  read_reason(fields, forecast.reason, "details");
  fields.read("may_start", forecast.may_start);
  fields.object(
      "before", [&](Fields& inner) { read_project_status(inner, forecast.before); },
      Need::kRequired);
  fields.object(
      "after", [&](Fields& inner) { read_project_status(inner, forecast.after); }, Need::kRequired);
}

void read_explanation(Fields& fields, Explanation& explanation) {
  fields.read("name", explanation.name, Need::kRequired);
  read_phase(fields, explanation.phase);
  fields.read("constraint", explanation.constraint);
  read_reason(fields, explanation.reason, "details");
  fields.read("may_start", explanation.may_start);
  fields.read("position", explanation.position);
  read_events(fields, explanation.events);
}

}  // namespace

std::string forecast_to_json(const Forecast& forecast) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("starts_now").flag(forecast.starts_now);
  json.key("placing").open('[');
  for (const Placing& placing : forecast.placing) write_placing(json, placing);
  json.close(']');
  json.key("evictions").texts(words::evictions(forecast));
  json.key("eviction_facts").open('[');
  for (const job::ExpectedEviction& each : forecast.evictions) write_expected_eviction(json, each);
  json.close(']');
  json.key("hides_evictions").flag(forecast.hides_evictions);
  write_reason(json, forecast.reason, "details");
  write_time(json, "may_start", forecast.may_start);
  json.key("before");
  write_project(json, forecast.before);
  json.key("after");
  write_project(json, forecast.after);
  json.close('}');
  return text;
}

Result<Forecast> forecast_from_json(std::string_view text) {
  Forecast forecast;
  MUSTER_CHECK(
      read_document(text, "forecast", [&](Fields& fields) { read_forecast(fields, forecast); }));
  return forecast;
}

std::string explanation_to_json(const Explanation& explanation) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("name").text(explanation.name);
  json.key("phase").text(to_string(explanation.phase));
  json.key("constraint").text(explanation.constraint);
  write_reason(json, explanation.reason, "details");
  write_time(json, "may_start", explanation.may_start);
  json.key("position").number(explanation.position);
  write_events(json, explanation.events);
  json.close('}');
  return text;
}

Result<Explanation> explanation_from_json(std::string_view text) {
  Explanation explanation;
  MUSTER_CHECK(read_document(text, "explanation",
                             [&](Fields& fields) { read_explanation(fields, explanation); }));
  return explanation;
}

}  // namespace muster::api
