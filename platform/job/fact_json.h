// Facts as JSON, both ways: {"kind": "reserved", "held_for": {"id": ..., "name": ..., "project":
// ...}}.
//
// A field that is zero, empty or not known is left out. One format for the API, the store and the
// engines' own records. Reading ignores fields that it does not know, and so takes what a newer
// Muster wrote; it returns nothing for a kind that it does not know, or a field of a wrong type.
//
// Pure; thread-safe.
#pragma once

#include <optional>

#include "job/fact.h"
#include "record/json_writer.h"
#include "record/value.h"

namespace muster::job {

// Bytes that are no UTF-8 are replaced.
void write_data(record::JsonWriter& json, const Fact& fact);
void write_data(record::JsonWriter& json, const Eviction& why);
void write_data(record::JsonWriter& json, const FailureCause& cause);
void write_data(record::JsonWriter& json, const SlurmEnded& end);
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
std::optional<SlurmEnded> slurm_ended_of(const record::Value& data);
std::optional<JobRef> job_ref_of(const record::Value& data);
std::optional<Reason> reason_of(const record::Value& data);

}  // namespace muster::job
