#include "server/sight.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "control/sweeps.h"
#include "control/unknown_name.h"
#include "job/array.h"
#include "job/job.h"
#include "job/obstacle.h"
#include "words/sentence.h"

namespace muster::server {

using access::Role;
using base::Error;
using base::ErrorCode;
using base::Result;
using job::Job;
using job::JobFacts;

namespace {

// The number of recent jobs, of arrays and of sweeps with which an unknown name is compared: a
// wrong name must not cost a comparison with all of them.
constexpr size_t kMostCompared = 2000;
constexpr size_t kMostComparedArrays = 500;
constexpr size_t kMostComparedSweeps = 500;

Error lacks_role(const std::string& project, Role has, Role needed) {
  return {.code = ErrorCode::kRefused,
          .what = "this requires the role '" + std::string(to_string(needed)) + "' in project '" +
                  project + "'; you have " +
                  (has == Role::kNone ? "no role there"
                                      : "the role '" + std::string(to_string(has)) + "'"),
          .advice = "an admin of the project grants it: muster project grant"};
}

/// The caller sees the object in `homes`, and asked for it in `project`.
Error is_elsewhere(const std::string& kind, const std::string& name, const std::string& project,
                   const std::vector<std::string>& homes) {
  const bool is_one = homes.size() == 1;
  return {.code = ErrorCode::kNotFound,
          .what = "there is no " + kind + " '" + name + "' in project " + project,
          .advice = std::string("it is in project") + (is_one ? " " : "s ") + base::joined(homes) +
                    ": --project " + homes.front() + (is_one ? "" : ", for example"),
          .detail = job::obstacle(job::Obstacle::Kind::kOtherProject)};
}

bool has_task_on(const Job& job, const std::string& node, std::optional<int> device) {
  if (job::is_final(job.phase)) return false;
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const job::Task& task) {
    return task.node == node && !job::has_gone(task) &&
           (!device ||
            std::find(task.devices.begin(), task.devices.end(), *device) != task.devices.end());
  });
}

}  // namespace

Role Sight::role_in(std::string_view project) const {
  const auto known = roles_.find(project);
  if (known != roles_.end()) return known->second;
  const std::string name(project);
  const Role role = who_.in_project(controller_.projects().line_of(name));
  roles_.emplace(name, role);
  return role;
}

bool Sight::sees(const Job& job) const {
  return sees(job::facts_of(job));
}

bool Sight::sees(const JobFacts& job) const {
  return role_over(job) >= Role::kViewer;
}

/// Jobs of a deleted project are invisible to members of a new project of the same name.
Role Sight::role_over(const JobFacts& job) const {
  if (sees_all() || controller_.projects().has_project_of(job)) return role_in(job.project);
  return Role::kNone;
}

bool Sight::sees_project(const std::string& project) const {
  return role_in(project) >= Role::kViewer;
}

/// A removed job belonged to its project.
bool Sight::sees(const job::JobRef& ref) const {
  const auto job = controller_.jobs().facts_with_id(ref.id);
  return job ? sees(*job) : sees_project(ref.project);
}

// --- what a name stands for

namespace {

/// The facts of a job that stands for another object: rights depend on the project and the time.
JobFacts stand_in(const std::string& project, base::Time submitted) {
  JobFacts facts;
  facts.project = project;
  facts.submitted = submitted;
  return facts;
}

/// The names of arrays that the caller sees, for a suggestion.
void add_array_names(const control::Arrays& arrays, const Sight& sight,
                     std::vector<std::string>& names) {
  size_t compared = 0;
  arrays.each([&](const control::ArrayFacts& array) {
    if (sight.sees(array)) names.push_back(array.record.spec.name);
    return ++compared < kMostComparedArrays;
  });
}

}  // namespace

bool Sight::sees(const job::Array& array) const {
  return sees(stand_in(array.spec.project, array.submitted));
}

bool Sight::sees(const sweep::SweepSummary& sweep) const {
  return sees(stand_in(sweep.project, sweep.created));
}

bool Sight::saw(const control::ChangeFeed::Change& removal) const {
  return sees(stand_in(removal.project, removal.submitted));
}

bool Sight::sees(const control::ArrayFacts& array) const {
  return sees(stand_in(array.record.spec.project, array.record.submitted));
}

/// The arrays with this id or name that the caller sees.
std::vector<control::ArrayFacts> Sight::arrays_named(const std::string& name,
                                                     const std::string& project) const {
  std::vector<control::ArrayFacts> seen;
  for (const control::ArrayFacts& array : controller_.arrays().named(name)) {
    const bool is_meant = project.empty() || array.record.spec.project == project;
    if (is_meant && sees(array)) seen.push_back(array);
  }
  return seen;
}

