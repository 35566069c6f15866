#include "control/arrays.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/audit_changes.h"
#include "control/unknown_name.h"
#include "job/spec_table.h"
#include "store/records.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Phase;

namespace {

constexpr size_t kShownFailures = 10;
constexpr std::chrono::seconds kMakePause{1};  ///< after a failed commit

}  // namespace

Arrays::Arrays(ArrayServices services) : services_(std::move(services)) {}

// --- the store

void Arrays::keep(const Held& held) {
  services_.journal.put(array_state_object(held.record, held.state));
}

Result<void> Arrays::commit(const Held& held, const access::Actor& by, const std::string& action,
                            std::vector<access::FieldChange> changes) {
  keep(held);
  services_.jobs.watchers().announce(held.record.id);
  const job::JobSpec& spec = held.record.spec;
  services_.journal.note(audit_records(services_.clock.now(), by, action, spec.name, spec.project,
                                       std::move(changes)));
  const Result<void> stored = services_.journal.flush();
  if (stored) return {};
  return stored_later("the change of array " + name_in_quotes(spec.name) + " takes effect",
                      stored.error());
}

void Arrays::load(const std::vector<store::Object>& objects) {
  std::map<std::string, ArrayState> states;
  for (const store::Object& object : objects) {
    if (object.kind != kArrayStateKind) continue;
    auto state = store::from_document<ArrayState>(object.document);
    if (state) {
      states[object.id] = *std::move(state);
    } else {
      base::log_error("the state of array '" + object.name +
                      "' cannot be read: " + state.error().what);
    }
  }
  for (const store::Object& object : objects) {
    if (object.kind != kArrayKind) continue;
    auto record = store::from_document<ArrayRecord>(object.document);
    const auto state = states.find(object.id);
    if (!record || state == states.end()) {
      base::log_error("array '" + object.name + "' cannot be read" +
                      (record ? ": its state is missing" : ": " + record.error().what) +
                      "; no further members start");
      continue;
    }
    hold(*std::move(record), std::move(state->second));
  }
}

Arrays::Held& Arrays::hold(ArrayRecord record, ArrayState state) {
  auto held = std::make_unique<Held>(std::move(record), std::move(state));
  Held& kept = *held;
  by_name_[name_of(kept.record.spec)] = &kept;
  if (!kept.record.idempotency_key.empty()) by_key_[kept.record.idempotency_key] = kept.record.id;
  active_.insert(kept.record.id);
  arrays_[kept.record.id] = std::move(held);
  return kept;
}

void Arrays::recovered() {
  for (const auto& [id, held] : arrays_) {
    if (held->state.removing) {
      services_.loop.post([this, id = id, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) remove_some(id);
      });
      continue;
    }
    if (held->state.awaited.size() != held->record.spec.after.size()) {
      // An array of an earlier version.
      held->state.awaited = dependencies_of_array(held->record.spec, services_.others);
      keep(*held);
    }
    note_met(*held);
    if (held->state.stop_requested) {
      // The server may have ended between the stop of the array and that of its members.
      const ArrayState before = held->state;
      stop_members(*held, false, held->state.last.value_or(held->record.submitted));
      if (held->state != before) keep(*held);
    }
  }
}

/// Stores which dependencies of the array are met: the other job may be deleted before the last members
/// are made.
void Arrays::note_met(Held& held) {
  bool is_changed = false;
  for (size_t i = 0; i < held.state.awaited.size(); ++i) {
    job::AwaitedJob& other = held.state.awaited[i];
    if (other.id.empty() || other.is_met) continue;
    const auto phase = services_.others.phase_of(other.id);
    other.is_met = phase && meets(held.record.spec.after[i].condition, *phase);
    is_changed = is_changed || other.is_met;
    if (!other.is_met) awaited_.emplace(other.id, held.record.id);
  }
  if (is_changed) keep(held);
}

