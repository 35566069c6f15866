// The parts of a job file that say what a job needs, and when and where it runs.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

void read_resources(YamlFields& fields, const std::string& field, const YamlValue& value,
                    job::Resources& resources);
void read_scheduling(YamlFields& fields, const YamlValue& value, job::Scheduling& scheduling);

/// The keys that the two maps may have.
std::vector<std::string> names_of_resources();
std::vector<std::string> names_of_scheduling();

}  // namespace muster::cli
