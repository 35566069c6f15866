// For tests: the parameter of the conformance suite. A Ground is one engine with one way to isolate
// tasks. The test program that links the suite defines the grounds (conformance_process.cc,
// conformance_containers.cc, conformance_slurm.cc).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>

#include "base/files.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/host_facts.h"
#include "launch/plan.h"

namespace muster::engine {

using job::Sandbox;
using launch::TaskPlan;

/// How long anything may take before it counts as hanging; see Ground::bound.
inline constexpr std::chrono::seconds kBound{60};

/// How an engine is made for a test.
struct BenchOptions {
  std::filesystem::path folder;  ///< the jobs' folder
  std::chrono::milliseconds first_sample{2000};
  std::chrono::milliseconds sample_interval{10000};
  std::string nvml;  ///< the NVML library to load; empty: the usual one
  std::function<Result<void>(const std::string& project, const std::string& tree,
                             const std::filesystem::path& folder)>
      unpack_tree;

  /// The paths that a server hides from tasks.
  std::vector<std::filesystem::path> hidden() const {
    return {folder, folder.parent_path() / "key"};
  }
  std::filesystem::path storage() const { return folder.parent_path() / "storage"; }
};

/// One engine on which the suite runs.
struct Ground {
  std::string name;
  Sandbox sandbox = Sandbox::kBubblewrap;  ///< of its tasks
  std::function<std::unique_ptr<Engine>(base::EventLoop& loop, BenchOptions options)> make_engine;
  /// Adds the parts that every plan of this engine needs. `scratch`: a folder that tasks see at the
  /// same path.
  std::function<TaskPlan(TaskPlan plan, const std::filesystem::path& scratch)> placed;
  /// For launch/.
  std::function<void(launch::Site& site, const job::Job& job)> fill_site;
  /// Removes storage, which outlives engines and jobs.
  std::function<void(const std::filesystem::path& jobs_folder)> clear = [](const auto&) {};
  /// What tasks have of the machine outside of the jobs' folder, such as control groups.
  std::function<std::vector<std::filesystem::path>()> held_of_machine = [] {
    return std::vector<std::filesystem::path>();
  };

  std::chrono::seconds bound = kBound;  ///< kBound, or more if the engine's parts take longer

  // --- differences between engines
  /// Tasks are sandboxed processes of this machine: they see its files, and the engine can hide
  /// some of them.
  bool is_sandbox = false;
  /// The same, and tasks see the machine's /tmp, where the folders of tests are.
  bool shows_tmp = false;
  /// Tasks listen at addresses of this machine, where other processes may be first.
  bool shares_network = true;
  /// Tasks have their own host names and volumes.
  bool is_set_apart = true;
  /// Tasks are containers: volumes belong to their engine, and metrics are not collected while no
  /// server runs.
  bool is_container = false;
  /// The NVML library can be replaced by a fake.
  bool has_fake_gpus = true;
  /// Tasks' folders are readable while no engine object exists.
  bool has_folders = true;
  /// The content of volumes is in the jobs' folder while tasks use it.
  bool keeps_volumes = true;
  /// Whether the next attempt sees the files that a task has written into a tree.
  bool keeps_trees = true;
  /// The engine has storage volumes.
  bool has_storage = true;
  /// Tasks on one machine share the copies of trees and the artifacts of their job.
  bool shares_volumes = true;
  /// Which GPUs of its node a task has is for the cluster to choose, and so are their names.
  bool names_own_gpus = false;
  /// The engine has access to the files of the machines, and to the list of files that it must
  /// hide.
  bool hides_files = true;

  /// For an engine that requests allocations: the tasks to request for a gang whose first started
  /// tasks are `first`. Others may join later.
  std::function<std::vector<std::string>(const std::vector<TaskPlan>& first)> tasks_to_seat;