Result<job::Array> Sight::array(const std::string& name, const std::string& project,
                                Role needed) const {
  const std::vector<control::ArrayFacts> arrays = arrays_named(name, project);
  if (arrays.empty()) {
    std::vector<std::string> homes;
    for (const control::ArrayFacts& array : arrays_named(name, "")) {
      homes.push_back(array.record.spec.project);
    }
    if (!homes.empty()) return is_elsewhere("array", name, project, homes);
    std::vector<std::string> names;
    add_array_names(controller_.arrays(), *this, names);
    return control::unknown_name("array", name, names, "list jobs and arrays: muster list");
  }
  if (arrays.size() > 1) {
    std::string projects;
    for (const control::ArrayFacts& array : arrays) {
      projects += (projects.empty() ? "" : ", ") + array.record.spec.project;
    }
    return Error{.code = ErrorCode::kConflict,
                 .what = "several projects have an array '" + name + "': " + projects,
                 .advice = "choose one: --project NAME, or ?project=NAME",
                 .detail = job::obstacle(job::Obstacle::Kind::kSeveralProjects)};
  }
  const control::ArrayRecord& record = arrays.front().record;
  const Role role = role_over(stand_in(record.spec.project, record.submitted));
  if (role < needed) return lacks_role(record.spec.project, role, needed);
  return *controller_.arrays().with_id(record.id);
}

std::vector<control::Arrays::JoblessMember> Sight::jobless_named(const std::string& name,
                                                                 const std::string& project) const {
  return controller_.arrays().jobless(name, [&](const control::ArrayFacts& array) {
    return (project.empty() || array.record.spec.project == project) && sees(array);
  });
}

Result<control::Arrays::JoblessMember> Sight::jobless(const std::string& name,
                                                      const std::string& project,
                                                      Role needed) const {
  std::vector<control::Arrays::JoblessMember> members = jobless_named(name, project);
  if (members.size() != 1) return no_such_job(name, project);
  const Role role = role_over(job::facts_of(members.front().job));
  if (role < needed) return lacks_role(members.front().job.spec.project, role, needed);
  return std::move(members.front());
}

/// The jobs with this id or name that the caller sees.
std::vector<const Job*> Sight::jobs_named(const std::string& name,
                                          const std::string& project) const {
  const auto is_meant = [&](const Job& job) {
    return sees(job) && (project.empty() || job.spec.project == project);
  };
  if (const Job* const by_id = controller_.jobs().with_id(name);
      by_id != nullptr && is_meant(*by_id)) {
    return {by_id};
  }
  // "train[17]" is the job train-17, if that is the member 17 of an array or a sweep.
  const auto member = name.ends_with(']') ? job::member_of(name) : std::nullopt;
  std::vector<const Job*> jobs =
      controller_.jobs().named(member ? job::member_name(member->array, member->index) : name);
  std::erase_if(jobs, [&](const Job* job) {
    return !is_meant(*job) || (member && (!job->origin || job->origin->name != member->array));
  });
  return jobs;
}

Result<const Job*> Sight::job(const std::string& name, const std::string& project,
                              Role needed) const {
  const std::vector<const Job*> jobs = jobs_named(name, project);
  if (jobs.empty()) return no_such_job_or_yet(name, project);
  if (jobs.size() > 1) {
    std::string projects;
    for (const Job* job : jobs) projects += (projects.empty() ? "" : ", ") + job->spec.project;
    return Error{.code = ErrorCode::kConflict,
                 .what = "several projects have a job '" + name + "': " + projects,
                 .advice = "choose one: --project NAME, or ?project=NAME",
                 .detail = job::obstacle(job::Obstacle::Kind::kSeveralProjects)};
  }
  const std::string& home = jobs.front()->spec.project;
  const Role role = role_over(job::facts_of(*jobs.front()));
  if (role < needed) return lacks_role(home, role, needed);
  return jobs.front();
}

