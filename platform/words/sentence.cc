#include "words/sentence.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "job/amounts.h"
#include "words/parts.h"

namespace muster::words {

using job::amount_text;
using job::count_text;

std::string quoted_job(const job::JobRef& job) {
  if (job.hidden) return "a job of another project";
  return "'" + (job.name.empty() ? job.id : job.name) + "'";
}

std::string job_of_project(const job::JobRef& job) {
  return quoted_job(job) + (job.hidden ? "" : " of project " + job.project);
}

std::string bare_project_text(const job::ProjectRef& project) {
  return project.hidden ? "another project" : "project " + project.name;
}

std::string project_text(const job::ProjectRef& project) {
  if (project.above.empty()) return bare_project_text(project);
  if (project.hidden) return "a project above " + project.above;
  return "project " + project.name + " (above " + project.above + ")";
}

namespace {

std::string tasks_text(int count) {
  return count_text(count, "task");
}

std::string workers_text(const job::Workers& workers) {
  return std::to_string(workers.count) + " of " + std::to_string(workers.requested) + " workers";
}

std::string continues_text(const job::Workers& workers) {
  return "the job continues with " + workers_text(workers);
}

std::string of(const job::Amounts& amounts, const std::vector<job::Resource>& resources) {
  std::vector<std::string> parts;
  for (const job::Resource resource : resources) {
    parts.push_back(amount_text(resource, amounts[resource]));
  }
  return parts.empty() ? job::amounts_text(amounts) : job::listed(parts);
}

std::string share_text(const job::ProjectShare& share,
                       const std::vector<job::Resource>& resources) {
  return project_text(share.project) + " uses " + of(share.uses, resources) + " (quota " +
         of(share.quota, resources) + ", fair share " + of(share.fair_share, resources) +
         ", priority " + std::to_string(share.priority) + ")";
}

std::string was(bool expected) {
  return expected ? "would be " : "was ";
}

/// Follows "it ", or a phrase that names the workers.
struct EvictionWords {
  std::string operator()(const job::SuspendedByUser&) const { return "was suspended"; }

  std::string operator()(const job::Reclaimed& why) const {
    std::string text =
        was(why.expected) + "evicted for " + job_of_project(why.by) + ", which claims its share";
    const char* separator = ": ";
    for (const job::ProjectShare& share : why.shares) {
      text += separator + share_text(share, why.compared);
      separator = "; ";
    }
    return text;
  }

  std::string operator()(const job::Preempted& why) const {
    return was(why.expected) + "preempted by " +
           (why.by.hidden ? "another job" : quoted_job(why.by)) + " (priority " +
           std::to_string(why.by_priority) + ") of the same project; this job has priority " +
           std::to_string(why.priority);
  }

  std::string operator()(const job::Moved& why) const {
    return std::string(why.expected ? "would be" : "is") + " moved so that " +
           job_of_project(why.so_that) + " fits; it " +
           (why.expected ? "would restart" : "restarts") + " on other nodes at once";
  }

  std::string operator()(const job::Stale& why) const {
    return "was evicted: only " + std::to_string(why.running) + " of its " +
           std::to_string(why.minimum) + " required tasks ran for more than " +
           base::format_duration(why.grace);
  }

  std::string operator()(const job::NodeDrained& why) const {
    return "was evicted: node " + why.node + " is being drained";
  }

  std::string operator()(const job::TooFewWorkers& why) const {
    return "has fewer workers left than its minimum of " + std::to_string(why.minimum);
  }

