// Programs in the tasks of jobs that run: beside the task's own, or that one itself.
#include "control/controller.h"
#include "control/run.h"
#include "control/unknown_name.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Task;
using job::TaskPhase;

namespace {

/// For the audit log.
std::string action_of(engine::Helper helper) {
  switch (helper) {
    case engine::Helper::kPack:
    case engine::Helper::kUnpack:
      return "job.copy";
    case engine::Helper::kConnect:
      return "job.forward";
    case engine::Helper::kNone:
      break;
  }
  return "job.exec";
}

}  // namespace

Result<const Task*> Controller::running_task(Job& job, const std::string& task) const {
  const Task* const where = task.empty() ? &job::deciding_task(job) : find_task(job, task);
  if (where == nullptr) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what = "job " + name_in_quotes(job.spec.name) + " has no task " + name_in_quotes(task),
        .advice = "muster get " + job.spec.name + " shows its tasks"};
  }
  if (where->phase != TaskPhase::kRunning) {
    return Error{.code = ErrorCode::kConflict,
                 .what = name_in_quotes(where->name) + " of job " + name_in_quotes(job.spec.name) +
                         " does not run: it is " + std::string(job::to_string(where->phase)),
                 .advice = "muster get " + job.spec.name + " shows what its tasks do"};
  }
  return where;
}

/// Kept before anything runs: nobody gets in without a trace.
Result<void> Controller::note_entry(const Job& job, const Task& task, const std::string& action,
                                    const access::Actor& by) {
  return journal_.flush({.audit = record(by, action, job.spec.name, job.spec.project,
                                         {{.field = "task", .after = task.name}})});
}

Result<std::unique_ptr<engine::Exec>> Controller::exec(const std::string& name,
                                                       const std::string& task,
                                                       const engine::ExecPlan& plan,
                                                       engine::ExecHandlers handlers,
                                                       const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  MUSTER_TRY(const Task* const where, running_task(entry->job, task));
  MUSTER_CHECK(note_entry(entry->job, *where, action_of(plan.helper), by));
  return parts_.engine.exec(engine_gang(entry->job), where->name, plan, std::move(handlers));
}

Result<std::unique_ptr<engine::Exec>> Controller::attach(const std::string& name,
                                                         const std::string& task,
                                                         engine::ExecHandlers handlers,
                                                         const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  MUSTER_TRY(const Task* const where, running_task(entry->job, task));
  MUSTER_CHECK(note_entry(entry->job, *where, "job.attach", by));
  return parts_.engine.attach(engine_gang(entry->job), where->name, std::move(handlers));
}

}  // namespace muster::control
