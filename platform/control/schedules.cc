#include "control/schedules.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "control/audit_changes.h"
#include "control/unknown_name.h"
#include "store/records.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::ScheduledRun;
using job::ScheduleSpec;

namespace {

constexpr const char* kScheduleKind = "schedule";

// A run that starts later than this was missed: the server was down, or the machine slept.
constexpr std::chrono::minutes kOnTime{1};

// The pause before a run is tried again whose job could not be committed.
constexpr std::chrono::seconds kRunRetryPause{1};

// Setting the clock back by at most this leaves decided runs decided.
constexpr std::chrono::hours kSmallStep{1};

/// Runs that were decided far ahead of `now` were decided while the clock was wrong, and do not count.
base::Time decided_by_right_clock(base::Time decided_until, base::Time now) {
  return decided_until > now + kSmallStep ? now : decided_until;
}

store::Object object_of(const job::Schedule& schedule) {
  return {.kind = kScheduleKind,
          .id = schedule.id,
          .project = schedule.spec.project,
          .name = schedule.spec.name,
          .document = store::to_document(schedule)};
}

}  // namespace

// --- decisions

DueRun decide_run(const cron::Cron& cron, const cron::Zone& zone, const ScheduleSpec& spec,
                  base::Time decided_until, base::Time now, bool has_unfinished_run) {
  const auto due = cron::last_run(cron, zone, decided_until, now);
  if (!due) return {};
  DueRun decision{.what = DueRun::What::kRun, .time = *due};
  const auto late = now - *due;
  const bool is_too_late = spec.catch_up == ScheduleSpec::CatchUp::kNone ||
                           (spec.catch_up_within && late > *spec.catch_up_within);
  if (late > kOnTime && is_too_late) {
    decision.what = DueRun::What::kMissed;
  } else if (has_unfinished_run && spec.overlap == ScheduleSpec::Overlap::kForbid) {
    decision.what = DueRun::What::kSkip;
  } else if (has_unfinished_run && spec.overlap == ScheduleSpec::Overlap::kReplace) {
    decision.what = DueRun::What::kReplace;
  }
  return decision;
}

std::string run_name(const std::string& schedule, const cron::Zone& zone, base::Time time,
                     bool by_request) {
  const cron::LocalTime at = zone.local(time);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "-%04d%02d%02d-%02d%02d", at.year, at.month, at.day,
                at.hour, at.minute);
  std::string name = schedule + text.data();
  if (by_request) {
    std::snprintf(text.data(), text.size(), "%02d", at.second);
    name += text.data();
  }
  if (at.is_second_pass) name += "-2";
  return name;
}

struct Schedules::Held {
  job::Schedule schedule;
  std::optional<cron::Cron> cron;
  std::optional<cron::Zone> zone;
  std::string problem;               ///< why one of these is missing
  std::optional<base::Time> next;    ///< as in next_
  std::set<std::string> unfinished;  ///< ids of the jobs of runs that have not ended
  bool is_starting = false;          ///< the job of a run is being committed
};

namespace {

/// The expression and the zone, or every fault of them.
Result<std::pair<cron::Cron, cron::Zone>> times_of(const ScheduleSpec& spec) {
  auto cron = cron::parse_cron(spec.cron);
  auto zone = cron::load_zone(spec.timezone);
  if (cron && zone) return std::pair(*std::move(cron), *std::move(zone));
  Error error{.code = ErrorCode::kInvalid, .what = "the schedule has no valid times"};
  if (!cron) {
    error.advice = cron.error().advice;
    for (const base::Fault& fault : cron.error().faults) {
      error.faults.push_back(
          {.field = "cron", .what = (fault.field.empty() ? "" : fault.field + ": ") + fault.what});
    }
  }
  if (!zone) {
    if (cron) error.advice = zone.error().advice;
    error.faults.push_back({.field = "timezone", .what = zone.error().what});
  }
  return error;
}

/// By the name of its job: the id is not stored in the commit that adds the job.
ScheduledRun* run_of(job::Schedule& schedule, const std::string& job) {
  const auto found = std::find_if(schedule.history.begin(), schedule.history.end(),
                                  [&](const ScheduledRun& run) { return run.job == job; });
  return found == schedule.history.end() ? nullptr : &*found;
}

bool is_of_schedule(const job::JobFacts& job) {
  return job.origin && job.origin->kind == job::JobOrigin::Kind::kSchedule;
}

}  // namespace