void Arrays::object_ended(const std::string& id) {
  std::vector<Held*> arrays;
  const auto is_of_it = [&](const std::string& other) {  // a member is "ARRAY/INDEX"
    return other.starts_with(id) && (other.size() == id.size() || other[id.size()] == '/');
  };
  for (auto at = awaited_.lower_bound({id, ""}); at != awaited_.end() && is_of_it(at->first);) {
    if (Held* const held = held_with_id(at->second)) arrays.push_back(held);
    at = awaited_.erase(at);
  }
  for (Held* const held : arrays) note_met(*held);
}

// --- questions

Arrays::Held* Arrays::held_with_id(const std::string& id) const {
  const auto found = arrays_.find(id);
  return found == arrays_.end() ? nullptr : found->second.get();
}

Result<Arrays::Held*> Arrays::usable(const std::string& id) const {
  Held* const held = held_with_id(id);
  if (held != nullptr && !held->state.removing) return held;
  return Error{.code = ErrorCode::kNotFound, .what = "there is no array " + name_in_quotes(id)};
}

JobEntry* Arrays::job_of(const Held& held, size_t position) const {
  const auto facts = facts_of_member(held, position);
  return facts ? services_.jobs.entry_with_id(std::string(facts->id)) : nullptr;
}

std::optional<job::JobFacts> Arrays::facts_of_member(const Held& held, size_t position) const {
  const job::JobSpec& spec = held.record.spec;
  std::optional<job::JobFacts> found;
  const std::string name = job::member_name(spec.name, held.indexes[position]);
  services_.jobs.each_job_from(name, spec.project, [&](const job::JobFacts& job) {
    const bool is_it = job.name == name && job.project == spec.project && job.origin &&
                       job.origin->id == held.record.id;
    if (is_it) found = job;
    return false;
  });
  return found;
}

job::Array Arrays::shown(const Held& held) const {
  job::Array array{.id = held.record.id,
                   .spec = {},
                   .owner = held.record.owner,
                   .submitted = held.record.submitted,
                   .phase = job::phase_of_array(held.counts),
                   .counts = held.counts,
                   .stop_requested = held.state.stop_requested,
                   .too_many_failures = held.state.too_many_failures,
                   .suspended = held.state.suspended};
  array.spec = held.record.spec;
  array.spec.array.max_running = held.max_running();
  array.spec.array.max_failures = held.max_failures();
  array.ended = held.facts().ended;
  array.percent = static_cast<int>(int64_t{100} * held.counts.ended() / held.counts.all());
  for (const size_t i : held.first_failed(kShownFailures)) {
    const Held::Member& member = held.members[i];
    job::MemberEnd end{.index = held.indexes[i], .phase = member.phase};
    if (member.code != 0) end.exit_code = member.code;
    if (const auto job = facts_of_member(held, i)) {
      end.job = job->id;
      end.exit_code = job->exit_code;
    }
    array.failed.push_back(std::move(end));
  }
  return array;
}

void Arrays::each(const Visit& visit) const {
  for (const auto& [id, held] : arrays_) {
    if (!held->state.removing && !visit(held->facts())) return;
  }
}

std::vector<std::string> Arrays::ids_of(const Takes& takes) const {
  std::vector<const ArrayRecord*> found;
  each([&](const ArrayFacts& array) {
    if (takes(array)) found.push_back(&array.record);
    return true;
  });
  std::sort(found.begin(), found.end(), [](const ArrayRecord* left, const ArrayRecord* right) {
    return left->submitted < right->submitted;
  });
  std::vector<std::string> ids;
  for (const ArrayRecord* const record : found) ids.push_back(record->id);
  return ids;
}

std::optional<job::Array> Arrays::with_id(const std::string& id) const {
  const auto held = usable(id);
  if (!held) return std::nullopt;
  return shown(**held);
}

std::optional<ArrayFacts> Arrays::facts_with_id(const std::string& id) const {
  const auto held = usable(id);
  if (!held) return std::nullopt;
  return (*held)->facts();
}

