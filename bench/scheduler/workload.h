// The two workloads of Kueue's scheduler benchmark (kubernetes-sigs/kueue,
// test/performance/scheduler/configs/{baseline,large-scale}/generator.yaml): cohorts of queues,
// each of which gets workloads of three classes at fixed intervals.
//
// Plain values.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace bench {

using std::chrono::milliseconds;

struct WorkloadClass {
  std::string_view name;
  int count;              ///< in each queue
  milliseconds interval;  ///< the first job arrives after one interval
  milliseconds duration;
  int slots;
  int priority;
};

struct Workload {
  int cohorts;
  int queues;       ///< in each cohort
  int quota = 20;   ///< of each queue
  int limit = 120;  ///< of each queue: its quota, and 100 that it may borrow
  std::vector<WorkloadClass> classes;

  int cohort_slots() const { return queues * quota; }
  int slots() const { return cohorts * cohort_slots(); }
  int jobs() const;
};

Workload baseline();
Workload large_scale();

/// A future job.
struct Arrival {
  milliseconds at{0};
  int cohort = 0;
  int queue = 0;
  const WorkloadClass* of = nullptr;
  int number = 0;
};

/// All jobs in the order of their arrival. `workload` must outlive them.
std::vector<Arrival> arrivals_of(const Workload& workload);

std::string cohort_name(int cohort);
std::string queue_name(int cohort, int queue);
std::string job_name(const Arrival& arrival);

// An engine whose tasks do nothing: a task "runs" for the milliseconds that its command names
// ({"sleep", "200"}), by a timer of the event loop. Everything above it is real.

using namespace muster;

class SimulatedEngine : public engine::Engine {
 public:
  using Seen = std::function<void(const std::string& job_id)>;

  SimulatedEngine(base::EventLoop& loop, std::vector<engine::Node> nodes)
      : loop_(loop), nodes_(std::move(nodes)) {}

  Seen on_start;  ///< the tasks of a job were started
  Seen on_end;    ///< they ended by themselves
  Seen on_stop;   ///< they were stopped before their end

  std::vector<engine::Node> nodes() override { return nodes_; }
  std::shared_ptr<void> watch_nodes(std::function<void()> changed) override;
  void listen(Listener listener) override { listener_ = std::move(listener); }
  std::string generated_folder(const engine::GangId&, std::string_view,
                               job::Sandbox) const override {
    return "/generated";
  }
  void start(const engine::GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) override;
  void change_files(const engine::GangId&, std::vector<launch::FileChange>, Done done) override {
    loop_.post([done = std::move(done)] { done({}); });
  }
  void stop(const engine::GangId& gang, const std::vector<std::string>& tasks,
            engine::StopMode mode) override;
  engine::AdoptionResult adopt(const engine::GangId&, const std::string&) override {
    return engine::AdoptionResult::kNothing;
  }
  void scrub(const engine::GangId&) override {}
  engine::Result<void> remove(const std::string&) override { return {}; }
  void measure(const std::string&, Measured done) override {
    loop_.post([done = std::move(done)] { done(0); });
  }
  engine::Result<std::unique_ptr<engine::LogCursor>> open_log(const engine::GangId&,
                                                              const std::string& task) override;
  std::shared_ptr<void> watch_log(const engine::GangId&, const std::string&,
                                  std::function<void()> grown) override;
  engine::Result<std::unique_ptr<engine::Exec>> exec(const engine::GangId&, const std::string& task,
                                                     const engine::ExecPlan&,
                                                     engine::ExecHandlers) override;
  engine::Result<std::unique_ptr<engine::Exec>> attach(const engine::GangId&,
                                                       const std::string& task,
                                                       engine::ExecHandlers) override;
  engine::MetricReader open_metrics(const engine::GangId&, const std::string&) override {
    return engine::MetricReader({});
  }
  std::optional<std::filesystem::path> artifacts_folder(const std::string&) const override {
    return std::nullopt;
  }
  std::vector<engine::RankPlace> ranks(const engine::GangId&,
                                       const std::vector<std::string>&) const override {
    return {};
  }

 private:
  void end(const engine::GangId& gang, const std::string& task, job::ExitStatus status);

  base::EventLoop& loop_;
  std::vector<engine::Node> nodes_;
  Listener listener_;
  /// The ends of running tasks, by job and attempt, then by task.
  std::map<engine::GangId, std::map<std::string, base::EventLoop::Interest>> running_;
};

}  // namespace bench
