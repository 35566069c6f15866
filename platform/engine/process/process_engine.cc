#include "engine/process/process_engine.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/engine_errors.h"
#include "engine/folder/task_folder.h"
#include "engine/process/task_layout.h"
#include "engine/process/team_places.h"
#include "engine/shim/change.h"
#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

// Processes of a task that was killed from outside end some time after its shim.
constexpr std::chrono::milliseconds kPauseOfLeftGroups{50};
constexpr int kMostTriesOfLeftGroups = 1200;

}  // namespace

// --- control groups that a killed shim leaves behind

void GroupRemovals::add(const TaskFolder& folder) {
  const auto text = base::read_file(folder.plan());
  const auto plan = text ? decode_shim_plan(*text) : Result<ShimPlan>(text.error());
  if (!plan || plan->inner.limits.groups.empty()) return;
  left_.push_back({TaskGroups(plan->inner.limits.groups)});
  try_all();
}

void GroupRemovals::try_once() {
  std::erase_if(left_, [](Left& left) {
    left.groups.kill();
    return left.groups.remove() || ++left.tries == kMostTriesOfLeftGroups;
  });
}

void GroupRemovals::try_all() {
  try_once();
  timer_.reset();
  if (!left_.empty()) timer_ = loop_.after(kPauseOfLeftGroups, [this] { try_all(); });
}

ProcessEngine::ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options, Node node)
    : loop_(loop),
      options_(std::move(options)),
      node_(std::move(node)),
      tasks_(loop, options_.folder),
      networks_(loop, tasks_, options_),
      trees_(loop, options_.folder, options_.unpack_tree,
             [this](const fs::path& path) { return remove_tree_of_tasks(options_, path); }),
      starts_(loop, options_, tasks_, networks_, trees_),
      helpers_(loop),
      removals_(loop) {
  // Tasks are laid out for a network with egress only where egress is open.
  if (options_.own_networks && options_.egress && !networks_.open_egress(*options_.egress)) {
    options_.egress.reset();
  }
  tasks_.when_task_left([this](const GangId& gang) { networks_.leave(gang); });
  // The folder must exist before the first sandbox: only an existing folder can be hidden.
  if (options_.storage_folder.empty()) return;
  if (const auto made = base::make_private_folder(options_.storage_folder); !made) {
    base::log_error(made.error().what);
  }
}

ProcessEngine::~ProcessEngine() = default;

std::shared_ptr<void> ProcessEngine::watch_nodes(std::function<void()> changed) {
  return std::make_shared<std::function<void()>>(std::move(changed));
}

std::string ProcessEngine::generated_folder(const GangId& gang, std::string_view task,
                                            job::Sandbox sandbox) const {
  return sandbox == job::Sandbox::kNone ? tasks_.folder_of(gang, task).generated().string()
                                        : "/generated";
}

void ProcessEngine::start(const GangId& gang, std::vector<launch::TaskPlan> plans, Done done) {
  starts_.start(gang, std::move(plans), std::move(done));
}

void ProcessEngine::stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) {
  starts_.stop_unpacking(gang, tasks);
  tasks_.stop(gang, tasks, mode);
}

AdoptionResult ProcessEngine::adopt(const GangId& gang, const std::string& task) {
  return tasks_.adopt(gang, task);
}

std::optional<std::vector<RunningTask>> ProcessEngine::running_tasks(
    const std::string& job_id) const {
  return running_tasks_in(options_.folder, job_id, node_);
}

std::vector<std::string> ProcessEngine::unknown_jobs(
    const std::function<bool(const std::string&)>& is_known) const {
  return unknown_jobs_in(options_.folder, is_known);
}

// --- files of running tasks

void ProcessEngine::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                                 Done done) {
  Result<void> all;
  for (const launch::FileChange& each : changes) {
    auto changed = change(gang, each);
    if (!changed && all) all = change_error(each.task, std::move(changed).error());
  }
  loop_.post([all = std::move(all), done = std::move(done)] { done(all); });
}

Result<void> ProcessEngine::change(const GangId& gang, const launch::FileChange& change) {
  if (starts_.includes(gang, change.task)) return not_started_yet();
  if (tasks_.find({gang, change.task}) == nullptr) return {};
  const TaskFolder folder = tasks_.folder_of(gang, change.task);
  // First: a program that reads the name of a host in a file must be able to resolve it.
  MUSTER_CHECK(add_hosts(folder.hosts(), change.hosts));
  auto changed = options_.id_space() != nullptr
                     ? run_in_id_space(options_.shim.string(), *options_.id_space(),
                                       {"--change", folder.path.string()}, encode(change.files))
                     : engine::change_files(folder, change.files);
  // The task has just ended; its end is being reported.
  if (!changed && changed.error().code == ErrorCode::kNotFound) return {};
  return changed;
}