std::vector<ArrayFacts> Arrays::named(const std::string& name) const {
  std::vector<ArrayFacts> found;
  if (const auto by_id = facts_with_id(name)) {
    found.push_back(*by_id);
    return found;
  }
  for (auto at = by_name_.lower_bound({name, ""}); at != by_name_.end(); ++at) {
    if (at->first.first != name) break;
    if (!at->second->state.removing) found.push_back(at->second->facts());
  }
  return found;
}

std::vector<std::string> Arrays::lines_of(const std::string& id) const {
  const Held* const held = held_with_id(id);
  return held == nullptr ? std::vector<std::string>() : held->lines;
}

std::optional<job::Array> Arrays::with_key(const std::string& idempotency_key) const {
  const auto found = by_key_.find(idempotency_key);
  if (found == by_key_.end()) return std::nullopt;
  return with_id(found->second);
}

std::vector<Arrays::JoblessMember> Arrays::jobless(const std::string& name,
                                                   const Takes& takes) const {
  std::vector<JoblessMember> found;
  const auto member = job::member_of(name);
  if (!member) return found;
  for (auto at = by_name_.lower_bound({member->array, ""}); at != by_name_.end(); ++at) {
    if (at->first.first != member->array) break;
    const Held& held = *at->second;
    const auto position = held.position_of(member->index);
    if (!position || held.state.removing || (takes && !takes(held.facts()))) continue;
    const Held::Member& state = held.members[*position];
    if (state.where != Held::Where::kNew && state.where != Held::Where::kGone) continue;
    const bool had_job = held.letter(*position) != kNoResult;
    Job job{.id = held.record.id + "-" + std::to_string(member->index),
            .origin = job::JobOrigin{.kind = job::JobOrigin::Kind::kArray,
                                     .name = held.record.spec.name,
                                     .id = held.record.id,
                                     .member = member->index},
            .spec = held.spec_of(*position),
            .owner = held.record.owner,
            .phase = state.phase,
            .submitted = held.record.submitted};
    job.tasks = job::tasks_of(job.spec);
    const std::string array = "array '" + held.record.spec.name + "'";
    if (!job::is_final(state.phase)) {
      job.reason = job::Fact(job::Remark{held.state.suspended ? array + " is suspended"
                                                              : "waits for its turn in " + array});
    } else {
      job.ended = held.last.value_or(held.record.submitted);
      if (state.code != 0) job.exit_code = state.code;
      job.reason = job::Fact(job::Remark{state.phase == Phase::kStopped
                                             ? "it was stopped before it started, or its log is "
                                               "no longer kept"
                                             : "its log is no longer kept"});
    }
    found.push_back({.array = held.record.id,
                     .index = member->index,
                     .job = std::move(job),
                     .had_job = had_job});
  }
  return found;
}

std::vector<Arrays::MemberJob> Arrays::jobs_of(const std::string& id, size_t first,
                                               size_t most) const {
  std::vector<MemberJob> jobs;
  const Held* const held = held_with_id(id);
  if (held == nullptr) return jobs;
  for (size_t i = first; i < held->members.size() && jobs.size() < most; ++i) {
    const Held::Where where = held->members[i].where;
    if (where != Held::Where::kJob && where != Held::Where::kAgain) continue;
    if (const auto job = facts_of_member(*held, i)) {
      jobs.push_back({.position = i, .index = held->indexes[i], .job = std::string(job->id)});
    }
  }
  return jobs;
}

std::optional<std::string> Arrays::array_of(const job::JobFacts& job) {
  if (!job.origin || job.origin->kind != job::JobOrigin::Kind::kArray) return std::nullopt;
  return std::string(job.origin->id);
}

std::vector<EndedJob> Arrays::ended() const {
  std::vector<EndedJob> all;
  for (const auto& [id, held] : arrays_) {
    if (held->state.removing || !held->has_ended()) continue;
    all.push_back({.id = id,
                   .project = held->record.spec.project,
                   .ended = held->last.value_or(held->record.submitted),
                   .keep_for = held->record.spec.keep_for,
                   .bytes = {},
                   .in_use = services_.has_tasks(id)});
  }
  return all;
}