// --- questions

job::Schedule Schedules::shown(const Held& held) const {
  constexpr size_t kShown = 5;
  job::Schedule schedule = held.schedule;
  schedule.problem = held.problem;
  if (schedule.paused || !held.cron) return schedule;
  base::Time after = std::max(services_.clock.now(), schedule.decided_until);
  while (schedule.upcoming.size() < kShown) {
    const auto next = cron::next_run(*held.cron, *held.zone, after);
    if (!next) break;
    schedule.upcoming.push_back(*next);
    after = *next;
  }
  return schedule;
}

std::vector<job::Schedule> Schedules::list(const std::optional<std::string>& project) const {
  std::vector<job::Schedule> all;
  for (const auto& [name, id] : by_name_) {
    if (!project || name.first == *project) all.push_back(shown(*schedules_.at(id)));
  }
  return all;
}

std::vector<job::Schedule> Schedules::named(const std::string& name) const {
  if (auto by_id = with_id(name)) return {*std::move(by_id)};
  std::vector<job::Schedule> all;
  for (const auto& [known, id] : by_name_) {
    if (known.second == name) all.push_back(shown(*schedules_.at(id)));
  }
  return all;
}

std::optional<job::Schedule> Schedules::with_id(const std::string& id) const {
  const auto found = schedules_.find(id);
  if (found == schedules_.end()) return std::nullopt;
  return shown(*found->second);
}

FileTrees Schedules::trees_in_use() const {
  FileTrees trees;
  for (const auto& [id, held] : schedules_) trees.merge(trees_of(held->schedule.spec.job));
  return trees;
}

// --- requests

std::vector<base::Fault> faults_of_times(const ScheduleSpec& spec) {
  const auto times = times_of(spec);
  return times ? std::vector<base::Fault>() : times.error().faults;
}

Result<Schedules::Held*> Schedules::usable(const std::string& id) const {
  const auto found = schedules_.find(id);
  if (found != schedules_.end()) return found->second.get();
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no schedule " + name_in_quotes(id),
               .advice = "muster schedule list shows the schedules there are"};
}

Result<void> Schedules::commit(const Held& held, const access::Actor& by, const std::string& action,
                               std::vector<access::FieldChange> changes) {
  const ScheduleSpec& spec = held.schedule.spec;
  services_.jobs.watchers().announce(held.schedule.id);
  return services_.journal.flush(
      {.objects = {object_of(held.schedule)},
       .audit = audit_records(services_.clock.now(), by, action, spec.name, spec.project,
                              std::move(changes))});
}

Result<job::Schedule> Schedules::create(ScheduleSpec spec, const access::Actor& by) {
  spec.job.project = spec.project;
  Error error{.code = ErrorCode::kInvalid, .what = "the schedule is not valid"};
  error.faults = job::validate_schedule(spec);
  const auto times = times_of(spec);
  if (!times) {
    error.advice = times.error().advice;
    error.faults.insert(error.faults.begin(), times.error().faults.begin(),
                        times.error().faults.end());
  }
  if (!error.faults.empty()) return error;
  if (by_name_.contains({spec.project, spec.name})) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "schedule " + name_in_quotes(spec.name) + " exists already",
                 .advice = "choose another name, or delete that schedule: muster schedule delete " +
                           spec.name};
  }
  const base::Time now = services_.clock.now();
  job::JobSpec first = spec.job;
  first.name = run_name(spec.name, times->second, now, true);
  MUSTER_CHECK(services_.check(first, by.user));
  const bool is_paused = spec.held;
  job::Schedule schedule{.id = services_.new_id(),
                         .spec = std::move(spec),
                         .owner = by.user,
                         .paused = is_paused,
                         .created = now,
                         .decided_until = now};
  schedule.spec.job.name = schedule.spec.name;
  Held& held = hold(std::move(schedule));
  const ScheduleSpec& kept = held.schedule.spec;
  const auto committed = commit(
      held, by, "schedule.create",
      {{.field = "cron", .after = kept.cron}, {.field = "timezone", .after = kept.timezone}});
  if (!committed) {
    if (held.next) next_.erase({*held.next, held.schedule.id});
    by_name_.erase({kept.project, kept.name});
    schedules_.erase(std::string(held.schedule.id));
    return committed.error();
  }
  services_.wake();
  return shown(held);
}

