#include "simulate/trace_replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "job/spec.h"
#include "words/sentence.h"

namespace muster::simulate {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;
using job::kFirstNonPreemptiblePriority;
using schedule::Eviction;
using schedule::EvictionCause;
using schedule::Plan;
using schedule::PlannedStart;
using schedule::Scheduler;
using schedule::Time;

namespace {

constexpr int64_t kAmpleCpuMilli = 1'000'000'000;
constexpr int64_t kAmpleMemoryBytes = int64_t{1} << 50;
/// The number of plans at one moment. One follows another when the evicted tasks have ended, or when
/// the plan before asks for it. Rules against repeated evictions keep the number small; the bound
/// makes a defect fail instead of hang.
constexpr int kMostPlansAtOnce = 1000;
/// The number of plans in a row that only the passage of time caused, without a running or new
/// gang.
constexpr int kMostIdlePlans = 100;
/// Nanoseconds in 64 bits end after 292 years.
constexpr Time kHorizon{std::chrono::hours(250L * 365 * 24)};

milliseconds since_start(Time time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch());
}

/// The smallest number of tasks that share `gpus` evenly with at most `most` each.
int even_split(int gpus, int most) {
  for (int tasks = (gpus + most - 1) / most;; ++tasks)
    if (gpus % tasks == 0) return tasks;
}

schedule::Gang gang_of(const TraceJob& job, size_t index, const TraceSetup& setup) {
  schedule::TaskGroup group;
  group.claim = {.gpus = job.gpus,
                 .gpu_share_milli = job.gpu_share_milli,
                 .cpu_milli = job.cpu_milli,
                 .memory_bytes = job.memory_bytes};
  if (job.tasks) {
    group.count = *job.tasks;
  } else if (job.gpus > setup.gpus_per_node && setup.gpus_per_node > 0) {
    group.count = even_split(job.gpus, setup.gpus_per_node);
    group.claim.gpus /= group.count;
    group.claim.cpu_milli = (job.cpu_milli + group.count - 1) / group.count;
    group.claim.memory_bytes = (job.memory_bytes + group.count - 1) / group.count;
  }
  group.minimum = group.count;
  return {.id = std::to_string(index),
          .name = "line " + std::to_string(job.line),
          .project = job.project,
          .priority = job.priority,
          .preemptible = job.priority < kFirstNonPreemptiblePriority,
          .sequence = index,
          .groups = {group},
          .time_limit = job.time_limit,
          .submitted = Time(job.submit)};
}

Distribution distribution_of(std::vector<milliseconds> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = [&](int percent) {  // nearest rank: the least value that so many do not exceed
    const size_t count = (values.size() * static_cast<size_t>(percent) + 99) / 100;
    return values[std::max<size_t>(count, 1) - 1];
  };
  const milliseconds sum = std::accumulate(values.begin(), values.end(), milliseconds(0));
  return {.mean = sum / static_cast<int64_t>(values.size()),
          .p50 = rank(50),
          .p90 = rank(90),
          .p99 = rank(99)};
}

/// A job on its way.
struct Run {
  const TraceJob* job = nullptr;
  int64_t gpu_milli_per_task = 0;
  std::vector<bool> placed;  ///< by task
  int placed_count = 0;
  bool waits = false;
  milliseconds needs{0};  ///< to run from now on
  Time since;             ///< it runs, where all are placed
  int generation = 0;     ///< of its foreseen end: raised when that is void
  milliseconds ran{0};
  std::optional<Time> ended;
  double gpu_seconds = 0;
  double lost_gpu_seconds = 0;
  int preemptions = 0;
  int moves = 0;

  bool runs() const { return placed_count == static_cast<int>(placed.size()); }
  int64_t gpu_milli() const { return gpu_milli_per_task * static_cast<int64_t>(placed.size()); }
  bool is_limited() const { return job->time_limit && *job->time_limit < job->duration; }
};

class Replay {
 public:
  Replay(const std::vector<TraceJob>& jobs, const TraceSetup& setup,
         std::vector<schedule::Project> projects)
      : jobs_(jobs), setup_(setup), scheduler_({.policy = setup.policy}) {
    for (int node = 0; node < setup.nodes; ++node) add_node(node);
    scheduler_.set_projects(std::move(projects));
    arrivals_.resize(jobs.size());
    std::iota(arrivals_.begin(), arrivals_.end(), size_t{0});
    std::stable_sort(arrivals_.begin(), arrivals_.end(), [&](size_t left, size_t right) {
      return jobs[left].submit < jobs[right].submit;
    });
    runs_.resize(jobs.size());
    now_ = Time(jobs[arrivals_.front()].submit);
  }

