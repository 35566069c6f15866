#include "engine/process/process_engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/engine_errors.h"
#include "engine/folder/task_folder.h"
#include "engine/process/exec_program.h"
#include "engine/process/hosts_file.h"
#include "engine/process/process_attach.h"
#include "engine/process/process_exec.h"
#include "engine/process/running_tasks.h"
#include "engine/process/sandbox.h"
#include "engine/process/ssh_probe.h"
#include "engine/process/task_layout.h"
#include "engine/shim/change.h"
#include "engine/shim/inner.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

// While a shim of an earlier server has taken its lock but not yet written who it is.
constexpr std::chrono::milliseconds kAdoptionPause{20};

Result<RunningRecord> running_record_in(const TaskFolder& folder) {
  MUSTER_TRY(const std::string text, base::read_file(folder.running(), 4096));
  return decode_running(text);
}

/// A shim that was killed leaves them.
void remove_groups(const TaskFolder& folder) {
  const auto text = base::read_file(folder.plan());
  const auto plan = text ? decode_shim_plan(*text) : Result<ShimPlan>(text.error());
  if (plan) TaskGroups(plan->inner.limits.groups).remove();
}

}  // namespace

/// One call of start(), until every shim has said whether its task is up.
struct ProcessEngine::Start {
  Gang gang;
  std::vector<launch::TaskPlan> plans;
  Done done;
  int unheard = 0;                 ///< shims that have said neither
  int alive = 0;                   ///< shims that have not ended
  std::vector<std::string> tasks;  ///< those that have a folder
  std::optional<Error> error;
};

/// A task whose shim runs.
struct ProcessEngine::HeldTask {
  TaskKey key;
  std::optional<pid_t> child;  ///< set when the shim is a child of this process, to be reaped
  UniqueFd pidfd;
  UniqueFd status;    ///< the shim's first words
  std::string words;  ///< those heard so far
  std::string address;
  int ssh_port = 0;
  bool takes_ranks = false;
  bool has_network = false;           ///< of its gang: its shim asks whether its port answers
  std::shared_ptr<void> ranks;        ///< tells when one has signed in
  std::shared_ptr<Start> start;       ///< until the whole start is settled
  bool ended = false;                 ///< its shim has ended, and the start is not settled yet
  std::optional<StopMode> stop_wish;  ///< asked for before its pidfd was known
  std::unique_ptr<SshProbe> probe;
  base::EventLoop::Interest status_interest;
  base::EventLoop::Interest end_interest;
};

ProcessEngine::ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options, Node node)
    : loop_(loop),
      options_(std::move(options)),
      node_(std::move(node)),
      files_(loop),
      trees_(loop, options_.folder, options_.unpack_tree) {
  if (options_.tasks_end_with_it) make_leash();
  if (options_.own_networks && options_.way_out) make_way_out();
  // Only what is there can be hidden.
  if (options_.storage_folder.empty()) return;
  if (const auto made = base::make_private_folder(options_.storage_folder); !made) {
    base::log_error(made.error().what);
  }
}

ProcessEngine::~ProcessEngine() {
  networks_.clear();
  if (way_out_) way_out_->close();
}

/// Without one, jobs run all the same, and the layout of tasks is not to count on it.
void ProcessEngine::make_way_out() {
  auto made = WayOut::open(*options_.way_out);
  if (!made) {
    base::log_warning(made.error().what);
    options_.way_out.reset();
    return;
  }
  way_out_ = *std::move(made);
  base::log_info("jobs reach the Internet from " + network_text(way_out_->network()) +
                 ", over the bridge " + way_out_->bridge());
}

/// Its near end closes with this process, however that ends.
void ProcessEngine::make_leash() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    base::log_error(base::system_error("cannot make a pipe", errno).what);
    return;
  }
  leash_of_shims_ = UniqueFd(ends[0]);
  leash_ = UniqueFd(ends[1]);
}

std::shared_ptr<void> ProcessEngine::watch_nodes(std::function<void()> changed) {
  return std::make_shared<std::function<void()>>(std::move(changed));
}

