// A fixture for tests of sweeps with a fake engine. The test imitates the programs of the trials.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/test_folder.h"
#include "base/units.h"
#include "control/sweeps.h"
#include "control/test_parts.h"
#include "engine/metric_log.h"
#include "engine/test_metrics.h"

namespace muster::control {

/// Rungs at 1, 4 and 16 steps; a trial's accuracy is its parameter `x`.
inline sweep::SweepSpec sweep_of_x(int trials, sweep::Method method = sweep::Method::kAsha) {
  return {.job = {.name = "lr", .command = {"train", "{x}"}, .folder = "/"},
          .parameters = {{"x", {.low = 0, .high = 1}}},
          .method = method,
          .metric = "accuracy",
          .max_trials = trials,
          .max_concurrent = 3,
          .max_steps = 16,
          .max_rungs = 3};
}

class SweepControl : public Scheduling {
 protected:
  using Gang = engine::GangId;

  SweepControl() { engine_.metric_folder = folder_.path(); }

  Sweeps& sweeps() { return controller_->sweeps(); }
  void create(const sweep::SweepSpec& spec) {
    const auto made = sweeps().create(spec, {.user = "ada"});
    ASSERT_TRUE(made) << made.error().to_string();
    id_ = made->summary.id;
    settle();
  }
  sweep::Sweep the_sweep() { return *sweeps().with_id(id_); }
  sweep::Trial trial(int number) {
    const sweep::Sweep now = the_sweep();
    for (const sweep::Trial& each : now.trials) {
      if (each.number == number) return each;
    }
    ADD_FAILURE() << "no trial " << number;
    return {};
  }
  const job::Job* job_of(int number) {
    const auto found = controller_->jobs().named(sweep::trial_name("lr", number));
    return found.empty() ? nullptr : found.front();
  }
  Gang gang_of(int number) { return {job_of(number)->id, job_of(number)->attempt}; }

  void look() {
    sweeps().look();
    settle();
  }

  /// The program reports these values at once.
  void report(const Gang& gang, const engine::MetricValues& values) {
    clock_.advance(std::chrono::milliseconds(10));
    std::ofstream(engine_.metric_file(gang, "main"), std::ios::app)
        << engine::encode_sample({.time = clock_.now(), .rank = {}, .values = values});
  }
  void report(int number, const engine::MetricValues& values) {
    report(gang_of(number), values);
    look();
  }

  std::string variable(const Gang& gang, const std::string& name) {
    const auto& environment = engine_.plans.at({gang, "main"}).environment;
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  }

  /// Every running program runs until its rung and succeeds.
  void play_until_the_rung() {
    const auto running = engine_.running;
    for (const auto& [gang, task] : running) {
      if (engine_.running.count({gang, task}) == 0) continue;
      const double x = *base::number_of<double>(variable(gang, "X"));
      const double steps = *base::number_of<double>(variable(gang, "MUSTER_SWEEP_STEPS"));
      report(gang, {{"step", steps}, {"accuracy", x}});
      engine_.end_for_good(gang, task, {});
      settle();
      look();
    }
  }
  void play_to_the_end() {
    for (int turn = 0; turn < 200 && !the_sweep().summary.ended; ++turn) play_until_the_rung();
    look();
  }

  base::TestFolder folder_;
  std::string id_;
};

}  // namespace muster::control