  /// The address at which one task of a test reaches another.
  std::string address_of(const std::string& task) const {
    return is_container ? "test-" + task : "127.0.0.1";
  }
};

inline void PrintTo(const Ground& ground, std::ostream* out) {
  *out << ground.name;
}

/// The helpers beside the running executable.
std::vector<Ground> grounds();

/// For Ground::make_engine: an engine that cannot be opened fails its test, and the next test runs.
template <class Opened>
std::unique_ptr<Engine> opened(Result<std::unique_ptr<Opened>> engine) {
  if (!engine) throw std::runtime_error(engine.error().to_string());
  return *std::move(engine);
}

inline std::vector<Ground> grounds_where(bool Ground::* trait, bool value = true) {
  std::vector<Ground> all = grounds();
  std::erase_if(all, [&](const Ground& ground) { return ground.*trait != value; });
  return all;
}

/// An engine, its loop, and its reports.
class Bench {
 public:
  /// `change`: changes the options of the test.
  Bench(const Ground& ground, const std::filesystem::path& folder,
        const std::function<void(BenchOptions&)>& change = {})
      : ground_(ground), engine_(ground.make_engine(loop_, options_in(folder, change))) {
    engine_->set_allocation_listener([this](const GangId& gang, const AllocationNews& news) {
      allocations_[gang].push_back(news);
    });
    engine_->listen([this](const TaskReport& report) {
      if (const auto* end = std::get_if<TaskEnded>(&report.what)) {
        ends_[report.task] = *end;
      } else if (std::holds_alternative<RanksChanged>(report.what)) {
        ++rank_reports_[report.task];
        return;
      } else {
        answered_.insert(report.task);
      }
      ++reports_[report.task];
    });
    // The nodes of a cluster are reported after a moment.
    if (engine_->has_cluster_queue() || engine_->runs_pods()) {
      wait_until([this] { return !engine_->nodes().empty(); });
    }
  }

  Engine& engine() { return *engine_; }
  base::EventLoop& loop() { return loop_; }

  /// The content of each tree: a file "files" with the tree's name. Called on another thread.
  std::function<Result<void>(const std::string& project, const std::string& tree,
                             const std::filesystem::path& folder)>
      unpack = [](const std::string& project, const std::string& tree,
                  const std::filesystem::path& folder) {
        return base::write_new_file(folder / "files", project + " " + tree + "\n");
      };

  Result<void> start(const GangId& gang, std::vector<TaskPlan> plans) {
    std::optional<Result<void>> result;
    begin_start(gang, std::move(plans), result);
    wait_until([&] { return result.has_value(); });
    return result.value_or(base::Error{.what = "start() was never answered"});
  }

  /// Requests an allocation if the engine needs one, and starts; `result` is set later.
  void begin_start(const GangId& gang, std::vector<TaskPlan> plans,
                   std::optional<Result<void>>& result) {
    if (engine_->has_cluster_queue()) seat(gang, plans);
    engine_->start(gang, std::move(plans), [&](const Result<void>& started) { result = started; });
  }

  /// The reports of a gang's allocation, in order.
  const std::vector<AllocationNews>& allocation_news(const GangId& gang) {
    return allocations_[gang];
  }
  template <class News>
  const News* last_allocation_news(const GangId& gang) {
    const News* last = nullptr;
    for (const AllocationNews& news : allocations_[gang]) {
      if (const auto* const found = std::get_if<News>(&news)) last = found;
    }
    return last;
  }

  TaskEnded wait_for_end(const std::string& task) {
    wait_until([&] { return ends_.count(task) > 0; });
    return ends_[task];
  }

  void wait_for_answer(const std::string& task) {
    wait_until([&] { return answered_.count(task) > 0; });
    EXPECT_EQ(answered_.count(task), 1U) << task << " never answered";
  }

  /// All reports except those of ranks.
  int reports_of(const std::string& task) { return reports_[task]; }
  int rank_reports_of(const std::string& task) { return rank_reports_[task]; }

  /// Runs the loop until `done` holds. It gives up after Ground::bound; the expectations after it then
  /// show what is missing.
  void wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + ground_.bound;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      // `done` is evaluated after every event; the timer bounds the time between two events.
      const auto tick = loop_.after(std::chrono::milliseconds(20), [this] { loop_.stop(); });
      loop_.run();
    }
  }

 private:
  BenchOptions options_in(const std::filesystem::path& folder,
                          const std::function<void(BenchOptions&)>& change) {
    BenchOptions options{.folder = folder,
                         .nvml = {},
                         .unpack_tree = [this](const std::string& project, const std::string& tree,
                                               const std::filesystem::path& into) {
                           return unpack(project, tree, into);
                         }};
    if (change) change(options);
    return options;
  }

  /// The allocation of a gang, which is requested once, and the place of each task in it.
  void seat(const GangId& gang, std::vector<TaskPlan>& plans) {
    if (allocations_.count(gang) == 0) {
      AllocationRequest request{.job = gang.job_id, .project = "default"};
      for (const std::string& task : ground_.tasks_to_seat(plans))
        request.tasks.push_back({.task = task});
      allocations_[gang] = {};
      engine_->request_allocation(gang, request);
      wait_until([&] { return last_allocation_news<AllocationGranted>(gang) != nullptr; });
    }
    const auto* const given = last_allocation_news<AllocationGranted>(gang);
    ASSERT_NE(given, nullptr) << "no allocation was granted";
    for (TaskPlan& plan : plans) {
      for (const AllocatedPlace& place : given->places) {
        if (place.task == plan.task) plan.node = place.node;
      }
    }
  }

  Ground ground_;
  base::EventLoop loop_;
  std::map<GangId, std::vector<AllocationNews>> allocations_;
  std::unique_ptr<Engine> engine_;
  std::map<std::string, TaskEnded> ends_;
  std::map<std::string, int> reports_;
  std::map<std::string, int> rank_reports_;
  std::set<std::string> answered_;
};

