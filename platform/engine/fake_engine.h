// An engine that runs nothing: for tests of logic. It records its calls, and a test decides what
// every task does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/rank_files.h"

namespace muster::engine {

/// A node with so many GPUs, 8 CPUs and 64 GiB for each of them (and at least for one).
inline Node fake_node(std::string name, int gpus = 0, std::string model = "A100") {
  const int64_t parts = gpus > 0 ? gpus : 1;
  return {.name = std::move(name),
          .task_slots = 100,
          .gpus = gpus,
          .gpu_model = gpus > 0 ? std::move(model) : "",
          .gpu_memory_bytes = gpus > 0 ? int64_t{80} << 30 : 0,
          .cpu_milli = parts * 8'000,
          .memory_bytes = parts * (int64_t{64} << 30)};
}

/// A program that a test runs in a task by hand: the test reads the input and calls the handlers.
struct FakeExec {
  GangId gang;
  std::string task;
  ExecPlan plan;
  ExecHandlers handlers;
  std::string input;
  bool input_closed = false;
  bool paused = false;
  bool dropped = false;  ///< the caller has dropped its Exec
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(base::EventLoop& loop) : loop_(loop) {}

  // Set by a test.
  std::vector<Node> offered{{.name = "node", .task_slots = 100}};
  std::map<std::string, base::Error> start_errors;  ///< by task: start() fails, once
  std::set<std::string> slow_starts;                ///< tasks: start() takes until finish_start()
  std::optional<base::Error> change_error;          ///< change_files() fails, once
  std::optional<base::Error> found_error;           ///< of check_found_tasks()
  std::map<std::string, AdoptionResult> adoptable;  ///< by task
  std::map<std::string, std::string> logs;          ///< by task
  std::vector<RankPlace> census;
  bool reaches_workers = true;
  std::map<std::string, std::filesystem::path> metric_files;  ///< by task
  /// The metrics of each attempt: "j1-1-main" in this folder. Empty: metric_files counts.
  std::filesystem::path metric_folder;
  std::optional<std::filesystem::path> artifacts;
  std::map<std::string, int64_t> sizes;  ///< by job: the result of measure()
  bool reports_running = true;           ///< running_tasks() has an answer
  bool stops_obey = true;                ///< a stopped task ends by itself

  // Read by a test.
  std::set<std::pair<GangId, std::string>> running;
  /// "start j1/1 worker-0", "change j1/1 launcher", "stop j1/1 launcher gracefully" ...
  std::vector<std::string> calls;
  std::map<std::pair<GangId, std::string>, launch::TaskPlan> plans;  ///< of every task ever started
  std::vector<launch::FileChange> file_changes;  ///< by change_files(), in the order they came
  std::vector<std::shared_ptr<FakeExec>> execs;  ///< in the order they came

  /// The names of the tasks that run on a node, as "j1/1 worker-0".
  std::vector<std::string> tasks_on(const std::string& node) const {
    std::vector<std::string> names;
    for (const auto& key : running) {
      const auto plan = plans.find(key);
      if (plan == plans.end() || plan->second.node != node) continue;
      names.push_back(name_of(key.first) + " " + key.second);
    }
    return names;
  }

  /// Replaces the machines and calls their watchers.
  void set_nodes(std::vector<Node> nodes) {
    offered = std::move(nodes);
    const auto watchers = node_watchers_;  // a callback may take or drop an interest
    for (const auto& watcher : watchers) {
      if (const auto changed = watcher.lock()) (*changed)();
    }
    std::erase_if(node_watchers_, [](const auto& watcher) { return watcher.expired(); });
  }

  /// Removes the machine with all of its tasks: first the tasks are lost, then the node.
  void lose_node(const std::string& name) {
    std::vector<std::pair<GangId, std::string>> lost;
    for (const auto& key : running) {
      const auto plan = plans.find(key);
      if (plan != plans.end() && plan->second.node == name) lost.push_back(key);
    }
    for (const auto& [gang, task] : lost) end(gang, task, {.lost = true});
    std::vector<Node> rest = offered;
    std::erase_if(rest, [&](const Node& node) { return node.name == name; });
    set_nodes(std::move(rest));
  }

