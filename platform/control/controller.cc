#include "control/controller.h"

#include <algorithm>
#include <utility>

#include "control/allocation_queue.h"
#include "control/audit_changes.h"
#include "control/gang_tasks.h"
#include "control/scheduler_queue.h"
#include "control/sweeps.h"
#include "control/unknown_name.h"
#include "job/validate.h"
#include "logs/log_follower.h"
#include "logs/measurements.h"
#include "schedule/what_if.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Notice;
using job::Phase;
using job::Task;

namespace {

constexpr size_t kIdLength = 12;

Error has_ended(const std::string& name, std::string advice) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_in_quotes(name) + " has ended",
          .advice = std::move(advice)};
}

Error belongs_to_sweep(const job::JobSpec& spec) {
  return {.code = ErrorCode::kConflict,
          .what = "the name " + name_in_quotes(spec.name) + " belongs to a sweep in project '" +
                  spec.project + "'",
          .advice = "choose another name; muster sweep list shows all sweeps"};
}

/// The action in the audit log.
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

Controller::Controller(ControllerDependencies parts, SiteFacts site, schedule::Options options)
    : parts_(parts),
      site_(std::move(site)),
      options_(options),
      journal_(parts.loop, parts.store, metrics_),
      jobs_(parts.clock, parts.random, journal_),
      book_(options, parts.clock, node_table_, parts.engine.runs_pods()),
      planner_(parts.engine, node_table_, site_, parts.accounts, parts.random),
      attempts_({.loop = parts.loop,
                 .engine = parts.engine,
                 .clock = parts.clock,
                 .jobs = jobs_,
                 .journal = journal_,
                 .metrics = metrics_,
                 .nodes = node_table_,
                 .book = book_,
                 .planner = planner_,
                 .pace = {},
                 .cluster = parts.engine.has_cluster_queue() ? parts.engine.cluster_name() : ""}),
      placement_(make_placement()),
      projects_(
          {.loop = parts.loop,
           .clock = parts.clock,
           .journal = journal_,
           .jobs = jobs_,
           .nodes = node_table_,
           .book = book_,
           .placement = *placement_,
           .accounts = parts.accounts,
           .weighs_past_use = options.decay > 0,
           .deleted = site_.project_gone,
           .wake = [this] { wake(); },
           .count_schedules =
               [this](const std::string& project) { return schedules_.list(project).size(); }}),
      nodes_({.engine = parts.engine,
              .clock = parts.clock,
              .journal = journal_,
              .nodes = node_table_,
              .book = book_,
              .attempts = attempts_,
              .placement = *placement_,
              .changed = [this] { projects_.update_scheduler(); },
              .wake = [this] { wake(); }}),
      unreadable_(parts.engine, jobs_, book_),
      retention_(parts.loop, parts.clock, parts.engine, jobs_),
      arrays_(make_arrays()),
      schedules_(make_schedules()),
      measurements_(std::make_unique<logs::MetricBook>(parts.loop, parts.engine)),
      progress_(std::make_unique<logs::ProgressBook>(parts.loop, parts.engine)),
      sweeps_(std::make_unique<Sweeps>(
          SweepDependencies{.loop = parts.loop,
                            .clock = parts.clock,
                            .random = parts.random,
                            .journal = journal_,
                            .jobs = jobs_,
                            .controller = *this,
                            .settled = [this] { retention_.object_ended(); }})) {
  attempts_.connect(
      *placement_, [this] { wake(); },
      [this](JobEntry& entry) { retention_.job_ended(entry.job); });
  jobs_.add_maker(*arrays_);
  jobs_.add_maker(schedules_);
  jobs_.add_maker(*sweeps_);
  add_retained_objects();
  parts_.engine.listen([this](const engine::TaskReport& task) { report(task); });
  nodes_.read();
}

