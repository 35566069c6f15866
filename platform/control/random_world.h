// For the tests of the controller: a server, its store and its machines. A generator does anything
// that may happen to them, in any order, and checks the invariants all the time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_random.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "control/test_parts.h"

namespace muster::control {

/// splitmix64: the same numbers for the same seed, everywhere.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  int below(int bound) { return static_cast<int>(next() % static_cast<uint64_t>(bound)); }
  bool one_in(int count) { return below(count) == 0; }
  template <class Range>
  const auto& any_of(const Range& range) {
    return *std::next(range.begin(), below(static_cast<int>(range.size())));
  }

 private:
  uint64_t next() {
    uint64_t value = (state_ += 0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }
  uint64_t state_;
};

using TaskKey = std::pair<engine::GangId, std::string>;

/// Ends no task by itself, and shows every start to the test.
class WatchedEngine : public LastingEngine {
 public:
  using LastingEngine::LastingEngine;
  std::function<void(const engine::GangId&, const std::vector<launch::TaskPlan>&)> on_start;
  std::set<TaskKey> stopping;
  std::set<TaskKey> news;                    ///< ended tasks with a report under way
  std::map<TaskKey, std::string> hostfiles;  ///< the last hostfiles of tasks
  std::optional<base::Error> prepare_error;  ///< once

  /// Whether a task of it ended under an earlier server, and the report is on its way.
  bool has_news_of(const engine::GangId& gang) const {
    return std::any_of(news.begin(), news.end(),
                       [&](const TaskKey& task) { return task.first == gang; });
  }
  engine::AdoptionResult adopt(const engine::GangId& gang, const std::string& task) override {
    const engine::AdoptionResult found = LastingEngine::adopt(gang, task);
    if (found != engine::AdoptionResult::kEnded) return found;
    news.insert({gang, task});
    loop().post([this, gang, task] { news.erase({gang, task}); });
    return found;
  }

  /// Later, in a turn of its own, unless the caller has dropped its interest.
  std::shared_ptr<void> prepare(const engine::GangId&, std::vector<engine::ImageRequest> asked,
                                std::function<void(const job::Fact&)> on_progress,
                                engine::Engine::Prepared done) override {
    auto interest = std::make_shared<int>(0);
    loop().post([this, known = std::weak_ptr<int>(interest), asked = std::move(asked), on_progress,
                 done = std::move(done)] {
      if (known.expired()) return;
      on_progress(job::FetchesImage{.node = "n1", .image = "horovod:0.28"});
      std::vector<launch::ImageFacts> facts(asked.size());
      for (launch::ImageFacts& one : facts)
        one = {.sshd = "sshd", .has_ssh = true, .has_shell = true};
      const auto error = std::exchange(prepare_error, std::nullopt);
      if (error) return done(*error);
      done(std::move(facts));
    });
    return interest;
  }

  // As an engine that requests allocations from a cluster: the test is the cluster.
  std::map<engine::GangId, engine::AllocationGranted> given;  ///< allocations of gangs
  std::function<void(const engine::GangId&)> on_ask;
  std::function<void(const engine::GangId&)> on_give_back;

  void request_allocation(const engine::GangId& gang, engine::AllocationRequest request) override {
    on_ask(gang);
    FakeEngine::request_allocation(gang, std::move(request));
    const auto has = given.find(gang);
    if (has == given.end()) return;
    loop().post([this, gang, room = has->second] { report_allocation(gang, room); });
  }
  void release_allocation(const engine::GangId& gang) override {
    on_give_back(gang);
    given.erase(gang);
    FakeEngine::release_allocation(gang);
  }

  void start(const engine::GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) override {
    if (asks && !given.contains(gang)) {
      return loop().post([done = std::move(done)] {
        done(base::Error{.code = base::ErrorCode::kUnavailable, .what = "it has no room"});
      });
    }
    on_start(gang, tasks);
    LastingEngine::start(gang, std::move(tasks), std::move(done));
  }
  void change_files(const engine::GangId& gang, std::vector<launch::FileChange> changes,
                    Done done) override {
    for (const launch::FileChange& change : changes) {
      for (const launch::PlannedFile& file : change.files) {
        if (file.path == "hostfile") hostfiles[{gang, change.task}] = file.content;
      }
    }
    FakeEngine::change_files(gang, std::move(changes), std::move(done));
  }
  void stop(const engine::GangId& gang, const std::vector<std::string>& tasks,
            engine::StopMode) override {
    for (const std::string& task : tasks) {
      if (running.count({gang, task}) > 0) stopping.insert({gang, task});
    }
  }
};

class RandomWorld {
 public:
  enum class Machines {
    kPlain,
    kInImages,   ///< an engine that runs images, and whose nodes become silent
    kAtCluster,  ///< an engine that asks a cluster for allocations
  };
  RandomWorld(uint64_t seed, Machines machines);
  ~RandomWorld();

  void live(int steps);
  /// No further mishap happens, and every job can run.
  void come_to_rest();

 private:
  void be_born();
  void die_and_return();
  void turn(int rounds);
  void guarded(const std::function<void()>& action);
  void step();

  // Actions of users.
  void submit();
  job::JobSpec any_spec();
  void ask_of_a_job();
  void change_projects();
  void ask_questions();
  // Events of machines and tasks.
  void change_nodes();
  void fall_silent(const std::string& name);
  void drain_and_look();
  void lose(const std::string& node, bool tasks_are_reported);
  void something_ends();
  void leaders_end();
  void workers_answer(int one_in);
  void stops_are_obeyed(int one_in);
  void break_something();
  // Actions of a cluster (random_world_cluster.cc).
  void the_cluster_acts();
  void the_cluster_answers(const engine::GangId& gang);
  void the_cluster_gives(const engine::GangId& gang);
  void the_cluster_takes(const engine::GangId& gang, engine::AllocationRevoked taken);
  void the_cluster_loses(const std::string& node);
  void the_cluster_serves_all();
  std::vector<int> free_devices(const std::string& node) const;

  // Invariants.
  void look_at_start(const engine::GangId& gang, const std::vector<launch::TaskPlan>& tasks);
  void look_at_allocation(const job::Job& job, const job::Task& task);
  void look_at_limit(const job::Job& job);
  void look();
  void look_at_gang(const job::Job& job);
  void look_at_seats(const job::Job& job);
  void look_at_sent_members(const job::Job& job);
  void look_at_devices();
  void look_at_standing();
  void look_at_what_is_asked(const engine::GangId& gang);
  void look_at_what_is_given_back(const engine::GangId& gang);
  void look_at_given(const job::Job& job, const job::Task& task);
  void look_at_allocations();

  const job::Job* job_of(const std::string& id) const;
  const engine::Node* node_named(const std::string& name) const;
  std::string any_job();
  std::vector<std::string> leaves() const;

  Dice dice_;
  bool in_images_;
  bool at_cluster_;
  bool keeps_seeds_;  ///< its servers can store the seeds of gangs that resize
  access::SecretBox box_{access::SecretBox::Key{}};
  std::unique_ptr<base::EventLoop> loop_;
  MortalStore store_;
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<WatchedEngine> engine_;
  std::unique_ptr<Accounts> accounts_;
  std::unique_ptr<Controller> controller_;
  std::vector<engine::Node> all_nodes_;
  std::set<TaskKey> ever_started_;
  std::map<std::string, int64_t> fixed_limits_;  ///< projects whose limit was never lowered
  bool nodes_are_steady_ = true;                 ///< no node was ever lost or made smaller
  int next_job_ = 0;
};

}  // namespace muster::control