  void answer(const GangId& gang, const std::string& task) { report(gang, task, TaskAnswered{}); }
  void end(const GangId& gang, const std::string& task, job::ExitStatus status,
           base::Time time = {}) {
    running.erase({gang, task});
    report(gang, task, TaskEnded{.status = std::move(status), .time = time});
  }

  std::vector<Node> nodes() override { return offered; }
  std::shared_ptr<void> watch_nodes(std::function<void()> changed) override {
    auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
    node_watchers_.emplace_back(watcher);
    return watcher;
  }
  void listen(Listener listener) override { listener_ = std::move(listener); }
  std::string generated_folder(const GangId&, std::string_view, job::Sandbox) const override {
    return "/generated";
  }

  void start(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) override {
    for (const launch::TaskPlan& task : tasks) {
      calls.push_back("start " + name_of(gang) + " " + task.task);
      if (const auto failing = start_errors.extract(task.task)) {
        loop_.post([done, error = failing.mapped()] { done(error); });
        return;
      }
      if (slow_starts.contains(task.task)) {
        const auto name = task.task;
        under_way_[name] = [this, gang, tasks = std::move(tasks), done](bool go_on) mutable {
          if (go_on) return run_all(gang, std::move(tasks), std::move(done));
          done(base::Error{.code = base::ErrorCode::kUnavailable, .what = "was stopped"});
        };
        return;
      }
    }
    run_all(gang, std::move(tasks), std::move(done));
  }

  /// Completes the slow start of this task, if one is pending.
  void finish_start(const std::string& task, bool go_on = true) {
    if (const auto start = under_way_.extract(task)) {
      loop_.post([start = std::move(start.mapped()), go_on]() mutable { start(go_on); });
    }
  }

  void change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                    Done done) override {
    for (const launch::FileChange& change : changes) {
      calls.push_back("change " + name_of(gang) + " " + change.task);
    }
    file_changes.insert(file_changes.end(), changes.begin(), changes.end());
    loop_.post([done = std::move(done), error = std::exchange(change_error, std::nullopt)] {
      error ? done(*error) : done({});
    });
  }

  std::vector<std::string> jobs_with_tasks() const override {
    std::set<std::string> found;
    for (const auto& [gang, task] : running) found.insert(gang.job_id);
    return {found.begin(), found.end()};
  }

  std::vector<std::string> unknown_jobs(
      const std::function<bool(const std::string&)>& is_known) const override {
    std::set<std::string> found;
    for (const auto& [gang, task] : running) {
      if (!is_known(gang.job_id)) found.insert(gang.job_id);
    }
    return {found.begin(), found.end()};
  }

  std::optional<std::vector<RunningTask>> running_tasks(const std::string& job_id) const override {
    if (!reports_running) return std::nullopt;
    std::vector<RunningTask> found;
    for (const auto& [gang, task] : running) {
      if (gang.job_id != job_id) continue;
      const launch::TaskPlan& plan = plans.at({gang, task});
      found.push_back({.gang = gang,
                       .task = task,
                       .node = plan.node,
                       .devices = plan.devices,
                       .gpu_share_milli = plan.devices.empty() ? 0 : 1000});
    }
    return found;
  }

