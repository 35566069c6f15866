// What a cluster is asked for on behalf of a job, what comes back, and how both are told.
//
// Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/room.h"
#include "job/job.h"
#include "schedule/model.h"

namespace muster::control {

/// The room that the job's next attempt needs. `closed`: nodes that take nothing new, beside those
/// that the job avoids.
engine::RoomWish wish_of(const job::Job& job, const std::set<std::string>& closed);

/// kRefused: no cluster could keep to what the job's spec says of its tasks' places. `cluster`: its
/// name, for the sentence.
base::Result<void> check_places_wished(const job::JobSpec& spec, const std::string& cluster);

/// What all tasks of a job that waits claim, with those that may be missing.
schedule::Amounts amounts_of(const job::Job& job);

/// A line for what would be asked for, and one for each thing that says where: "launcher (2 CPUs),
/// 4 workers (1 GPU and 8 CPUs each)", "in node pool a100", "for 2h at the most".
std::vector<std::string> lines_of(const engine::RoomWish& wish);

/// The places of the job's tasks, by seat; nothing where a worker is missing. kInternal: it is not
/// what was asked for.
base::Result<std::vector<std::optional<schedule::TaskPlace>>> places_in(
    const engine::RoomGiven& given, const job::Job& job);

/// Whether one is the same as the other but for times, estimates and the number of the Slurm job.
bool are_alike(const job::Fact& one, const job::Fact& other);

}  // namespace muster::control