  std::string operator()(const job::SlurmEnded& why) const { return slurm_sentence(why); }
  std::string operator()(const job::KubernetesEnded& why) const { return kubernetes_sentence(why); }
  std::string operator()(const job::Remark& why) const { return why.text; }
};

/// Whether the sentence of the eviction has a subject other than the job.
bool has_own_subject(const job::Eviction& why) {
  return std::holds_alternative<job::SlurmEnded>(why) ||
         std::holds_alternative<job::KubernetesEnded>(why) ||
         std::holds_alternative<job::Remark>(why);
}

std::string notice_text(job::Notice::What what) {
  using What = job::Notice::What;
  switch (what) {
    case What::kWaitsForScheduler:
      return "waits for the scheduler";
    case What::kNotItsTurn:
      return "waits for its turn in the queue";
    case What::kRoomButNotItsTurn:
      return "resources are free, but it waits for its turn in the queue";
    case What::kSubmitted:
      return "submitted";
    case What::kStarts:
      return "starts";
    case What::kStartsWorkers:
      return "starts its workers";
    case What::kRunning:
      return "running";
    case What::kTakenUp:
      return "adopted by a new server";
    case What::kImagesGivenUp:
      return "stopped waiting for its images";
    case What::kAskedToStop:
      return "asked to stop";
    case What::kAskedToStopNow:
      return "asked to stop at once";
    case What::kBeingStopped:
      return "is being stopped";
    case What::kBeingEnded:
      return "is being ended";
    case What::kDone:
      return "done";
    case What::kWasStopped:
      return "was stopped";
    case What::kWasSuspended:
      return "was suspended";
    case What::kSuspendedAndGone:
      return "suspended; its resources are free";
    case What::kEvictedAndGone:
      return "evicted; waits to start again";
    case What::kResumed:
      return "resumed";
  }
  return "";
}

/// "'prep' has succeeded"
std::string awaited_text(const job::AwaitedEnd& end) {
  switch (end.condition) {
    case job::Dependency::Condition::kOk:
      return quoted_job(end.job) + " has succeeded";
    case job::Dependency::Condition::kAny:
      return quoted_job(end.job) + " has ended";
    case job::Dependency::Condition::kFailed:
      break;
  }
  return quoted_job(end.job) + " has failed";
}

struct FactWords {
  const Commands& commands;

  std::string operator()(const job::Remark& fact) const { return fact.text; }
  std::string operator()(const job::Notice& fact) const { return notice_text(fact.what); }
  std::string operator()(const job::OverCapacity& fact) const { return capacity_sentence(fact); }
  std::string operator()(const job::NoRoom& fact) const { return shortage_sentence(fact); }
  std::string operator()(const job::HeldByOthers& fact) const { return holders_sentence(fact); }
  std::string operator()(const job::SlurmWaits& fact) const { return slurm_sentence(fact); }
  std::string operator()(const job::SlurmQueue& fact) const { return slurm_sentence(fact); }
  std::string operator()(const job::SlurmState& fact) const { return slurm_sentence(fact); }
  std::string operator()(const job::SlurmEnded& fact) const { return slurm_sentence(fact); }
  std::string operator()(const job::KubernetesEnded& fact) const {
    return kubernetes_sentence(fact);
  }
  std::string operator()(const job::KubernetesWaits& fact) const {
    return kubernetes_sentence(fact);
  }
  std::string operator()(const job::Failed& fact) const { return sentence(fact.cause); }
  std::string operator()(const job::RanksAstray& fact) const { return failure_sentence(fact); }
  std::string operator()(const job::AttemptAbandoned& fact) const { return failure_sentence(fact); }

  std::string operator()(const job::NoProject& fact) const {
    return fact.has_children ? "project " + fact.project +
                                   " has subprojects; submit to a project without subprojects"
                             : "there is no project " + fact.project;
  }

  std::string operator()(const job::Reserved& fact) const {
    return "resources are free, but reserved for " + quoted_job(fact.held_for) +
           ", which is ahead of it in the queue and could not start otherwise";
  }

  std::string operator()(const job::Promised& fact) const {
    const std::string text = "nodes are reserved for " + tasks_text(fact.tasks) + " of it";
    if (!fact.leaving.count) return text + "; tasks of other jobs are still stopping there";
    const int leaving = *fact.leaving.count;
    if (leaving == 0) return text + ", but are not free yet";
    return text + "; " + tasks_text(leaving) + " of other jobs " + (leaving == 1 ? "is" : "are") +
           " still stopping there";
  }

