#include "control/controller.h"

#include <algorithm>

#include "control/log_follower.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "control/unknown_name.h"
#include "job/validate.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::StopMode;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

constexpr size_t kKeptEvents = 200;
constexpr size_t kIdLength = 12;

std::string quoted(const std::string& name) {
  return "'" + name + "'";
}

Error has_ended(const std::string& name, std::string advice) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + quoted(name) + " has ended",
          .advice = std::move(advice)};
}

Error name_taken(const std::string& name) {
  return {.code = ErrorCode::kConflict,
          .what = "there is a job " + quoted(name) + " already",
          .advice = "choose another name, or remove it: muster delete " + name};
}

}  // namespace

Controller::Controller(Parts parts, SiteFacts site, schedule::Options options)
    : parts_(parts),
      site_(std::move(site)),
      options_(options),
      forward_(parts.clock),
      journal_(parts.loop, parts.store),
      scheduler_(options) {
  projects_.load({}, parts_.clock.now());
  parts_.engine.listen([this](const engine::TaskReport& report) { hear(report); });
  nodes_watch_ = parts_.engine.watch_nodes([this] {
    read_nodes();
    wake();
  });
  read_nodes();
}

Controller::~Controller() {
  parts_.engine.listen(nullptr);
}

void Controller::soon(std::function<void()> action) {
  parts_.loop.post([alive = std::weak_ptr<bool>(alive_), action = std::move(action)] {
    if (!alive.expired()) action();
  });
}

// --- what callers ask for

Result<void> Controller::check_submission(const job::JobSpec& spec) const {
  if (auto faults = job::validate(spec); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job cannot be run as it is",
                 .faults = std::move(faults)};
  }
  MUSTER_CHECK(projects_.find(spec.project));
  if (projects_.has_children(spec.project)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project " + quoted(spec.project) +
                         " has projects below it, and jobs "
                         "belong to those",
                 .advice = "muster project list shows them"};
  }
  if (by_name(spec.name) != nullptr) return name_taken(spec.name);
  return {};
}

/// The gang of a new job, unless nothing could ever start it.
Result<schedule::Gang> Controller::admissible(const Job& job, uint64_t sequence) const {
  schedule::Gang gang = to_schedule(job, sequence, pools_);
  // Where no machine has come yet, nobody knows what there will be.
  if (nodes_.empty()) return gang;
  const auto never = scheduler_.refuses(gang);
  if (!never) return gang;
  const bool says_never = never->constraint == schedule::Constraint::kNever;
  return Error{.code = ErrorCode::kRefused,
               .what = "job " + quoted(job.spec.name) + (says_never ? " " : " can never start: ") +
                       never->text,
               .advice = never->details.empty() ? "" : never->details.front()};
}

void Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key,
                        Submitted done) {
  // The first of two with one name or key has to be committed before the second can be judged.
  if (uncommitted_.count(spec.name) > 0 || uncommitted_keys_.count(idempotency_key) > 0) {
    [[maybe_unused]] const auto told_by_callback = journal_.flush();
  }
  if (!idempotency_key.empty()) {
    const auto known = parts_.store.find_by_key(idempotency_key);
    if (!known) return done(known.error());
    if (*known) {
      if (const Entry* entry = by_id(**known)) return done(entry->job);
    }
  }
  if (const auto checked = check_submission(spec); !checked) return done(checked.error());

  auto entry = std::make_unique<Entry>();
  entry->sequence = next_sequence_;
  entry->job = {.id = base::random_name(parts_.random, kIdLength),
                .spec = spec,
                .reason = "waits for the scheduler",
                .submitted = parts_.clock.now(),
                .tasks = job::tasks_of(spec)};
  if (const auto gang = admissible(entry->job, entry->sequence); !gang) return done(gang.error());
  ++next_sequence_;
  note(entry->job, "submitted");
  const Job& job = entry->job;
  uncommitted_[spec.name] = std::move(entry);
  if (!idempotency_key.empty()) uncommitted_keys_.insert(idempotency_key);
  journal_.add(job, idempotency_key,
               [this, name = spec.name, key = idempotency_key,
                done = std::move(done)](const Result<void>& committed) {
                 auto node = uncommitted_.extract(name);
                 uncommitted_keys_.erase(key);
                 if (!committed) return done(committed.error());
                 Entry& kept = *node.mapped();
                 entries_[kept.sequence] = std::move(node.mapped());
                 admit(kept);
                 scheduler_.submit(gang_of(kept));
                 wake();
                 done(kept.job);
               });
}

Result<Job> Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key) {
  std::optional<Result<Job>> answer;
  submit(spec, idempotency_key, [&](Result<Job> result) { answer.emplace(std::move(result)); });
  if (!answer) {
    [[maybe_unused]] const auto told_by_callback = journal_.flush();
  }
  return *std::move(answer);
}

/// The entry is in the tables from now on.
void Controller::admit(Entry& entry) {
  by_id_[entry.job.id] = &entry;
  by_name_[entry.job.spec.name] = &entry;
  if (job::is_final(entry.job.phase)) return;
  ++not_final_;
  if (entry.job.phase == Phase::kQueued) waiting_.insert(entry.sequence);
}

