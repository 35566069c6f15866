// The requests of callers to Arrays: create, stop, suspend, resume, run again, remove.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/arrays.h"
#include "control/audit_changes.h"
#include "control/unknown_name.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Phase;

namespace {

/// How many jobs of an array are removed before the loop serves others.
constexpr size_t kRemovedAtOnce = 64;
/// After a failed commit, and while tasks of members still run.
constexpr std::chrono::seconds kRemovalPause{2};

}  // namespace

Result<job::Array> Arrays::create(const job::JobSpec& spec, const std::string& id,
                                  const std::string& idempotency_key, const access::Actor& by) {
  const auto indexes = job::indexes_of(spec.array);
  if (!indexes) return indexes.error();
  [[maybe_unused]] const auto reported_to_others = services_.journal.flush();
  job::JobSpec named = spec;
  const auto is_taken = [&](std::string name) {
    named.name = std::move(name);
    return services_.jobs.is_taken(named);
  };
  if (is_taken(spec.name)) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = "the name " + name_in_quotes(spec.name) + " is in use",
        .advice =
            "choose another name, or delete the object of that name: muster delete " + spec.name};
  }
  for (const int index : *indexes) {
    const std::string name = job::member_name(spec.name, index);
    if (!is_taken(name)) continue;
    return Error{.code = ErrorCode::kConflict,
                 .what = "job " + name_in_quotes(name) + " exists already, and a member of array " +
                         name_in_quotes(spec.name) + " would have its name",
                 .advice = "choose another name, or delete that job: muster delete " + name};
  }
  return create({.id = id,
                 .spec = spec,
                 .owner = by.user,
                 .submitted = services_.jobs.stamp(),
                 .idempotency_key = idempotency_key},
                by, {}, {});
}

Result<job::Array> Arrays::create_run(const job::JobSpec& spec, const std::string& id,
                                      const std::string& owner, const store::Object& schedule) {
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  for (const int index : indexes) {
    const std::string name = job::member_name(spec.name, index);
    for (const Job* const other : services_.jobs.named(name)) {
      if (other->spec.project != spec.project) continue;
      return Error{.code = ErrorCode::kConflict,
                   .what = "job " + name_in_quotes(name) + " exists already"};
    }
  }
  return create({.id = id, .spec = spec, .owner = owner, .submitted = services_.jobs.stamp()},
                {.user = kServer, .address = "local"}, {schedule},
                {{.field = "schedule", .after = schedule.name}});
}

Result<job::Array> Arrays::create(ArrayRecord record, const access::Actor& by,
                                  std::vector<store::Object> others,
                                  const std::vector<access::FieldChange>& causes) {
  const job::JobSpec& spec = record.spec;
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  const ArrayState state{.suspended = spec.held,
                         .awaited = dependencies_of_array(spec, services_.others)};
  others.push_back(array_object(record));
  others.push_back(array_state_object(record, state));
  std::vector<access::FieldChange> changes{
      {.field = "id", .after = record.id},
      {.field = "members", .after = std::to_string(indexes.size())}};
  changes.insert(changes.end(), causes.begin(), causes.end());
  MUSTER_CHECK(services_.journal.flush(
      {.objects = std::move(others),
       .audit = audit_records(services_.clock.now(), by, "array.submit", spec.name, spec.project,
                              std::move(changes))}));
  const std::string id = record.id;
  Held& held = hold(std::move(record), state);
  note_met(held);
  services_.jobs.watchers().announce(id);
  services_.wake();
  return shown(held);
}

Result<job::Array> Arrays::stop(const std::string& id, bool now, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->has_ended()) return shown(*held);
  // Members that are being made are jobs from now on.
  [[maybe_unused]] const auto reported_to_others = services_.journal.flush();
  const bool was_asked = std::exchange(held->state.stop_requested, true);
  stop_members(*held, now, services_.clock.now());
  MUSTER_CHECK(commit(*held, by, "array.stop",
                      {{.field = "stop_requested",
                        .before = was_asked ? "true" : "false",
                        .after = now ? "now" : "true"}}));
  services_.wake();
  return shown(*held);
}

Result<job::Array> Arrays::suspend(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->has_ended()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "array " + name_in_quotes(held->record.spec.name) + " has ended"};
  }
  if (held->state.suspended || held->state.stop_requested) return shown(*held);
  [[maybe_unused]] const auto reported_to_others = services_.journal.flush();
  held->state.suspended = true;
  for (size_t i = 0; i < held->members.size(); ++i) {
    const Held::Member& member = held->members[i];
    if (member.where != Held::Where::kJob || job::is_final(member.phase)) continue;
    if (JobEntry* const entry = job_of(*held, i)) services_.suspend(*entry);
  }
  MUSTER_CHECK(commit(*held, by, "array.suspend",
                      {{.field = "suspended", .before = "false", .after = "true"}}));
  return shown(*held);
}

Result<job::Array> Arrays::resume(const std::string& id, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->has_ended()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "array " + name_in_quotes(held->record.spec.name) + " has ended"};
  }
  if (!held->state.suspended) return shown(*held);
  held->state.suspended = false;
  for (size_t i = 0; i < held->members.size(); ++i) {
    const Held::Member& member = held->members[i];
    if (member.where != Held::Where::kJob || job::is_final(member.phase)) continue;
    if (JobEntry* const entry = job_of(*held, i)) services_.resume(*entry);
  }
  MUSTER_CHECK(commit(*held, by, "array.resume",
                      {{.field = "suspended", .before = "true", .after = "false"}}));
  services_.wake();
  return shown(*held);
}

