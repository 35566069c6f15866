#include "control/project_service.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "control/audit_changes.h"
#include "control/schedule_view.h"
#include "job/obstacle.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Phase;
using job::Project;
using job::ProjectStatus;

namespace {

std::string open_objects_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " array or sweep that has not ended"
                                             : " arrays and sweeps that have not ended");
}

}  // namespace

ProjectService::ProjectService(Dependencies parts) : parts_(std::move(parts)) {
  projects_.load({}, parts_.clock.now());
}

void ProjectService::load(std::vector<Project> projects) {
  projects_.load(std::move(projects), parts_.clock.now());
  for (const auto& [name, project] : projects_.all()) {
    if (name != job::kDefaultProject) parts_.jobs.stamp_after(project.created);
  }
}

// --- changes

Result<void> ProjectService::keep(const Project& project, std::vector<access::AuditRecord> audit) {
  MUSTER_CHECK(parts_.journal.flush({.projects = {project}, .audit = std::move(audit)}));
  projects_.put(project);
  update_scheduler();
  parts_.wake();
  return {};
}

int64_t ProjectService::count_unended(const std::string& project) const {
  const auto& entries = parts_.jobs.entries();
  return std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
    const job::Job& job = entry.second->job;
    return job.spec.project == project && !job::is_final(job.phase);
  });
}

/// Jobs, and the objects that make jobs, belong to projects without projects below them.
Result<void> ProjectService::check_parent(const Project& project) const {
  const std::string& parent = project.parent;
  const auto conflict = [&](const std::string& what, const std::string& advice) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project '" + parent + "' has " + what + ", so no project can be below it",
                 .advice = advice + ", or choose another parent"};
  };
  if (parent.empty()) return {};
  if (count_unended(parent) > 0) return conflict("jobs", "wait until they have ended");
  if (const size_t count = open_objects_of(parent); count > 0) {
    return conflict(open_objects_text(count), "stop them first: muster list --project " + parent);
  }
  if (const size_t count = schedules_of(parent); count > 0) {
    return conflict(base::count_text(static_cast<int64_t>(count), "schedule"),
                    "delete them first: muster schedule list --project " + parent);
  }
  return {};
}

size_t ProjectService::open_objects_of(const std::string& project) const {
  return parts_.count_open_objects ? parts_.count_open_objects(project) : 0;
}

size_t ProjectService::schedules_of(const std::string& project) const {
  return parts_.count_schedules ? parts_.count_schedules(project) : 0;
}

Result<ProjectStatus> ProjectService::create(Project project, const access::Actor& by) {
  // Its jobs are later than the project, even if the clock is set back.
  MUSTER_TRY(const Project checked, projects_.checked_new(std::move(project), parts_.jobs.stamp()));
  MUSTER_CHECK(parts_.journal.flush());  // jobs that are being submitted count, too
  MUSTER_CHECK(check_parent(checked));
  const Project* const none = nullptr;
  MUSTER_CHECK(keep(checked, audit_records(parts_.clock.now(), by, "project.create", checked.name,
                                           checked.name, changes_of(none, &checked))));
  return status(checked.name);
}

Result<ProjectStatus> ProjectService::set(Project project, const access::Actor& by) {
  MUSTER_TRY(const Project checked, projects_.checked_change(std::move(project)));
  MUSTER_CHECK(parts_.journal.flush());
  MUSTER_TRY(const Project* const before, projects_.find(checked.name));
  if (checked.parent != before->parent) MUSTER_CHECK(check_parent(checked));
  MUSTER_CHECK(keep(checked, audit_records(parts_.clock.now(), by, "project.set", checked.name,
                                           checked.name, changes_of(before, &checked))));
  return status(checked.name);
}

