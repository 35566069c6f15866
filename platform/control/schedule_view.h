// The scheduler's view of jobs, projects and nodes, and back.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"
#include "schedule/plan.h"

namespace muster::control {

schedule::Claim claim_of(const job::Resources& resources);
schedule::Quota to_schedule(const job::Quota& quota);
schedule::Project to_schedule(const job::Project& project);
schedule::Node to_schedule(const engine::Node& node, bool cordoned);

/// `pools`: what a job that names none may use, in this order. `workers`: so many instead of all
/// that the spec asks for.
schedule::Gang to_schedule(const job::Job& job, uint64_t sequence,
                           const std::vector<std::string>& pools,
                           std::optional<int> workers = std::nullopt);

/// By seat; nothing where nobody sits. Who has left sits there until it has ended.
std::vector<std::optional<schedule::TaskPlace>> places_of(const job::Job& job);

/// kUnlimited is nothing.
job::Share to_share(const schedule::Amounts& amounts);
job::ProjectStatus::Amounts to_amounts(const schedule::Amounts& amounts);
void add(job::ProjectStatus::Amounts& to, const schedule::Amounts& more);
job::ProjectStatus status_of(const job::Project& project, const schedule::Standing& standing);

}  // namespace muster::control