FileTrees Arrays::trees_in_use() const {
  FileTrees trees;
  for (const auto& [id, held] : arrays_) trees.merge(trees_of(held->record.spec));
  return trees;
}

bool Arrays::holds(const std::pair<std::string, std::string>& name) const {
  if (by_name_.contains(name)) return true;
  const auto member = job::member_of(name.first);
  if (!member || name.first.ends_with(']')) return false;
  const auto found = by_name_.find({member->array, name.second});
  return found != by_name_.end() && found->second->position_of(member->index).has_value();
}

// --- the jobs of members

void Arrays::job_changed(const job::JobFacts& job) {
  const auto id = array_of(job);
  Held* const held = id ? held_with_id(*id) : nullptr;
  if (held == nullptr) return;
  const auto position = held->position_of(job.origin->member);
  if (!position) return;
  const bool again = held->letter(*position) == kRunsAgain && job::is_final(job.phase);
  if (again) {
    held->set(*position, Held::Where::kAgain, Phase::kQueued);
  } else {
    held->set(*position, Held::Where::kJob, job.phase);
  }
  if (job.ended) held->last = std::max(held->last.value_or(*job.ended), *job.ended);
  if (!held->has_ended()) active_.insert(*id);
  // When members of the window start, the next ones follow.
  if (held->may_make_job()) services_.wake();
  services_.jobs.watchers().announce(*id);
}

void Arrays::job_leaves(const Job& job, store::Batch& batch) {
  const auto id = array_of(job::facts_of(job));
  Held* const held = id ? held_with_id(*id) : nullptr;
  if (held == nullptr || held->state.removing) return;
  const auto position = held->position_of(job.origin->member);
  if (!position) return;
  const bool again = held->letter(*position) == kRunsAgain;
  if (again) {
    held->set(*position, Held::Where::kNew, Phase::kQueued);
  } else {
    held->set_letter(*position, letter_of(job.phase));
    held->set_code(*position, job.exit_code.value_or(0));
    held->set(*position, Held::Where::kGone, job.phase);
    if (job.ended) {
      held->state.last = std::max(held->state.last.value_or(*job.ended), *job.ended);
    }
  }
  ArrayState stored = held->state;
  // In memory the member keeps its letter until it has a new job: if this commit fails, the former
  // job stays, and the member still runs again.
  if (again) stored.results[*position] = kNoResult;
  store::Object object = array_state_object(held->record, stored);
  std::erase_if(batch.objects, [&](const store::Object& other) {
    return other.kind == object.kind && other.id == object.id;
  });
  batch.objects.push_back(std::move(object));
  services_.jobs.watchers().announce(*id);
}

// --- decisions

void Arrays::advance() {
  const std::set<std::string> ids = active_;
  for (const std::string& id : ids) {
    Held* const held = held_with_id(id);
    if (held == nullptr || held->state.removing) {
      active_.erase(id);
      continue;
    }
    if (held->has_ended()) {
      note_end(*held);
      active_.erase(id);
      continue;
    }
    const auto most = held->max_failures();
    if (most && held->counts.failed > *most && !held->state.stop_requested) {
      held->state.stop_requested = true;
      held->state.too_many_failures = true;
      stop_members(*held, false, services_.clock.now());
      keep(*held);
    }
    const bool is_open = !held->state.stop_requested && !held->state.suspended;
    if (is_open && !makes_nothing_) make_members(*held);
  }
}

/// Hands the end of the array to the parts that wait for it, once for each end.
void Arrays::note_end(Held& held) {
  if (std::exchange(held.state.end_reported, true)) return;
  const job::Array array = shown(held);
  keep(held);
  services_.journal.put_end({.kind = kArrayKind,
                             .id = array.id,
                             .name = array.spec.name,
                             .project = array.spec.project,
                             .owner = array.owner,
                             .labels = array.spec.labels,
                             .phase = array.phase,
                             .counts = {{"members", array.counts.all()},
                                        {"succeeded", array.counts.succeeded},
                                        {"failed", array.counts.failed},
                                        {"stopped", array.counts.stopped}},
                             .submitted = array.submitted,
                             .ended = *array.ended});
  services_.ended(array);
}

