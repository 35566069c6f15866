// Room for a gang, of an engine that does not say what is free but asks a cluster for room, which
// has a queue of its own (Slurm). Muster's scheduler plans nothing there: who waits, waits in the
// cluster's queue, and the cluster says why.
//
//   ask_for_room(gang, wish)  ->  RoomWaits, as often as there is news
//                             ->  RoomGiven once, or RoomRefused
//   start(gang, tasks) ...    ->  RoomSays: what the cluster says of it while it is there
//                             ->  RoomTaken, where the cluster takes it away
//   give_back_room(gang)      ->  nothing more
//
// Plain values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::engine {

/// A task that room is asked for.
struct TaskWish {
  std::string task;
  job::Role role = job::Role::kSingle;
  job::Resources resources;     ///< of the node
  bool may_be_missing = false;  ///< a worker beyond the least that its elastic job starts with
  bool only_launches = false;   ///< a launcher that takes no ranks itself

  bool operator==(const TaskWish&) const = default;
};

/// All or none of it is given, but for what may be missing.
struct RoomWish {
  std::string job;  ///< its name, for people who look at the cluster's queue
  std::string project;
  std::vector<TaskWish> tasks;          ///< in the order of the job
  std::vector<std::string> node_pools;  ///< any of these; empty: the cluster's default
  std::vector<std::string> gpu_models;  ///< any of these; empty: any
  std::vector<std::string> avoided_nodes;
  std::optional<std::chrono::milliseconds> time_limit;  ///< of the job
  std::chrono::milliseconds grace{0};                   ///< between SIGTERM and SIGKILL
  std::chrono::milliseconds start_timeout{0};           ///< from the time that there is room
  job::SlurmSpec slurm;

  bool operator==(const RoomWish&) const = default;
};

/// It waits in the cluster's queue, or for the cluster.
struct RoomWaits {
  job::Reason reason;                   ///< as a rule job::SlurmWaits
  std::optional<base::Time> may_start;  ///< as the cluster estimates
  std::string constraint;               ///< the cluster's own word for it: "QOSMaxGRESPerUser"

  bool operator==(const RoomWaits&) const = default;
};

/// Where one task may run from now on.
struct RoomPlace {
  std::string task;
  std::string node;  ///< one of nodes()
  std::vector<int> devices;

  bool operator==(const RoomPlace&) const = default;
};

/// The room is there, and on every node of it what will start its tasks.
struct RoomGiven {
  /// Of each task, but for the last of those that may be missing.
  std::vector<RoomPlace> places;
  uint64_t slurm_job = 0;  ///< where

  bool operator==(const RoomGiven&) const = default;
};

/// It will never be given as it was asked for. Nothing is left of it.
struct RoomRefused {
  base::Error error;
};

/// What the cluster does to a gang that has room: it has suspended it. Nothing: that is over.
struct RoomSays {
  std::optional<job::SlurmState> state;

  bool operator==(const RoomSays&) const = default;
};

/// The cluster has taken the room away, or whatever it was about to give: it may also be told of a
/// gang that waits (a node of it never called). For each task that had not ended a TaskEnded
/// follows, as lost; where none had been started, nothing does. The gang is asked for no more; who
/// wants to go on asks for the next attempt, and gives this one back after that.
struct RoomTaken {
  enum class Why {
    kEvicted,    ///< for another, or by hand to run again later: the job is to be asked for again
    kNodeLost,   ///< a node failed: the same, where the job's rules allow it
    kCancelled,  ///< somebody has deleted it in the cluster: nobody wants it any more
    kFailed,     ///< it went too far: its time limit, its memory
  };
  Why why = Why::kFailed;
  job::SlurmEnded end;               ///< what the cluster did
  std::string advice;                ///< empty: none
  std::string node;                  ///< kNodeLost: which, where it is known
  std::vector<std::string> printed;  ///< the last lines of what started the tasks there

  bool operator==(const RoomTaken&) const = default;
};

using RoomNews = std::variant<RoomWaits, RoomGiven, RoomRefused, RoomSays, RoomTaken>;

}  // namespace muster::engine