  Result<void> run() {
    while (const std::optional<Time> next = next_time()) {
      if (*next > kHorizon)
        return Error{.code = ErrorCode::kInvalid, .what = "the trace takes more than 250 years"};
      now_ = std::max(now_, *next);
      end_what_is_due();
      submit_what_is_due();
      MUSTER_CHECK(settle());
      note_point();
    }
    return {};
  }

  TraceReport report() const {
    TraceReport report;
    const milliseconds first = jobs_[arrivals_.front()].submit;
    report.makespan = since_start(last_end_) - std::min(first, since_start(last_end_));
    report.gpu_milli = int64_t{setup_.nodes} * setup_.gpus_per_node * schedule::kWholeGpu;
    report.timeline = timeline_;
    report.refused = refused_;
    std::map<std::string, std::vector<const Run*>> by_project;
    std::vector<const Run*> all;
    for (const size_t index : arrivals_) {
      const Run& run = runs_[index];
      if (run.waits)
        report.stuck.push_back(
            {run.job->line,
             words::sentence(scheduler_.explain(std::to_string(index), now_).reason)});
      if (by_project[jobs_[index].project].empty())
        report.projects.push_back({.name = jobs_[index].project});
      by_project[jobs_[index].project].push_back(&run);
      all.push_back(&run);
    }
    report.all = summary_of(all);
    for (TraceReport::OfProject& project : report.projects)
      project.summary = summary_of(by_project[project.name]);
    const double capacity = static_cast<double>(report.gpu_milli) / schedule::kWholeGpu *
                            std::chrono::duration<double>(report.makespan).count();
    if (capacity > 0) report.utilisation = report.all.gpu_seconds / capacity;
    return report;
  }

 private:
  using End = std::tuple<Time, size_t, int>;  // when, of which run, of which generation

  void add_node(int number) {
    scheduler_.set_node(
        {.name = "node" + std::to_string(number),
         .gpus = setup_.gpus_per_node,
         .cpu_milli = setup_.cpu_milli_per_node > 0 ? setup_.cpu_milli_per_node : kAmpleCpuMilli,
         .memory_bytes = setup_.memory_per_node > 0 ? setup_.memory_per_node : kAmpleMemoryBytes});
  }

  bool is_void(const End& end) const {
    return runs_[std::get<1>(end)].generation != std::get<2>(end);
  }

  std::optional<Time> next_time() {
    while (!ends_.empty() && is_void(ends_.top())) ends_.pop();
    std::optional<Time> next;
    const auto consider = [&](Time time) { next = next ? std::min(*next, time) : time; };
    if (arrived_ < arrivals_.size()) consider(Time(jobs_[arrivals_[arrived_]].submit));
    if (!ends_.empty()) consider(std::get<0>(ends_.top()));
    if (next) {
      idle_plans_ = 0;
    } else if (waiting_ == 0 || ++idle_plans_ > kMostIdlePlans) {
      return std::nullopt;
    }
    if (again_at_ && *again_at_ > now_) consider(*again_at_);
    return next;
  }

  void end_what_is_due() {
    while (!ends_.empty() && std::get<0>(ends_.top()) <= now_) {
      const End end = ends_.top();
      ends_.pop();
      if (is_void(end)) continue;
      Run& run = runs_[std::get<1>(end)];
      halt(run);
      run.ended = now_;
      last_end_ = now_;
      used_milli_ -= run.gpu_milli();
      scheduler_.ended(std::to_string(std::get<1>(end)));
    }
  }