Result<job::Schedule> Schedules::pause(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->schedule.paused) return shown(*held);
  held->schedule.paused = true;
  const auto committed = commit(*held, by, "schedule.pause",
                                {{.field = "paused", .before = "false", .after = "true"}});
  if (!committed) {
    held->schedule.paused = false;
    return committed.error();
  }
  plan_next(*held);
  return shown(*held);
}

Result<job::Schedule> Schedules::resume(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (!held->schedule.paused) return shown(*held);
  const job::Schedule before = held->schedule;
  held->schedule.paused = false;
  const base::Time now = services_.clock.now();
  held->schedule.decided_until = std::max(decided_by_right_clock(before.decided_until, now), now);
  const auto committed = commit(*held, by, "schedule.resume",
                                {{.field = "paused", .before = "true", .after = "false"}});
  if (!committed) {
    held->schedule = before;
    return committed.error();
  }
  plan_next(*held);
  services_.wake();
  return shown(*held);
}

Result<ScheduledRun> Schedules::run(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->is_starting) MUSTER_CHECK(services_.journal.flush());
  const ScheduleSpec& spec = held->schedule.spec;
  if (!held->zone) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "schedule " + name_in_quotes(spec.name) + " cannot run: " + held->problem};
  }
  if (!held->unfinished.empty() && spec.overlap == ScheduleSpec::Overlap::kForbid) {
    const auto& history = held->schedule.history;
    const auto earlier = std::find_if(
        history.begin(), history.end(),
        [&](const ScheduledRun& other) { return held->unfinished.contains(other.job_id); });
    return Error{.code = ErrorCode::kConflict,
                 .what = "an earlier run of schedule " + name_in_quotes(spec.name) +
                         " has not ended" + (earlier == history.end() ? "" : ": " + earlier->job),
                 .advice =
                     "wait for its end, or stop it; schedules with --overlap allow or replace "
                     "do not wait"};
  }
  const base::Time now = services_.clock.now();
  std::optional<Result<ScheduledRun>> answer;
  start(*held, {.time = now, .by_request = true}, spec.overlap == ScheduleSpec::Overlap::kReplace,
        [&answer](const Result<ScheduledRun>& started) { answer.emplace(started); });
  const auto record = [&](const ScheduledRun& started) {
    return audit_records(now, by, "schedule.run", spec.name, spec.project,
                         {{.field = "job", .after = started.job}});
  };
  if (!answer) {
    // `start` refers to `answer`, which the flush sets.
    [[maybe_unused]] const auto reported_by_callback =
        services_.journal.flush({.audit = record(held->schedule.history.front())});
  } else if (*answer) {
    // The array of the run is stored.
    services_.journal.note(record(**answer));
  }
  return *std::move(answer);
}

Result<void> Schedules::remove(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  const ScheduleSpec& spec = held->schedule.spec;
  MUSTER_CHECK(services_.journal.flush(
      {.removed_objects = {{kScheduleKind, held->schedule.id}},
       .audit = audit_records(services_.clock.now(), by, "schedule.delete", spec.name, spec.project,
                              {{.field = "cron", .before = spec.cron}})}));
  if (held->next) next_.erase({*held->next, held->schedule.id});
  const JobName name{spec.name, spec.project};
  by_name_.erase({spec.project, spec.name});
  const std::string removed = held->schedule.id;
  schedules_.erase(removed);
  // A schedule does not outlive its project: the time of its removal belongs to the same project.
  services_.jobs.watchers().removed(removed, name.first, name.second, services_.jobs.stamp());
  services_.jobs.watchers().feed().call_watchers();
  return {};
}

// --- from the controller

Schedules::Held& Schedules::hold(job::Schedule schedule) {
  auto held = std::make_shared<Held>();
  held->schedule = std::move(schedule);
  const ScheduleSpec& spec = held->schedule.spec;
  if (auto times = times_of(spec)) {
    held->cron = times->first;
    held->zone = times->second;
  } else {
    held->problem = times.error().faults.front().what;
  }
  by_name_[{spec.project, spec.name}] = held->schedule.id;
  Held& kept = *(schedules_[held->schedule.id] = std::move(held));
  plan_next(kept);
  return kept;
}

