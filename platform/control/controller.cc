#include "control/controller.h"

#include <algorithm>
#include <utility>

#include "control/allocation_queue.h"
#include "control/audit_changes.h"
#include "control/gang_tasks.h"
#include "control/scheduler_queue.h"
#include "control/sweeps.h"
#include "logs/log_follower.h"
#include "logs/measurements.h"

namespace muster::control {

using job::Job;
using job::Phase;

namespace {

constexpr size_t kScheduleIdLength = 12;

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
      projects_({.loop = parts.loop,
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
                     [this](const std::string& project) { return schedules_.list(project).size(); },
                 .count_open_objects =
                     [this](const std::string& project) { return count_open_objects(project); }}),
      nodes_({.engine = parts.engine,
              .clock = parts.clock,
              .journal = journal_,
              .nodes = node_table_,
              .book = book_,
              .attempts = attempts_,
              .placement = *placement_,
              .changed = [this] { projects_.nodes_changed(); },
              .wake = [this] { wake(); }}),
      unreadable_(parts.engine, jobs_, book_),
      retention_(parts.loop, parts.clock, parts.engine, jobs_),
      arrays_(make_arrays()),
      schedules_(make_schedules()),
      measurements_(std::make_unique<logs::MetricBook>(parts.loop, parts.engine)),
      progress_(std::make_unique<logs::ProgressBook>(parts.loop, parts.engine)),
      sweeps_(std::make_unique<Sweeps>(SweepDependencies{
          .loop = parts.loop,
          .clock = parts.clock,
          .random = parts.random,
          .engine = parts.engine,
          .journal = journal_,
          .jobs = jobs_,
          .controller = *this,
          .has_tasks = [this](const std::string& id) { return unreadable_.has_tasks_of(id); },
          .stop = [this](JobEntry& job) { end_by_request(job, false); },
          .suspend = [this](JobEntry& job) { hold_back(job); },
          .resume = [this](JobEntry& job) { release(job); },
          .settled = [this] { retention_.object_ended(); }})) {
  attempts_.connect(
      *placement_, [this] { wake(); },
      [this](JobEntry& entry) {
        arrays_->object_ended(entry.job.id);
        retention_.job_ended(entry.job);
      });
  jobs_.complete_with([this](job::Job& job) { retention_.complete(job); });
  jobs_.on_removed([this](const std::string& id) {
    retention_.forget(id);
    measurements_->forget(id);
    progress_->forget(id);
  });
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
                      },
                  .needs =
                      [this](const job::JobFacts& job) {
                        return unreadable_.has_tasks_of(std::string(job.id));
                      }});
  retention_.add({.ended = [this] { return sweeps_->ended(); },
                  .remove =
                      [this, server](const std::string& id, const std::string& rule) {
                        return sweeps_->remove(id, server, rule);
                      },
                  .needs = [this](const job::JobFacts& job) { return sweeps_->needs(job); }});
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
                                     parts_.clock, attempts_, wake,
                                     [this](const Job& job) { return lacks_isolation(job); });
}

/// Whether a user submitted the job to a server for a team, and this server, which has the folder
/// now, would run the job under its own account, with its own files. The user's account may have been
/// removed since.
bool Controller::lacks_isolation(const Job& job) const {
  if (site_.isolates_users || parts_.accounts == nullptr) return false;
  return !job.owner.empty() && job.owner != site_.user;
}

std::unique_ptr<Arrays> Controller::make_arrays() {
  return std::make_unique<Arrays>(ArrayServices{
      .loop = parts_.loop,
      .clock = parts_.clock,
      .engine = parts_.engine,
      .jobs = jobs_,
      .journal = journal_,
      .others = other_jobs(),
      .make = [this](MadeJob made, auto done) { make_job(std::move(made), std::move(done)); },
      .has_tasks = [this](const std::string& id) { return unreadable_.has_tasks_of(id); },
      .stop = [this](JobEntry& member, bool now) { end_by_request(member, now); },
      .suspend = [this](JobEntry& member) { hold_back(member); },
      .resume = [this](JobEntry& member) { release(member); },
      .ended =
          [this](const job::Array& array) {
            schedules_.array_ended(array);
            placement_->object_ended(array.id);
            arrays_->object_ended(array.id);
            retention_.object_ended();
          },
      .reopened = [this](const std::string& array) { schedules_.array_reopened(array); },
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
         return arrays_->create_run(resolved, id, owner, schedule);
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
       .new_id = [this] { return base::random_name(parts_.random, kScheduleIdLength); },
       .wake = [this] { wake(); }});
}