void Controller::add_retained_objects() {
  const access::Actor server{.user = kServer, .address = "local"};
  retention_.add({.ended = [this] { return arrays_->ended(); },
                  .remove =
                      [this, server](const std::string& id, const std::string& rule) {
                        return arrays_->remove(id, server, rule);
                      }});
  retention_.add({.ended = [this] { return sweeps_->ended(); },
                  .remove =
                      [this, server](const std::string& id, const std::string& rule) {
                        return sweeps_->remove(id, server, rule);
                      }});
}

Controller::~Controller() {
  parts_.engine.listen(nullptr);
}

std::unique_ptr<StartGate> Controller::make_placement() {
  const auto wake = [this] { this->wake(); };
  std::unique_ptr<Placement> placement;
  if (parts_.engine.has_cluster_queue()) {
    placement = std::make_unique<AllocationQueue>(parts_.loop, parts_.engine, jobs_, journal_,
                                                  node_table_, book_, attempts_, planner_, wake);
  } else {
    placement = std::make_unique<SchedulerQueue>(parts_.loop, jobs_, journal_, node_table_, book_,
                                                 attempts_, metrics_, wake);
  }
  return std::make_unique<StartGate>(std::move(placement), parts_.loop, jobs_, other_jobs(),
                                     parts_.clock, attempts_, wake);
}

std::unique_ptr<Arrays> Controller::make_arrays() {
  return std::make_unique<Arrays>(ArrayServices{
      .loop = parts_.loop,
      .clock = parts_.clock,
      .engine = parts_.engine,
      .jobs = jobs_,
      .journal = journal_,
      .make = [this](MadeJob made, auto done) { make_job(std::move(made), std::move(done)); },
      .stop = [this](JobEntry& member, bool now) { end_by_request(member, now); },
      .suspend = [this](JobEntry& member) { hold_back(member); },
      .resume = [this](JobEntry& member) { release(member); },
      .forget = [this](const std::string& id) { retention_.forget(id); },
      .ended =
          [this](const job::Array& array) {
            schedules_.array_ended(array);
            retention_.object_ended();
          },
      .wake = [this] { wake(); }});
}

Schedules Controller::make_schedules() {
  return Schedules(
      {.loop = parts_.loop,
       .clock = parts_.clock,
       .jobs = jobs_,
       .journal = journal_,
       .make = [this](MadeJob made, auto done) { make_job(std::move(made), std::move(done)); },
       .check = [this](const job::JobSpec& spec,
                       const std::string& owner) { return check_made(spec, owner); },
       .stop = [this](JobEntry& job) { end_by_request(job, false); },
       .make_array = [this](const job::JobSpec& spec, const std::string& id,
                            const std::string& owner,
                            const store::Object& schedule) -> Result<job::Array> {
         MUSTER_TRY(const job::JobSpec resolved, resolved_array(spec));
         return arrays_->create_run(resolved, id, {.user = owner}, schedule);
       },
       .stop_array =
           [this](const std::string& id) {
             [[maybe_unused]] const auto reported_by_journal = arrays_->stop(id, false, {});
           },
       .array = [this](const std::string& id) { return arrays_->with_id(id); },
       .is_held_by_others =
           [this](const JobName& name) {
             return arrays_->holds(name) || sweeps_->takes(name.second, name.first);
           },
       .new_id = [this] { return base::random_name(parts_.random, kIdLength); },
       .wake = [this] { wake(); }});
}

