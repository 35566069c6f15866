// Facts as JSON, both ways: {"kind": "reserved", "held_for": {"id": ..., "name": ..., "project":
// ...}}.
//
// Zero, empty and unknown fields are omitted. The API, the store and the engines' records use the
// same format. Reading ignores unknown fields, so it accepts facts written by a newer Muster; it
// returns nothing for an unknown kind or a field of a wrong type.
//
// Pure; thread-safe.
#pragma once

#include <optional>

#include "job/fact.h"
#include "record/json_writer.h"
#include "record/value.h"

namespace muster::job {

// Invalid UTF-8 is replaced.
void write_data(record::JsonWriter& json, const Fact& fact);
void write_data(record::JsonWriter& json, const Eviction& why);
void write_data(record::JsonWriter& json, const FailureCause& cause);
void write_data(record::JsonWriter& json, const AllocationEnd& end);
void write_data(record::JsonWriter& json, const JobRef& job);
/// The fields of its fact, and "details".
void write_data(record::JsonWriter& json, const Reason& reason);

template <class T>
std::string data_of(const T& value) {
  std::string text;
  record::JsonWriter json(text);
  write_data(json, value);
  return text;
}

std::optional<Fact> fact_of(const record::Value& data);
std::optional<Eviction> eviction_of(const record::Value& data);
std::optional<FailureCause> failure_cause_of(const record::Value& data);
std::optional<AllocationEnd> allocation_end_of(const record::Value& data);
std::optional<JobRef> job_ref_of(const record::Value& data);
std::optional<Reason> reason_of(const record::Value& data);

}  // namespace muster::job
