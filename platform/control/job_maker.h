// The owners of objects that make jobs: arrays, sweeps and schedules. Each keeps its objects, reads
// how their jobs fare, and makes the next jobs when it is asked to.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "store/store.h"

namespace muster::control {

struct JobEntry;

class JobMaker {
 public:
  virtual ~JobMaker() = default;

  /// Whether an object or a future job of an object has this name in the project: then no other
  /// job may take it. `name`: name and project.
  virtual bool holds(const std::pair<std::string, std::string>& name) const = 0;

  /// A job was added, loaded or changed; called for all jobs, before the commit. Only for counts in
  /// memory: what follows from them is decided in advance().
  virtual void job_changed(const job::JobFacts& job) = 0;

  /// The job is about to be removed from the store by `batch`, which may get more changes. If the
  /// commit fails, job_changed() is called.
  virtual void job_leaves(const job::Job& job, store::Batch& batch) = 0;

  /// Makes the jobs that are due. Called before each plan of the scheduler, which follows every
  /// wake().
  virtual void advance() = 0;
};

/// A job that an object makes. Its spec is valid, and its name is held by the object.
struct MadeJob {
  job::JobSpec spec;
  job::JobOrigin origin;
  std::string owner;
  bool is_suspended = false;
  /// What the object has noted of the jobs that this one waits for (JobSpec::after), in their order; an
  /// entry without an id is looked up. Empty: all are looked up.
  std::vector<job::AwaitedJob> awaited = {};
};

/// Adds a job that is committed in this turn of the loop, together with the objects that were
/// handed to Journal::put() in the same turn. `made` is called after the commit, with the entry in
/// the table and in the queue, or with the error of the commit.
using MakeJob = std::function<void(MadeJob job, std::function<void(base::Result<JobEntry*>)> made)>;

}  // namespace muster::control
