// Jobs, projects and nodes as the scheduler sees them, and its answers as the API shows them.
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

/// Places of the tasks of a gang, by seat; nothing: the seat has no place.
using SeatPlaces = std::vector<std::optional<schedule::TaskPlace>>;

schedule::Claim claim_of(const job::Resources& resources);
schedule::Quota to_schedule(const job::Quota& quota);
schedule::Project to_schedule(const job::Project& project);
schedule::Node to_schedule(const engine::Node& node, bool cordoned);

/// `pools`: the pools that a job without a pool of its own may use, in this order. `workers`: the
/// number of workers, instead of the number in the spec.
schedule::Gang to_schedule(const job::Job& job, uint64_t sequence,
                           const std::vector<std::string>& pools,
                           std::optional<int> workers = std::nullopt);

/// The places that the tasks of the job hold. A task that leaves holds its place until it ends.
SeatPlaces places_of(const job::Job& job);

/// kUnlimited becomes an empty value.
job::Share to_share(const schedule::Amounts& amounts);
job::ProjectStatus::Amounts to_amounts(const schedule::Amounts& amounts);
void add(job::ProjectStatus::Amounts& to, const schedule::Amounts& more);
job::ProjectStatus status_of(const job::Project& project, const schedule::Standing& standing);

}  // namespace muster::control