  std::string operator()(const job::AfterEvictions& fact) const {
    const bool is_one = fact.jobs.count == 1;
    const std::string count = fact.jobs.count ? std::to_string(*fact.jobs.count) + " " : "";
    return "starts when " + count +
           (is_one ? "other job has released its" : "other jobs have released their") +
           " resources";
  }

  std::string operator()(const job::TriedAgain& fact) const {
    return "is retried in " + std::to_string(fact.in_seconds) + " s";
  }

  std::string operator()(const job::WaitsForJobs& fact) const {
    std::vector<std::string> parts;
    for (const job::AwaitedEnd& end : fact.jobs) parts.push_back(awaited_text(end));
    return "starts when " + base::joined(parts, " and ");
  }

  std::string operator()(const job::WaitsUntil& fact) const {
    return "does not start before " + base::to_rfc3339(fact.begin, 0);
  }

  std::string operator()(const job::WaitsForSingleton& fact) const {
    return "starts when " + quoted_job(fact.job) + " has ended; both have singleton '" +
           fact.singleton + "'";
  }

  std::string operator()(const job::WaitsForIsolation& fact) const {
    return "starts when the server listens for users again; this server would not isolate a job of "
           "user '" +
           fact.owner + "'";
  }

  std::string operator()(const job::Evicted& fact) const {
    std::string why = sentence(fact.why);
    switch (fact.stage) {
      case job::Evicted::Stage::kNotified:
        break;
      case job::Evicted::Stage::kBeingEnded:
        return (has_own_subject(fact.why) ? "is being ended: " : "is being ended; it ") + why;
      case job::Evicted::Stage::kWaitsAgain:
        return why + "; waits to start again";
    }
    return why;
  }

  std::string operator()(const job::Suspended& fact) const {
    return (fact.held ? "is held; " : "is suspended; ") + std::string(commands.resume) + fact.job +
           (fact.held ? " starts it" : " continues it");
  }

  std::string operator()(const job::Placed& fact) const {
    std::string text = "placed on " + base::joined(fact.nodes);
    if (fact.slurm_job != 0) text += " (Slurm job " + std::to_string(fact.slurm_job) + ")";
    text += ", attempt " + std::to_string(fact.attempt);
    if (fact.workers) text += ", with " + workers_text(*fact.workers);
    return text;
  }

  std::string operator()(const job::PhaseReached& fact) const {
    return std::string(job::to_string(fact.phase));
  }

  std::string operator()(const job::StartsAgain& fact) const {
    return sentence(fact.cause) + "; starts again: " + sentence(fact.retry);
  }

  std::string operator()(const job::EveryWorkerAnswers& fact) const {
    return "all workers answer; the " + fact.leader + " starts";
  }

  std::string operator()(const job::ImageNotRun& fact) const {
    return "this engine does not run images: its tasks use this machine's files instead of '" +
           fact.image + "'" +
           (fact.has_stand_in ? ", and run the command that is configured for it" : "");
  }

  std::string operator()(const job::LooksForImages& fact) const {
    return "checks for " + std::string(fact.images.size() == 1 ? "image " : "images ") +
           base::joined(fact.images);
  }

  std::string operator()(const job::FetchesImage& fact) const {
    std::string text = fact.node + " fetches " + fact.image;
    if (fact.all_megabytes > 0) {
      text += " (" + std::to_string(fact.done_megabytes) + " of " +
              std::to_string(fact.all_megabytes) + " MB)";
    }
    return text;
  }

  std::string operator()(const job::ImagesThere& fact) const {
    return "its images are present after " + base::format_duration(fact.after);
  }

  std::string operator()(const job::NodeSilence& fact) const {
    return "node " + fact.node + (fact.silent ? " does not answer" : " answers again");
  }

