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

constexpr const char* kArrayKind = "array";
constexpr const char* kArrayStateKind = "array-state";
constexpr size_t kShownFailures = 10;
/// How many jobs of an array are removed before the loop serves others.
constexpr size_t kRemovedAtOnce = 64;
constexpr std::chrono::seconds kRemovalPause{2};  ///< after a failed commit

char letter_of(Phase phase) {
  return phase == Phase::kSucceeded ? 'S' : phase == Phase::kFailed ? 'F' : 'T';
}

std::optional<Phase> phase_of_letter(char letter) {
  switch (letter) {
    case 'S':
      return Phase::kSucceeded;
    case 'F':
      return Phase::kFailed;
    case 'T':
      return Phase::kStopped;
    default:
      return std::nullopt;
  }
}

}  // namespace

/// An array with its members.
struct Arrays::Held {
  enum class Where : uint8_t {
    kNew,    ///< has no job yet
    kMade,   ///< its job is not committed yet
    kJob,    ///< has a job
    kAgain,  ///< has an ended job, and shall have another
    kGone,   ///< has ended, and has no job
  };
  struct Member {
    Where where = Where::kNew;
    Phase phase = Phase::kQueued;
    int16_t code = 0;
  };

  ArrayRecord record;              ///< without lines
  std::vector<std::string> lines;  ///< one for each member, or empty
  ArrayState state;
  std::vector<int> indexes;
  std::vector<Member> members;
  job::MemberCounts counts;
  int jobs = 0;                    ///< that have not ended
  int queued_jobs = 0;             ///< of these, in phase Queued
  size_t next = 0;                 ///< all members before it have jobs, or have ended
  std::optional<base::Time> last;  ///< end of a member until now

  job::JobSpec spec_of(size_t position) const {
    return job::member_spec(record.spec, indexes, position,
                            lines.empty() ? nullptr : &lines[position]);
  }
  /// Whether another member may become a job now.
  bool wants_job() const {
    const bool is_open = !state.stop_requested && !state.suspended && !state.removing;
    const bool has_more = counts.queued > queued_jobs;
    const int most = max_running();
    return is_open && has_more && queued_jobs < kWindow && (most == 0 || jobs < most);
  }
  bool has_ended() const { return counts.ended() == counts.all(); }
  int max_running() const { return state.max_running.value_or(record.spec.array.max_running); }
  std::optional<int> max_failures() const {
    return state.max_failures ? state.max_failures : record.spec.array.max_failures;
  }

  std::optional<size_t> position_of(int index) const {
    const auto found = std::lower_bound(indexes.begin(), indexes.end(), index);
    if (found == indexes.end() || *found != index) return std::nullopt;
    return static_cast<size_t>(found - indexes.begin());
  }

  bool is_active_job(const Member& member) const {
    return (member.where == Where::kJob || member.where == Where::kMade) &&
           !job::is_final(member.phase);
  }

  /// The only place where a member changes: the counts follow.
  void set(size_t position, Where where, Phase phase) {
    Member& member = members[position];
    const auto count = [&](int by) {
      counts.of(member.phase) += by;
      if (!is_active_job(member)) return;
      jobs += by;
      if (member.phase == Phase::kQueued) queued_jobs += by;
    };
    count(-1);
    member.where = where;
    member.phase = phase;
    count(1);
    const bool needs_job = where == Where::kNew || where == Where::kAgain;
    if (needs_job) next = std::min(next, position);
  }

  /// The letter of a member in the stored results.
  char letter(size_t position) const {
    return position < state.results.size() ? state.results[position] : '.';
  }
  void set_letter(size_t position, char letter) {
    if (state.results.empty()) state.results.assign(members.size(), '.');
    state.results[position] = letter;
  }
  void set_code(size_t position, int code) {
    members[position].code = static_cast<int16_t>(code);
    std::vector<int>& codes = state.exit_codes;
    for (size_t i = 0; i + 1 < codes.size(); i += 2) {
      if (codes[i] != static_cast<int>(position)) continue;
      codes[i + 1] = code;
      return;
    }
    if (code != 0) codes.insert(codes.end(), {static_cast<int>(position), code});
  }
};

Arrays::Arrays(ArrayServices services) : services_(std::move(services)) {}
Arrays::~Arrays() = default;

// --- the store

namespace {

store::Object array_object(const ArrayRecord& record) {
  return {.kind = kArrayKind,
          .id = record.id,
          .project = record.spec.project,
          .name = record.spec.name,
          .document = store::to_document(record)};
}

store::Object array_state_object(const ArrayRecord& record, const ArrayState& state) {
  return {.kind = kArrayStateKind,
          .id = record.id,
          .project = record.spec.project,
          .name = record.spec.name,
          .document = store::to_document(state)};
}

}  // namespace

