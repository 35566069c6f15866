// For the tests of jobs on an engine that asks a cluster for allocations: a server, and a cluster
// of two nodes whose allocations the test decides.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/test_parts.h"
#include "words/sentence.h"

namespace muster::control {

inline job::JobSpec with_retries(job::JobSpec spec, int retries) {
  spec.scheduling.retries = retries;
  return spec;
}

class Allocations : public Scheduling {
 protected:
  using Why = engine::AllocationRevoked::Why;

  Allocations() {
    engine_.asks = true;
    engine_.offered = {engine::fake_node("n1", 2), engine::fake_node("n2", 2)};
    make();
  }

  /// Another server after the end of the first.
  void come_back() {
    live_again();
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  /// The request of a waiting job.
  engine::GangId next(const std::string& name) { return {job(name).id, job(name).attempt + 1}; }
  bool has_asked(const std::string& name) { return engine_.requests.contains(next(name)); }
  const engine::AllocationRequest& request(const std::string& name) {
    return engine_.requests.at(next(name));
  }

  void report(const engine::GangId& gang, const engine::AllocationNews& news) {
    engine_.report_allocation(gang, news);
    settle();
  }

  /// A place for each task except the last `fewer`: the first on n1, the second on n2, and so on.
  engine::AllocationGranted granted(const std::string& name, size_t fewer = 0) {
    engine::AllocationGranted given{.places = {}, .slurm_job = 17};
    const auto& tasks = engine_.requests.at(next(name)).tasks;
    for (size_t i = 0; i + fewer < tasks.size(); ++i) {
      const bool has_gpu = tasks[i].resources.gpus > 0;
      given.places.push_back({.task = tasks[i].task,
                              .node = i % 2 == 0 ? "n1" : "n2",
                              .devices = has_gpu ? std::vector<int>{0} : std::vector<int>{}});
    }
    return given;
  }
  void give(const std::string& name, size_t fewer = 0) {
    const engine::AllocationGranted given = granted(name, fewer);
    report(next(name), given);
  }

  /// Takes the allocation back, and ends its tasks.
  void take(const std::string& name, const engine::AllocationRevoked& taken) {
    const engine::GangId of = gang(name);
    engine_.report_allocation(of, taken);
    lose_tasks(of);
    settle();
  }
  void lose_tasks(const engine::GangId& of) {
    const auto running = engine_.running;
    for (const auto& [key, task] : running) {
      if (key == of) engine_.end_for_good(key, task, {.lost = true});
    }
  }

  bool was_called(const std::string& call) {
    return std::find(engine_.calls.begin(), engine_.calls.end(), call) != engine_.calls.end();
  }
  size_t count_calls(const std::string& call) {
    return static_cast<size_t>(std::count(engine_.calls.begin(), engine_.calls.end(), call));
  }
  std::string name_of(const engine::GangId& gang) {
    return gang.job_id + "/" + std::to_string(gang.attempt);
  }
  bool was_given_back(const engine::GangId& gang) {
    return was_called("give back " + name_of(gang));
  }

  size_t count_events(const std::string& name, const std::string& words) {
    const auto& events = job(name).events;
    return static_cast<size_t>(
        std::count_if(events.begin(), events.end(), [&](const job::Event& event) {
          return words::sentence(event.what).find(words) != std::string::npos;
        }));
  }
};

}  // namespace muster::control
