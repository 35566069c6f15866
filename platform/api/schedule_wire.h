// Schedules as JSON. docs/api.md shows each shape by example.
//
// Pure; thread-safe. Reading as in wire.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/schedule.h"

namespace muster::api {

using base::Result;

std::string schedule_to_json(const job::Schedule& schedule);
Result<job::Schedule> schedule_from_json(std::string_view text);

/// POST /v1/schedules
std::string schedule_spec_to_json(const job::ScheduleSpec& spec);
/// A text with faults also has those of job::validate_schedule() and of `faults_of_times` in the
/// fields that could be read.
Result<job::ScheduleSpec> schedule_spec_from_json(
    std::string_view text,
    const std::function<std::vector<base::Fault>(const job::ScheduleSpec&)>& faults_of_times = {});

/// {"schedules": [...]}
std::string schedules_to_json(const std::vector<job::Schedule>& schedules);
Result<std::vector<job::Schedule>> schedules_from_json(std::string_view text);

}  // namespace muster::api
