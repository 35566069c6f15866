// Kueue's benchmark workloads through Muster's controller, in real time: its loop, its scheduler
// and its SQLite store, which syncs every commit to disk. Only the tasks are simulated: timers.
//
//   queues baseline|large FOLDER [at-once] [protected] [replay]
//
// Jobs arrive at the generator's times, or all together. A second line of output, with `replay`, is
// the cost of durability alone: the rows that the run wrote are written again, by the same
// transactions, to another database (replay.h). If they are protected, no job is evicted
// before it has run for a second, which is as long as the longest job takes. Slots are GPUs. A
// cohort is a project whose quota and limit are its slots; a queue is a project below it with its
// own quota and limit. The nodes, of 64 GPUs each, have twice as many GPUs as there are slots, so
// that quota is scarce, as in Kueue, and not a place for 20 slots in one piece.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "control/controller.h"
#include "replay.h"
#include "store/sqlite_store.h"
#include "workload.h"

namespace bench {
namespace {

using std::chrono::steady_clock;

constexpr int kGpusPerNode = 64;
constexpr milliseconds kProtection{1000};
constexpr milliseconds kForbearance{1000};  // the default of `muster server`

struct Mode {
  bool at_once = false;
  bool is_protected = false;
  bool replays = false;
};

std::vector<engine::Node> nodes_for(int slots) {
  std::vector<engine::Node> nodes;
  for (int gpus = 0; gpus < 2 * slots; gpus += kGpusPerNode)
    nodes.push_back({.name = "node-" + std::to_string(nodes.size()),
                     .task_slots = kGpusPerNode,
                     .gpus = kGpusPerNode,
                     .cpu_milli = kGpusPerNode * 1000,
                     .memory_bytes = int64_t{1} << 40});
  return nodes;
}

job::Project project_of(std::string name, std::string parent, int quota, int limit) {
  job::Project project{.name = std::move(name), .parent = std::move(parent)};
  project.quota.deserved.gpu_milli = int64_t{quota} * 1000;
  project.quota.limit.gpu_milli = int64_t{limit} * 1000;
  return project;
}

std::vector<job::Project> projects_for(const Workload& workload, milliseconds min_runtime) {
  std::vector<job::Project> projects;
  for (int cohort = 0; cohort < workload.cohorts; ++cohort) {
    const int slots = workload.cohort_slots();
    projects.push_back(project_of(cohort_name(cohort), "", slots, slots));
    for (int queue = 0; queue < workload.queues; ++queue)
      projects.push_back(project_of(queue_name(cohort, queue), cohort_name(cohort), workload.quota,
                                    workload.limit));
  }
  for (size_t i = 0; i < projects.size(); ++i) {
    projects[i].sequence = i + 1;
    projects[i].reclaim_min_runtime = projects[i].preempt_min_runtime = min_runtime;
  }
  return projects;
}

job::JobSpec spec_of(const Arrival& arrival) {
  job::JobSpec spec;
  spec.name = job_name(arrival);
  spec.project = queue_name(arrival.cohort, arrival.queue);
  spec.command = {"sleep", std::to_string(arrival.of->duration.count())};
  spec.resources.gpus = arrival.of->slots;
  spec.scheduling.priority = arrival.of->priority;
  spec.scheduling.preemptible = true;  // at any priority, as upstream
  spec.folder = "/";
  return spec;
}

/// The events of the jobs, with their times. A job may be admitted in the turn of the loop in which
/// it is submitted, before the submitter receives the answer.
class Log {
 public:
  struct Job {
    const WorkloadClass* of = nullptr;
    steady_clock::time_point came;
    steady_clock::time_point admitted;  ///< the last time
    bool runs = false;
    bool done = false;
  };

  void submitted(const std::string& id, const Arrival& arrival, steady_clock::time_point came) {
    Job& job = jobs_[id];
    job.of = arrival.of;
    job.came = came;
  }
  void admitted(const std::string& id) {
    Job& job = jobs_[id];
    job.admitted = last_admission_ = steady_clock::now();
    job.runs = true;
    ++admissions_;
  }
  void ended(const std::string& id) {
    Job& job = jobs_[id];
    last_end_ = steady_clock::now();
    held_ += held(job);
    useful_ += job.of->slots * std::chrono::duration<double>(job.of->duration).count();
    job.runs = false;
    job.done = true;
    ++ends_;
  }
  void evicted(const std::string& id) {
    Job& job = jobs_[id];
    held_ += held(job);
    job.runs = false;
    ++evictions_;
  }

  int ends() const { return ends_; }

  void print(steady_clock::time_point begin, const Workload& workload) const {
    const double makespan = seconds(last_end_ - begin);
    const double capacity = workload.slots() * makespan;
    std::printf("{\"jobs\": %d, \"makespan_s\": %.3f, \"held\": %.4f, \"useful\": %.4f, ", ends_,
                makespan, held_ / capacity, useful_ / capacity);
    std::printf("\"admissions\": %d, \"evictions\": %d, \"admission_span_s\": %.4f, \"wait_s\": {",
                admissions_, evictions_, seconds(last_admission_ - begin));
    const char* separator = "";
    for (const auto& [name, wait] : mean_waits()) {
      std::printf("%s\"%s\": %.4f", separator, name.c_str(), wait);
      separator = ", ";
    }
    std::printf("}}\n");
  }