void Schedules::load(const std::vector<store::Object>& objects) {
  for (const store::Object& object : objects) {
    if (object.kind != kScheduleKind) continue;
    auto schedule = store::from_document<job::Schedule>(object.document);
    if (!schedule) {
      base::log_error("schedule " + name_in_quotes(object.name) + " of project " +
                      name_in_quotes(object.project) +
                      " cannot be read, and does not run: " + schedule.error().to_string());
      continue;
    }
    const Held& held = hold(*std::move(schedule));
    if (!held.problem.empty()) {
      base::log_error("schedule " + name_in_quotes(object.name) + " of project " +
                      name_in_quotes(object.project) + " does not run: " + held.problem);
    }
  }
}

void Schedules::recovered() {
  for (const auto& [id, held] : schedules_) {
    for (ScheduledRun& run : held->schedule.history) {
      if (run.job_id.empty()) continue;
      const auto array = services_.array(run.job_id);
      if (!array) continue;
      if (!array->ended) {
        held->unfinished.insert(run.job_id);
        run.phase.reset();
      } else {
        run.phase = array->phase;
      }
    }
  }
}

void Schedules::array_ended(const job::Array& array) {
  for (const auto& [id, held] : schedules_) {
    if (held->unfinished.erase(array.id) == 0) continue;
    for (ScheduledRun& run : held->schedule.history) {
      if (run.job_id == array.id) run.phase = array.phase;
    }
    services_.journal.put(object_of(held->schedule));
    services_.jobs.watchers().announce(id);
  }
}

void Schedules::array_reopened(const std::string& array) {
  for (const auto& [id, held] : schedules_) {
    for (ScheduledRun& run : held->schedule.history) {
      if (run.job_id != array) continue;
      held->unfinished.insert(array);
      run.phase.reset();
      services_.journal.put(object_of(held->schedule));
      services_.jobs.watchers().announce(id);
    }
  }
}

/// The names of jobs of runs, past and future.
bool Schedules::holds(const std::pair<std::string, std::string>& name) const {
  const auto& [job, project] = name;
  // "-YYYYMMDD-HHMM", perhaps with seconds and "-2"
  const auto is_time = [](std::string_view text) {
    if (text.ends_with("-2")) text.remove_suffix(2);
    if (text.size() != 14 && text.size() != 16) return false;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool is_dash = i == 0 || i == 9;
      if (is_dash ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
    }
    return true;
  };
  for (const size_t length : {14, 16, 18}) {
    if (job.size() <= length || !is_time(std::string_view(job).substr(job.size() - length)))
      continue;
    if (by_name_.contains({project, job.substr(0, job.size() - length)})) return true;
  }
  return false;
}

void Schedules::job_changed(const job::JobFacts& job) {
  if (!is_of_schedule(job)) return;
  const auto found = schedules_.find(std::string(job.origin->id));
  if (found == schedules_.end()) return;
  Held& held = *found->second;
  const bool has_ended = job::is_final(job.phase);
  if (has_ended) {
    held.unfinished.erase(std::string(job.id));
  } else {
    held.unfinished.emplace(job.id);
  }
  ScheduledRun* const run = run_of(held.schedule, std::string(job.name));
  if (run == nullptr) return;
  run->job_id = job.id;
  if (has_ended) {
    run->phase = job.phase;
    run->exit_code = job.exit_code;
    services_.jobs.watchers().announce(held.schedule.id);
  }
}

/// The end of the run is stored, for its job is not any more.
void Schedules::job_leaves(const job::Job& job, store::Batch& batch) {
  job_changed(job::facts_of(job));
  if (!is_of_schedule(job::facts_of(job))) return;
  const auto found = schedules_.find(job.origin->id);
  if (found == schedules_.end()) return;
  const store::Object object = object_of(found->second->schedule);
  std::erase_if(batch.objects, [&](const store::Object& other) {
    return other.kind == object.kind && other.id == object.id;
  });
  batch.objects.push_back(object);
}

