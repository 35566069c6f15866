#include "api/wire_parts.h"

#include "job/job_table.h"

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

void write_events(JsonWriter& json, const std::vector<job::Event>& events) {
  json.key("events").open('[');
  for (const job::Event& event : events) record::write(json, event);
  json.close(']');
}

void read_events(Fields& fields, std::vector<job::Event>& events) {
  fields.records("events", events);
}

}  // namespace muster::api
