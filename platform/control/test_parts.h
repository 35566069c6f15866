// For the tests of the controller: a store that crashes, an engine whose tasks outlive the server,
// and short ways to write specs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fake_random.h"
#include "control/controller.h"
#include "engine/fake_engine.h"
#include "job/project.h"
#include "job/spec.h"
#include "store/memory_store.h"
#include "words/sentence.h"

namespace muster::control {

struct Crash {};

/// Crashes right before or right after a commit, as a killed server does, or has a full disk.
class MortalStore : public store::MemoryStore {
 public:
  base::Result<void> commit(const store::Batch& batch) override {
    ++commits;
    if (commits == dies_before) throw Crash{};
    if (full) return base::Error{.code = base::ErrorCode::kExhausted, .what = "the disk is full"};
    if (read_only) return base::Error{.code = base::ErrorCode::kRefused, .what = "is read-only"};
    const auto committed = MemoryStore::commit(batch);
    written += static_cast<int>(batch.changed_jobs.size());
    if (committed) ends.insert(ends.end(), batch.ends.begin(), batch.ends.end());
    if (commits == dies_after) throw Crash{};
    return committed;
  }
  base::Result<store::Contents> load() override {
    MUSTER_TRY(store::Contents whole, MemoryStore::load());
    const std::vector<job::Job> jobs = std::exchange(whole.jobs, {});
    for (const job::Job& job : jobs) {
      if (!unreadable.contains(job.spec.name)) {
        whole.jobs.push_back(job);
        continue;
      }
      whole.unreadable.push_back({.kind = "job",
                                  .id = job.id,
                                  .project = job.spec.project,
                                  .name = job.spec.name,
                                  .fault = "its checksum differs",
                                  .jobs_before = whole.jobs.size()});
    }
    if (!unreadable_project.empty()) {
      whole.unreadable.push_back(
          {.kind = "project", .name = unreadable_project, .fault = "its checksum differs"});
    }
    return whole;
  }
  std::set<std::string> unreadable;  ///< names of jobs whose records cannot be read
  std::string unreadable_project;    ///< name of a project whose record cannot be read
  int commits = 0;
  int written = 0;  ///< changes of jobs
  int dies_before = 0;
  int dies_after = 0;
  bool full = false;
  bool read_only = false;
  std::vector<job::ObjectEnd> ends;  ///< of all commits
};

/// Tasks outlive the controller, as with shims: a new controller finds running tasks, and gets
/// reports of tasks that ended meanwhile.
class LastingEngine : public engine::FakeEngine {
 public:
  explicit LastingEngine(base::EventLoop& loop) : FakeEngine(loop), loop_(loop) {}

  /// Continues with the machines of a killed server.
  void take_over(const LastingEngine& before) {
    offered = before.offered;
    running = before.running;
    plans = before.plans;
    ends = before.ends;
    stops_obey = before.stops_obey;
    images = before.images;
    asks = before.asks;
    requests = before.requests;
  }

  engine::AdoptionResult adopt(const engine::GangId& gang, const std::string& task) override {
    if (running.count({gang, task}) > 0) return engine::AdoptionResult::kRunning;
    if (plans.count({gang, task}) == 0) return engine::AdoptionResult::kNothing;
    loop_.post([this, gang, task] {
      const auto known = ends.find({gang, task});
      end(gang, task,
          known != ends.end() ? known->second : job::ExitStatus{.signal = 15, .stopped = true});
    });
    return engine::AdoptionResult::kEnded;
  }

  /// As end(), and a later server gets the same report.
  void end_for_good(const engine::GangId& gang, const std::string& task, job::ExitStatus status) {
    ends[{gang, task}] = status;
    end(gang, task, std::move(status));
  }

  std::map<std::pair<engine::GangId, std::string>, job::ExitStatus> ends;

 protected:
  base::EventLoop& loop() { return loop_; }

 private:
  base::EventLoop& loop_;
};

inline job::JobSpec single(const std::string& name, const std::string& project, int gpus) {
  return {.name = name,
          .project = project,
          .command = {"train"},
          .resources = {.gpus = gpus},
          .folder = "/"};
}

inline job::JobSpec mpi(const std::string& name, const std::string& project, int workers) {
  job::JobSpec spec = single(name, project, 1);
  spec.kind = job::Kind::kMpi;
  spec.workers = workers;
  return spec;
}

inline job::Project project_of(const std::string& name, int64_t gpus,
                               const std::string& parent = "") {
  return {.name = name, .parent = parent, .quota = {.deserved = {.gpu_milli = gpus * 1000}}};
}

/// A server with a store and one node of two GPUs.
class Scheduling : public testing::Test {
 protected:
  Scheduling() {
    engine_.offered = {{.name = "n1", .task_slots = 100, .gpus = 2, .gpu_model = "V100"}};
    make();
  }

  void make(SiteFacts site = {.user = "ada"}) {
    controller_ = nullptr;
    controller_ = std::make_unique<Controller>(
        ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        std::move(site));
  }

  /// The server and its event loop are killed; the next server has not recovered its jobs yet.
  void live_again(SiteFacts site = {.user = "ada"}) {
    controller_ = nullptr;
    loop_owner_.emplace();  // in its old place
    make(std::move(site));
  }

  void settle() {
    for (int round = 0; round < 30; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
      answer_workers();
    }
  }

  /// Every started worker answers.
  void answer_workers() {
    const auto running = engine_.running;
    for (const auto& [gang, task] : running) {
      if (task.starts_with("worker")) engine_.answer(gang, task);
    }
  }

  void add(const job::Project& project) {
    const auto added = controller_->projects().create(project);
    ASSERT_TRUE(added) << added.error().to_string();
  }

  void submit(const job::JobSpec& spec) {
    const auto job = controller_->submit(spec, "");
    ASSERT_TRUE(job) << job.error().to_string();
    settle();
  }

  const job::Job& job(const std::string& name) { return **controller_->jobs().find(name); }
  engine::GangId gang(const std::string& name) { return {job(name).id, job(name).attempt}; }
  void end(const std::string& name, job::ExitStatus status = {}) {
    const std::string task = job(name).tasks.front().name;
    engine_.end_for_good(gang(name), task, std::move(status));
    settle();
  }

  bool noted(const std::string& name, const std::string& words) {
    const auto& events = job(name).events;
    return std::any_of(events.begin(), events.end(), [&](const job::Event& event) {
      return words::sentence(event.what).find(words) != std::string::npos;
    });
  }

  std::optional<base::EventLoop> loop_owner_{std::in_place};
  base::EventLoop& loop_ = *loop_owner_;
  MortalStore store_;
  LastingEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<Controller> controller_;
};

}  // namespace muster::control