 private:
  static double seconds(steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  static double held(const Job& job) {
    return job.of->slots * seconds(steady_clock::now() - job.admitted);
  }

  /// The mean time from submission to the admission that led to the end, in seconds, by class.
  std::map<std::string, double> mean_waits() const {
    std::map<std::string, std::pair<double, int>> sums;
    for (const auto& [id, job] : jobs_) {
      auto& [sum, count] = sums[std::string(job.of->name)];
      sum += seconds(job.admitted - job.came);
      ++count;
    }
    std::map<std::string, double> means;
    for (const auto& [name, sum] : sums) means[name] = sum.first / sum.second;
    return means;
  }

  std::unordered_map<std::string, Job> jobs_;  ///< by id
  int admissions_ = 0;
  int ends_ = 0;
  int evictions_ = 0;
  double held_ = 0;  ///< slot-seconds
  double useful_ = 0;
  steady_clock::time_point last_admission_;
  steady_clock::time_point last_end_;
};

/// Submits the jobs that are due, and schedules the next call.
class Generator {
 public:
  Generator(base::EventLoop& loop, control::Controller& controller, Log& log,
            std::vector<Arrival> arrivals)
      : loop_(loop), controller_(controller), log_(log), arrivals_(std::move(arrivals)) {}

  void begin() {
    begin_ = steady_clock::now();
    submit_due();
  }
  steady_clock::time_point begun() const { return begin_; }
  /// The error of a refused submission; empty if there is none.
  const std::string& fault() const { return fault_; }

 private:
  void submit_due() {
    while (next_ < arrivals_.size() && begin_ + arrivals_[next_].at <= steady_clock::now())
      submit(arrivals_[next_++]);
    if (next_ == arrivals_.size()) return;
    timer_ =
        loop_.after(begin_ + arrivals_[next_].at - steady_clock::now(), [this] { submit_due(); });
  }

  void submit(const Arrival& arrival) {
    const auto came = steady_clock::now();
    controller_.submit(spec_of(arrival), "", [this, &arrival, came](control::Result<job::Job> job) {
      if (job) {
        log_.submitted(job->id, arrival, came);
        return;
      }
      fault_ = job.error().to_string();
      loop_.stop();
    });
  }

  base::EventLoop& loop_;
  control::Controller& controller_;
  Log& log_;
  std::vector<Arrival> arrivals_;
  size_t next_ = 0;
  steady_clock::time_point begin_;
  base::EventLoop::Interest timer_;
  std::string fault_;
};

int tell(const std::string& fault) {
  std::fprintf(stderr, "queues: %s\n", fault.c_str());
  return 1;
}

int measure_queues(const Workload& workload, const std::filesystem::path& folder, Mode mode) {
  auto store = store::SqliteStore::open(folder / "muster.db");
  if (!store) return tell(store.error().to_string());
  const milliseconds min_runtime = mode.is_protected ? kProtection : milliseconds(0);
  if (const auto kept = (*store)->commit({.projects = projects_for(workload, min_runtime)}); !kept)
    return tell(kept.error().to_string());

  base::EventLoop loop;
  base::SystemClock clock;
  base::SystemRandom random;
  SimulatedEngine engine(loop, nodes_for(workload.slots()));
  RecordingStore recording(**store);
  store::Store& used = mode.replays ? static_cast<store::Store&>(recording) : **store;
  control::Controller controller({loop, used, engine, clock, random}, {},
                                 {.forbearance = kForbearance});
  if (const auto recovered = controller.recover(); !recovered)
    return tell(recovered.error().to_string());

  Log log;
  engine.on_start = [&](const std::string& id) { log.admitted(id); };
  engine.on_stop = [&](const std::string& id) { log.evicted(id); };
  engine.on_end = [&](const std::string& id) { log.ended(id); };
  std::vector<Arrival> arrivals = arrivals_of(workload);
  if (mode.at_once)
    for (Arrival& arrival : arrivals) arrival.at = milliseconds(0);
  Generator generator(loop, controller, log, std::move(arrivals));
  // Waits until the last end is committed, too.
  base::EventLoop::Interest poll;
  std::function<void()> leave_when_idle = [&] {
    if (log.ends() == workload.jobs() && controller.idle()) loop.stop();
    poll = loop.after(milliseconds(100), leave_when_idle);
  };
  loop.post([&] { generator.begin(); });
  loop.post(leave_when_idle);
  loop.run();
  if (!generator.fault().empty()) return tell(generator.fault());
  log.print(generator.begun(), workload);
  if (!mode.replays) return 0;
  const auto replayed = replay(recording.transactions(), folder / "replay.db");
  if (!replayed) return tell(replayed.error().to_string());
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  bool understood = argc > 2 && (which == "baseline" || which == "large");
  bench::Mode mode;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "at-once")
      mode.at_once = true;
    else if (word == "protected")
      mode.is_protected = true;
    else if (word == "replay")
      mode.replays = true;
    else
      understood = false;
  }
  if (!understood) {
    std::fprintf(stderr, "usage: queues baseline|large FOLDER [at-once] [protected] [replay]\n");
    return 2;
  }
  const bench::Workload workload = which == "large" ? bench::large_scale() : bench::baseline();
  return bench::measure_queues(workload, argv[2], mode);
}