// --- folders, files and logs

/// Only the leading server sets a listener. So no other server works on these folders now, and
/// what an earlier server left can be removed.
void ProcessEngine::listen(Listener listener) {
  if (!tasks_.has_listener() && listener != nullptr) {
    trees_.sweep();
    networks_.remove_left_egress();
  }
  tasks_.set_listener(std::move(listener));
}

void ProcessEngine::scrub(const GangId& gang) {
  std::error_code error;
  const fs::path attempt = tasks_.attempt_folder(gang);
  for (const auto& entry : fs::directory_iterator(attempt, error)) {
    const TaskFolder folder{entry.path()};
    removals_.add(folder);
    fs::rename(folder.generated() / "ranks", folder.path / "ranks", error);
    // A killed shim leaves the socket "attach" behind.
    for (const fs::path& gone : {folder.generated(), folder.plan(), folder.hosts(), folder.passwd(),
                                 folder.shadow(), folder.resolver(), folder.attach()}) {
      if (const auto removed = remove_tree_of_tasks(options_, gone); !removed) {
        base::log_error(removed.error().what);
      }
    }
  }
}

Result<void> ProcessEngine::remove(const std::string& job_id) {
  return trees_.remove(job_id);
}

void ProcessEngine::measure(const std::string& job_id, Measured done) {
  trees_.measure(job_id, std::move(done));
}

Result<std::unique_ptr<LogCursor>> ProcessEngine::open_log(const GangId& gang,
                                                           const std::string& task) {
  return open_log_in(tasks_.folder_of(gang, task), task);
}

std::shared_ptr<void> ProcessEngine::watch_log(const GangId& gang, const std::string& task,
                                               std::function<void()> grown) {
  return tasks_.files().watch(tasks_.folder_of(gang, task).log(), std::move(grown));
}

// --- programs beside the task's own

Result<std::unique_ptr<Exec>> ProcessEngine::exec(const GangId& gang, const std::string& task,
                                                  const ExecPlan& plan, ExecHandlers handlers) {
  const ProcessTask* const held = tasks_.find({gang, task});
  if (held == nullptr || held->is_starting()) return not_running(task);
  const TaskFolder folder = tasks_.folder_of(gang, task);
  MUSTER_TRY(const RunningRecord shim, running_record_in(folder));
  const auto inner = inner_half_of(shim.pid);
  if (!inner) return not_running(task);
  ExecTask entered{.inner = *inner, .pidfd = {}};
  MUSTER_TRY(entered.pidfd, base::open_pidfd(*inner));
  MUSTER_TRY(const std::string text, base::read_file(folder.plan()));
  MUSTER_TRY(const ShimPlan shim_plan, decode_shim_plan(text));

  const InnerPlan program = exec_program(plan, shim_plan.inner, options_.shim);
  MUSTER_CHECK(check_program(*inner, program));
  MUSTER_TRY(StartedExec started, start_exec(loop_, options_.shim.string(),
                                             environment_for_holders(base::current_environment()),
                                             program, entered, plan, std::move(handlers)));
  helpers_.keep(std::move(started.helper));
  return std::move(started.exec);
}

Result<std::unique_ptr<Exec>> ProcessEngine::attach(const GangId& gang, const std::string& task,
                                                    ExecHandlers handlers) {
  const ProcessTask* const held = tasks_.find({gang, task});
  if (held == nullptr || held->is_starting()) {
    return Error{.code = ErrorCode::kConflict, .what = "task " + task + " does not run"};
  }
  return attach_to(loop_, tasks_.folder_of(gang, task), task, std::move(handlers));
}

MetricReader ProcessEngine::open_metrics(const GangId& gang, const std::string& task) {
  return MetricReader(tasks_.folder_of(gang, task).metrics());
}

std::optional<fs::path> ProcessEngine::artifacts_folder(const std::string& job_id) const {
  return artifacts_in(options_.folder / job_id);
}

std::string ProcessEngine::mpi_of(const GangId& gang, const std::string& task) const {
  return mpi_in(tasks_.folder_of(gang, task));
}

std::vector<RankPlace> ProcessEngine::ranks(const GangId& gang,
                                            const std::vector<std::string>& tasks) const {
  return ranks_in(tasks_.attempt_folder(gang), tasks);
}

}  // namespace muster::engine