TaskFolder ProcessEngine::folder_of(const Gang& gang, std::string_view task) const {
  return {options_.folder / gang.job_id / std::to_string(gang.attempt) / task};
}

std::string ProcessEngine::generated_folder(const Gang& gang, std::string_view task,
                                            job::Sandbox sandbox) const {
  return sandbox == job::Sandbox::kNone ? folder_of(gang, task).generated().string() : "/generated";
}

// --- starting

VolumeFolders ProcessEngine::volume_folders(const std::string& job_id) const {
  std::vector<fs::path> hidden = options_.hidden;
  hidden.push_back(options_.folder);
  hidden.push_back(options_.storage_folder);
  if (options_.team) hidden.push_back(options_.team->homes);
  VolumeFolders folders{.job = options_.folder / job_id,
                        .storage = options_.storage_folder,
                        .secret = real_paths(hidden)};
  if (options_.team) {
    for (fs::path& place : private_places(*options_.team)) hidden.push_back(std::move(place));
    folders.shared = real_paths(options_.team->shared);
  }
  folders.hidden = real_paths(hidden);
  return folders;
}

/// Before anything large is unpacked.
Result<void> ProcessEngine::check_volumes(const Start& start) const {
  for (const launch::TaskPlan& plan : start.plans) {
    if (const auto found = find_volumes(plan, volume_folders(start.gang.job_id)); !found) {
      return start_error(plan.task, found.error());
    }
  }
  return {};
}

Result<void> ProcessEngine::launch(const std::shared_ptr<Start>& start,
                                   const launch::TaskPlan& plan) {
  const TaskKey key{start->gang, plan.task};
  const TaskFolder folder = folder_of(start->gang, plan.task);
  if (fs::exists(folder.path)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + plan.task + " of this attempt was started before"};
  }
  start->tasks.push_back(plan.task);
  MUSTER_CHECK(lay_out_task(plan, folder, volume_folders(start->gang.job_id), options_));
  // The lock goes to the shim as an open descriptor: held without a gap from before it exists.
  // docs/decisions/0002.
  MUSTER_TRY(const UniqueFd lock, base::lock_file(folder.lock()));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::system_error("cannot make a pipe", errno);
  }
  auto task = std::make_unique<HeldTask>();
  task->key = key;
  task->status = UniqueFd(ends[0]);
  const UniqueFd writer(ends[1]);
  base::SpawnOptions shim{.argv = {options_.shim.string(), folder.path.string()},
                          .environment = environment_for_holders(base::current_environment()),
                          .descriptors = {{lock.get(), kShimLock}, {writer.get(), kShimStatus}},
                          .new_session = true,
                          .folder = "/"};
  if (leash_) shim.descriptors.emplace_back(leash_of_shims_.get(), kShimLeash);
  if (options_.own_networks && plan.sandbox == job::Sandbox::kBubblewrap) {
    MUSTER_TRY(const NetworkNamespace* network, network_of_gang(start->gang));
    task->has_network = bool{network->network};
    if (network->network) shim.descriptors.emplace_back(network->network.get(), kShimNetwork);
    if (network->user) shim.descriptors.emplace_back(network->user.get(), kShimNetworkUser);
  }
  MUSTER_TRY(base::Child child, base::spawn(shim));
  task->child = child.pid;
  task->pidfd = std::move(child.pidfd);
  task->address = plan.address;
  task->ssh_port = plan.ssh ? plan.ssh->port : 0;
  task->takes_ranks = plan.takes_ranks;
  task->start = start;
  HeldTask& held = *task;
  held.status_interest =
      loop_.when_readable(held.status.get(), [this, start, &held] { hear_shim(start, held); });
  watch_end(held);
  ++start->unheard;
  ++start->alive;
  tasks_[key] = std::move(task);
  return {};
}

