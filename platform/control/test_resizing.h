// For the tests of gangs that resize while they run: a server with two small machines, and jobs
// that use all free GPUs.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "control/test_with_accounts.h"

namespace muster::control {

inline const job::ExitStatus kKilled{.signal = 9};

class ResizingGang : public WithAccounts {
 protected:
  ResizingGang() {
    set_machines({machine("n1", 2), machine("n2", 2)});
    come_up();
  }

  static engine::Node machine(const std::string& name, int gpus) {
    return {.name = name, .task_slots = 100, .gpus = gpus, .gpu_model = "V100"};
  }
  void set_machines(const std::vector<engine::Node>& machines) {
    engine_.set_nodes(machines);
    settle();
  }

  /// `least` to `workers` workers with one GPU each; the launcher needs no GPU.
  static job::JobSpec live(const std::string& name, const std::string& project, int least,
                           int workers) {
    job::JobSpec spec = mpi(name, project, workers);
    spec.scheduling.min_workers = least;
    spec.scheduling.resize = job::Resize::kLive;
    spec.resources.gpus = 1;
    return spec;
  }

  /// A server that resizes without pauses.
  void come_up() {
    make_with(box_);
    controller_->set_resize_pace(pace_);
  }
  /// Another server after the end of the first.
  void come_back() {
    be_killed();
    come_up();
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  /// Runs the consequences of the last step; workers answer only in settle().
  void turn() {
    for (int round = 0; round < 30; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  const job::Task& task(const std::string& job_name, const std::string& task_name) {
    for (const job::Task& task : job(job_name).tasks) {
      if (task.name == task_name) return task;
    }
    ADD_FAILURE() << job_name << " has no " << task_name;
    return job(job_name).tasks.front();
  }

  /// The workers that run and stay.
  std::set<std::string> workers_of(const std::string& name) {
    std::set<std::string> names;
    for (const job::Task& task : job(name).tasks) {
      const bool runs = engine_.running.count({gang(name), task.name}) > 0;
      if (runs && task.role == job::TaskRole::kWorker && !task.left) names.insert(task.name);
    }
    return names;
  }

  /// The hosts in the launcher's last hostfile.
  std::string sent_hosts(const std::string& name) {
    std::string hosts;
    for (const launch::FileChange& change : engine_.file_changes) {
      if (change.task != job(name).tasks.front().name) continue;
      for (const launch::PlannedFile& file : change.files) {
        if (file.path == "hostfile") hosts = file.content;
      }
    }
    return hosts;
  }

  /// An engine that runs images has fetched the requested images.
  void bring_images() {
    const launch::ImageFacts facts{.image = "image",
                                   .id = "sha256:1",
                                   .folder = "/",
                                   .account = {},
                                   .sshd = "/usr/sbin/sshd",
                                   .has_ssh = true,
                                   .has_shell = true};
    engine_.prepared(std::vector<launch::ImageFacts>(engine_.image_requests.size(), facts));
    settle();
  }

  void lose(const std::string& name, const std::string& worker, job::ExitStatus status) {
    engine_.end_for_good(gang(name), worker, std::move(status));
    settle();
  }

  /// The index of a call of the engine, such as "start worker-2"; the number of calls if that call
  /// was never made.
  size_t call(const std::string& name, const std::string& what, const std::string& worker) {
    const std::string words =
        what + " " + job(name).id + "/" + std::to_string(job(name).attempt) + " " + worker;
    for (size_t i = 0; i < engine_.calls.size(); ++i) {
      if (engine_.calls[i].starts_with(words)) return i;
    }
    return engine_.calls.size();
  }
  bool called(const std::string& name, const std::string& what, const std::string& worker) {
    return call(name, what, worker) < engine_.calls.size();
  }

  using Names = std::set<std::string>;
  ResizePace pace_{.notice = std::chrono::milliseconds(0), .rest = std::chrono::milliseconds(0)};
};

}  // namespace muster::control
