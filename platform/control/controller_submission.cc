// New jobs in the controller: those that callers submit, and those that objects make.
#include <algorithm>
#include <utility>

#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/gang_tasks.h"
#include "control/sweeps.h"
#include "control/unknown_name.h"
#include "job/validate.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Notice;

namespace {

Error belongs_to_sweep(const job::JobSpec& spec) {
  return {.code = ErrorCode::kConflict,
          .what = "the name " + name_in_quotes(spec.name) + " belongs to a sweep in project '" +
                  spec.project + "'",
          .advice = "choose another name; muster sweep list shows all sweeps"};
}

bool is_named_by_server(const SubmitManner& manner) {
  return manner.name_suffix || !manner.name_template.empty();
}

/// `known` was submitted with the key of `given`. A spec that cannot be read is not compared.
Result<void> check_known(const job::JobSpec& given, const SubmitManner& manner, const Job& known) {
  if (known.unreadable) return {};
  return check_repetition(given, known.spec, is_named_by_server(manner));
}

}  // namespace

Result<job::JobSpec> Controller::named_spec(const job::JobSpec& spec,
                                            const SubmitManner& manner) const {
  job::JobSpec named = spec;
  const std::string& pattern = manner.name_template;
  const auto is_of_sweep = [&](const std::string& name) {
    return sweeps_->takes(spec.project, name);
  };
  if (!pattern.empty()) {
    if (!job::is_name_template(pattern)) {
      return Error{
          .code = ErrorCode::kInvalid,
          .what = "the name template " + name_in_quotes(pattern) + " is invalid",
          .advice = "a template is a name with {n} once in place of its number, as in train-{n}"};
    }
    named.name = jobs_.next_name(spec.project, pattern, is_of_sweep);
  } else if (manner.name_suffix && (jobs_.is_taken(spec) || is_of_sweep(spec.name))) {
    named.name = jobs_.next_name(spec.project, spec.name + "-" + std::string(job::kNumberPlace),
                                 is_of_sweep);
  }
  return named;
}

Result<const Job*> Controller::job_with_key(const job::JobSpec& spec,
                                            const std::string& idempotency_key) {
  jobs_.settle(spec, idempotency_key);
  const Job* job = nullptr;
  if (idempotency_key.empty()) return job;
  MUSTER_TRY(const std::optional<std::string> id, parts_.store.find_by_key(idempotency_key));
  if (id) job = jobs_.with_id(*id);
  return job;
}

const Job* Controller::repeated_by(const SubmitManner& manner) const {
  const bool repeats = manner.origin && manner.origin->kind == job::JobOrigin::Kind::kRerun;
  return repeats ? jobs_.with_id(manner.origin->id) : nullptr;
}

std::optional<job::Array> Controller::array_with_key(const std::string& idempotency_key) const {
  if (idempotency_key.empty()) return std::nullopt;
  return arrays_->with_key(idempotency_key);
}

Result<const Job*> Controller::submitted_with(const job::JobSpec& spec,
                                              const std::string& idempotency_key,
                                              const SubmitManner& manner) {
  MUSTER_TRY(const Job* const known, job_with_key(spec, idempotency_key));
  if (known != nullptr) {
    MUSTER_CHECK(check_known(spec, manner, *known));
    return known;
  }
  if (const auto array = array_with_key(idempotency_key)) {
    MUSTER_CHECK(check_repetition(spec, array->spec, false));
  }
  return known;
}

Result<std::optional<job::Array>> Controller::array_submitted_with(
    const job::JobSpec& spec, const std::string& idempotency_key, const SubmitManner& manner) {
  std::optional<job::Array> known = array_with_key(idempotency_key);
  if (known) {
    job::JobSpec stored = known->spec;
    stored.array.lines = arrays_->lines_of(known->id);
    MUSTER_CHECK(check_repetition(spec, stored, is_named_by_server(manner)));
    return known;
  }
  MUSTER_TRY(const Job* const other, job_with_key(spec, idempotency_key));
  if (other != nullptr) MUSTER_CHECK(check_repetition(spec, other->spec, false));
  return known;
}