  void submit_what_is_due() {
    for (; arrived_ < arrivals_.size(); ++arrived_) {
      const size_t index = arrivals_[arrived_];
      const TraceJob& job = jobs_[index];
      if (Time(job.submit) > now_) return;
      schedule::Gang gang = gang_of(job, index, setup_);
      Run& run = runs_[index];
      run.job = &job;
      if (const auto reason = scheduler_.refuses(gang)) {
        refused_.push_back({job.line, words::sentence(reason->reason)});
        continue;
      }
      const schedule::TaskGroup& group = gang.groups[0];
      run.placed.assign(static_cast<size_t>(group.count), false);
      run.gpu_milli_per_task = group.claim.gpus * schedule::kWholeGpu + group.claim.gpu_share_milli;
      run.needs = run.is_limited() ? *job.time_limit : job.duration;
      run.waits = true;
      ++waiting_;
      scheduler_.submit(std::move(gang));
    }
  }

  Result<void> settle() {
    for (int count = 0; count < kMostPlansAtOnce; ++count) {
      const Plan plan = scheduler_.plan(now_);
      for (const Eviction& eviction : plan.evictions) evict(eviction);
      for (const PlannedStart& start : plan.starts) begin(start);
      again_at_ = plan.again_at;
      const bool is_unfinished = plan.again_at && *plan.again_at <= now_;
      if (plan.evictions.empty() && !is_unfinished) return {};
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_start(now_));
    return Error{.code = ErrorCode::kInternal,
                 .what = "the scheduler made " + std::to_string(kMostPlansAtOnce) +
                         " plans in a row at second " + std::to_string(seconds.count()) +
                         " of the trace, and still has work to do",
                 .advice = "this is a fault of Muster: report it together with the trace"};
  }

  void evict(const Eviction& eviction) {
    Run& run = runs_[std::stoul(eviction.id)];
    if (run.runs()) {
      const milliseconds done = halt(run);
      if (setup_.checkpoint) {
        run.needs -= done;
      } else {
        run.lost_gpu_seconds += gpu_seconds(run, done);
      }
      (eviction.cause == EvictionCause::kMoved ? run.moves : run.preemptions) += 1;
      run.waits = true;
      ++waiting_;
    }
    for (const int task : eviction.tasks) place(run, task, false);
    scheduler_.released(eviction.id, eviction.tasks);
  }

  void begin(const PlannedStart& start) {
    const size_t index = std::stoul(start.id);
    Run& run = runs_[index];
    for (const int task : start.tasks) place(run, task, true);
    if (!run.runs()) return;
    run.waits = false;
    --waiting_;
    run.since = now_;
    ends_.emplace(now_ + run.needs, index, run.generation);
  }

  void place(Run& run, int task, bool placed) {
    const auto at = static_cast<size_t>(task);
    if (run.placed[at] == placed) return;
    run.placed[at] = placed;
    run.placed_count += placed ? 1 : -1;
    used_milli_ += placed ? run.gpu_milli_per_task : -run.gpu_milli_per_task;
  }

  /// The gang no longer runs. Returns how long it ran this time.
  milliseconds halt(Run& run) {
    const milliseconds stretch = since_start(now_) - since_start(run.since);
    run.ran += stretch;
    run.gpu_seconds += gpu_seconds(run, stretch);
    ++run.generation;
    return stretch;
  }

  static double gpu_seconds(const Run& run, milliseconds time) {
    return static_cast<double>(run.gpu_milli()) / schedule::kWholeGpu *
           std::chrono::duration<double>(time).count();
  }

  void note_point() {
    const TracePoint point{since_start(now_), waiting_, used_milli_};
    if (!timeline_.empty() && timeline_.back().waiting == point.waiting &&
        timeline_.back().gpu_milli_used == point.gpu_milli_used)
      return;
    if (!timeline_.empty() && timeline_.back().time == point.time) timeline_.pop_back();
    timeline_.push_back(point);
  }

  static TraceSummary summary_of(const std::vector<const Run*>& runs) {
    TraceSummary summary;
    std::vector<milliseconds> waiting;
    std::vector<milliseconds> completion;
    for (const Run* run : runs) {
      summary.gpu_seconds += run->gpu_seconds;
      summary.lost_gpu_seconds += run->lost_gpu_seconds;
      summary.preemptions += run->preemptions;
      summary.moves += run->moves;
      if (!run->ended) continue;
      ++summary.jobs;
      if (run->is_limited()) ++summary.limited;
      completion.push_back(since_start(*run->ended) - run->job->submit);
      waiting.push_back(completion.back() - run->ran);
    }
    summary.waiting = distribution_of(std::move(waiting));
    summary.completion = distribution_of(std::move(completion));
    return summary;
  }

