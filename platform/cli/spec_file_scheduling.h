// The parts of a job file that say what a job needs, and when and where it runs.
//
// Pure.
#pragma once

#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

void read_resources(YamlFields& fields, const std::string& field, const YamlValue& value,
                    job::Resources& resources);
void read_scheduling(YamlFields& fields, const YamlValue& value, job::Scheduling& scheduling);

}  // namespace muster::cli
