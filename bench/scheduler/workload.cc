#include "workload.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace bench {

int Workload::jobs() const {
  int count = 0;
  for (const WorkloadClass& one : classes) count += one.count;
  return count * queues * cohorts;
}

Workload baseline() {
  return {.cohorts = 5,
          .queues = 6,
          .classes = {{"small", 350, milliseconds(100), milliseconds(200), 1, 50},
                      {"medium", 100, milliseconds(500), milliseconds(500), 5, 100},
                      {"large", 50, milliseconds(1200), milliseconds(1000), 20, 200}}};
}

Workload large_scale() {
  return {.cohorts = 10,
          .queues = 100,
          .classes = {{"small", 35, milliseconds(60), milliseconds(150), 1, 50},
                      {"medium", 11, milliseconds(300), milliseconds(350), 5, 100},
                      {"large", 4, milliseconds(700), milliseconds(700), 20, 200}}};
}

std::vector<Arrival> arrivals_of(const Workload& workload) {
  std::vector<Arrival> arrivals;
  for (int cohort = 0; cohort < workload.cohorts; ++cohort)
    for (int queue = 0; queue < workload.queues; ++queue)
      for (const WorkloadClass& of : workload.classes)
        for (int number = 0; number < of.count; ++number)
          arrivals.push_back({of.interval * (number + 1), cohort, queue, &of, number});
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& left, const Arrival& right) { return left.at < right.at; });
  return arrivals;
}

std::string cohort_name(int cohort) {
  return "cohort-" + std::to_string(cohort);
}

std::string queue_name(int cohort, int queue) {
  return cohort_name(cohort) + "-queue-" + std::to_string(queue);
}

std::string job_name(const Arrival& arrival) {
  return std::string(arrival.of->name) + "-" + std::to_string(arrival.number) + "-" +
         queue_name(arrival.cohort, arrival.queue);
}

namespace {

constexpr int kTerminated = 15;

std::chrono::milliseconds duration_of(const launch::TaskPlan& task) {
  return std::chrono::milliseconds(task.argv.empty() ? 0 : std::atoi(task.argv.back().c_str()));
}

std::shared_ptr<void> kept(std::function<void()> callback) {
  return std::make_shared<std::function<void()>>(std::move(callback));
}

base::Error nothing_to_get_into(const std::string& task) {
  return {.code = base::ErrorCode::kRefused,
          .what = "'" + task + "' is simulated and runs no program"};
}

}  // namespace

std::shared_ptr<void> SimulatedEngine::watch_nodes(std::function<void()> changed) {
  return kept(std::move(changed));
}

engine::Result<std::unique_ptr<engine::Exec>> SimulatedEngine::exec(const engine::GangId&,
                                                                    const std::string& task,
                                                                    const engine::ExecPlan&,
                                                                    engine::ExecHandlers) {
  return nothing_to_get_into(task);
}

engine::Result<std::unique_ptr<engine::Exec>> SimulatedEngine::attach(const engine::GangId&,
                                                                      const std::string& task,
                                                                      engine::ExecHandlers) {
  return nothing_to_get_into(task);
}

std::shared_ptr<void> SimulatedEngine::watch_log(const engine::GangId&, const std::string&,
                                                 std::function<void()> grown) {
  return kept(std::move(grown));
}

void SimulatedEngine::start(const engine::GangId& gang, std::vector<launch::TaskPlan> tasks,
                            Done done) {
  for (const launch::TaskPlan& task : tasks)
    running_[gang][task.task] = loop_.after(duration_of(task), [this, gang, name = task.task] {
      if (on_end) on_end(gang.job_id);
      end(gang, name, {.code = 0});
    });
  if (on_start) on_start(gang.job_id);
  loop_.post([this, gang, tasks = std::move(tasks), done = std::move(done)] {
    done({});
    for (const launch::TaskPlan& task : tasks)
      if (const auto found = running_.find(gang);
          found != running_.end() && found->second.contains(task.task))
        listener_({.gang = gang, .task = task.task, .what = engine::TaskAnswered{}});
  });
}

void SimulatedEngine::stop(const engine::GangId& gang, const std::vector<std::string>& tasks,
                           engine::StopMode) {
  const auto found = running_.find(gang);
  if (found == running_.end()) return;
  for (const std::string& task : tasks) {
    const auto running = found->second.find(task);
    if (running == found->second.end()) continue;
    running->second.reset();  // its timer has ended before the end was reported
    loop_.post([this, gang, task] {
      if (on_stop) on_stop(gang.job_id);
      end(gang, task, {.signal = kTerminated, .stopped = true});
    });
  }
}

void SimulatedEngine::end(const engine::GangId& gang, const std::string& task,
                          job::ExitStatus status) {
  const auto found = running_.find(gang);
  if (found == running_.end() || found->second.erase(task) == 0) return;
  if (found->second.empty()) running_.erase(found);
  listener_(
      {.gang = gang,
       .task = task,
       .what = engine::TaskEnded{.status = std::move(status), .time = base::SystemClock().now()}});
}

engine::Result<std::unique_ptr<engine::LogCursor>> SimulatedEngine::open_log(
    const engine::GangId&, const std::string& task) {
  return base::Error{.code = base::ErrorCode::kNotFound, .what = "no log of " + task};
}

}  // namespace bench