Result<job::Array> Arrays::rerun_failed(const std::string& id, const Limits& limits,
                                        const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(id));
  if (held->state.stop_requested && !held->has_ended()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "array " + name_in_quotes(held->record.spec.name) +
                         " is being stopped, and some members still run",
                 .advice = "try again when they have ended"};
  }
  int count = 0;
  for (size_t i = 0; i < held->members.size(); ++i) {
    const Held::Member& member = held->members[i];
    if (member.phase != Phase::kFailed && member.phase != Phase::kStopped) continue;
    ++count;
    const bool has_job = member.where == Held::Where::kJob;
    held->set_letter(i, has_job ? kRunsAgain : kNoResult);
    held->set_code(i, 0);
    held->set(i, has_job ? Held::Where::kAgain : Held::Where::kNew, Phase::kQueued);
  }
  if (count == 0) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "no member of array " + name_in_quotes(held->record.spec.name) +
                         " has failed or was stopped"};
  }
  held->state.stop_requested = false;
  held->state.too_many_failures = false;
  held->state.end_reported = false;
  if (limits.max_running) held->state.max_running = limits.max_running;
  if (limits.max_failures) held->state.max_failures = limits.max_failures;
  active_.insert(id);
  services_.reopened(id);
  MUSTER_CHECK(
      commit(*held, by, "array.rerun", {{.field = "members", .after = std::to_string(count)}}));
  services_.wake();
  return shown(*held);
}

Result<void> Arrays::stop_jobless(const JoblessMember& jobless, const access::Actor& by) {
  MUSTER_TRY(Held* const held, usable(jobless.array));
  const auto position = held->position_of(jobless.index);
  if (!position || held->members[*position].where != Held::Where::kNew) return {};
  held->set_letter(*position, 'T');
  held->set(*position, Held::Where::kGone, Phase::kStopped);
  held->last = held->state.last =
      std::max(held->last.value_or(held->record.submitted), services_.clock.now());
  services_.wake();
  return commit(*held, by, "array.stop",
                {{.field = "member", .after = std::to_string(jobless.index)}});
}

Result<void> Arrays::remove(const std::string& id, const access::Actor& by,
                            const std::string& rule) {
  MUSTER_TRY(Held* const held, usable(id));
  const std::string name = held->record.spec.name;
  if (!held->has_ended()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "array '" + name + "' has not ended",
                 .advice = "stop it first: muster stop " + name};
  }
  if (services_.has_tasks(id)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "tasks of array " + name_in_quotes(name) +
                         " still run, although it has ended; they are being ended",
                 .advice = "try again in a moment"};
  }
  note_end(*held);
  held->state.removing = true;
  std::vector<access::FieldChange> changes{{.field = "id", .before = id}};
  if (!rule.empty()) changes.push_back({.field = "rule", .after = rule});
  keep(*held);
  const auto committed = services_.journal.flush(
      {.audit = audit_records(services_.clock.now(), by, "array.delete", name,
                              held->record.spec.project, std::move(changes))});
  if (!committed) {
    held->state.removing = false;
    keep(*held);
    return committed.error();
  }
  services_.jobs.watchers().announce(id);
  remove_some(id);
  return {};
}

/// Removes the jobs of the array, a few at a time, and at last the array.
void Arrays::remove_some(std::string id) {
  Held* const held = held_with_id(id);
  if (held == nullptr) return;
  const auto try_again = [&] {
    removal_retries_[id] = services_.loop.after(kRemovalPause, [this, id] { remove_some(id); });
  };
  if (services_.has_tasks(id)) return try_again();
  std::vector<JobEntry*> gone;
  for (size_t i = 0; i < held->members.size() && gone.size() < kRemovedAtOnce; ++i) {
    if (held->members[i].where == Held::Where::kGone) continue;
    JobEntry* const entry = job_of(*held, i);
    if (entry == nullptr) {
      held->set(i, Held::Where::kGone, held->members[i].phase);
      continue;
    }
    if (const auto removed = services_.engine.remove(entry->job.id); !removed) {
      base::log_error("cannot remove a job of array '" + held->record.spec.name +
                      "': " + removed.error().to_string());
    }
    gone.push_back(entry);
  }
  const bool is_last = gone.size() < kRemovedAtOnce;
  if (!gone.empty()) {
    if (!services_.jobs.remove(gone, {})) return try_again();  // the journal logs the error
  }
  if (!is_last) {
    return services_.loop.post([this, id, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) remove_some(id);
    });
  }
  const JobName name = name_of(held->record.spec);
  const base::Time submitted = held->record.submitted;
  services_.journal.drop({.kind = kArrayKind, .id = id});
  services_.journal.drop({.kind = kArrayStateKind, .id = id});
  by_name_.erase(name);
  by_key_.erase(held->record.idempotency_key);
  active_.erase(id);
  removal_retries_.erase(id);
  for (const job::AwaitedJob& other : held->state.awaited) awaited_.erase({other.id, id});
  arrays_.erase(id);
  services_.jobs.watchers().removed(id, name.first, name.second, submitted);
  services_.jobs.watchers().feed().call_watchers();
}

}  // namespace muster::control
