// What is told of a gang in Slurm: facts for those whose job it is.
//
// Pure, but for the names of users, which the system knows, and the clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/room.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

RoomWaits sent_words(uint64_t job);
RoomWaits not_sent_words(const std::string& why);
RoomWaits unsure_words();
/// It is pending: with Slurm's reason, its estimate, and where it waits.
RoomWaits waiting_words(const ListedJob& job);
/// It has nodes, of which `silent` have not called back yet; `awaited_at`: by which names and port.
RoomWaits starting_words(const ListedJob& job, const std::vector<std::string>& silent,
                         const std::string& awaited_at);

/// It waits again, and what ran of it is still being ended.
RoomWaits completing_words(const ListedJob& job);

job::SlurmState suspended_words(const ListedJob& job);
job::SlurmState ending_words(const ListedJob& job);
/// Slurm's controller does not answer.
job::SlurmState away_words(base::Time since);
/// It waits until what Slurm still runs of an earlier attempt has ended.
RoomWaits earlier_words(uint64_t job);
/// What it waits for while that is so, after what was told `before`; `job` is 0 where Slurm has
/// none of it yet. `why`: what Slurm's programs have printed, which becomes the details.
RoomWaits away_waits(const RoomWaits& before, uint64_t job, base::Time since,
                     const std::string& why);

/// Nodes that did not call; empty: nobody knows which.
RoomTaken late_words(uint64_t job, const std::vector<std::string>& nodes,
                     std::chrono::milliseconds bound);
/// Slurm runs it again later. `broken_node`: one of its nodes that is down; empty: none.
RoomTaken queued_again_words(uint64_t job, const std::string& broken_node);
/// `was_there`: its tasks could run. kUnknown: Slurm has forgotten it.
RoomTaken over_words(const ListedJob& job, bool was_there);
RoomTaken node_down_words(uint64_t job, const std::string& node);
/// A node whose muster-node has not been heard for long.
RoomTaken silent_words(uint64_t job, const std::string& node, const std::string& task);

}  // namespace muster::engine::slurm
