// What `muster doctor` found, for people and for programs.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/diagnosis.h"

namespace muster::cli {

/// A section for each engine: whether it can run jobs, then a line for each finding, and below it
/// what to do. `chosen`: the engine that the server would have.
std::string doctor_page(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        bool colour);

/// {"version": ..., "chosen": "process", "engines": [{"engine", "can_run", "findings": [{"subject",
/// "verdict", "text", "advice"}]}]}
std::string doctor_json(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        const std::string& version);

/// Whether `chosen` is among them and can run jobs.
bool is_well(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen);

}  // namespace muster::cli