OtherJobs Controller::other_jobs() const {
  return {.jobs = jobs_,
          .find_in_arrays = [this](const std::string& name,
                                   const std::string& project) -> std::optional<job::AwaitedJob> {
            for (const job::Array& array : arrays_->named(name)) {
              if (array.spec.project == project) {
                return job::AwaitedJob{.id = array.id, .name = array.spec.name};
              }
            }
            for (const Arrays::JoblessMember& member : arrays_->jobless(name)) {
              if (member.job.spec.project == project) {
                return job::AwaitedJob{.id = member.array + "/" + std::to_string(member.index),
                                       .name = member.job.spec.name};
              }
            }
            return std::nullopt;
          },
          .phase_in_arrays = [this](const std::string& id) -> std::optional<job::Phase> {
            const size_t slash = id.find('/');
            const auto array = arrays_->with_id(id.substr(0, slash));
            if (!array) return std::nullopt;
            if (slash == std::string::npos) return array->phase;
            const int index = base::number_of<int>(id.substr(slash + 1)).value_or(-1);
            const std::string name = job::member_name(array->spec.name, index);
            for (const Job* const job : jobs_.named(name)) {
              if (job->spec.project == array->spec.project) return job->phase;
            }
            for (const Arrays::JoblessMember& member : arrays_->jobless(name)) {
              if (member.array == array->id) return member.job.phase;
            }
            return std::nullopt;
          }};
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
  MUSTER_CHECK(resolve_dependencies(job::member_spec(spec, indexes, 0), other_jobs()));
  job::JobSpec resolved = spec;
  std::vector<base::Fault> faults;
  for (size_t i = 0; i < resolved.after.size(); ++i) {
    job::Dependency& dependency = resolved.after[i];
    if (!dependency.by_member) {
      const auto other = other_jobs().find(dependency, spec.project);
      if (other) dependency.job = other->id;
      continue;
    }
    for (const job::Array& array : arrays_->named(dependency.job)) {
      if (array.spec.project != spec.project) continue;
      MUSTER_TRY(const std::vector<int> siblings, job::indexes_of(array.spec.array));
      const auto missing = std::find_if(indexes.begin(), indexes.end(), [&](int index) {
        return !std::binary_search(siblings.begin(), siblings.end(), index);
      });
      if (missing == indexes.end()) continue;
      faults.push_back({.field = "after[" + std::to_string(i) + "].job",
                        .what = "array " + name_in_quotes(dependency.job) + " has no member " +
                                std::to_string(*missing) + ", for which " +
                                job::member_title(spec.name, *missing) + " would wait"});
    }
  }
  if (faults.empty()) return resolved;
  return Error{.code = ErrorCode::kNotFound,
               .what = "array " + name_in_quotes(spec.name) + " cannot wait for these members",
               .advice = "give both arrays the same indexes",
               .faults = std::move(faults)};
}

/// Plans in a later turn of the loop, once for all changes of this turn.
void Controller::wake() {
  if (std::exchange(is_woken_, true)) return;
  parts_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    is_woken_ = false;
    arrays_->advance();
    schedules_.advance();
    placement_->plan();
  });
}

void Controller::report(const engine::TaskReport& report) {
  JobEntry* const entry = jobs_.entry_with_id(report.gang.job_id);
  if (entry == nullptr || !entry->job.unreadable) return attempts_.report(report);
  if (unreadable_.report(*entry, report)) wake();
}

// --- recovery

Result<void> Controller::recover() {
  MUSTER_TRY(store::Contents stored, parts_.store.load());
  MUSTER_CHECK(report_unreadable(stored));
  projects_.load(std::move(stored.projects));
  nodes_.load(stored.cordoned_nodes);
  nodes_.read();
  if (parts_.accounts != nullptr) {
    parts_.accounts->load(std::move(stored.users), std::move(stored.tokens),
                          std::move(stored.secrets));
  }
  const std::vector<store::Object> objects = std::move(stored.objects);
  arrays_->load(objects);
  schedules_.load(objects);
  recover_jobs(std::move(stored));
  for (const auto& [sequence, entry] : jobs_.entries()) {
    const bool is_open = !entry->job.unreadable && !job::is_final(entry->job.phase);
    if (is_open) placement_->enter(*entry);
  }
  for (const auto& [sequence, entry] : jobs_.entries()) {
    if (entry->job.unreadable) {
      unreadable_.recover(*entry);
    } else if (entry->job.phase == Phase::kStarting || entry->job.phase == Phase::kRunning) {
      attempts_.recover(*entry);
    } else {
      placement_->restore(*entry);
    }
  }
  arrays_->recovered();
  schedules_.recovered();
  sweeps_->load(objects);
  retention_.apply_rules();
  wake();
  return {};
}