void Schedules::plan_next(Held& held) {
  const std::string& id = held.schedule.id;
  if (held.next) next_.erase({*held.next, id});
  held.next.reset();
  if (held.schedule.paused || !held.cron) return;
  held.next = cron::next_run(*held.cron, *held.zone, held.schedule.decided_until);
  if (held.next) next_.emplace(*held.next, id);
}

/// A run that could not be stored is still due. It is decided again after a pause, not in this turn
/// of the loop.
void Schedules::postpone(Held& held) {
  plan_next(held);
  const base::Time again = services_.clock.now() + kRunRetryPause;
  if (!held.next || *held.next >= again) return;
  next_.erase({*held.next, held.schedule.id});
  held.next = again;
  next_.emplace(again, held.schedule.id);
}

/// When a clock that was ahead is set right, `decided_until` and the next runs lie in the future.
void Schedules::follow_the_clock(base::Time now) {
  const bool is_set_back = !looked_at_ || now < *looked_at_;
  looked_at_ = now;
  if (!is_set_back) return;
  for (const auto& [id, held] : schedules_) {
    const base::Time decided = decided_by_right_clock(held->schedule.decided_until, now);
    if (std::exchange(held->schedule.decided_until, decided) != decided) {
      services_.journal.put(object_of(held->schedule));
    }
    plan_next(*held);  // the wrong clock may have postponed a run
  }
}

void Schedules::advance() {
  const base::Time now = services_.clock.now();
  follow_the_clock(now);
  while (!next_.empty() && next_.begin()->first <= now) {
    const std::string id = next_.begin()->second;
    Held& held = *schedules_.at(id);
    next_.erase(next_.begin());
    held.next.reset();
    // Its next run is planned after the commit.
    if (!held.is_starting) decide(held);
  }
  timer_.reset();
  if (next_.empty()) return;
  // The clock may be set meanwhile.
  const std::chrono::nanoseconds wait = next_.begin()->first - now;
  timer_ = services_.loop.after(std::min<std::chrono::nanoseconds>(wait, std::chrono::minutes(1)),
                                services_.wake);
}

void Schedules::add_to_history(Held& held, ScheduledRun run) {
  std::vector<ScheduledRun>& history = held.schedule.history;
  if (!run.by_request) held.schedule.decided_until = run.time;
  history.insert(history.begin(), std::move(run));
  if (history.size() > job::Schedule::kKeptRuns) {
    // A restarted server finds a run that has not ended in the history.
    const auto oldest = std::find_if(
        history.rbegin(), std::prev(history.rend()),
        [&](const ScheduledRun& other) { return !held.unfinished.contains(other.job_id); });
    const bool is_found = oldest != std::prev(history.rend());
    history.erase(is_found ? std::next(oldest).base() : std::prev(history.end()));
  }
  services_.jobs.watchers().announce(held.schedule.id);
}

/// Adds a run to the history, and hands the schedule to the journal.
void Schedules::note(Held& held, ScheduledRun run) {
  add_to_history(held, std::move(run));
  services_.journal.put(object_of(held.schedule));
}

void Schedules::decide(Held& held) {
  const DueRun due =
      decide_run(*held.cron, *held.zone, held.schedule.spec, held.schedule.decided_until,
                 services_.clock.now(), !held.unfinished.empty());
  using What = DueRun::What;
  const auto& history = held.schedule.history;
  const bool has_run = std::any_of(history.begin(), history.end(), [&](const ScheduledRun& other) {
    return !other.by_request && other.time == due.time;
  });
  if (due.what != What::kNothing && has_run) {
    // It was decided before the clock was set back.
    held.schedule.decided_until = due.time;
    services_.journal.put(object_of(held.schedule));
    return plan_next(held);
  }
  switch (due.what) {
    case What::kNothing:
      break;
    case What::kSkip:
      note(held, {.time = due.time, .outcome = ScheduledRun::Outcome::kSkipped});
      break;
    case What::kMissed:
      note(held, {.time = due.time, .outcome = ScheduledRun::Outcome::kMissed});
      break;
    case What::kRun:
    case What::kReplace:
      return start(held, {.time = due.time}, due.what == What::kReplace,
                   [](const Result<ScheduledRun>&) {});
  }
  plan_next(held);
}