  const std::vector<TraceJob>& jobs_;
  const TraceSetup& setup_;
  Scheduler scheduler_;
  std::vector<Run> runs_;         ///< by job
  std::vector<size_t> arrivals_;  ///< jobs in the order of their submission
  size_t arrived_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::optional<Time> again_at_;
  int idle_plans_ = 0;
  Time now_;
  Time last_end_;
  int waiting_ = 0;
  int64_t used_milli_ = 0;
  std::vector<TracePoint> timeline_;
  std::vector<TraceOutcast> refused_;
};

std::vector<std::string> names_of(const std::vector<TraceJob>& jobs) {
  std::vector<std::string> names;
  for (const TraceJob& job : jobs)
    if (std::find(names.begin(), names.end(), job.project) == names.end())
      names.push_back(job.project);
  return names;
}

std::vector<Fault> trace_setup_faults(const TraceSetup& setup,
                                      const std::vector<std::string>& names) {
  std::vector<Fault> faults;
  if (setup.nodes < 1 || setup.nodes > kMostTraceNodes)
    faults.push_back({"--nodes", "is not between 1 and " + std::to_string(kMostTraceNodes)});
  if (setup.gpus_per_node < 0 || setup.gpus_per_node > schedule::kMaxGpusPerNode)
    faults.push_back(
        {"--gpus-per-node", "is not between 0 and " + std::to_string(schedule::kMaxGpusPerNode)});
  for (auto project = setup.projects.begin(); project != setup.projects.end(); ++project) {
    const std::string name = "'" + project->name + "'";
    if (std::any_of(setup.projects.begin(), project,
                    [&](const TraceProject& other) { return other.name == project->name; }))
      faults.push_back({"--project", name + " is given twice"});
    if (std::find(names.begin(), names.end(), project->name) != names.end()) continue;
    const std::string meant = base::nearest(project->name, names);
    faults.push_back({"--project", name + " has no job in the trace" +
                                       (meant.empty() ? "" : "; did you mean '" + meant + "'?")});
  }
  return faults;
}

std::vector<schedule::Project> projects_of(const TraceSetup& setup,
                                           const std::vector<std::string>& names) {
  const int64_t total = int64_t{setup.nodes} * setup.gpus_per_node * schedule::kWholeGpu;
  std::vector<schedule::Project> projects;
  for (const std::string& name : names) {
    schedule::Project project{.name = name, .sequence = projects.size()};
    const auto given = std::find_if(setup.projects.begin(), setup.projects.end(),
                                    [&](const TraceProject& one) { return one.name == name; });
    if (given != setup.projects.end()) {
      project.quota.deserved.gpu_milli = given->quota_milli;
      project.quota.weight = given->weight;
    } else if (setup.projects.empty()) {
      project.quota.deserved.gpu_milli = total / static_cast<int64_t>(names.size());
    }
    projects.push_back(std::move(project));
  }
  return projects;
}

}  // namespace

Result<TraceReport> replay(const std::vector<TraceJob>& jobs, const TraceSetup& setup) {
  if (jobs.empty()) return Error{.code = ErrorCode::kInvalid, .what = "the trace contains no job"};
  const std::vector<std::string> names = names_of(jobs);
  if (std::vector<Fault> faults = trace_setup_faults(setup, names); !faults.empty())
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the trace cannot be replayed on this cluster",
                 .faults = std::move(faults)};
  const std::vector<schedule::Project> projects = projects_of(setup, names);
  Replay replay(jobs, setup, projects);
  MUSTER_CHECK(replay.run());
  TraceReport report = replay.report();
  for (TraceReport::OfProject& project : report.projects)
    for (const schedule::Project& one : projects)
      if (one.name == project.name) project.quota_milli = one.quota.deserved.gpu_milli;
  return report;
}

}  // namespace muster::simulate