/// An unreadable job stands between the jobs that were submitted before and after it.
void Controller::recover_jobs(store::Contents stored) {
  std::multimap<size_t, const store::Unreadable*> unreadable;
  for (const store::Unreadable& record : stored.unreadable) {
    if (record.is_job()) unreadable.emplace(record.jobs_before, &record);
  }
  base::Time submitted = stored.jobs.empty() ? parts_.clock.now() : stored.jobs.front().submitted;
  const auto add_unreadable = [&](size_t jobs_before) {
    const auto [first, behind] = unreadable.equal_range(jobs_before);
    for (auto at = first; at != behind; ++at) unreadable_.add(*at->second, submitted);
  };
  size_t restored = 0;
  for (Job& job : stored.jobs) {
    add_unreadable(restored++);
    submitted = job.submitted;
    jobs_.restore(std::move(job));
  }
  add_unreadable(restored);
}

// --- submission

Result<job::JobSpec> Controller::named_spec(const job::JobSpec& spec,
                                            const SubmitManner& manner) const {
  job::JobSpec named = spec;
  const std::string& pattern = manner.name_template;
  if (!pattern.empty()) {
    if (!job::is_name_template(pattern)) {
      return Error{
          .code = ErrorCode::kInvalid,
          .what = "the name template " + name_in_quotes(pattern) + " is invalid",
          .advice = "a template is a name with {n} once in place of its number, as in train-{n}"};
    }
    named.name = jobs_.next_name(spec.project, pattern);
  } else if (manner.name_suffix && jobs_.is_taken(spec)) {
    named.name = jobs_.next_name(spec.project, spec.name + "-" + std::string(job::kNumberPlace));
  }
  return named;
}

void Controller::submit(const job::JobSpec& given, const std::string& idempotency_key,
                        Submitted done, const access::Actor& by, const SubmitManner& manner) {
  jobs_.settle(given, idempotency_key);
  if (!idempotency_key.empty()) {
    const auto known = parts_.store.find_by_key(idempotency_key);
    if (!known) return done(known.error());
    if (*known) {
      if (const Job* const job = jobs_.with_id(**known)) return done(*job);
    }
  }
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
  auto awaited = resolve_dependencies(spec, other_jobs());
  if (!awaited) return done(awaited.error());
  Job job{.id = base::random_name(parts_.random, kIdLength),
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
  Job job{.id = base::random_name(parts_.random, kIdLength),
          .origin = std::move(made.origin),
          .spec = std::move(made.spec),
          .owner = std::move(made.owner),
          .reason = placement_->first_reason(),
          .suspended = made.is_suspended,
          .submitted = jobs_.stamp()};
  job.tasks = job::tasks_of(job.spec);
  job.awaited = dependencies_of_made(job.spec, *job.origin, other_jobs());
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
  if (!idempotency_key.empty()) {
    if (auto known = arrays_->with_key(idempotency_key)) return *std::move(known);
  }
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
  return arrays_->create(resolved, base::random_name(parts_.random, kIdLength), idempotency_key,
                         by);
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
    job.spec = job::member_spec(spec, indexes, 0);
    members = static_cast<int>(indexes.size());
  }
  MUSTER_TRY(job.awaited, resolve_dependencies(job.spec, other_jobs()));
  MUSTER_CHECK(placement_->check(job, jobs_.next_sequence()));
  MUSTER_TRY(const job::Project* const project, projects_.table().find(spec.project));
  MUSTER_TRY(const job::ProjectStatus before, projects_.status(spec.project));
  job::Forecast answer = placement_->forecast(job, jobs_.next_sequence(), *project, before);
  answer.members = members;
  return answer;
}

// --- requests of callers

Result<Job> Controller::act(JobEntry& entry, const access::Actor& by, const std::string& action,
                            const std::function<void()>& change) {
  const Job before = entry.job;
  change();
  MUSTER_CHECK(journal_.flush(
      {.audit = audit_records(parts_.clock.now(), by, action, &before, &entry.job)}));
  return entry.job;
}

