// For tests: what the conformance suite is run with. Each engine is a value of the parameter.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "engine/process/host_facts.h"
#include "engine/process/process_engine.h"
#include "launch/plan.h"

namespace muster::engine {

using job::Sandbox;
using launch::TaskPlan;

inline constexpr std::chrono::seconds kBound{60};

/// An engine, its loop, and what it has reported.
class Bench {
 public:
  /// What a server hides is hidden in all tests: nothing that a task does needs it. `change`: what
  /// of the options is to be otherwise.
  explicit Bench(const std::filesystem::path& folder,
                 const std::function<void(ProcessEngineOptions&)>& change = {})
      : engine_(loop_, options_in(folder, change)) {
    engine_.listen([this](const TaskReport& report) {
      if (const auto* end = std::get_if<TaskEnded>(&report.what)) {
        ends_[report.task] = *end;
      } else {
        answered_.insert(report.task);
      }
      ++reports_[report.task];
    });
  }

  ProcessEngine& engine() { return engine_; }
  base::EventLoop& loop() { return loop_; }

  /// What is in each tree: a file "files" that says which it is. On another thread.
  std::function<Result<void>(const std::string& project, const std::string& tree,
                             const std::filesystem::path& folder)>
      unpack = [](const std::string& project, const std::string& tree,
                  const std::filesystem::path& folder) {
        return base::write_new_file(folder / "files", project + " " + tree + "\n");
      };

  Result<void> start(const Gang& gang, std::vector<TaskPlan> plans) {
    std::optional<Result<void>> result;
    engine_.start(gang, std::move(plans), [&](const Result<void>& started) { result = started; });
    wait_until([&] { return result.has_value(); });
    return result.value_or(base::Error{.what = "start() was never answered"});
  }

  TaskEnded wait_for_end(const std::string& task) {
    wait_until([&] { return ends_.count(task) > 0; });
    return ends_[task];
  }

  void wait_for_answer(const std::string& task) {
    wait_until([&] { return answered_.count(task) > 0; });
    EXPECT_EQ(answered_.count(task), 1U) << task << " never answered";
  }

  int reports_of(const std::string& task) { return reports_[task]; }

  /// Runs the loop until `done` holds; after kBound it gives up, and the expectations that follow
  /// say what is missing.
  void wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kBound;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      // Looks again after every event; the timer only bounds how long none comes.
      const auto tick = loop_.after(std::chrono::milliseconds(20), [this] { loop_.stop(); });
      loop_.run();
    }
  }

 private:
  ProcessEngineOptions options_in(const std::filesystem::path& folder,
                                  const std::function<void(ProcessEngineOptions&)>& change) {
    ProcessEngineOptions options{
        .folder = folder,
        .shim = MUSTER_SHIM,
        .declared_gpus = DeclaredGpus{.count = 4, .model = "A100"},
        .hidden = {folder, folder.parent_path() / "key"},
        .storage_folder = folder.parent_path() / "storage",
        .unpack_tree = [this](const std::string& project, const std::string& tree,
                              const std::filesystem::path& into) {
          return unpack(project, tree, into);
        }};
    if (change) change(options);
    return options;
  }

  base::EventLoop loop_;
  ProcessEngine engine_;
  std::map<std::string, TaskEnded> ends_;
  std::map<std::string, int> reports_;
  std::set<std::string> answered_;
};

class Conformance : public testing::TestWithParam<Sandbox> {
 protected:
  Conformance() {
    std::string pattern = testing::TempDir() + "engineXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    bench_ = std::make_unique<Bench>(folder_ / "jobs");
  }
  ~Conformance() override {
    bench_.reset();
    std::filesystem::remove_all(folder_);
  }

  /// A task that runs a shell script.
  TaskPlan script(const std::string& text, const std::string& name = "main") const {
    return {.task = name,
            .hostname = "test-" + name,
            .argv = {"sh", "-c", text},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"SCRATCH", folder_.string()}},
            .folder = folder_.string(),
            .sandbox = GetParam(),
            .grace = std::chrono::seconds(30)};
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

  static constexpr const char* kJob = "job1";
  const Gang gang_{kJob, 1};
  std::filesystem::path folder_;
  std::unique_ptr<Bench> bench_;
  /// How long this test's processes sleep, and how they are known: the suites of several engines
  /// run side by side.
  const std::string marker_ = std::to_string(1'000'000'000 + ::getpid());
};

inline std::string engine_name(const testing::TestParamInfo<Sandbox>& info) {
  return info.param == Sandbox::kNone ? "ProcessUnsandboxed" : "ProcessSandboxed";
}

}  // namespace muster::engine