/// Made for the first task of a gang, and kept until the last one has ended. After a restart it is
/// found again by a task that runs.
Result<const NetworkNamespace*> ProcessEngine::network_of_gang(const Gang& gang) {
  const auto known = networks_.find(gang);
  if (known != networks_.end()) return &known->second;
  for (const auto& [key, task] : tasks_) {
    if (key.first != gang || task->start || !task->pidfd) continue;
    MUSTER_TRY(const RunningRecord shim, running_record_in(folder_of(gang, key.second)));
    MUSTER_TRY(NetworkNamespace network, network_of(shim.pid));
    return &(networks_[gang] = std::move(network));
  }
  MUSTER_TRY(NetworkNamespace network, make_network());
  return &(networks_[gang] = std::move(network));
}

Result<NetworkNamespace> ProcessEngine::make_network() {
  std::optional<Cable> cable;
  if (way_out_) {
    MUSTER_TRY(cable, way_out_->next_cable());
  }
  return make_network_namespace(options_.shim.string(), cable);
}

void ProcessEngine::leave_network(const Gang& gang) {
  const auto others = tasks_.lower_bound({gang, ""});
  if (others == tasks_.end() || others->first.first != gang) networks_.erase(gang);
}

void ProcessEngine::start(const Gang& gang, std::vector<launch::TaskPlan> plans, Done done) {
  auto start = std::make_shared<Start>();
  start->gang = gang;
  start->plans = std::move(plans);
  start->done = std::move(done);
  if (auto checked = check_volumes(*start); !checked) {
    fail_start(start, std::move(checked).error());
    return loop_.post([this, start] { settle(start); });
  }
  // The tasks of a gang have the same volumes, for they share them.
  const bool waits =
      !start->plans.empty() && !trees_.are_here(gang.job_id, start->plans.front().volumes);
  if (!waits) return launch_all(start);
  unpacking_.push_back(start);
  const launch::TaskPlan& any = start->plans.front();
  trees_.unpack(gang.job_id, any.project, any.volumes, [this, start](Result<void> unpacked) {
    trees_unpacked(start, std::move(unpacked));
  });
}

void ProcessEngine::trees_unpacked(const std::shared_ptr<Start>& start, Result<void> unpacked) {
  if (std::erase(unpacking_, start) == 0) return;  // stopped meanwhile
  if (unpacked) return launch_all(start);
  fail_start(start, start_error(start->plans.front().task, std::move(unpacked).error()));
  settle(start);
}

void ProcessEngine::launch_all(const std::shared_ptr<Start>& start) {
  for (const launch::TaskPlan& plan : start->plans) {
    if (auto launched = launch(start, plan); !launched) {
      fail_start(start, start_error(plan.task, std::move(launched).error()));
      break;
    }
  }
  start->plans.clear();  // there are secrets in them
  loop_.post([this, start] { settle(start); });
}

/// All or none: who stops one task before its gang is there stops the start.
void ProcessEngine::stop_unpacking(const Gang& gang, const std::vector<std::string>& tasks) {
  for (size_t i = 0; i < unpacking_.size(); ++i) {
    const auto start = unpacking_[i];
    const bool meant =
        start->gang == gang &&
        std::any_of(start->plans.begin(), start->plans.end(), [&](const launch::TaskPlan& plan) {
          return std::find(tasks.begin(), tasks.end(), plan.task) != tasks.end();
        });
    if (!meant) continue;
    unpacking_.erase(unpacking_.begin() + static_cast<std::ptrdiff_t>(i));
    fail_start(start, {.code = ErrorCode::kUnavailable,
                       .what = "was stopped while its files were being unpacked"});
    return loop_.post([this, start] { settle(start); });
  }
}

void ProcessEngine::hear_shim(const std::shared_ptr<Start>& start, HeldTask& task) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(task.status.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    task.words.append(buffer.data(), static_cast<size_t>(count));
    if (task.words.size() < kShimStarted.size() || !task.words.starts_with(kShimStarted)) return;
  }
  task.status_interest.reset();
  --start->unheard;
  if (!task.words.starts_with(kShimStarted)) {
    Error error = read_refusal(task.words);
    if (base::detail_of<SandboxFailed>(error) != nullptr) error.advice = sandbox_advice();
    fail_start(start, start_error(task.key.second, std::move(error)));
  }
  settle(start);
}