Result<Job> Controller::stop(const std::string& name, bool now, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const found, jobs_.entry_of(name));
  if (unreadable_.has_tasks(*found)) return stop_unreadable(*found, now, by);
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  if (job::is_final(entry->job.phase)) return entry->job;
  return act(*entry, by, "job.stop", [&] { end_by_request(*entry, now); });
}

/// REQUIRES: the job has not ended.
void Controller::end_by_request(JobEntry& entry, bool now) {
  Job& job = entry.job;
  if (!job.stop_requested) {
    job.stop_requested = true;
    job.reason = Notice{Notice::What::kBeingStopped};
    jobs_.note(job, Notice{now ? Notice::What::kAskedToStopNow : Notice::What::kAskedToStop});
    jobs_.change(entry);
  }
  if (Attempt* const attempt = attempts_.of(entry)) {
    attempt->stop(now);
  } else {
    attempts_.finish(entry, Phase::kStopped);
  }
}

Result<Job> Controller::stop_unreadable(const JobEntry& entry, bool now, const access::Actor& by) {
  const job::JobSpec& spec = entry.job.spec;
  MUSTER_CHECK(journal_.flush(
      {.audit = audit_records(parts_.clock.now(), by, "job.stop", spec.name, spec.project,
                              {{.field = "stop_requested", .after = "true"}})}));
  unreadable_.stop(entry, now);
  return entry.job;
}

Result<Job> Controller::suspend(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase))
    return has_ended(job.spec.name, "muster list shows what runs and waits");
  if (job.suspended || job.stop_requested) return job;
  return act(*entry, by, "job.suspend", [&] { hold_back(*entry); });
}

/// REQUIRES: the job has not ended. A suspended job, and one that is being stopped, stays as it is.
void Controller::hold_back(JobEntry& entry) {
  Job& job = entry.job;
  if (job.suspended || job.stop_requested) return;
  job.suspended = true;
  if (Attempt* const attempt = attempts_.of(entry)) {
    attempt->evict_whole(job::SuspendedByUser{});
  } else {
    jobs_.note(job, Notice{Notice::What::kWasSuspended});
    placement_->requeue(entry, {});
    job.reason = suspended_reason(job);
    job.may_start.reset();
  }
  jobs_.change(entry);
}

Result<Job> Controller::resume(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return has_ended(job.spec.name, "submit it again");
  if (!job.suspended) return job;
  return act(*entry, by, "job.resume", [&] { release(*entry); });
}

/// A job that is not suspended stays as it is.
void Controller::release(JobEntry& entry) {
  Job& job = entry.job;
  if (!job.suspended) return;
  job.suspended = false;
  jobs_.note(job, Notice{Notice::What::kResumed});
  jobs_.change(entry);
  // A job whose tasks are still being ended is queued once they are gone.
  if (attempts_.of(entry) != nullptr) return;
  job.reason = placement_->first_reason();
  placement_->requeue(entry, {});
  wake();
}

Result<Job> Controller::set_labels(const std::string& name, const LabelChanges& changes,
                                   const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  job::JobSpec changed = entry->job.spec;
  for (const auto& [label, value] : changes) {
    if (value) {
      changed.labels[label] = *value;
    } else {
      changed.labels.erase(label);
    }
  }
  if (changed.labels == entry->job.spec.labels) return entry->job;
  auto faults = job::validate(changed);
  std::erase_if(faults, [](const auto& fault) { return !fault.field.starts_with("labels"); });
  if (!faults.empty()) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "these labels cannot be given to job " + name_in_quotes(entry->job.spec.name),
        .faults = std::move(faults)};
  }
  return act(*entry, by, "job.label", [&] {
    entry->job.spec.labels = std::move(changed.labels);
    jobs_.change(*entry);
  });
}

