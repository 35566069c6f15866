#include "control/controller.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "control/audit_changes.h"
#include "control/log_follower.h"
#include "control/metric_book.h"
#include "control/progress_book.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "control/unknown_name.h"
#include "job/validate.h"
#include "words/sentence.h"
#include "words/sight.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::StopMode;
using job::Job;
using job::Notice;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

constexpr size_t kKeptEvents = 200;
constexpr size_t kIdLength = 12;

Error has_ended(const std::string& name, std::string advice) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_in_quotes(name) + " has ended",
          .advice = std::move(advice)};
}

uint64_t epoch_from(base::RandomSource& random) {
  const auto bytes = random.bytes<sizeof(uint64_t)>();
  uint64_t epoch = 0;
  std::memcpy(&epoch, bytes.data(), sizeof epoch);
  return epoch;
}

}  // namespace

Controller::Controller(Parts parts, SiteFacts site, schedule::Options options)
    : parts_(parts),
      site_(std::move(site)),
      options_(options),
      forward_(parts.clock),
      journal_(parts.loop, parts.store, metrics_),
      feed_(epoch_from(parts.random)),
      measurements_(std::make_unique<MetricBook>(parts.loop, parts.engine)),
      progress_(std::make_unique<ProgressBook>(parts.loop, parts.engine)),
      scheduler_(options) {
  projects_.load({}, parts_.clock.now());
  parts_.engine.listen([this](const engine::TaskReport& report) { hear(report); });
  parts_.engine.hear_of_rooms(
      [this](const engine::Gang& gang, const engine::RoomNews& news) { hear_of_room(gang, news); });
  nodes_watch_ = parts_.engine.watch_nodes([this] {
    read_nodes();
    wake();
  });
  read_nodes();
}

Controller::~Controller() {
  parts_.engine.hear_of_rooms(nullptr);
  parts_.engine.listen(nullptr);
}

void Controller::soon(std::function<void()> action) {
  parts_.loop.post([alive = std::weak_ptr<bool>(alive_), action = std::move(action)] {
    if (!alive.expired()) action();
  });
}

base::EventLoop::Interest Controller::later(std::chrono::milliseconds delay,
                                            std::function<void()> action) {
  if (delay > std::chrono::milliseconds(0)) return parts_.loop.after(delay, std::move(action));
  soon(std::move(action));
  return {};
}

// --- what callers ask for

/// The gang of a new job, unless nothing could ever start it.
Result<schedule::Gang> Controller::admissible(const Job& job, uint64_t sequence) const {
  schedule::Gang gang = to_schedule(job, sequence, pools_);
  if (asks_a_cluster()) {
    MUSTER_CHECK(check_wish(job));
    return gang;
  }
  // Where no machine has come yet, nobody knows what there will be.
  if (nodes_.empty()) return gang;
  const auto never = scheduler_.refuses(gang);
  if (!never) return gang;
  // This text is for a reader who sees only the job's own project. For a caller who sees more, the
  // server makes another text from the detail.
  Error error = words::refusal(
      {job.spec.name, words::seen_by(words::sight_of_project(job.spec.project), never->reason)});
  error.detail = std::make_shared<job::NeverStarts>(job.spec.name, never->reason);
  return error;
}

/// The first of two with one name or key has to be committed before the second can be judged.
void Controller::judge_committed(const JobName& name, const std::string& key) {
  if (uncommitted_.count(name) == 0 && uncommitted_keys_.count(key) == 0) return;
  [[maybe_unused]] const auto told_by_callback = journal_.flush();
}

void Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key,
                        Submitted done, const access::Actor& by) {
  judge_committed(name_of(spec), idempotency_key);
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
                .owner = by.user,
                .reason = first_reason(),
                .submitted = stamp(),
                .tasks = job::tasks_of(spec)};
  if (const auto gang = admissible(entry->job, entry->sequence); !gang) return done(gang.error());
  if (spec.held) {
    entry->job.suspended = true;
    entry->job.reason = suspended_reason(entry->job);
  }
  ++next_sequence_;
  note(entry->job, Notice{Notice::What::kSubmitted});
  const Job& job = entry->job;
  uncommitted_[name_of(spec)] = std::move(entry);
  if (!idempotency_key.empty()) uncommitted_keys_.insert(idempotency_key);
  journal_.add(
      job, idempotency_key,
      [this, name = name_of(spec), key = idempotency_key,
       done = std::move(done)](const Result<void>& committed) {
        auto node = uncommitted_.extract(name);
        uncommitted_keys_.erase(key);
        if (!committed) return done(committed.error());
        Entry& kept = *node.mapped();
        entries_[kept.sequence] = std::move(node.mapped());
        admit(kept);
        tell(kept.job);
        ++metrics_.submitted[name.second];
        if (!kept.job.suspended) line_up(kept);
        wake();
        done(kept.job);
      },
      record(by, "job.submit", nullptr, &job));
}

Result<Job> Controller::submit(const job::JobSpec& spec, const std::string& idempotency_key,
                               const access::Actor& by) {
  std::optional<Result<Job>> answer;
  submit(spec, idempotency_key, [&](Result<Job> result) { answer.emplace(std::move(result)); }, by);
  if (!answer) {
    [[maybe_unused]] const auto told_by_callback = journal_.flush();
  }
  return *std::move(answer);
}

/// The entry is in the tables from now on.
void Controller::admit(Entry& entry) {
  by_id_[entry.job.id] = &entry;
  const auto [named, is_free] = by_name_.try_emplace(name_of(entry.job.spec), &entry);
  // A name that changed in a record may be that of a job that can be read.
  if (!is_free && named->second->job.unreadable) named->second = &entry;
  // Those of an earlier Muster may have come at the same time.
  base::Time time = entry.job.submitted;
  while (!by_time_.emplace(time, &entry).second) time += std::chrono::nanoseconds(1);
  if (job::is_final(entry.job.phase)) return;
  ++not_final_;
  if (entry.job.phase == Phase::kQueued && !entry.job.unreadable) waiting_.insert(entry.sequence);
}

Controller::Records Controller::record(const access::Actor& by, std::string action,
                                       std::string target, std::string project,
                                       std::vector<access::FieldChange> changes) const {
  if (by.user.empty() || changes.empty()) return {};
  return {{.time = parts_.clock.now(),
           .actor = by,
           .action = std::move(action),
           .target = std::move(target),
           .project = std::move(project),
           .changes = std::move(changes)}};
}

Controller::Records Controller::record(const access::Actor& by, std::string action,
                                       const Job* before, const Job* after) const {
  const job::JobSpec& spec = (after == nullptr ? before : after)->spec;
  return record(by, std::move(action), spec.name, spec.project, changes_of(before, after));
}

Result<Job> Controller::act(Entry& entry, const access::Actor& by, const std::string& action,
                            const std::function<void()>& change) {
  const Job before = entry.job;
  change();
  MUSTER_CHECK(journal_.flush({.audit = record(by, action, &before, &entry.job)}));
  return entry.job;
}

Result<Job> Controller::stop(const std::string& name, bool now, const access::Actor& by) {
  MUSTER_TRY(Entry* const found, entry_of(name));
  if (!found->strays.empty()) return stop_strays(*found, now, by);
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  if (job::is_final(entry->job.phase)) return entry->job;
  return act(*entry, by, "job.stop", [&] {
    Job& job = entry->job;
    if (!job.stop_requested) {
      job.stop_requested = true;
      job.reason = Notice{Notice::What::kBeingStopped};
      note(job, Notice{now ? Notice::What::kAskedToStopNow : Notice::What::kAskedToStop});
      change(*entry);
    }
    if (!entry->run) {
      finish(*entry, Phase::kStopped);
    } else if (now) {
      end_gang(*entry, StopMode::kNow);
    } else {
      end_gang_gently(*entry);
    }
  });
}

