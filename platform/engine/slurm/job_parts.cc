#include "engine/slurm/job_parts.h"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <utility>

namespace muster::engine::slurm {

namespace {

/// Says what became of the whole, where others only say that they ended with it.
bool says_why(JobState state) {
  return state == JobState::kNodeFailed || state == JobState::kPreempted ||
         state == JobState::kTimeout || state == JobState::kDeadline ||
         state == JobState::kOutOfMemory || state == JobState::kBootFailed;
}

void add_part(ListedJob& whole, const ListedJob& part) {
  whole.nodes.insert(whole.nodes.end(), part.nodes.begin(), part.nodes.end());
  if (whole.reason.empty()) whole.reason = part.reason;
  if (whole.comment.empty()) whole.comment = part.comment;
  whole.restarts = std::max(whole.restarts, part.restarts);
  if (part.may_start && (!whole.may_start || *whole.may_start < *part.may_start)) {
    whole.may_start = part.may_start;
  }
  const bool is_worse = is_over(whole.state) && !says_why(whole.state) && says_why(part.state);
  // One that still has nodes keeps the whole from being over.
  if (is_worse || (is_over(whole.state) && !is_over(part.state))) {
    whole.state = is_over(part.state) ? part.state : JobState::kCompleting;
    whole.state_text = part.state_text;
  }
}

}  // namespace

std::vector<ListedJob> whole_jobs(const std::vector<ListedPart>& parts) {
  std::map<uint64_t, std::vector<const ListedPart*>> members;
  for (const ListedPart& part : parts) members[part.leader].push_back(&part);
  std::vector<ListedJob> jobs;
  for (const ListedPart& part : parts) {
    auto all = members.extract(part.leader);
    if (all.empty()) continue;  // it stands where its first part was
    std::stable_sort(
        all.mapped().begin(), all.mapped().end(),
        [](const ListedPart* one, const ListedPart* other) { return one->offset < other->offset; });
    ListedJob whole = all.mapped().front()->job;
    whole.id = part.leader;
    for (size_t i = 1; i < all.mapped().size(); ++i) add_part(whole, all.mapped()[i]->job);
    jobs.push_back(std::move(whole));
  }
  return jobs;
}

void set_exit(ListedJob& job, uint32_t status) {
  const int code = static_cast<int>(status & 0xffff);
  job.exit_signal = WIFSIGNALED(code) ? WTERMSIG(code) : 0;
  job.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 0;
}

}  // namespace muster::engine::slurm
