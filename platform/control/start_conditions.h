// The conditions of a job that must hold before the scheduler gets it: other jobs have ended as
// required (JobSpec::after), a time has come (Scheduling::begin), and no earlier job with the same
// singleton is left. A user's job that was submitted to a server that listens also waits while the
// present server of the folder does not isolate users. Such a job reserves nothing and delays no
// other job.
//
// Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/job_table.h"
#include "job/fact.h"
#include "job/job.h"

namespace muster::control {

/// Whether a job that ended in this phase meets the condition.
bool meets(job::Dependency::Condition condition, job::Phase phase);

/// The conditions of one job, and the present state of what they name.
struct StartConditions {
  struct Awaited {
    job::AwaitedEnd end;
    bool is_met = false;
    std::optional<job::Phase> phase;  ///< of the other job; nothing: it was deleted
  };
  std::vector<Awaited> after;
  std::optional<base::Time> begin;
  std::string singleton;
  std::optional<job::JobRef> ahead;  ///< an earlier job with the same singleton
  std::string unisolated = {};  ///< the owner, if this server does not isolate the owner's jobs
};

struct StartDecision {
  enum class What { kMayStart, kWaits, kNever };
  What what = What::kMayStart;
  job::Reason reason;                   ///< kWaits: the first condition; the others as details
  std::string constraint;               ///< kWaits: "isolation", "dependency", "singleton", "begin"
  std::optional<base::Time> may_start;  ///< kWaits: not before this time, if one is known
  std::optional<job::DependencyUnmet> unmet;  ///< kNever
};

/// A dependency that cannot be met any more decides, whatever the other conditions are.
StartDecision decide_start(const StartConditions& conditions, base::Time now);

/// The jobs, arrays and members of arrays for which a job can wait.
struct OtherJobs {
  const JobTable& jobs;
  /// The id and the name of an array of this project, or of one of its members that has no job yet
  /// ("train-17"). Not set: there are no arrays.
  std::function<std::optional<job::AwaitedJob>(const std::string& name, const std::string& project)>
      find_in_arrays;
  /// The phase of an array or a member with an id from find_in_arrays(); nothing: it was deleted.
  std::function<std::optional<job::Phase>(const std::string& id)> phase_in_arrays;

  std::optional<job::AwaitedJob> find(const job::Dependency& dependency,
                                      const std::string& project) const;
  std::optional<job::Phase> phase_of(const std::string& id) const;
};

/// The jobs and arrays of spec.after, which are named or given by id. `repeated`: the job that this
/// one runs again, or nullptr; what it waited for successfully may have been deleted since.
///
/// Errors: kNotFound with a fault for each that the project of the job does not have. Jobs of other
/// projects are as unknown as jobs that do not exist.
base::Result<std::vector<job::AwaitedJob>> resolve_dependencies(const job::JobSpec& spec,
                                                                const OtherJobs& others,
                                                                const job::Job* repeated = nullptr);

/// The same for a job that an object makes. A job that it waits for may have been deleted since the
/// object was created: then the result of an earlier job of the object counts, or else the dependency
/// is met. A member of an array whose sibling (Dependency::by_member) was deleted never starts.
/// `noted`: as MadeJob::awaited.
std::vector<job::AwaitedJob> dependencies_of_made(const job::JobSpec& spec,
                                                  const job::JobOrigin& origin,
                                                  const OtherJobs& others,
                                                  const std::vector<job::AwaitedJob>& noted = {});

/// What is known of the jobs that all members of an array wait for. An entry stays empty if each member
/// waits for its own (Dependency::by_member), or if there is no such job.
std::vector<job::AwaitedJob> dependencies_of_array(const job::JobSpec& spec,
                                                   const OtherJobs& others);

}  // namespace muster::control