/// A member whose former tasks still run does not delay the others: the end of its tasks wakes the
/// scheduler.
void Arrays::make_members(Held& held) {
  int waiting = 0;
  const auto has_more = [&] {
    return held.may_make_job() && held.counts.queued - held.queued_jobs > waiting;
  };
  for (size_t at = held.next; at < held.members.size() && has_more(); ++at) {
    const Held::Where where = held.members[at].where;
    if (where == Held::Where::kAgain) {
      const auto former = facts_of_member(held, at);
      if (former && services_.has_tasks(std::string(former->id))) {
        ++waiting;
        continue;
      }
      if (!clear_former_job(held, at)) return;
    }
    const bool needs_job = where == Held::Where::kNew || where == Held::Where::kAgain;
    if (held.next == at) ++held.next;
    if (needs_job) make_member(held, at);
  }
}

/// Removes the ended job of a member that runs again.
bool Arrays::clear_former_job(Held& held, size_t position) {
  JobEntry* const former = job_of(held, position);
  if (former == nullptr) return true;
  Result<void> removed = services_.engine.remove(former->job.id);
  if (removed) removed = services_.jobs.remove({former}, {});
  if (removed) return true;
  base::log_error("cannot remove the former job of member " +
                  job::member_title(held.record.spec.name, held.indexes[position]) + ": " +
                  removed.error().to_string());
  make_again_soon();
  return false;
}

void Arrays::make_again_soon() {
  makes_nothing_ = true;
  make_retry_ = services_.loop.after(kMakePause, [this] {
    makes_nothing_ = false;
    services_.wake();
  });
}

void Arrays::make_member(Held& held, size_t position) {
  if (held.letter(position) == kRunsAgain) {
    held.set_letter(position, kNoResult);
    keep(held);
  }
  held.set(position, Held::Where::kMade, Phase::kQueued);
  services_.make({.spec = held.spec_of(position),
                  .origin = {.kind = job::JobOrigin::Kind::kArray,
                             .name = held.record.spec.name,
                             .id = held.record.id,
                             .member = held.indexes[position]},
                  .owner = held.record.owner,
                  .is_suspended = false,
                  .awaited = held.state.awaited},
                 [this, id = held.record.id, position,
                  alive = std::weak_ptr<bool>(alive_)](const Result<JobEntry*>& made) {
                   if (!alive.expired()) member_made(id, position, made);
                 });
}

void Arrays::member_made(const std::string& id, size_t position, const Result<JobEntry*>& made) {
  Held* const held = held_with_id(id);
  if (held == nullptr) return;
  if (!made) {
    held->set(position, Held::Where::kNew, Phase::kQueued);
    return make_again_soon();
  }
  if (held->state.stop_requested) {
    services_.stop(**made, false);
  } else if (held->state.suspended) {
    services_.suspend(**made);
  }
}

/// Members without a job have ended at `time`. A member that shall run again keeps its former job, and
/// the result of that job.
void Arrays::stop_members(Held& held, bool now, base::Time time) {
  for (size_t i = 0; i < held.members.size(); ++i) {
    Held::Member& member = held.members[i];
    if (member.where != Held::Where::kJob || job::is_final(member.phase)) continue;
    if (JobEntry* const entry = job_of(held, i)) services_.stop(*entry, now);
  }
  for (size_t i = 0; i < held.members.size(); ++i) {
    const Held::Where where = held.members[i].where;
    if (where != Held::Where::kNew && where != Held::Where::kAgain) continue;
    if (held.letter(i) == kRunsAgain) held.set_letter(i, kNoResult);
    const auto former = where == Held::Where::kAgain ? facts_of_member(held, i) : std::nullopt;
    held.set(i, former ? Held::Where::kJob : Held::Where::kGone,
             former ? former->phase : Phase::kStopped);
  }
  held.last = std::max(held.last.value_or(time), time);
  held.state.last = std::max(held.state.last.value_or(time), time);
}

}  // namespace muster::control