/// Whether the job of a run would be accepted now.
Result<void> Schedules::check_run(const job::JobSpec& spec, const std::string& owner) const {
  MUSTER_CHECK(services_.check(spec, owner));
  bool is_taken = services_.is_held_by_others(name_of(spec));
  for (const job::Job* const other : services_.jobs.named(spec.name)) {
    if (other->spec.project == spec.project) is_taken = true;
  }
  if (!is_taken) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "the name " + name_in_quotes(spec.name) + " is in use",
               .advice = "try again in a second"};
}

/// Stops the earlier runs; `next` waits until they have ended.
void Schedules::stop_earlier_runs(const Held& held, job::JobSpec& next) {
  const std::set<std::string> earlier = held.unfinished;
  for (const std::string& id : earlier) {
    next.after.push_back({.job = id, .condition = job::Dependency::Condition::kAny});
    if (JobEntry* const entry = services_.jobs.entry_with_id(id)) {
      services_.stop(*entry);
    } else {
      services_.stop_array(id);
    }
  }
}

/// Submits the job of a run. The history has the run, even if the server does not accept its job.
void Schedules::start(Held& held, ScheduledRun run, bool replaces,
                      std::function<void(const Result<ScheduledRun>&)> done) {
  job::JobSpec spec = held.schedule.spec.job;
  spec.name = run_name(held.schedule.spec.name, *held.zone, run.time, run.by_request);
  run.job = spec.name;
  Result<void> accepted = check_run(spec, held.schedule.owner);
  if (accepted && replaces) stop_earlier_runs(held, spec);
  if (accepted && spec.array.is_none()) {
    return start_job(held, std::move(run), std::move(spec), std::move(done));
  }
  if (accepted) accepted = start_array(held, run, spec);
  if (!accepted) {
    const ErrorCode code = accepted.error().code;
    if (code == ErrorCode::kUnavailable || code == ErrorCode::kExhausted) {
      // The store is away or full: the run is tried again.
      postpone(held);
      services_.wake();
    } else if (!run.by_request) {
      // A caller gets the error instead.
      run.job.clear();
      run.outcome = ScheduledRun::Outcome::kRefused;
      run.error = accepted.error().to_string();
      note(held, std::move(run));
      plan_next(held);
    }
    return done(accepted.error());
  }
  plan_next(held);
  services_.wake();
  done(held.schedule.history.front());
}

/// Commits the array of the run and the history with the run together.
Result<void> Schedules::start_array(Held& held, ScheduledRun run, const job::JobSpec& spec) {
  const job::Schedule before = held.schedule;
  run.job_id = services_.new_id();
  const std::string id = run.job_id;
  add_to_history(held, std::move(run));
  held.unfinished.insert(id);
  const auto made = services_.make_array(spec, id, before.owner, object_of(held.schedule));
  if (made) return {};
  held.unfinished.erase(id);
  held.schedule = before;
  return made.error();
}

void Schedules::start_job(Held& held, ScheduledRun run, job::JobSpec spec,
                          std::function<void(const Result<ScheduledRun>&)> done) {
  const job::Schedule before = held.schedule;
  held.is_starting = true;
  note(held, run);
  services_.make({.spec = std::move(spec),
                  .origin = {.kind = job::JobOrigin::Kind::kSchedule,
                             .name = before.spec.name,
                             .id = before.id},
                  .owner = before.owner},
                 [this, id = before.id, run, decided_until = before.decided_until,
                  done = std::move(done)](const Result<JobEntry*>& made) mutable {
                   if (made) run.job_id = (*made)->job.id;
                   const Result<ScheduledRun> started =
                       made ? Result<ScheduledRun>(run) : Result<ScheduledRun>(made.error());
                   const auto found = schedules_.find(id);
                   if (found == schedules_.end()) return done(started);
                   Held& kept = *found->second;
                   kept.is_starting = false;
                   if (!made) {
                     // Nothing is stored: the run is tried again.
                     std::erase_if(kept.schedule.history,
                                   [&](const ScheduledRun& other) { return other.job == run.job; });
                     if (!run.by_request) kept.schedule.decided_until = decided_until;
                     services_.journal.put(object_of(kept.schedule));
                   }
                   if (made || run.by_request) {
                     plan_next(kept);
                   } else {
                     postpone(kept);
                   }
                   services_.wake();
                   done(started);
                 });
}

}  // namespace muster::control