void ProcessEngine::fail_start(const std::shared_ptr<Start>& start, Error error) {
  const bool lacks_advice = error.code == ErrorCode::kExhausted && error.advice.empty();
  if (lacks_advice && base::is_disk_full(options_.folder)) {
    error.advice = "the disk under '" + options_.folder.string() +
                   "' is full: make room there (muster delete removes ended jobs with their logs), "
                   "then submit it again";
  }
  if (!start->error) start->error = std::move(error);
  stop(start->gang, start->tasks, StopMode::kNow);
}

void ProcessEngine::settle(const std::shared_ptr<Start>& start) {
  if (start->done == nullptr || start->unheard > 0) return;
  if (start->error && start->alive > 0) return;
  const Done done = std::exchange(start->done, nullptr);
  if (start->error) {
    undo(*start);
    return done(*start->error);
  }
  done({});
  for (const std::string& name : start->tasks) {
    const TaskKey key{start->gang, name};
    const auto found = tasks_.find(key);
    if (found == tasks_.end()) continue;
    HeldTask& task = *found->second;
    task.start.reset();
    watch_ranks(task);
    if (task.ended) {
      ended(key);
    } else if (task.ssh_port == 0) {
      report(key, TaskAnswered{});
    } else if (task.has_network) {
      await_answer(task);
    } else {
      task.probe = std::make_unique<SshProbe>(loop_, task.address, task.ssh_port,
                                              [this, key] { report(key, TaskAnswered{}); });
    }
  }
}

/// Its shim reports it, perhaps right behind kShimStarted.
void ProcessEngine::await_answer(HeldTask& task) {
  task.status_interest.reset();
  if (task.words.size() >= kShimStarted.size() + kShimAnswered.size()) {
    return report(task.key, TaskAnswered{});
  }
  task.status_interest = loop_.when_readable(task.status.get(), [this, &task] {
    std::array<char, 64> buffer{};
    const ssize_t count = ::read(task.status.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return task.status_interest.reset();  // its end is heard elsewhere
    task.words.append(buffer.data(), static_cast<size_t>(count));
    await_answer(task);
  });
}

/// Others of the gang may run, and these be started again.
void ProcessEngine::undo(const Start& start) {
  for (const std::string& task : start.tasks) {
    tasks_.erase({start.gang, task});
    const auto removed = base::remove_tree(folder_of(start.gang, task).path);
    if (!removed) base::log_error(removed.error().what);
  }
  leave_network(start.gang);
}

void ProcessEngine::watch_ranks(HeldTask& task) {
  if (!task.takes_ranks) return;
  const TaskFolder folder = folder_of(task.key.first, task.key.second);
  task.ranks = files_.watch(folder.generated() / "ranks",
                            [this, key = task.key] { report(key, RanksChanged{}); });
  // Those that were quicker than the watch.
  if (ranks(task.key.first, {task.key.second}).empty()) return;
  loop_.post([this, key = task.key] { report(key, RanksChanged{}); });
}

// --- while it runs

void ProcessEngine::change_files(const Gang& gang, std::vector<launch::FileChange> changes,
                                 Done done) {
  Result<void> all;
  for (const launch::FileChange& each : changes) {
    auto changed = change(gang, each);
    if (!changed && all) all = change_error(each.task, std::move(changed).error());
  }
  loop_.post([all = std::move(all), done = std::move(done)] { done(all); });
}

bool ProcessEngine::is_being_started(const Gang& gang, const std::string& task) const {
  const auto found = tasks_.find({gang, task});
  if (found != tasks_.end()) return found->second->start != nullptr;
  return std::any_of(unpacking_.begin(), unpacking_.end(), [&](const auto& start) {
    return start->gang == gang &&
           std::any_of(start->plans.begin(), start->plans.end(),
                       [&](const launch::TaskPlan& plan) { return plan.task == task; });
  });
}

Result<void> ProcessEngine::change(const Gang& gang, const launch::FileChange& change) {
  if (is_being_started(gang, change.task)) return not_started_yet();
  if (tasks_.count({gang, change.task}) == 0) return {};
  const TaskFolder folder = folder_of(gang, change.task);
  // Before the files: whoever reads of a host there is to find its address.
  MUSTER_CHECK(add_hosts(folder.hosts(), change.hosts));
  auto changed = engine::change_files(folder, change.files);
  // Its end is on its way here.
  if (!changed && changed.error().code == ErrorCode::kNotFound) return {};
  return changed;
}

// --- ending

void ProcessEngine::watch_end(HeldTask& task) {
  task.end_interest = loop_.when_readable(task.pidfd.get(), [this, key = task.key] { ended(key); });
}

void ProcessEngine::ended(const TaskKey& key) {
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  HeldTask& task = *found->second;
  task.end_interest.reset();
  if (task.child) ::waitpid(*task.child, nullptr, WNOHANG);
  task.child.reset();
  if (task.start) {
    if (!std::exchange(task.ended, true)) --task.start->alive;
    const auto start = task.start;
    return settle(start);
  }
  tasks_.erase(found);
  leave_network(key.first);
  report(key, end_left_in(folder_of(key.first, key.second)));
}

void ProcessEngine::stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) {
  stop_unpacking(gang, tasks);
  for (const std::string& name : tasks) {
    const auto found = tasks_.find({gang, name});
    if (found == tasks_.end()) continue;
    HeldTask& task = *found->second;
    if (!task.pidfd) {
      task.stop_wish = mode;
      continue;
    }
    // A shim that has just ended cannot be signalled; its end is being reported anyway.
    [[maybe_unused]] const auto sent =
        base::send_signal(task.pidfd, mode == StopMode::kNow ? SIGQUIT : SIGTERM);
  }
}