Result<Job> Controller::suspend(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase))
    return has_ended(job.spec.name, "muster list shows what runs and waits");
  if (job.suspended || job.stop_requested) return job;
  return act(*entry, by, "job.suspend", [&] {
    job.suspended = true;
    if (entry->run) {
      entry->run->goes_whole = true;
      evict(*entry, job::SuspendedByUser{});
    } else {
      note(job, Notice{Notice::What::kWasSuspended});
      queue_anew(*entry);
      job.reason = suspended_reason(job);
      job.may_start.reset();
    }
    change(*entry);
  });
}

Result<Job> Controller::resume(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return has_ended(job.spec.name, "submit it again");
  if (!job.suspended) return job;
  return act(*entry, by, "job.resume", [&] {
    job.suspended = false;
    note(job, Notice{Notice::What::kResumed});
    change(*entry);
    // Where its tasks are still being ended, it is queued once they are gone.
    if (entry->run) return;
    job.reason = first_reason();
    queue_anew(*entry);
    wake();
  });
}

Result<Job> Controller::set_labels(const std::string& name, const LabelChanges& changes,
                                   const access::Actor& by) {
  MUSTER_TRY(Entry* const entry, changeable_entry_of(name));
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
    change(*entry);
  });
}

std::set<std::pair<std::string, std::string>> Controller::trees_in_use() const {
  std::set<std::pair<std::string, std::string>> trees;
  for (const auto& [sequence, entry] : entries_) {
    const job::JobSpec& spec = entry->job.spec;
    for (const job::Volume& volume : spec.volumes) {
      if (volume.kind == job::Volume::Kind::kTree && !volume.source.empty()) {
        trees.emplace(spec.project, volume.source);
      }
    }
  }
  return trees;
}

Result<const Job*> Controller::find(const std::string& name) const {
  MUSTER_TRY(const Entry* const entry, entry_of(name));
  return &entry->job;
}

const Job* Controller::with_id(const std::string& id) const {
  const Entry* const entry = by_id(id);
  return entry == nullptr ? nullptr : &entry->job;
}

std::vector<const Job*> Controller::named(const std::string& name) const {
  std::vector<const Job*> jobs;
  each_job_from(name, "", [&](const Job& job) {
    if (job.spec.name != name) return false;
    jobs.push_back(&job);
    return true;
  });
  std::sort(jobs.begin(), jobs.end(),
            [](const Job* left, const Job* right) { return left->submitted < right->submitted; });
  return jobs;
}

Result<Controller::Entry*> Controller::entry_of(const std::string& name) const {
  // An id first: a job that bears another's id as its name must not stand in for it.
  if (Entry* entry = by_id(name)) return entry;
  const std::vector<const Job*> jobs = named(name);
  if (jobs.size() == 1) return by_id(jobs.front()->id);
  if (!jobs.empty()) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = std::to_string(jobs.size()) + " projects have a job " + name_in_quotes(name),
        .advice = "say which: --project"};
  }
  std::vector<std::string> names;
  for (const auto& [sequence, entry] : entries_) names.push_back(entry->job.spec.name);
  return unknown_name("job", name, names, "muster list shows the jobs there are");
}

Result<Controller::Entry*> Controller::changeable_entry_of(const std::string& name) const {
  MUSTER_TRY(Entry* const entry, entry_of(name));
  if (!entry->job.unreadable) return entry;
  return Error{.code = ErrorCode::kConflict,
               .what = "job " + name_in_quotes(entry->job.spec.name) + " " +
                       words::sentence(entry->job.reason),
               .advice = base::joined(words::details(entry->job.reason), "; ")};
}

std::vector<const Job*> Controller::list() const {
  std::vector<const Job*> jobs;
  jobs.reserve(entries_.size());
  for (const auto& [sequence, entry] : entries_) jobs.push_back(&entry->job);
  return jobs;
}

void Controller::each_job(bool newest_first, std::optional<base::Time> after,
                          const std::function<bool(const Job&)>& visit) const {
  if (newest_first) {
    auto at = after ? by_time_.lower_bound(*after) : by_time_.end();
    while (at != by_time_.begin()) {
      if (!visit((--at)->second->job)) return;
    }
    return;
  }
  auto at = after ? by_time_.upper_bound(*after) : by_time_.begin();
  while (at != by_time_.end() && visit(at->second->job)) ++at;
}