  /// "worker-2 leaves: it was evicted for ..."; for several workers, "each was".
  std::string operator()(const job::WorkersLeave& fact) const {
    return base::joined(fact.tasks) + (fact.tasks.size() == 1 ? " leaves: it " : " leave: each ") +
           sentence(fact.why) + "; " + continues_text(fact.left);
  }

  std::string operator()(const job::WorkerLost& fact) const {
    return fact.task + (fact.exit.lost ? " " : " was lost: it ") + job::explain(fact.exit) + "; " +
           continues_text(fact.left);
  }

  std::string operator()(const job::WorkerJoins& fact) const {
    if (fact.node.empty()) return fact.task + " has joined: " + continues_text(fact.now);
    return fact.task + " joins on " + fact.node + ": " + workers_text(fact.now);
  }

  std::string operator()(const job::WorkerDidNotJoin& fact) const {
    return fact.left ? fact.what + "; " + continues_text(*fact.left) : fact.what;
  }

  std::string operator()(const job::RequestsAllocation& fact) const {
    return (fact.after ? sentence(*fact.after) + "; " : "") + "asks " + fact.cluster +
           " for an allocation";
  }

  std::string operator()(const job::ClusterDecides& fact) const {
    return fact.cluster + " decides when it starts; Muster would request an allocation for " +
           tasks_text(fact.tasks);
  }

  std::string operator()(const job::Runs& fact) const {
    std::string text = "runs";
    if (fact.workers) text += " with " + workers_text(*fact.workers);
    for (const job::SilentNode& silent : fact.silent) {
      text += "; node " + silent.node + " has not answered since " + silent.since;
    }
    if (fact.in_slurm) text += "; " + slurm_sentence(*fact.in_slurm);
    return text;
  }
};

}  // namespace

std::string sentence(const job::Fact& fact, const Commands& commands) {
  return std::visit(FactWords{commands}, fact);
}

std::string sentence(const job::Eviction& why) {
  return std::visit(EvictionWords{}, why);
}

std::string sentence(const job::AllocationEnd& end) {
  return sentence(job::widened<job::Fact>(end));
}

std::string sentence(const job::Reason& reason, const Commands& commands) {
  return sentence(reason.what, commands);
}

std::string sentence(const job::Detail& detail) {
  return (detail.pool.empty() ? "" : "in pool " + detail.pool + ": ") + sentence(detail.what);
}

std::string after_colon(const job::Reason& reason, const Commands& commands) {
  const std::string text = sentence(reason, commands);
  return text.empty() ? "" : ": " + text;
}

std::vector<std::string> details(const job::Reason& reason) {
  std::vector<std::string> sentences;
  if (const auto* const capacity = std::get_if<job::OverCapacity>(&reason.what)) {
    sentences = capacity_remedies(*capacity);
  } else if (const auto* const shortage = std::get_if<job::NoRoom>(&reason.what)) {
    sentences = shortage_remedies(*shortage);
  }
  for (const job::Detail& detail : reason.details) sentences.push_back(sentence(detail));
  return sentences;
}

base::Error refusal(job::NeverStarts refused) {
  const bool states_never = std::holds_alternative<job::NoRoom>(refused.reason.what);
  const std::vector<std::string> remedies = details(refused.reason);
  return {.code = base::ErrorCode::kRefused,
          .what = "job '" + refused.job + (states_never ? "' " : "' can never start: ") +
                  sentence(refused.reason),
          .advice = remedies.empty() ? "" : remedies.front(),
          .faults = {},
          .detail = std::make_shared<job::NeverStarts>(std::move(refused))};
}

std::vector<std::string> evictions(const job::Forecast& forecast) {
  std::vector<std::string> sentences;
  for (const job::ExpectedEviction& each : forecast.evictions) {
    sentences.push_back(quoted_job(each.job) + " " + sentence(each.why));
  }
  if (forecast.hides_evictions) {
    sentences.emplace_back("jobs of other projects would be evicted for it");
  }
  return sentences;
}

}  // namespace muster::words