Result<void> Controller::remove(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  const Job& job = entry->job;
  if (!job::is_final(job.phase)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "job '" + job.spec.name + "' has not ended",
                 .advice = "stop it first: muster stop " + job.spec.name};
  }
  // Files first: a crash between the two leaves a job without logs, not logs without a job.
  MUSTER_CHECK(parts_.engine.remove(job.id));
  const std::string id = job.id;
  MUSTER_CHECK(
      jobs_.remove({entry}, audit_records(parts_.clock.now(), by, "job.delete", &job, nullptr)));
  retention_.forget(id);
  return {};
}

Result<job::Explanation> Controller::explain(const std::string& name) const {
  MUSTER_TRY(const JobEntry* const entry, jobs_.entry_of(name));
  const Job& job = entry->job;
  job::Explanation answer{.name = job.spec.name, .phase = job.phase};
  answer.reason = job.reason;
  answer.may_start = job.may_start;
  answer.events = job.events;
  if (job.phase == Phase::kQueued && !job.suspended) placement_->explain(*entry, answer);
  return answer;
}

// --- programs in running tasks

/// The task, after a record of the action was committed: no caller enters a task without a trace.
Result<const Task*> Controller::task_to_enter(Job& job, const std::string& name,
                                              const std::string& action, const access::Actor& by) {
  const Task* const task = name.empty() ? &job::deciding_task(job) : find_task(job, name);
  if (task == nullptr) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what = "job " + name_in_quotes(job.spec.name) + " has no task " + name_in_quotes(name),
        .advice = "muster get " + job.spec.name + " shows its tasks"};
  }
  if (task->phase != job::TaskPhase::kRunning) {
    return Error{.code = ErrorCode::kConflict,
                 .what = name_in_quotes(task->name) + " of job " + name_in_quotes(job.spec.name) +
                         " does not run: it is " + std::string(job::to_string(task->phase)),
                 .advice = "muster get " + job.spec.name + " shows what its tasks do"};
  }
  MUSTER_CHECK(journal_.flush(
      {.audit = audit_records(parts_.clock.now(), by, action, job.spec.name, job.spec.project,
                              {{.field = "task", .after = task->name}})}));
  return task;
}

Result<std::unique_ptr<engine::Exec>> Controller::exec(const std::string& name,
                                                       const std::string& task,
                                                       const engine::ExecPlan& plan,
                                                       engine::ExecHandlers handlers,
                                                       const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  MUSTER_TRY(const Task* const where, task_to_enter(job, task, action_of(plan.helper), by));
  return parts_.engine.exec({job.id, job.attempt}, where->name, plan, std::move(handlers));
}

Result<std::unique_ptr<engine::Exec>> Controller::attach(const std::string& name,
                                                         const std::string& task,
                                                         engine::ExecHandlers handlers,
                                                         const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  MUSTER_TRY(const Task* const where, task_to_enter(job, task, "job.attach", by));
  return parts_.engine.attach({job.id, job.attempt}, where->name, std::move(handlers));
}

FileTrees Controller::trees_in_use() const {
  FileTrees trees = jobs_.trees_in_use();
  trees.merge(arrays_->trees_in_use());
  trees.merge(sweeps_->trees_in_use());
  trees.merge(schedules_.trees_in_use());
  return trees;
}

bool Controller::idle() const {
  return jobs_.all_ended() && !sweeps_->are_busy();
}

// --- logs and measurements

std::unique_ptr<logs::LogFollower> Controller::follow_logs(const std::string& name,
                                                           const job::LogQuery& query) {
  const auto job = jobs_.find(name);
  const std::string id = job ? (*job)->id : name;
  logs::FollowedJob followed{
      .get = [this, id] { return jobs_.with_id(id); },
      .watch = [this,
                id](std::function<void()> changed) { return jobs_.watch(id, std::move(changed)); }};
  return std::make_unique<logs::LogFollower>(parts_.loop, parts_.engine, std::move(followed),
                                             query);
}

