// Nodes whose machines do not answer for the moment: what runs there goes on, and its job says so.
// Nothing new is placed there until they answer, or are gone.
#include <algorithm>

#include "control/controller.h"
#include "control/live_gang.h"
#include "control/run.h"
#include "engine/engine.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::Node;
using job::Job;
using job::Phase;
using job::Task;

namespace {

bool runs_on(const Job& job, const std::string& node) {
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.phase != job::TaskPhase::kEnded && task.node == node;
  });
}

}  // namespace

/// Tells the jobs that have tasks on nodes that were heard of `before`, and now are not, or are
/// again.
void Controller::tell_of_silence(const std::vector<Node>& before) {
  for (const Node& old : before) {
    const Node* const now = node_named(old.name);
    const bool is_silent = now != nullptr && engine::is_silent(*now);
    if (now == nullptr || is_silent == engine::is_silent(old)) continue;
    for (const auto& [sequence, entry] : entries_) {
      Job& job = entry->job;
      if (!entry->run || !runs_on(job, old.name)) continue;
      note(job, job::NodeSilence{.node = old.name, .silent = is_silent});
      const bool is_ending = entry->run->ending || job.eviction || job.stop_requested;
      if (job.phase == Phase::kRunning && !is_ending) job.reason = running_reason(job);
      change(*entry);
    }
  }
}

/// "runs", with how many workers where that changes, which of its nodes are silent, and what the
/// cluster says of it.
job::Fact Controller::running_reason(const Job& job) const {
  job::Runs reason;
  if (launch::resizes_live(job.spec)) reason.workers = workers_of(job, count_members(job));
  for (const Node& node : nodes_) {
    if (!engine::is_silent(node) || !runs_on(job, node.name)) continue;
    reason.silent.push_back({.node = node.name, .since = node.labels.at(engine::kSilentSince)});
  }
  const Entry* const entry = by_id(job.id);
  if (entry != nullptr && entry->run) reason.in_slurm = entry->run->room_says;
  return reason;
}

bool Controller::is_silent(const std::string& node) const {
  const Node* const known = node_named(node);
  return known != nullptr && engine::is_silent(*known);
}

bool Controller::takes_nothing_new(const std::string& node) const {
  const Node* const known = node_named(node);
  const bool is_closed = known != nullptr && engine::is_closed(*known);
  return cordoned_.count(node) > 0 || is_closed || is_silent(node);
}

}  // namespace muster::control