void Controller::each_job_from(const std::string& name, const std::string& project,
                               const std::function<bool(const Job&)>& visit) const {
  auto at = by_name_.lower_bound({name, project});
  while (at != by_name_.end() && visit(at->second->job)) ++at;
}

std::unique_ptr<LogFollower> Controller::follow_logs(const std::string& name,
                                                     const job::LogQuery& query) {
  const auto entry = entry_of(name);
  return std::make_unique<LogFollower>(parts_.loop, *this, parts_.engine,
                                       entry ? (*entry)->job.id : name, query);
}

void Controller::read_metrics(const std::string& name, const job::MetricQuery& query,
                              Measured measured) const {
  const auto entry = entry_of(name);
  if (!entry) return measured(entry.error());
  measurements_->ask((*entry)->job, query, std::move(measured));
}

std::optional<job::Progress> Controller::progress_of(const Job& job) const {
  return progress_->of(job);
}

bool Controller::idle() const {
  return not_final_ == 0 && uncommitted_.empty();
}

std::shared_ptr<void> Controller::watch(const std::string& name, std::function<void()> changed) {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::erase_if(watchers_, [](const auto& entry) { return entry.second.expired(); });
  const auto entry = entry_of(name);
  watchers_.emplace(entry ? (*entry)->job.id : name, callback);
  return callback;
}

// --- bookkeeping

// A state that cannot be committed is kept in memory and written later: running tasks continue, and a
// restarted server would take it up from the engine's own records.
void Controller::change(Entry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued;
  if (waits) {
    waiting_.insert(entry.sequence);
  } else {
    waiting_.erase(entry.sequence);
  }
  journal_.change(entry.job);
  tell(entry.job);
}

/// Unlike any before, so that an event's time is its number. Where the clock was set back it creeps
/// on from where it was.
base::Time Controller::stamp() {
  last_stamp_ = std::max(parts_.clock.now(), last_stamp_ + std::chrono::nanoseconds(1));
  return last_stamp_;
}

void Controller::note(Job& job, job::Fact what) {
  if (job.events.size() >= kKeptEvents) job.events.erase(job.events.begin());
  job.events.push_back({.time = stamp(), .what = std::move(what)});
}

/// Whoever watches hears of it once this turn of the loop is committed.
void Controller::tell(const Job& job) {
  to_tell_.insert(job.id);
  if (std::exchange(telling_, true)) return;
  journal_.then([this] { tell_watchers(); });
}

uint64_t Controller::feed_hint() const {
  return static_cast<uint64_t>(parts_.clock.now().time_since_epoch().count());
}

void Controller::tell_watchers() {
  telling_ = false;
  const std::set<std::string> ids = std::exchange(to_tell_, {});
  for (const std::string& id : ids) {
    if (by_id(id) != nullptr) feed_.changed(id, feed_hint());
  }
  for (const std::string& id : ids) call_watchers(id);
  feed_.tell();
}

void Controller::call_watchers(const std::string& id) {
  std::vector<std::shared_ptr<std::function<void()>>> callbacks;
  for (auto [at, end] = watchers_.equal_range(id); at != end; ++at) {
    if (auto callback = at->second.lock()) callbacks.push_back(std::move(callback));
  }
  for (const auto& callback : callbacks) (*callback)();
}

Controller::Entry* Controller::by_id(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Controller::Entry* Controller::by_name(const JobName& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

job::Fact suspended_reason(const Job& job) {
  return job::Suspended{.job = job.spec.name, .held = job.spec.held && job.attempt == 0};
}

job::Fact starting_reason(const Job& job) {
  return Notice{job.tasks.size() > 1 ? Notice::What::kStartsWorkers : Notice::What::kStarts};
}

bool leads(const Job& job, const Task& task) {
  return task.name == job::deciding_task(job).name;
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