namespace {

constexpr size_t kMostJobsOfWhatIf = 2000;

Controller::WhatIfAnswer compare(const std::vector<job::JobRef>& waiting,
                                 const schedule::ClusterState& before,
                                 const schedule::ClusterState& after,
                                 const schedule::WhatIfOptions& options) {
  const schedule::WhatIfResult now = schedule::what_if(before, options);
  const schedule::WhatIfResult then = schedule::what_if(after, options);
  const auto start_in = [](const schedule::WhatIfResult& result, const std::string& id) {
    const auto found = result.starts.find(id);
    return found == result.starts.end() ? std::nullopt : std::optional(found->second);
  };
  Controller::WhatIfAnswer answer{.evictions = then.evictions,
                                  .complete = now.complete && then.complete};
  for (const job::JobRef& job : waiting) {
    answer.jobs.push_back(
        {.job = job, .before = start_in(now, job.id), .after = start_in(then, job.id)});
  }
  return answer;
}

}  // namespace

Result<std::function<Controller::WhatIfAnswer()>> Controller::what_if(
    const WhatIfWish& wish) const {
  if (parts_.engine.has_cluster_queue()) {
    return base::Error{
        .code = base::ErrorCode::kConflict,
        .what = "the cluster starts jobs by its own queue, which Muster cannot foresee"};
  }
  schedule::ClusterState cluster{.options = options_,
                                 .projects = projects_.table().for_scheduler(node_table_.totals())};
  for (const engine::Node& node : node_table_.all()) {
    cluster.nodes.push_back(to_schedule(node, node_table_.is_closed(node.name)));
  }
  std::vector<job::JobRef> waiting;
  for (const std::string& id : book_.scheduler().queue()) {
    const JobEntry* const entry = jobs_.entry_with_id(id);
    if (entry == nullptr || entry->job.phase != job::Phase::kQueued) continue;
    cluster.waiting.push_back(book_.gang_of(*entry));
    waiting.push_back({.id = id, .name = entry->job.spec.name, .project = entry->job.spec.project});
  }
  for (const auto& [sequence, entry] : jobs_.entries()) {
    const Attempt* const attempt = attempts_.of(*entry);
    if (attempt == nullptr || job::is_final(entry->job.phase)) continue;
    schedule::RunningGang running{.gang = book_.gang_of(*entry, attempt->shape()),
                                  .places = places_of(entry->job),
                                  .started = entry->job.started.value_or(book_.now())};
    running.places.resize(static_cast<size_t>(schedule::task_count(running.gang)));
    cluster.running.push_back(std::move(running));
  }
  if (cluster.waiting.size() + cluster.running.size() > kMostJobsOfWhatIf) {
    return base::Error{.code = base::ErrorCode::kExhausted,
                       .what = "more than " + std::to_string(kMostJobsOfWhatIf) +
                               " jobs run or wait, which are too many to simulate here",
                       .advice = "simulate a trace: muster simulate"};
  }
  schedule::ClusterState larger = cluster;
  MUSTER_TRY(const engine::Node* const like, node_table_.known(wish.like));
  for (int i = 0; i < wish.add_nodes; ++i) {
    schedule::Node node = to_schedule(*like, false);
    node.name += "+" + std::to_string(i + 1);
    larger.nodes.push_back(std::move(node));
  }
  const schedule::WhatIfOptions options{.now = book_.now(), .run_time = wish.run_time};
  return std::function<WhatIfAnswer()>(
      [waiting = std::move(waiting), cluster = std::move(cluster), larger = std::move(larger),
       options] { return compare(waiting, cluster, larger, options); });
}

Result<std::unique_ptr<engine::LogCursor>> Controller::open_log(const std::string& id, int attempt,
                                                                const std::string& task) {
  return parts_.engine.open_log({id, attempt}, task);
}

void Controller::read_metrics(const std::string& name, const job::MetricQuery& query,
                              Measured measured) const {
  const auto job = jobs_.find(name);
  if (!job) return measured(job.error());
  measurements_->ask(**job, query, std::move(measured));
}

std::optional<job::Progress> Controller::progress_of(const Job& job) const {
  return progress_->of(job);
}

}  // namespace muster::control
