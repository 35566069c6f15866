// Those that wait in one pool, by project, gathered into classes that share one verdict: same
// project, same priority, same room asked for.
//
// Plain data with its order; no I/O. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "schedule/gang_state.h"

namespace muster::schedule {

/// Room that is asked for, whoever asks. What it was refused last holds until room on a node that
/// could serve it has grown.
struct AskKey {
  uint64_t shape = 0;
  std::vector<int> counts;
  uint64_t gang = 0;  ///< its number, where the answer depends on where the rest of it runs; else 0

  auto operator<=>(const AskKey&) const = default;
};

struct Ask {
  AskKey key;
  std::vector<Claim> claims;          ///< that it has at least one task of
  std::vector<WaitClass*> classes;    ///< that ask for it
  std::optional<Shortage> shortage;   ///< no room now; nothing: not known
  bool only_reserved = false;         ///< there is room, but it is kept for others
  uint64_t consolidation_failed = 0;  ///< the pool's epoch then
};

struct FirstInOrder {
  bool operator()(const GangState* left, const GangState* right) const {
    return std::tie(left->gang.sequence, left->number) <
           std::tie(right->gang.sequence, right->number);
  }
};
using Waiters = std::set<GangState*, FirstInOrder>;

struct ClassKey {
  int priority = 0;
  ElasticState state = ElasticState::kBelowMinimum;
  bool preemptible = true;
  AskKey ask;

  auto operator<=>(const ClassKey&) const = default;
};

struct WaitClass {
  ClassKey key;
  ProjectIndex leaf = kNoProject;
  Ask* ask = nullptr;
  Amounts charge;
  Waiters waiters;
  Waiters untold;  ///< those of which no Wait has been reported since they came
  Constraint constraint = Constraint::kNone;
  std::optional<CapacityRefusal> refusal;
  job::JobRef held_by;          ///< kReserved: the gang that the room is kept for
  bool changed = false;         ///< its constraint, in this plan
  bool emptied = false;         ///< stands among its pool's empty_classes
  uint64_t reclaim_failed = 0;  ///< the pool's epoch then
  uint64_t preemption_failed = 0;

  GangState& head() const { return **waiters.begin(); }

  /// One task more for gangs that run with their minimum. They take what is free, or theirs by
  /// right; nobody is moved for it, and no room is kept.
  bool only_grows() const { return key.state != ElasticState::kBelowMinimum; }
};

/// What of one project waits and runs in one pool.
struct ProjectQueue {
  std::map<ClassKey, std::unique_ptr<WaitClass>> classes;
  std::set<VictimKey> cores;  ///< gangs that may be evicted, the first to go first
  /// In this allocation, what is less important than this takes no room.
  std::optional<int> held_for;
  std::set<VictimKey> extras;  ///< those that can lose a task without falling below their minimum
};

}  // namespace muster::schedule