OtherJobs Controller::other_jobs() const {
  return {.jobs = jobs_,
          .find_in_arrays = [this](const std::string& name,
                                   const std::string& project) -> std::optional<job::AwaitedJob> {
            const auto is_meant = [&](const ArrayFacts& array) {
              return array.record.spec.project == project;
            };
            for (const ArrayFacts& array : arrays_->named(name)) {
              if (!is_meant(array)) continue;
              return job::AwaitedJob{.id = array.record.id, .name = array.record.spec.name};
            }
            const auto members = arrays_->jobless(name, is_meant);
            if (members.empty()) return std::nullopt;
            const Arrays::JoblessMember& member = members.front();
            return job::AwaitedJob{.id = member.array + "/" + std::to_string(member.index),
                                   .name = member.job.spec.name};
          },
          .phase_in_arrays = [this](const std::string& id) -> std::optional<job::Phase> {
            const size_t slash = id.find('/');
            const auto array = arrays_->facts_with_id(id.substr(0, slash));
            if (!array) return std::nullopt;
            if (slash == std::string::npos) return array->phase();
            const int index = base::number_of<int>(id.substr(slash + 1)).value_or(-1);
            const job::JobSpec& spec = array->record.spec;
            const std::string name = job::member_name(spec.name, index);
            for (const Job* const job : jobs_.named(name)) {
              if (job->spec.project == spec.project) return job->phase;
            }
            const auto is_meant = [&](const ArrayFacts& other) {
              return other.record.id == array->record.id;
            };
            const auto members = arrays_->jobless(name, is_meant);
            if (members.empty()) return std::nullopt;
            return members.front().job.phase;
          }};
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
  if (entry == nullptr) return;
  const bool is_job = !entry->job.unreadable && !unreadable_.has_tasks(*entry);
  if (is_job) return attempts_.report(*entry, report);
  if (unreadable_.report(*entry, report)) wake();
}

// --- recovery

Result<void> Controller::recover() {
  MUSTER_TRY(store::Contents stored, parts_.store.load_packed());
  MUSTER_CHECK(report_unreadable(stored));
  MUSTER_CHECK(check_running(stored));
  MUSTER_CHECK(parts_.engine.check_found_tasks());
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
  projects_.update_scheduler();
  unreadable_.add_unknown(parts_.clock.now(), [this](const std::string& project) {
    return !projects_.line_of(project).empty();
  });
  for (const auto& [sequence, entry] : jobs_.entries()) {
    const bool is_open = !entry->job.unreadable && !job::is_final(entry->job.phase);
    if (is_open) placement_->enter(*entry);
  }
  for (const auto& [sequence, entry] : jobs_.entries()) {
    if (entry->job.unreadable) {
      unreadable_.recover(*entry);
    } else if (entry->job.phase == Phase::kStarting || entry->job.phase == Phase::kRunning) {
      attempts_.recover(*entry, !lacks_isolation(entry->job));
    } else {
      placement_->restore(*entry);
    }
  }
  unreadable_.end_tasks_of_ended();
  arrays_->recovered();
  schedules_.recovered();
  sweeps_->load(objects);
  retention_.apply_rules();
  wake();
  return {};
}

Result<void> Controller::check_running(const store::Contents& stored) const {
  if (!site_.check_running) return {};
  std::vector<const Job*> running;
  for (const store::StoredJob& job : stored.stored) {
    if (!job.open) continue;
    const Phase phase = job.open->phase;
    if (phase == Phase::kStarting || phase == Phase::kRunning) running.push_back(job.open.get());
  }
  return site_.check_running(running);
}

/// An unreadable job stands between the jobs that were submitted before and after it.
void Controller::recover_jobs(store::Contents stored) {
  std::multimap<size_t, const store::Unreadable*> unreadable;
  for (const store::Unreadable& record : stored.unreadable) {
    if (record.is_job()) unreadable.emplace(record.jobs_before, &record);
  }
  base::Time submitted = parts_.clock.now();
  if (!stored.stored.empty()) {
    const store::StoredJob& first = stored.stored.front();
    submitted = first.open ? first.open->submitted : first.ended.facts().submitted;
    submitted -= std::chrono::microseconds(1);  // an unreadable job may be before it
  }
  const auto add_unreadable = [&](size_t jobs_before) {
    const auto [first, behind] = unreadable.equal_range(jobs_before);
    for (auto at = first; at != behind; ++at) {
      submitted += std::chrono::nanoseconds(1);
      unreadable_.add(*at->second, submitted);
    }
  };
  size_t restored = 0;
  for (store::StoredJob& job : stored.stored) {
    add_unreadable(restored++);
    if (job.open) {
      submitted = job.open->submitted;
      jobs_.restore(std::move(*std::exchange(job.open, nullptr)));
    } else {
      const job::JobFacts facts = job.ended.facts();
      submitted = facts.submitted;
      placement_->restore_ended(facts);
      jobs_.restore(std::move(job.ended));
    }
  }
  add_unreadable(restored);
}

size_t Controller::count_open_objects(const std::string& project) const {
  size_t count = 0;
  arrays_->each([&](const ArrayFacts& array) {
    if (array.record.spec.project == project && !array.ended) ++count;
    return true;
  });
  for (const sweep::SweepSummary& sweep : sweeps_->list()) {
    if (sweep.project == project && !sweep.ended) ++count;
  }
  return count;
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