void Controller::submit(const job::JobSpec& given, const std::string& idempotency_key,
                        Submitted done, const access::Actor& by, const SubmitManner& manner) {
  const auto known = submitted_with(given, idempotency_key, manner);
  if (!known) return done(known.error());
  if (*known != nullptr) return done(**known);
  const auto named = named_spec(given, manner);
  if (!named) return done(named.error());
  const job::JobSpec& spec = *named;
  const auto checked =
      check_submission(spec, jobs_, projects_.table(), parts_.engine, site_, parts_.accounts);
  if (!checked) return done(checked.error());
  const bool is_trial = manner.origin && manner.origin->kind == job::JobOrigin::Kind::kSweep;
  if (!is_trial && sweeps_->takes(spec.project, spec.name)) return done(belongs_to_sweep(spec));
  // A job that it names may not be committed yet.
  if (!spec.after.empty()) {
    [[maybe_unused]] const auto reported_by_callbacks = journal_.flush();
  }
  auto awaited = is_trial ? Result<std::vector<job::AwaitedJob>>(
                                dependencies_of_made(spec, *manner.origin, other_jobs()))
                          : resolve_dependencies(spec, other_jobs(), repeated_by(manner));
  if (!awaited) return done(awaited.error());
  Job job{.id = base::random_name(parts_.random, job::kJobIdLength),
          .spec = spec,
          .awaited = *std::move(awaited),
          .owner = by.user,
          .reason = placement_->first_reason(),
          .submitted = jobs_.stamp(),
          .tasks = job::tasks_of(spec)};
  job.origin = manner.origin;
  const auto possible = placement_->check(job, jobs_.next_sequence());
  if (!possible) return done(possible.error());
  if (spec.held) {
    job.suspended = true;
    job.reason = suspended_reason(job);
  }
  jobs_.note(job, Notice{Notice::What::kSubmitted});
  auto audit = audit_records(parts_.clock.now(), by, "job.submit", nullptr, &job);
  jobs_.add(std::move(job), idempotency_key, std::move(audit),
            [this, done = std::move(done)](Result<JobEntry*> added) {
              if (!added) return done(added.error());
              JobEntry& entry = **added;
              ++metrics_.submitted[entry.job.spec.project];
              enter_queue(entry);
              done(entry.job);
            });
}

/// A new job in the table waits for the scheduler.
void Controller::enter_queue(JobEntry& entry) {
  placement_->enter(entry);
  if (!entry.job.suspended) placement_->enqueue(entry, {});
  wake();
}

void Controller::make_job(MadeJob made, std::function<void(Result<JobEntry*>)> done) {
  Job job{.id = base::random_name(parts_.random, job::kJobIdLength),
          .origin = std::move(made.origin),
          .spec = std::move(made.spec),
          .owner = std::move(made.owner),
          .reason = placement_->first_reason(),
          .suspended = made.is_suspended,
          .submitted = jobs_.stamp()};
  job.tasks = job::tasks_of(job.spec);
  job.awaited = dependencies_of_made(job.spec, *job.origin, other_jobs(), made.awaited);
  if (job.suspended) job.reason = suspended_reason(job);
  jobs_.note(job, Notice{Notice::What::kSubmitted});
  // A member of an array is part of the request that made the array.
  std::vector<access::AuditRecord> audit;
  if (job.origin->kind == job::JobOrigin::Kind::kSchedule) {
    audit = audit_records(parts_.clock.now(), {.user = kServer, .address = "local"}, "job.submit",
                          nullptr, &job);
    audit.front().changes.push_back({.field = "schedule", .after = job.origin->name});
  }
  jobs_.add(std::move(job), "", std::move(audit),
            [this, done = std::move(done)](Result<JobEntry*> added) {
              if (added) {
                ++metrics_.submitted[(*added)->job.spec.project];
                enter_queue(**added);
              }
              done(added);
            });
}

Result<job::Array> Controller::submit_array(const job::JobSpec& given,
                                            const std::string& idempotency_key,
                                            const access::Actor& by, const SubmitManner& manner) {
  MUSTER_TRY(auto known, array_submitted_with(given, idempotency_key, manner));
  if (known) return *std::move(known);
  MUSTER_TRY(const job::JobSpec spec, named_spec(given, manner));
  MUSTER_CHECK(
      check_submission(spec, jobs_, projects_.table(), parts_.engine, site_, parts_.accounts));
  if (sweeps_->takes(spec.project, spec.name)) return belongs_to_sweep(spec);
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  const Job first{.id = "first",
                  .spec = job::member_spec(spec, indexes, 0),
                  .submitted = parts_.clock.now(),
                  .tasks = job::tasks_of(spec)};
  MUSTER_TRY(const job::JobSpec resolved, resolved_array(spec));
  MUSTER_CHECK(placement_->check(first, jobs_.next_sequence()));
  for (const int index : indexes) {
    job::JobSpec member{.name = job::member_name(spec.name, index), .project = spec.project};
    if (sweeps_->takes(spec.project, member.name)) return belongs_to_sweep(member);
  }
  return arrays_->create(resolved, base::random_name(parts_.random, job::kJobIdLength),
                         idempotency_key, by);
}

Result<Job> Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key,
                               const access::Actor& by, const SubmitManner& manner) {
  std::optional<Result<Job>> answer;
  submit(
      spec, idempotency_key, [&](Result<Job> result) { answer.emplace(std::move(result)); }, by,
      manner);
  if (!answer) {
    [[maybe_unused]] const auto reported_by_callback = journal_.flush();
  }
  return *std::move(answer);
}