class Conformance : public testing::TestWithParam<Ground> {
 protected:
  Conformance() {
    std::string pattern = testing::TempDir() + "engineXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    scratch_ = folder_ / "scratch";
    std::filesystem::create_directory(scratch_);
    open_bench();
  }
  ~Conformance() override {
    bench_.reset();
    EXPECT_EQ(GetParam().held_of_machine(), std::vector<std::filesystem::path>());
    GetParam().clear(folder_ / "jobs");
    std::filesystem::remove_all(folder_);
  }

  Sandbox sandbox() const { return GetParam().sandbox; }

  /// A server after the one before has gone.
  void open_bench(const std::function<void(BenchOptions&)>& change = {}) {
    bench_.reset();
    bench_ = std::make_unique<Bench>(GetParam(), folder_ / "jobs", change);
  }

  /// A task that runs a shell script.
  TaskPlan script(const std::string& text, const std::string& name = "main") const {
    TaskPlan plan{.task = name,
                  .hostname = "test-" + name,
                  .argv = {"sh", "-c", text},
                  .environment = {{"PATH", "/usr/bin:/bin"}, {"SCRATCH", scratch_.string()}},
                  .folder = scratch_.string(),
                  .sandbox = sandbox(),
                  .grace = std::chrono::seconds(30)};
    return GetParam().placed(std::move(plan), scratch_);
  }

  TaskEnded run(const TaskPlan& plan) {
    const auto started = bench_->start(gang_, {plan});
    EXPECT_TRUE(started) << started.error().to_string();
    return bench_->wait_for_end(plan.task);
  }

  std::string log_of(const std::string& task, job::LogStream stream = job::LogStream::kOutput) {
    auto cursor = bench_->engine().open_log(gang_, task);
    EXPECT_TRUE(cursor);
    std::string text;
    LogFrame frame;
    while (true) {
      const auto more = (*cursor)->next(frame);
      if (!more || !*more) return text;
      if (frame.stream == stream) text += frame.bytes;
    }
  }

  /// Waits until a task has printed its first line: it is in the middle of its program then.
  void wait_for_output(const std::string& task) {
    bench_->wait_until([&] { return log_of(task).find('\n') != std::string::npos; });
  }

  /// Processes of this machine that carry `word` in their command line.
  static std::vector<std::string> processes_with(const std::string& word) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto line = base::read_file(entry.path() / "cmdline");
      if (line && line->find(word) != std::string::npos) found.push_back(entry.path());
    }
    return found;
  }

  /// The outermost shim above a process: its outer half.
  static std::optional<pid_t> shim_above(const std::string& process) {
    std::optional<pid_t> shim;
    for (pid_t pid = std::atoi(process.substr(6).c_str()); pid > 1; pid = parent_of(pid)) {
      const auto line = base::read_file("/proc/" + std::to_string(pid) + "/cmdline");
      const std::string program = line ? line->substr(0, line->find('\0')) : "";
      if (program.ends_with("/muster-shim")) shim = pid;
    }
    return shim;
  }

  static pid_t parent_of(pid_t pid) {
    const auto status = base::read_file("/proc/" + std::to_string(pid) + "/status");
    const size_t at = status ? status->find("\nPPid:") : std::string::npos;
    return at == std::string::npos ? 0 : std::atoi(status->c_str() + at + 6);
  }

  static constexpr const char* kJob = "job1";
  const GangId gang_{kJob, 1};
  std::filesystem::path folder_;
  std::filesystem::path scratch_;  ///< in it: tasks find it at its own path
  std::unique_ptr<Bench> bench_;
  /// The sleep time of this test's processes, by which they are recognized: the suites of several
  /// engines run side by side.
  const std::string marker_ = std::to_string(1'000'000'000 + ::getpid());
};

inline std::string ground_name(const testing::TestParamInfo<Ground>& info) {
  return info.param.name;
}

}  // namespace muster::engine