/// Names the array, if it is one, or the state of the member that has no job.
Error Sight::no_such_job_or_yet(const std::string& name, const std::string& project) const {
  const auto members = jobless_named(name, project);
  if (members.size() == 1) {
    const auto& member = members.front();
    const Job& job = member.job;
    const std::string title = job::member_title(job.origin->name, job.origin->member);
    if (!job::is_final(job.phase)) {
      return {.code = ErrorCode::kConflict,
              .what = title + " has not started: it waits in array '" + job.origin->name + "'",
              .advice = "muster get " + job.origin->name + " shows how far the array is"};
    }
    std::string end(job::to_string(job.phase));
    if (job.exit_code) end += ", exit code " + std::to_string(*job.exit_code);
    return {.code = ErrorCode::kConflict,
            .what = title + " has ended (" + end + "), and " +
                    (member.had_job ? "its job and its log are no longer kept"
                                    : "it never started: it has no log"),
            .advice = {}};
  }
  if (auto error = is_another_object(name, project)) return *std::move(error);
  if (auto error = no_such_member(name, project)) return *std::move(error);
  return no_such_job(name, project);
}

/// kNotFound, if the name is that of a member that an array does not have: it names the members
/// that exist.
std::optional<Error> Sight::no_such_member(const std::string& name,
                                           const std::string& project) const {
  const auto member = job::member_of(name);
  if (!member) return std::nullopt;
  const std::vector<control::ArrayFacts> found = arrays_named(member->array, project);
  if (found.size() != 1) return std::nullopt;
  const std::vector<int>& indexes = found.front().indexes;
  if (std::binary_search(indexes.begin(), indexes.end(), member->index)) return std::nullopt;
  std::string existing = found.front().record.spec.array.indexes;
  if (existing.empty()) existing = "0-" + std::to_string(indexes.size() - 1);  // one for each line
  return Error{.code = ErrorCode::kNotFound,
               .what = "array " + control::name_in_quotes(member->array) + " has no member " +
                       std::to_string(member->index),
               .advice = "the indexes of its members are " + base::shortened(existing)};
}

/// kNotFound, if an object that is listed like a job has the name: it names the object, and what it
/// consists of.
std::optional<Error> Sight::is_another_object(const std::string& name,
                                              const std::string& project) const {
  const auto is_meant = [&](const std::string& home) { return project.empty() || home == project; };
  if (const auto found = arrays_named(name, project); found.size() == 1) {
    const std::vector<int>& indexes = found.front().indexes;
    const int first = indexes.empty() ? 0 : indexes.front();
    return Error{.code = ErrorCode::kNotFound,
                 .what = "'" + name + "' is an array, and this request is for one job",
                 .advice = "name a member, such as " + job::member_title(name, first)};
  }
  for (const sweep::SweepSummary& sweep : controller_.sweeps().named(name)) {
    if (!sees(sweep) || !is_meant(sweep.project)) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "'" + name + "' is a sweep, and this request is for one job",
                 .advice = "name a trial, such as " + sweep::trial_name(sweep.name, 1) +
                           "; 'muster sweep get " + sweep.name + "' lists them"};
  }
  for (const job::Schedule& schedule : controller_.schedules().named(name)) {
    if (!sees_project(schedule.spec.project) || !is_meant(schedule.spec.project)) continue;
    return Error{.code = ErrorCode::kNotFound,
                 .what = "'" + name + "' is a schedule, and this request is for one job",
                 .advice = "name one of its runs: 'muster schedule history " + schedule.spec.name +
                           "' lists them; of the schedule itself: muster schedule pause " +
                           schedule.spec.name + ", or muster schedule delete " +
                           schedule.spec.name};
  }
  return std::nullopt;
}

Error Sight::no_such_job(const std::string& name, const std::string& project) const {
  if (!project.empty()) {
    std::vector<std::string> homes;
    for (const Job* const job : jobs_named(name, "")) homes.push_back(job->spec.project);
    if (!homes.empty()) return is_elsewhere("job", name, project, homes);
  }
  std::vector<std::string> names;
  size_t compared = 0;
  controller_.jobs().each_job(true, std::nullopt, [&](const JobFacts& job) {
    if (sees(job)) names.emplace_back(job.name);
    return ++compared < kMostCompared;
  });
  add_array_names(controller_.arrays(), *this, names);
  size_t sweeps = 0;
  controller_.sweeps().each([&](const sweep::SweepRecord&, const sweep::SweepSummary& sweep) {
    if (sees(sweep)) names.push_back(sweep.name);
    return ++sweeps < kMostComparedSweeps;
  });
  return control::unknown_name("job", name, names, "list the jobs: muster list");
}

Error Sight::no_such_project(const std::string& name) const {
  std::vector<std::string> names;
  for (const job::ProjectStatus& status : controller_.projects().list()) {
    if (sees_project(status.project.name)) names.push_back(status.project.name);
  }
  return control::unknown_name("project", name, names, "list the projects: muster project list");
}

