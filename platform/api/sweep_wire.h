// Sweeps as JSON, for the API. The documents are described by their tables (sweep/sweep.h).
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/sweep.h"

namespace muster::api {

/// Errors of the readers: kInvalid with every fault.
std::string sweep_spec_to_json(const sweep::SweepSpec& spec);
/// A text with faults also has those of sweep::validate() in the fields that could be read.
base::Result<sweep::SweepSpec> sweep_spec_from_json(std::string_view text);

std::string sweep_to_json(const sweep::Sweep& sweep);
base::Result<sweep::Sweep> sweep_from_json(std::string_view text);

/// {"sweeps": [...]}, oldest first.
std::string sweeps_to_json(const std::vector<sweep::SweepSummary>& sweeps);
base::Result<std::vector<sweep::SweepSummary>> sweeps_from_json(std::string_view text);

/// As the watch of jobs reports a sweep.
base::Result<sweep::SweepSummary> sweep_summary_from_json(std::string_view text);

std::string sweep_plan_to_json(const sweep::SweepPlan& plan);
base::Result<sweep::SweepPlan> sweep_plan_from_json(std::string_view text);

}  // namespace muster::api
