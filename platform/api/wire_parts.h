// Parts that several documents of the wire share.
//
// Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/fields.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::api {

/// Nothing is left out.
void write_time(JsonWriter& json, std::string_view name, const std::optional<base::Time>& time);

void read_phase(Fields& fields, job::Phase& phase);

/// "text", and the fact that it is made of: "fact". Who reads takes the fact, or else the text as a
/// remark.
void write_fact(JsonWriter& json, const job::Fact& fact);
void read_fact(Fields& fields, job::Fact& fact);

/// `text`: "reason", the name of the sentence; `details`: of the list of sentences behind it.
void write_reason(JsonWriter& json, const job::Reason& reason, std::string_view details);
void read_reason(Fields& fields, job::Reason& reason, std::string_view details);

void write_events(JsonWriter& json, const std::vector<job::Event>& events);
void read_events(Fields& fields, std::vector<job::Event>& events);

void write_project(JsonWriter& json, const job::ProjectStatus& project);
void read_project_status(Fields& fields, job::ProjectStatus& project);

}  // namespace muster::api
