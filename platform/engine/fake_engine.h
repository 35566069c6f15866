// An engine that runs nothing: for tests of logic. It notes what it is asked, and a test decides
// what every task does.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"

namespace muster::engine {

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(base::EventLoop& loop) : loop_(loop) {}

  // What a test sets up.
  std::vector<Node> offered{{.name = "node", .task_slots = 100}};
  std::map<std::string, base::Error> start_errors;  ///< by task: start() fails, once
  std::map<std::string, Found> adoptable;           ///< by task
  std::map<std::string, std::string> logs;          ///< by task
  std::vector<RankPlace> census;
  bool stops_obey = true;  ///< a stopped task ends by itself

  // What a test looks at.
  std::set<std::pair<Gang, std::string>> running;
  std::vector<std::string> calls;  ///< "start j1/1 worker-0", "stop j1/1 launcher gracefully" ...

  void answer(const Gang& gang, const std::string& task) { report(gang, task, TaskAnswered{}); }
  void end(const Gang& gang, const std::string& task, job::ExitStatus status) {
    running.erase({gang, task});
    report(gang, task, TaskEnded{.status = std::move(status)});
  }

  std::vector<Node> nodes() override { return offered; }
  void listen(Listener listener) override { listener_ = std::move(listener); }
  std::string generated_folder(const Gang&, std::string_view, job::Sandbox) const override {
    return "/generated";
  }

  void start(const Gang& gang, std::vector<launch::TaskPlan> tasks, Done done) override {
    for (const launch::TaskPlan& task : tasks) {
      calls.push_back("start " + name_of(gang) + " " + task.task);
      if (const auto failing = start_errors.extract(task.task)) {
        loop_.post([done, error = failing.mapped()] { done(error); });
        return;
      }
    }
    for (const launch::TaskPlan& task : tasks) running.insert({gang, task.task});
    loop_.post([this, gang, tasks = std::move(tasks), done] {
      done({});
      for (const launch::TaskPlan& task : tasks) {
        if (!task.ssh) answer(gang, task.task);
      }
    });
  }

  void stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) override {
    for (const std::string& task : tasks) {
      calls.push_back("stop " + name_of(gang) + " " + task +
                      (mode == StopMode::kGraceful ? " gracefully" : " now"));
      if (!stops_obey || running.count({gang, task}) == 0) continue;
      loop_.post([this, gang, task] {
        if (running.count({gang, task}) > 0) end(gang, task, {.signal = 15, .stopped = true});
      });
    }
  }

  Found adopt(const Gang& gang, const std::string& task) override {
    const auto found = adoptable.find(task);
    if (found == adoptable.end()) return Found::kNothing;
    if (found->second == Found::kRunning) running.insert({gang, task});
    return found->second;
  }

  void scrub(const Gang& gang) override { calls.push_back("scrub " + name_of(gang)); }
  Result<void> remove(const std::string& job_id) override {
    calls.push_back("remove " + job_id);
    return {};
  }

  Result<std::unique_ptr<LogCursor>> open_log(const Gang&, const std::string& task) override {
    const auto found = logs.find(task);
    if (found == logs.end()) {
      return base::Error{.code = base::ErrorCode::kNotFound, .what = "no log of " + task};
    }
    return std::unique_ptr<LogCursor>(std::make_unique<TextCursor>(found->second));
  }

  std::shared_ptr<void> watch_log(const Gang&, const std::string&,
                                  std::function<void()> grown) override {
    return std::make_shared<std::function<void()>>(std::move(grown));
  }

  std::vector<RankPlace> ranks(const Gang&, const std::vector<std::string>&) const override {
    return census;
  }

 private:
  /// A log that is one frame.
  class TextCursor : public LogCursor {
   public:
    explicit TextCursor(std::string text) : text_(std::move(text)) {}
    Result<bool> next(LogFrame& frame) override {
      if (std::exchange(read_, true)) return false;
      frame.bytes = text_;
      return true;
    }
    Result<void> seek_near_end(size_t) override { return {}; }

   private:
    std::string text_;
    bool read_ = false;
  };

  static std::string name_of(const Gang& gang) {
    return gang.job_id + "/" + std::to_string(gang.attempt);
  }

  void report(const Gang& gang, const std::string& task,
              std::variant<TaskAnswered, TaskEnded> what) {
    if (listener_) listener_({.gang = gang, .task = task, .what = std::move(what)});
  }

  base::EventLoop& loop_;
  Listener listener_;
};

}  // namespace muster::engine