void Arrays::keep(const Held& held) {
  services_.journal.put(array_state_object(held.record, held.state));
}

Result<void> Arrays::commit(const Held& held, const access::Actor& by, const std::string& action,
                            std::vector<access::FieldChange> changes) {
  keep(held);
  services_.jobs.watchers().announce(held.record.id);
  const job::JobSpec& spec = held.record.spec;
  return services_.journal.flush(
      {.audit = audit_records(services_.clock.now(), by, action, spec.name, spec.project,
                              std::move(changes))});
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
  auto held = std::make_unique<Held>();
  held->record = std::move(record);
  held->state = std::move(state);
  job::ArraySpec& spec = held->record.spec.array;
  if (auto indexes = job::indexes_of(spec)) held->indexes = *std::move(indexes);
  held->lines = std::exchange(spec.lines, {});
  if (spec.indexes.empty()) spec.indexes = "0-" + std::to_string(held->lines.size() - 1);
  held->lines.resize(held->lines.empty() ? 0 : held->indexes.size());
  held->members.resize(held->indexes.size());
  held->counts.queued = static_cast<int>(held->members.size());
  held->last = held->state.last;
  for (size_t i = 0; i < held->members.size(); ++i) {
    const auto phase = phase_of_letter(held->letter(i));
    if (phase) held->set(i, Held::Where::kGone, *phase);
  }
  const std::vector<int>& codes = held->state.exit_codes;
  for (size_t i = 0; i + 1 < codes.size(); i += 2) {
    const auto position = static_cast<size_t>(codes[i]);
    if (position < held->members.size()) {
      held->members[position].code = static_cast<int16_t>(codes[i + 1]);
    }
  }
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
    } else if (held->state.stop_requested) {
      // The server may have ended between the stop of the array and that of its members.
      stop_members(*held, false, held->state.last.value_or(held->record.submitted));
    }
  }
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
  const job::JobSpec& spec = held.record.spec;
  JobEntry* found = nullptr;
  const std::string name = job::member_name(spec.name, held.indexes[position]);
  services_.jobs.each_job_from(name, spec.project, [&](const Job& job) {
    const bool is_it = job.spec.name == name && job.spec.project == spec.project && job.origin &&
                       job.origin->id == held.record.id;
    if (is_it) found = services_.jobs.entry_with_id(job.id);
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
  if (held.has_ended()) array.ended = held.last ? held.last : held.record.submitted;
  array.percent = static_cast<int>(int64_t{100} * held.counts.ended() / held.counts.all());
  for (size_t i = 0; i < held.members.size() && array.failed.size() < kShownFailures; ++i) {
    const Held::Member& member = held.members[i];
    const bool stopped_alone = member.phase == Phase::kStopped && !held.state.stop_requested;
    if (member.phase != Phase::kFailed && !stopped_alone) continue;
    job::MemberEnd end{.index = held.indexes[i], .phase = member.phase};
    if (member.code != 0) end.exit_code = member.code;
    if (const JobEntry* const entry = job_of(held, i)) {
      end.job = entry->job.id;
      end.exit_code = entry->job.exit_code;
    }
    array.failed.push_back(std::move(end));
  }
  return array;
}

std::vector<job::Array> Arrays::list(const std::optional<std::string>& project) const {
  std::vector<job::Array> found;
  for (const auto& [id, held] : arrays_) {
    if (held->state.removing || (project && held->record.spec.project != *project)) continue;
    found.push_back(shown(*held));
  }
  std::sort(found.begin(), found.end(), [](const job::Array& left, const job::Array& right) {
    return left.submitted < right.submitted;
  });
  return found;
}

std::optional<job::Array> Arrays::with_id(const std::string& id) const {
  const auto held = usable(id);
  if (!held) return std::nullopt;
  return shown(**held);
}

std::vector<job::Array> Arrays::named(const std::string& name) const {
  if (auto by_id = with_id(name)) return {*std::move(by_id)};
  std::vector<job::Array> found;
  for (auto at = by_name_.lower_bound({name, ""}); at != by_name_.end(); ++at) {
    if (at->first.first != name) break;
    if (!at->second->state.removing) found.push_back(shown(*at->second));
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

std::vector<Arrays::JoblessMember> Arrays::jobless(const std::string& name) const {
  std::vector<JoblessMember> found;
  const auto member = job::member_of(name);
  if (!member) return found;
  for (auto at = by_name_.lower_bound({member->array, ""}); at != by_name_.end(); ++at) {
    if (at->first.first != member->array) break;
    const Held& held = *at->second;
    const auto position = held.position_of(member->index);
    if (!position || held.state.removing) continue;
    const Held::Member& state = held.members[*position];
    if (state.where != Held::Where::kNew && state.where != Held::Where::kGone) continue;
    const bool had_job = held.letter(*position) != '.';
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
    if (const JobEntry* const entry = job_of(*held, i)) {
      jobs.push_back({.position = i, .index = held->indexes[i], .job = entry->job.id});
    }
  }
  return jobs;
}

std::optional<std::string> Arrays::array_of(const Job& job) {
  if (!job.origin || job.origin->kind != job::JobOrigin::Kind::kArray) return std::nullopt;
  return job.origin->id;
}

std::vector<EndedJob> Arrays::ended() const {
  std::vector<EndedJob> all;
  for (const auto& [id, held] : arrays_) {
    if (held->state.removing || !held->has_ended()) continue;
    all.push_back({.id = id,
                   .project = held->record.spec.project,
                   .ended = held->last.value_or(held->record.submitted),
                   .keep_for = held->record.spec.keep_for});
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

void Arrays::job_changed(const Job& job) {
  const auto id = array_of(job);
  Held* const held = id ? held_with_id(*id) : nullptr;
  if (held == nullptr) return;
  const auto position = held->position_of(job.origin->member);
  if (!position) return;
  const bool again = held->letter(*position) == 'A' && job::is_final(job.phase);
  if (again) {
    held->set(*position, Held::Where::kAgain, Phase::kQueued);
  } else {
    held->set(*position, Held::Where::kJob, job.phase);
  }
  if (job.ended) held->last = std::max(held->last.value_or(*job.ended), *job.ended);
  if (!held->has_ended()) active_.insert(*id);
  // When members of the window start, the next ones follow.
  if (held->wants_job()) services_.wake();
  services_.jobs.watchers().announce(*id);
}

void Arrays::job_leaves(const Job& job, store::Batch& batch) {
  const auto id = array_of(job);
  Held* const held = id ? held_with_id(*id) : nullptr;
  if (held == nullptr || held->state.removing) return;
  const auto position = held->position_of(job.origin->member);
  if (!position) return;
  if (held->letter(*position) == 'A') {
    held->set_letter(*position, '.');
    held->set(*position, Held::Where::kNew, Phase::kQueued);
  } else {
    held->set_letter(*position, letter_of(job.phase));
    held->set_code(*position, job.exit_code.value_or(0));
    held->set(*position, Held::Where::kGone, job.phase);
    if (job.ended) {
      held->state.last = std::max(held->state.last.value_or(*job.ended), *job.ended);
    }
  }
  store::Object object = array_state_object(held->record, held->state);
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
    if (!held->state.stop_requested && !held->state.suspended) make_members(*held);
  }
}

/// Hands the end of the array to the parts that wait for it, once for each end.
void Arrays::note_end(Held& held) {
  if (std::exchange(held.state.end_told, true)) return;
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

void Arrays::make_members(Held& held) {
  while (held.wants_job()) {
    while (held.next < held.members.size() && held.members[held.next].where != Held::Where::kNew &&
           held.members[held.next].where != Held::Where::kAgain) {
      ++held.next;
    }
    if (held.next == held.members.size()) return;
    const size_t position = held.next;
    if (held.members[position].where == Held::Where::kAgain && !clear_former_job(held, position)) {
      return;
    }
    make_member(held, position);
  }
}

/// Removes the ended job of a member that runs again.
bool Arrays::clear_former_job(Held& held, size_t position) {
  JobEntry* const former = job_of(held, position);
  if (former == nullptr) return true;
  const std::string id = former->job.id;
  Result<void> removed = services_.engine.remove(id);
  if (removed) removed = services_.jobs.remove({former}, {});
  if (removed) {
    services_.forget(id);
    return true;
  }
  base::log_error("cannot remove the former job of member " +
                  job::member_title(held.record.spec.name, held.indexes[position]) + ": " +
                  removed.error().to_string());
  return false;
}

void Arrays::make_member(Held& held, size_t position) {
  held.set(position, Held::Where::kMade, Phase::kQueued);
  services_.make({.spec = held.spec_of(position),
                  .origin = {.kind = job::JobOrigin::Kind::kArray,
                             .name = held.record.spec.name,
                             .id = held.record.id,
                             .member = held.indexes[position]},
                  .owner = held.record.owner,
                  .is_suspended = false},
                 [this, id = held.record.id, position,
                  alive = std::weak_ptr<bool>(alive_)](const Result<JobEntry*>& made) {
                   if (!alive.expired()) member_made(id, position, made);
                 });
}

void Arrays::member_made(const std::string& id, size_t position, const Result<JobEntry*>& made) {
  Held* const held = held_with_id(id);
  if (held == nullptr) return;
  if (!made) {
    // The member waits as before; the commit is tried again with the next change.
    return held->set(position, Held::Where::kNew, Phase::kQueued);
  }
  if (held->state.stop_requested) {
    services_.stop(**made, false);
  } else if (held->state.suspended) {
    services_.suspend(**made);
  }
}

/// Members without a job have ended at `time`.
void Arrays::stop_members(Held& held, bool now, base::Time time) {
  for (size_t i = 0; i < held.members.size(); ++i) {
    Held::Member& member = held.members[i];
    if (member.where != Held::Where::kJob || job::is_final(member.phase)) continue;
    if (JobEntry* const entry = job_of(held, i)) services_.stop(*entry, now);
  }
  for (size_t i = 0; i < held.members.size(); ++i) {
    const Held::Where where = held.members[i].where;
    if (where != Held::Where::kNew && where != Held::Where::kAgain) continue;
    held.set(i, where == Held::Where::kNew ? Held::Where::kGone : Held::Where::kJob,
             Phase::kStopped);
  }
  held.last = std::max(held.last.value_or(time), time);
  held.state.last = std::max(held.state.last.value_or(time), time);
}

// --- requests

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
        .advice = "choose another name, or delete what has it: muster delete " + spec.name};
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
                by, {});
}

Result<job::Array> Arrays::create_run(const job::JobSpec& spec, const std::string& id,
                                      const access::Actor& by, const store::Object& schedule) {
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  for (const int index : indexes) {
    const std::string name = job::member_name(spec.name, index);
    for (const Job* const other : services_.jobs.named(name)) {
      if (other->spec.project != spec.project) continue;
      return Error{.code = ErrorCode::kConflict,
                   .what = "job " + name_in_quotes(name) + " exists already"};
    }
  }
  return create({.id = id, .spec = spec, .owner = by.user, .submitted = services_.jobs.stamp()}, by,
                {schedule});
}

Result<job::Array> Arrays::create(ArrayRecord record, const access::Actor& by,
                                  std::vector<store::Object> others) {
  const job::JobSpec& spec = record.spec;
  MUSTER_TRY(const std::vector<int> indexes, job::indexes_of(spec.array));
  const ArrayState state{.suspended = spec.held};
  others.push_back(array_object(record));
  others.push_back(array_state_object(record, state));
  MUSTER_CHECK(services_.journal.flush(
      {.objects = std::move(others),
       .audit = audit_records(services_.clock.now(), by, "array.submit", spec.name, spec.project,
                              {{.field = "id", .after = record.id},
                               {.field = "members", .after = std::to_string(indexes.size())}})}));
  const std::string id = record.id;
  const Held& held = hold(std::move(record), state);
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
    held->set_letter(i, has_job ? 'A' : '.');
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
  held->state.end_told = false;
  if (limits.max_running) held->state.max_running = limits.max_running;
  if (limits.max_failures) held->state.max_failures = limits.max_failures;
  active_.insert(id);
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
  note_end(*held);
  held->state.removing = true;
  std::vector<access::FieldChange> changes{{.field = "id", .before = id}};
  if (!rule.empty()) changes.push_back({.field = "rule", .after = rule});
  MUSTER_CHECK(commit(*held, by, "array.delete", std::move(changes)));
  remove_some(id);
  return {};
}

/// Removes the jobs of the array, a few at a time, and at last the array.
void Arrays::remove_some(const std::string& id) {
  Held* const held = held_with_id(id);
  if (held == nullptr) return;
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
  std::vector<std::string> ids;
  for (const JobEntry* const entry : gone) ids.push_back(entry->job.id);
  const bool is_last = gone.size() < kRemovedAtOnce;
  if (!gone.empty()) {
    if (!services_.jobs.remove(gone, {})) {  // the journal logs the error
      retry_ = services_.loop.after(kRemovalPause, [this, id] { remove_some(id); });
      return;
    }
    for (const std::string& each : ids) services_.forget(each);
  }
  if (!is_last) {
    return services_.loop.post([this, id, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) remove_some(id);
    });
  }
  const JobName name = name_of(held->record.spec);
  services_.journal.drop({.kind = kArrayKind, .id = id});
  services_.journal.drop({.kind = kArrayStateKind, .id = id});
  by_name_.erase(name);
  by_key_.erase(held->record.idempotency_key);
  active_.erase(id);
  arrays_.erase(id);
  services_.jobs.watchers().removed(id, name.first, name.second);
  services_.jobs.watchers().feed().call_watchers();
}

}  // namespace muster::control