Result<job::Forecast> Controller::forecast(const job::JobSpec& given,
                                           const SubmitManner& manner) const {
  MUSTER_TRY(const job::JobSpec spec, named_spec(given, manner));
  MUSTER_CHECK(
      check_submission(spec, jobs_, projects_.table(), parts_.engine, site_, parts_.accounts));
  Job job{.id = "forecast",
          .spec = spec,
          .submitted = parts_.clock.now(),
          .tasks = job::tasks_of(spec)};
  int members = 0;
  if (!spec.array.is_none()) {
    MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
    MUSTER_CHECK(check_siblings(spec, indexes));
    job.spec = job::member_spec(spec, indexes, 0);
    members = static_cast<int>(indexes.size());
  }
  MUSTER_TRY(job.awaited, resolve_dependencies(job.spec, other_jobs(), repeated_by(manner)));
  MUSTER_CHECK(placement_->check(job, jobs_.next_sequence()));
  MUSTER_TRY(const job::Project* const project, projects_.table().find(spec.project));
  MUSTER_TRY(const job::ProjectStatus before, projects_.status(spec.project));
  job::Forecast answer = placement_->forecast(job, jobs_.next_sequence(), *project, before);
  answer.members = members;
  return answer;
}

/// Whether the server would accept this job of the owner now, under a free name.
Result<void> Controller::check_made(const job::JobSpec& spec, const std::string& owner) const {
  MUSTER_CHECK(
      check_content(spec, jobs_, projects_.table(), parts_.engine, site_, parts_.accounts));
  if (parts_.accounts != nullptr) {
    MUSTER_CHECK(may_submit(*parts_.accounts, owner, site_.user, spec,
                            projects_.table().line_of(spec.project)));
  }
  job::JobSpec first = spec;
  if (!spec.array.is_none()) {
    MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
    MUSTER_CHECK(check_siblings(spec, indexes));
    first = job::member_spec(spec, indexes, 0);
  }
  MUSTER_TRY(std::vector<job::AwaitedJob> awaited, resolve_dependencies(first, other_jobs()));
  const Job job{.id = "made",
                .spec = first,
                .awaited = std::move(awaited),
                .submitted = parts_.clock.now(),
                .tasks = job::tasks_of(first)};
  return placement_->check(job, jobs_.next_sequence());
}

/// The spec with dependencies by id, because other jobs may have these names when the last members
/// are made. kNotFound: a job that it waits for does not exist, or has no member for one of its own.
Result<job::JobSpec> Controller::resolved_array(const job::JobSpec& spec) const {
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  MUSTER_CHECK(check_siblings(spec, indexes));
  MUSTER_CHECK(resolve_dependencies(job::member_spec(spec, indexes, 0), other_jobs()));
  return with_awaited_ids(spec);
}

job::JobSpec Controller::with_awaited_ids(job::JobSpec spec) const {
  for (job::Dependency& dependency : spec.after) {
    if (dependency.by_member) continue;
    const auto other = other_jobs().find(dependency, spec.project);
    // "ARRAY/INDEX" is the id of a member without a job, and finds no job.
    if (other && other->id.find('/') == std::string::npos) dependency.job = other->id;
  }
  return spec;
}

/// kNotFound: an array whose members wait for those of another (Dependency::by_member) names an
/// object that is not an array, or an array without one of its indexes.
Result<void> Controller::check_siblings(const job::JobSpec& spec,
                                        const std::vector<int>& indexes) const {
  std::vector<base::Fault> faults;
  for (size_t i = 0; i < spec.after.size(); ++i) {
    const job::Dependency& dependency = spec.after[i];
    if (!dependency.by_member) continue;
    const std::string field = "after[" + std::to_string(i) + "].job";
    bool is_array = false;
    for (const ArrayFacts& array : arrays_->named(dependency.job)) {
      const job::JobSpec& other = array.record.spec;
      if (other.project != spec.project || other.name != dependency.job) continue;
      is_array = true;
      const std::vector<int>& siblings = array.indexes;
      const auto missing = std::find_if(indexes.begin(), indexes.end(), [&](int index) {
        return !std::binary_search(siblings.begin(), siblings.end(), index);
      });
      if (missing == indexes.end()) continue;
      faults.push_back({.field = field,
                        .what = "array " + name_in_quotes(dependency.job) + " has no member " +
                                std::to_string(*missing) + ", for which " +
                                job::member_title(spec.name, *missing) + " would wait"});
    }
    if (is_array) continue;
    faults.push_back({.field = field,
                      .what = "project " + name_in_quotes(spec.project) + " has no array " +
                              name_in_quotes(dependency.job)});
  }
  if (faults.empty()) return {};
  return Error{.code = ErrorCode::kNotFound,
               .what = "array " + name_in_quotes(spec.name) + " cannot wait for these members",
               .advice = "name an array of the same project that has the same indexes",
               .faults = std::move(faults)};
}

}  // namespace muster::control