Result<Job> Controller::stop(const std::string& name, bool now) {
  MUSTER_TRY(Entry* const entry, entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return job;
  if (!job.stop_requested) {
    job.stop_requested = true;
    job.reason = "is being stopped";
    note(job, now ? "asked to stop at once" : "asked to stop");
    change(*entry);
  }
  if (!entry->run) {
    finish(*entry, Phase::kStopped);
  } else if (now) {
    end_gang(*entry, StopMode::kNow);
  } else {
    end_gang_gently(*entry);
  }
  MUSTER_CHECK(journal_.flush());
  return job;
}

Result<Job> Controller::suspend(const std::string& name) {
  MUSTER_TRY(Entry* const entry, entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return has_ended(name, "muster list shows what runs and waits");
  if (job.suspended || job.stop_requested) return job;
  job.suspended = true;
  if (entry->run) {
    entry->run->goes_whole = true;
    evict(*entry, "was suspended");
  } else {
    note(job, "was suspended");
    queue_anew(*entry);
    job.reason = suspended_reason(job);
    job.reason_details.clear();
    job.may_start.reset();
  }
  change(*entry);
  MUSTER_CHECK(journal_.flush());
  return job;
}

Result<Job> Controller::resume(const std::string& name) {
  MUSTER_TRY(Entry* const entry, entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return has_ended(name, "submit it again");
  if (!job.suspended) return job;
  job.suspended = false;
  note(job, "resumed");
  change(*entry);
  // Where its tasks are still being ended, it is queued once they are gone.
  if (!entry->run) {
    job.reason = "waits for the scheduler";
    queue_anew(*entry);
    wake();
  }
  MUSTER_CHECK(journal_.flush());
  return job;
}

Result<void> Controller::remove(const std::string& name) {
  MUSTER_TRY(Entry* const entry, entry_of(name));
  if (!job::is_final(entry->job.phase)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "job " + quoted(name) + " has not ended",
                 .advice = "stop it first: muster stop " + name};
  }
  // Files first: what a crash in between leaves is a job without logs, not logs without a job.
  MUSTER_CHECK(parts_.engine.remove(entry->job.id));
  journal_.forget(entry->job);
  if (const auto removed = journal_.flush({.removed_jobs = {entry->job.id}}); !removed) {
    journal_.change(entry->job);  // it is still there, and so is what was not yet kept of it
    return removed.error();
  }
  forget(*entry);
  tell_watchers(name);
  return {};
}

void Controller::forget(Entry& entry) {
  by_id_.erase(entry.job.id);
  by_name_.erase(entry.job.spec.name);
  entries_.erase(entry.sequence);
}

Result<const Job*> Controller::find(const std::string& name) const {
  MUSTER_TRY(const Entry* const entry, entry_of(name));
  return &entry->job;
}

Result<Controller::Entry*> Controller::entry_of(const std::string& name) const {
  if (Entry* entry = by_name(name)) return entry;
  std::vector<std::string> names;
  for (const auto& [sequence, entry] : entries_) names.push_back(entry->job.spec.name);
  return unknown_name("job", name, names, "muster list shows the jobs there are");
}

std::vector<const Job*> Controller::list() const {
  std::vector<const Job*> jobs;
  for (const auto& [sequence, entry] : entries_) jobs.push_back(&entry->job);
  return jobs;
}

std::unique_ptr<LogFollower> Controller::follow_logs(const std::string& name,
                                                     const job::LogQuery& query) {
  return std::make_unique<LogFollower>(parts_.loop, *this, parts_.engine, name, query);
}

bool Controller::idle() const {
  return not_final_ == 0 && uncommitted_.empty();
}

std::shared_ptr<void> Controller::watch(const std::string& name, std::function<void()> changed) {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::erase_if(watchers_, [](const auto& entry) { return entry.second.expired(); });
  watchers_.emplace(name, callback);
  return callback;
}

// --- bookkeeping

// A state that cannot be committed is kept in memory and written later: what runs goes on, and a
// restarted server would take it up from the engine's own records.
void Controller::change(Entry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued;
  if (waits) {
    waiting_.insert(entry.sequence);
  } else {
    waiting_.erase(entry.sequence);
  }
  journal_.change(entry.job);
  const std::string& name = entry.job.spec.name;
  if (watchers_.count(name) == 0 || !to_tell_.insert(name).second) return;
  journal_.then([this, name] {
    to_tell_.erase(name);
    tell_watchers(name);
  });
}

void Controller::note(Job& job, std::string text) {
  if (job.events.size() >= kKeptEvents) job.events.erase(job.events.begin());
  job.events.push_back({.time = parts_.clock.now(), .text = std::move(text)});
}

void Controller::tell_watchers(const std::string& name) {
  std::vector<std::shared_ptr<std::function<void()>>> callbacks;
  for (auto [at, end] = watchers_.equal_range(name); at != end; ++at) {
    if (auto callback = at->second.lock()) callbacks.push_back(std::move(callback));
  }
  for (const auto& callback : callbacks) (*callback)();
}

Controller::Entry* Controller::by_id(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Controller::Entry* Controller::by_name(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::string suspended_reason(const Job& job) {
  return "is suspended; muster resume " + job.spec.name + " lets it go on";
}

std::vector<std::string> live_tasks(const Job& job) {
  std::vector<std::string> names;
  for (const Task& task : job.tasks) {
    if (task.phase == TaskPhase::kStarting || task.phase == TaskPhase::kRunning) {
      names.push_back(task.name);
    }
  }
  return names;
}

Task* find_task(Job& job, const std::string& name) {
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(),
                                  [&](const Task& task) { return task.name == name; });
  return found == job.tasks.end() ? nullptr : &*found;
}

}  // namespace muster::control
