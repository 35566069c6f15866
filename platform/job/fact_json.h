// Facts as JSON, both ways: {"kind": "reserved", "held_for": {"id": ..., "name": ..., "project":
// ...}}.
//
// A field that is zero, empty or not known is left out. One format for the API, the store and the
// engines' own records. Reading ignores fields that it does not know, and so takes what a newer
// Muster wrote; it returns nothing for a kind that it does not know, or a field of a wrong type.
//
// Pure; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "job/fact.h"

namespace muster::job {

nlohmann::json to_json(const Fact& fact);
nlohmann::json to_json(const Eviction& why);
nlohmann::json to_json(const FailureCause& cause);
nlohmann::json to_json(const SlurmEnded& end);
nlohmann::json to_json(const JobRef& job);
/// The fields of its fact, and "details".
nlohmann::json to_json(const Reason& reason);

std::optional<Fact> fact_of(const nlohmann::json& json);
std::optional<Eviction> eviction_of(const nlohmann::json& json);
std::optional<FailureCause> failure_cause_of(const nlohmann::json& json);
std::optional<SlurmEnded> slurm_ended_of(const nlohmann::json& json);
std::optional<JobRef> job_ref_of(const nlohmann::json& json);
std::optional<Reason> reason_of(const nlohmann::json& json);

/// As text; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& json);

}  // namespace muster::job