Result<void> Sight::may_run_in(job::Sandbox sandbox) const {
  if (sandbox != job::Sandbox::kNone || who_.over_server() >= Role::kAdmin) return {};
  return Error{
      .code = ErrorCode::kRefused,
      .what =
          "without a sandbox, a job has all rights of the server: this requires the server "
          "role 'admin'; " +
          access::server_role_text(who_),
      .advice = "use a sandbox: --sandbox bubblewrap"};
}

Result<void> Sight::project(const std::string& name, Role needed) const {
  const bool exists = !controller_.projects().line_of(name).empty();
  if (!exists || !sees_project(name)) return no_such_project(name);
  if (role_in(name) < needed) return lacks_role(name, role_in(name), needed);
  return {};
}

Result<void> Sight::project_of_spec(const std::string& name, Role needed) const {
  if (name != job::kDefaultProject || sees_project(name)) return project(name, needed);
  constexpr size_t kMostNamed = 10;
  std::vector<std::string> usable;
  for (const job::ProjectStatus& status : controller_.projects().list()) {
    const std::string& each = status.project.name;
    if (usable.size() < kMostNamed && role_in(each) >= needed) usable.push_back(each);
  }
  return Error{.code = ErrorCode::kNotFound,
               .what = "you have no role in the project '" + name +
                       "', which is the project of a spec that names none",
               .advice = usable.empty()
                             ? "ask an admin of the server for a role in a project"
                             : "name a project in the spec (--project): " + base::joined(usable)};
}

// --- hiding other projects

words::Sight Sight::as_words() const {
  return {.project = [this](const std::string& name) { return sees_project(name); },
          .job = [this](const job::JobRef& job) { return sees(job); }};
}

job::Fact Sight::redacted(job::Fact fact) const {
  return sees_all() ? fact : words::seen_by(as_words(), std::move(fact));
}

Error Sight::redacted(Error error) const {
  const auto* const never = base::detail_of<job::NeverStarts>(error);
  if (never == nullptr) return error;
  return words::refusal(
      {never->job, sees_all() ? never->reason : words::seen_by(as_words(), never->reason)});
}

Job Sight::redacted(Job job) const {
  if (!sees_all()) words::hide_from(as_words(), job);
  return job;
}

Job Sight::shown(Job job) const {
  job.progress = controller_.progress_of(job);
  return redacted(std::move(job));
}

job::Array Sight::shown(job::Array array) const {
  for (job::MemberEnd& end : array.failed) {
    const Job* const job = controller_.jobs().with_id(end.job);
    if (job == nullptr) continue;
    end.reason = job->failure ? words::sentence(job->failure->cause)
                              : words::sentence(redacted(job->reason.what));
  }
  return array;
}

job::Explanation Sight::redacted(job::Explanation explanation) const {
  if (!sees_all()) words::hide_from(as_words(), explanation);
  return explanation;
}

job::Forecast Sight::redacted(job::Forecast forecast) const {
  if (sees_all()) return forecast;
  words::hide_from(as_words(), forecast);
  forecast.before = redacted(std::move(forecast.before));
  forecast.after = redacted(std::move(forecast.after));
  return forecast;
}

/// Jobs of several projects may have the same name: the name is kept if the caller sees one of
/// them.
job::Node Sight::redacted(job::Node node) const {
  if (sees_all()) return node;
  const auto hide = [&](std::vector<std::string>& names, std::optional<int> device) {
    std::set<std::string> kept;
    std::erase_if(names, [&](const std::string& name) {
      const std::vector<const Job*> jobs = controller_.jobs().named(name);
      const bool is_there = std::any_of(jobs.begin(), jobs.end(), [&](const Job* job) {
        return sees(*job) && has_task_on(*job, node.name, device);
      });
      return !is_there || !kept.insert(name).second;
    });
  };
  hide(node.jobs, std::nullopt);
  for (job::Device& device : node.devices) hide(device.jobs, device.index);
  return node;
}

job::ProjectStatus Sight::redacted(job::ProjectStatus status) const {
  if (!status.project.parent.empty() && !sees_project(status.project.parent)) {
    status.project.parent.clear();
  }
  return status;
}

/// A change of the parent names another project.
access::AuditRecord Sight::redacted(access::AuditRecord record) const {
  if (sees_all()) return record;
  for (access::FieldChange& change : record.changes) {
    if (change.field != "parent") continue;
    for (std::string* const name : {&change.before, &change.after}) {
      if (!sees_project(*name)) name->clear();
    }
  }
  std::erase_if(record.changes, [](const access::FieldChange& change) {
    return change.field == "parent" && change.before.empty() && change.after.empty();
  });
  return record;
}

}  // namespace muster::server