void ProcessEngine::report(const TaskKey& key, TaskNews what) {
  if (listener_) listener_({.gang = key.first, .task = key.second, .what = std::move(what)});
}

// --- taking up what an earlier server started

Found ProcessEngine::adopt(const Gang& gang, const std::string& name) {
  const TaskKey key{gang, name};
  const TaskFolder folder = folder_of(gang, name);
  if (!fs::exists(folder.lock())) return Found::kNothing;
  if (base::lock_file(folder.lock())) {
    // Nobody holds the task any more.
    if (!fs::exists(folder.running())) return Found::kNothing;
    loop_.post([this, key, folder] { report(key, end_left_in(folder)); });
    return Found::kEnded;
  }
  auto task = std::make_unique<HeldTask>();
  task->key = key;
  HeldTask& held = *task;
  tasks_[key] = std::move(task);
  take_up(held);
  return Found::kRunning;
}

void ProcessEngine::take_up(HeldTask& task) {
  const TaskFolder folder = folder_of(task.key.first, task.key.second);
  const auto record = running_record_in(folder);
  if (!record) {
    // The shim holds its lock but has not said who it is: it will in a moment, or it ends.
    task.end_interest = loop_.after(kAdoptionPause, [this, key = task.key, folder] {
      const auto found = tasks_.find(key);
      if (found == tasks_.end()) return;
      if (base::lock_file(folder.lock())) return ended(key);
      take_up(*found->second);
    });
    return;
  }
  auto pidfd = base::open_pidfd(record->pid);
  if (!pidfd || start_ticks_of(record->pid) != record->start_ticks) {
    loop_.post([this, key = task.key] { ended(key); });
    return;
  }
  task.pidfd = *std::move(pidfd);
  watch_end(task);
  const auto plan = base::read_file(folder.plan());
  const auto shim = plan ? decode_shim_plan(*plan) : Result<ShimPlan>(plan.error());
  task.takes_ranks = shim && shim->inner.takes_ranks;
  watch_ranks(task);
  if (task.stop_wish) stop(task.key.first, {task.key.second}, *task.stop_wish);
}

std::optional<std::vector<RunningTask>> ProcessEngine::running_tasks(
    const std::string& job_id) const {
  return running_tasks_in(options_.folder, job_id, node_);
}

// --- what stays and what goes