  void stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) override {
    for (const std::string& task : tasks) {
      calls.push_back("stop " + name_of(gang) + " " + task +
                      (mode == StopMode::kGraceful ? " gracefully" : " now"));
      finish_start(task, false);
      if (!stops_obey || running.count({gang, task}) == 0) continue;
      loop_.post([this, gang, task] {
        if (running.count({gang, task}) > 0) end(gang, task, {.signal = 15, .stopped = true});
      });
    }
  }

  AdoptionResult adopt(const GangId& gang, const std::string& task) override {
    const auto found = adoptable.find(task);
    if (found == adoptable.end()) return AdoptionResult::kNothing;
    if (found->second == AdoptionResult::kRunning) running.insert({gang, task});
    return found->second;
  }

  Result<void> check_found_tasks() override {
    return found_error ? Result<void>(*found_error) : Result<void>();
  }
  void scrub(const GangId& gang) override { calls.push_back("scrub " + name_of(gang)); }
  Result<void> remove(const std::string& job_id) override {
    calls.push_back("remove " + job_id);
    return {};
  }

  void measure(const std::string& job_id, Measured done) override {
    loop_.post([bytes = sizes[job_id], done = std::move(done)] { done(bytes); });
  }

  Result<std::unique_ptr<LogCursor>> open_log(const GangId&, const std::string& task) override {
    const auto found = logs.find(task);
    if (found == logs.end()) {
      return base::Error{.code = base::ErrorCode::kNotFound, .what = "no log of " + task};
    }
    return std::unique_ptr<LogCursor>(std::make_unique<TextCursor>(found->second));
  }

  std::shared_ptr<void> watch_log(const GangId&, const std::string&,
                                  std::function<void()> grown) override {
    return std::make_shared<std::function<void()>>(std::move(grown));
  }

  Result<std::unique_ptr<Exec>> exec(const GangId& gang, const std::string& task,
                                     const ExecPlan& plan, ExecHandlers handlers) override {
    if (running.count({gang, task}) == 0) {
      return base::Error{.code = base::ErrorCode::kConflict, .what = task + " does not run"};
    }
    execs.push_back(std::make_shared<FakeExec>(
        FakeExec{.gang = gang, .task = task, .plan = plan, .handlers = std::move(handlers)}));
    return std::unique_ptr<Exec>(std::make_unique<ExecEnd>(execs.back()));
  }

  Result<std::unique_ptr<Exec>> attach(const GangId& gang, const std::string& task,
                                       ExecHandlers handlers) override {
    calls.push_back("attach " + name_of(gang) + " " + task);
    return exec(gang, task, {}, std::move(handlers));
  }

  std::filesystem::path metric_file(const GangId& gang, const std::string& task) const {
    return metric_folder / (gang.job_id + "-" + std::to_string(gang.attempt) + "-" + task);
  }
  MetricReader open_metrics(const GangId& gang, const std::string& task) override {
    if (!metric_folder.empty()) return MetricReader(metric_file(gang, task));
    const auto found = metric_files.find(task);
    return MetricReader(found == metric_files.end() ? "" : found->second);
  }

  std::optional<std::filesystem::path> artifacts_folder(const std::string&) const override {
    return artifacts;
  }

  /// Where no census is set, the launcher has reached every worker.
  std::vector<RankPlace> ranks(const GangId&,
                               const std::vector<std::string>& tasks) const override {
    if (!census.empty() || !reaches_workers) return census;
    std::vector<RankPlace> reached;
    for (const std::string& task : tasks) {
      if (task.starts_with("worker")) reached.push_back({kReached, 1, task});
    }
    return reached;
  }

  // --- as an engine that runs images, where a test makes it one
  bool images = false;
  std::vector<ImageRequest> image_requests;        ///< of the last prepare()
  std::function<void(const job::Fact&)> progress;  ///< of the same
  Prepared prepared;                               ///< of the same; a test calls it
  std::weak_ptr<void> preparing;                   ///< expires when the caller drops it
  launch::Reach reach_of_all = launch::Reach::kLoopback;
  bool names_within_nodes = false;  ///< each node has a network of its own, as containers have
  std::map<std::string, std::string> mpis;  ///< by task

  bool runs_images() const override { return images; }
  std::shared_ptr<void> prepare(const GangId& gang, std::vector<ImageRequest> asked,
                                std::function<void(const job::Fact&)> on_progress,
                                Prepared done) override {
    calls.push_back("prepare " + name_of(gang));
    image_requests = std::move(asked);
    progress = std::move(on_progress);
    prepared = std::move(done);
    auto interest = std::make_shared<int>(0);
    preparing = interest;
    return interest;
  }
  launch::Reach reach(const std::vector<std::string>& nodes) const override {
    const bool is_one = std::set(nodes.begin(), nodes.end()).size() < 2;
    return names_within_nodes ? is_one ? launch::Reach::kNames : launch::Reach::kHosts
                              : reach_of_all;
  }
  ProgramsInTasks programs_in_tasks() const override {
    return images ? ProgramsInTasks{.shim = "/muster/bin/muster-shim",
                                    .remote_shell = "/muster/bin/muster-rsh"}
                  : ProgramsInTasks{};
  }
  std::string mpi_of(const GangId&, const std::string& task) const override {
    const auto found = mpis.find(task);
    return found == mpis.end() ? "" : found->second;
  }
  // --- as an engine that requests allocations from a cluster, if a test sets `asks`
  bool asks = false;
  std::map<GangId, AllocationRequest> requests;   ///< requested and not released
  std::optional<base::Error> allocation_refusal;  ///< result of check_allocation_request()
  std::string srun;

  bool has_cluster_queue() const override { return asks; }
  std::string cluster_name() const override { return "Slurm"; }
  Result<void> check_allocation_request(const AllocationRequest&) const override {
    if (allocation_refusal) return *allocation_refusal;
    return {};
  }
  void set_allocation_listener(AllocationListener listener) override {
    allocation_listener_ = std::move(listener);
  }
  void request_allocation(const GangId& gang, AllocationRequest request) override {
    calls.push_back("ask " + name_of(gang));
    requests.insert_or_assign(gang, std::move(request));
  }
  void release_allocation(const GangId& gang) override {
    calls.push_back("give back " + name_of(gang));
    requests.erase(gang);
  }
  std::string srun_in_tasks() const override { return srun; }
  /// Reports to the allocation listener.
  void report_allocation(const GangId& gang, const AllocationNews& news) {
    if (allocation_listener_) allocation_listener_(gang, news);
  }

  void change_ranks(const GangId& gang, const std::string& task) {
    report(gang, task, RanksChanged{});
  }

 private:
  class ExecEnd : public Exec {
   public:
    explicit ExecEnd(std::shared_ptr<FakeExec> exec) : exec_(std::move(exec)) {}
    ~ExecEnd() override { exec_->dropped = true; }
    void write(std::string_view bytes) override { exec_->input += bytes; }
    void close_input() override { exec_->input_closed = true; }
    void resize(int rows, int columns) override {
      exec_->plan.rows = rows;
      exec_->plan.columns = columns;
    }
    void pause(bool paused) override { exec_->paused = paused; }

   private:
    std::shared_ptr<FakeExec> exec_;
  };

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
    uint64_t size() const override { return text_.size(); }

   private:
    std::string text_;
    bool read_ = false;
  };

  static std::string name_of(const GangId& gang) {
    return gang.job_id + "/" + std::to_string(gang.attempt);
  }

  void run_all(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) {
    for (const launch::TaskPlan& task : tasks) {
      running.insert({gang, task.task});
      plans.insert_or_assign({gang, task.task}, task);
    }
    loop_.post([this, gang, tasks = std::move(tasks), done] {
      done({});
      for (const launch::TaskPlan& task : tasks) {
        if (!task.ssh) answer(gang, task.task);
      }
    });
  }

  void report(const GangId& gang, const std::string& task, TaskNews what) {
    if (listener_) listener_({.gang = gang, .task = task, .what = std::move(what)});
  }

  base::EventLoop& loop_;
  Listener listener_;
  AllocationListener allocation_listener_;
  std::map<std::string, std::function<void(bool go_on)>> under_way_;  ///< starts, by task
  std::vector<std::weak_ptr<std::function<void()>>> node_watchers_;
};

}  // namespace muster::engine