Result<void> ProjectService::remove(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(const Project* const before, projects_.find(name));
  const auto conflict = [&](const std::string& why, const std::string& advice) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project '" + name + "' cannot be deleted: " + why,
                 .advice = advice};
  };
  if (name == job::kDefaultProject) {
    return conflict("it is the default project",
                    "every server has it; muster project set default --gpus 0 takes its GPUs away");
  }
  if (projects_.has_children(name)) {
    return conflict("it has projects below it", "delete those first");
  }
  MUSTER_CHECK(parts_.journal.flush());
  if (const int64_t jobs = count_unended(name); jobs > 0) {
    Error error = conflict("it has " + base::count_text(jobs, "job") +
                               (jobs == 1 ? " that has not ended" : " that have not ended"),
                           "stop them first: muster list --project " + name);
    error.detail = job::obstacle(job::Obstacle::Kind::kUnendedJobs);
    return error;
  }
  if (const size_t count = open_objects_of(name); count > 0) {
    return conflict("it has " + open_objects_text(count),
                    "stop them first: muster list --project " + name);
  }
  if (const size_t count = schedules_of(name); count > 0) {
    return conflict("it has " + base::count_text(static_cast<int64_t>(count), "schedule"),
                    "delete them first: muster schedule list --project " + name);
  }
  const Project* const none = nullptr;
  store::Batch batch{.removed_projects = {name},
                     .audit = audit_records(parts_.clock.now(), by, "project.delete", name, name,
                                            changes_of(before, none))};
  if (parts_.accounts != nullptr) parts_.accounts->forget_project(name, batch);
  MUSTER_CHECK(parts_.journal.flush(std::move(batch)));
  if (parts_.accounts != nullptr) parts_.accounts->project_is_gone(name);
  if (parts_.deleted) parts_.deleted(name);
  projects_.remove(name);
  update_scheduler();
  parts_.wake();
  return {};
}

// --- the scheduler

void ProjectService::update_scheduler() {
  past_use_.reset();
  nodes_changed();
}

void ProjectService::nodes_changed() {
  const PoolTotals totals = parts_.nodes.totals();
  std::vector<schedule::Project> projects = projects_.for_scheduler(totals);
  if (parts_.weighs_past_use) {
    schedule::Amounts all;
    for (const auto& [pool, amounts] : totals) all += amounts;
    if (!past_use_ || !(all == used_of_)) count_past_use(all);
    for (schedule::Project& project : projects) {
      const auto found = past_use_->find(project.name);
      if (found != past_use_->end()) project.past_use = found->second;
    }
  }
  parts_.book.scheduler().set_projects(std::move(projects));
}

void ProjectService::count_past_use(const schedule::Amounts& total) {
  const auto each_job = [this](const std::function<void(const job::JobFacts&)>& visit) {
    parts_.jobs.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
      visit(job);
      return true;
    });
  };
  past_use_ = past_use(projects_, each_job, total, parts_.clock.now(), kUseHalfLife);
  used_of_ = total;
  // Past use changes with time alone.
  use_timer_ = parts_.loop.after(std::chrono::minutes(1), [this] {
    update_scheduler();
    parts_.wake();
  });
}

// --- questions

/// The jobs that have not ended, in each project and all projects below it.
ProjectService::JobCounts ProjectService::count_jobs() const {
  JobCounts counts;
  for (const auto& [sequence, entry] : parts_.jobs.entries()) {
    const job::Job& job = entry->job;
    if (job::is_final(job.phase)) continue;
    const bool waits = job.phase == Phase::kQueued;
    schedule::Amounts requested;
    if (waits && !job.suspended) requested = parts_.placement.requested(job);
    for (const std::string& project : projects_.line_of(job.spec.project)) {
      JobCount& count = counts[project];
      ++(waits ? count.waiting : count.running);
      count.requested += requested;
    }
  }
  return counts;
}

ProjectStatus ProjectService::status_with(const Project& project, const JobCounts& counts) const {
  ProjectStatus status = status_of(project, parts_.book.scheduler().standing(project.name));
  if (const auto count = counts.find(project.name); count != counts.end()) {
    status.running = count->second.running;
    status.waiting = count->second.waiting;
    add(status.requested, count->second.requested.clamped());
  }
  return status;
}

Result<ProjectStatus> ProjectService::status(const std::string& name) const {
  MUSTER_TRY(const Project* const project, projects_.find(name));
  return status_with(*project, count_jobs());
}

std::vector<ProjectStatus> ProjectService::list() const {
  const JobCounts counts = count_jobs();
  std::vector<ProjectStatus> result;
  for (const Project* project : projects_.in_tree_order()) {
    result.push_back(status_with(*project, counts));
  }
  return result;
}

bool ProjectService::has_project_of(const job::JobFacts& job) const {
  const auto found = projects_.all().find(std::string(job.project));
  if (found == projects_.all().end()) return false;
  // The default project cannot be deleted, and its date is the server's start.
  return job.project == job::kDefaultProject || found->second.created <= job.submitted;
}

}  // namespace muster::control