/// Whoever listens leads: no other server is at work here, and what an earlier one left half done
/// may be taken away.
void ProcessEngine::listen(Listener listener) {
  if (listener_ == nullptr && listener != nullptr) trees_.sweep();
  listener_ = std::move(listener);
}

void ProcessEngine::scrub(const Gang& gang) {
  std::error_code error;
  const fs::path attempt = options_.folder / gang.job_id / std::to_string(gang.attempt);
  for (const auto& entry : fs::directory_iterator(attempt, error)) {
    const TaskFolder folder{entry.path()};
    remove_groups(folder);
    fs::rename(folder.generated() / "ranks", folder.path / "ranks", error);
    // A shim that was killed leaves the socket "attach".
    for (const fs::path& gone : {folder.generated(), folder.plan(), folder.hosts(), folder.passwd(),
                                 folder.shadow(), folder.resolver(), folder.attach()}) {
      if (const auto removed = base::remove_tree(gone); !removed) {
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

Result<std::unique_ptr<LogCursor>> ProcessEngine::open_log(const Gang& gang,
                                                           const std::string& task) {
  return open_log_in(folder_of(gang, task), task);
}

std::shared_ptr<void> ProcessEngine::watch_log(const Gang& gang, const std::string& task,
                                               std::function<void()> grown) {
  return files_.watch(folder_of(gang, task).log(), std::move(grown));
}

// --- programs beside the task's own

Result<std::unique_ptr<Exec>> ProcessEngine::exec(const Gang& gang, const std::string& task,
                                                  const ExecPlan& plan, ExecHandlers handlers) {
  const auto found = tasks_.find({gang, task});
  if (found == tasks_.end() || found->second->start) return not_running(task);
  const TaskFolder folder = folder_of(gang, task);
  MUSTER_TRY(const RunningRecord shim, running_record_in(folder));
  const auto inner = inner_half_of(shim.pid);
  if (!inner) return not_running(task);
  MUSTER_TRY(const UniqueFd inner_fd, base::open_pidfd(*inner));
  MUSTER_TRY(const std::string text, base::read_file(folder.plan()));
  MUSTER_TRY(const ShimPlan shim_plan, decode_shim_plan(text));

  const InnerPlan program = exec_program(plan, shim_plan.inner, options_.shim);
  MUSTER_CHECK(check_program(*inner, program));
  MUSTER_TRY(StartedExec started, start_exec(loop_, options_.shim.string(),
                                             environment_for_holders(base::current_environment()),
                                             program, inner_fd, plan, std::move(handlers)));
  reap(std::move(started.helper));
  return std::move(started.exec);
}

/// When it has ended.
void ProcessEngine::reap(base::Child helper) {
  const pid_t pid = helper.pid;
  const int pidfd = helper.pidfd.get();
  Helper& kept = helpers_[pid];
  kept.process = std::move(helper);
  kept.end = loop_.when_readable(pidfd, [this, pid] {
    ::waitpid(pid, nullptr, WNOHANG);
    helpers_.erase(pid);
  });
}

Result<std::unique_ptr<Exec>> ProcessEngine::attach(const Gang& gang, const std::string& task,
                                                    ExecHandlers handlers) {
  const auto found = tasks_.find({gang, task});
  if (found == tasks_.end() || found->second->start) {
    return Error{.code = ErrorCode::kConflict, .what = "task " + task + " does not run"};
  }
  return attach_to(loop_, folder_of(gang, task), task, std::move(handlers));
}

MetricReader ProcessEngine::open_metrics(const Gang& gang, const std::string& task) {
  return MetricReader(folder_of(gang, task).metrics());
}

std::optional<fs::path> ProcessEngine::artifacts_folder(const std::string& job_id) const {
  return artifacts_in(options_.folder / job_id);
}

std::string ProcessEngine::mpi_of(const Gang& gang, const std::string& task) const {
  return mpi_in(folder_of(gang, task));
}

std::vector<RankPlace> ProcessEngine::ranks(const Gang& gang,
                                            const std::vector<std::string>& tasks) const {
  return ranks_in(options_.folder / gang.job_id / std::to_string(gang.attempt), tasks);
}

}  // namespace muster::engine
