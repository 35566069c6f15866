#include "api/wire_parts.h"

#include <nlohmann/json.hpp>

#include "job/fact_json.h"
#include "words/job_table.h"
#include "words/sentence.h"

namespace muster::api {

using job::Phase;

void write_time(JsonWriter& json, std::string_view name, const std::optional<base::Time>& time) {
  if (time) json.key(name).time(*time);
}

void read_phase(Fields& fields, Phase& phase) {
  fields.choose("phase", phase,
                {Phase::kQueued, Phase::kStarting, Phase::kRunning, Phase::kSucceeded,
                 Phase::kFailed, Phase::kStopped},
                job::to_string, Need::kRequired);
}

void write_fact(JsonWriter& json, const job::Fact& fact) {
  json.key("text").prose(words::sentence(fact));
  job::write_data(json.key("fact"), fact);
}

void read_fact(Fields& fields, job::Fact& fact) {
  std::string text;
  fields.read("text", text, Need::kRequired);
  const record::Value* const data = fields.value("fact");
  auto known = data == nullptr ? std::nullopt : job::fact_of(*data);
  fact = known ? *std::move(known) : job::Fact(job::Remark{std::move(text)});
}

void write_reason(JsonWriter& json, const job::Reason& reason, std::string_view details) {
  json.key("reason");
  json.prose(words::sentence(reason));
  json.key(details).open('[');
  for (const std::string& detail : words::details(reason)) json.prose(detail);
  json.close(']');
  job::write_data(json.key("reason_facts"), reason);
}

void read_reason(Fields& fields, job::Reason& reason, std::string_view details) {
  std::string text;
  std::vector<std::string> lines;
  fields.read("reason", text);
  fields.read(details, lines);
  const record::Value* const data = fields.value("reason_facts");
  auto known = data == nullptr ? std::nullopt : job::reason_of(*data);
  if (known) {
    reason = *std::move(known);
    return;
  }
  reason = job::Remark{std::move(text)};
  for (std::string& line : lines) reason.details.emplace_back(job::Remark{std::move(line)});
}

void write_events(JsonWriter& json, const std::vector<job::Event>& events) {
  json.key("events").open('[');
  for (const job::Event& event : events) record::write(json, event);
  json.close(']');
}

void read_events(Fields& fields, std::vector<job::Event>& events) {
  fields.records("events", events);
}

}  // namespace muster::api
