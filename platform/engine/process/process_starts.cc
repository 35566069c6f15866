#include "engine/process/process_starts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/engine_errors.h"
#include "engine/process/sandbox.h"
#include "engine/process/task_layout.h"
#include "engine/process/team_places.h"
#include "engine/shim/task_port.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

constexpr std::chrono::milliseconds kSshProbePause{200};

/// Connects to a task's port until a remote shell's server greets there: an sshd, or Muster's own.
/// Dropping the probe ends it.
class SshProbe {
 public:
  /// Calls `answered` once, after a greeting (shim/task_port.h). If a connection ends without a
  /// greeting, the probe connects again after a pause, until it is dropped.
  SshProbe(base::EventLoop& loop, std::string address, int port, std::function<void()> answered);

 private:
  void connect();
  void connected();
  void receive();
  void retry();

  base::EventLoop& loop_;
  std::string address_;
  int port_;
  std::function<void()> answered_;
  std::string received_;
  base::UniqueFd socket_;
  base::EventLoop::Interest interest_;  ///< after socket_, so that it is destroyed first
};

SshProbe::SshProbe(base::EventLoop& loop, std::string address, int port,
                   std::function<void()> answered)
    : loop_(loop), address_(std::move(address)), port_(port), answered_(std::move(answered)) {
  connect();
}

void SshProbe::connect() {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port_));
  ::inet_pton(AF_INET, address_.c_str(), &where.sin_addr);
  interest_.reset();
  socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return retry();
  const int result =
      ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where);
  if (result != 0 && errno != EINPROGRESS) return retry();
  interest_ = loop_.when_writable(socket_.get(), [this] { connected(); });
}

void SshProbe::connected() {
  received_.clear();
  interest_.reset();
  interest_ = loop_.when_readable(socket_.get(), [this] { receive(); });
}

void SshProbe::receive() {
  std::array<char, 256> buffer{};
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) return retry();
  received_.append(buffer.data(), static_cast<size_t>(count));
  const Greeting greeting = read_greeting(received_);
  if (greeting == Greeting::kUnfinished) return;
  if (greeting == Greeting::kNone) return retry();
  if (greeting == Greeting::kSsh) {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), kSshAnswer.data(), kSshAnswer.size(), MSG_NOSIGNAL);
  }
  interest_.reset();
  socket_.reset();
  answered_();
}

void SshProbe::retry() {
  interest_.reset();
  socket_.reset();
  interest_ = loop_.after(kSshProbePause, [this] { connect(); });
}

}  // namespace

/// One call of start(), until every shim has reported whether its task is up.
struct ProcessStarts::GangStart {
  GangId gang;
  std::vector<launch::TaskPlan> plans;
  Engine::Done done;
  int unreported = 0;              ///< shims that have not reported yet
  int alive = 0;                   ///< shims that have not ended
  std::vector<std::string> tasks;  ///< tasks that have a folder
  std::optional<Error> error;
};

ProcessStarts::ProcessStarts(base::EventLoop& loop, const ProcessEngineOptions& options,
                             ProcessTasks& tasks, ProcessNetworks& networks, JobTrees& trees)
    : loop_(loop), options_(options), tasks_(tasks), networks_(networks), trees_(trees) {
  if (options_.tasks_end_with_it) make_leash();
}

/// The kernel closes `leash_` when this process ends, also when it is killed.
void ProcessStarts::make_leash() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    base::log_error(base::system_error("cannot make a pipe", errno).what);
    return;
  }
  leash_of_shims_ = UniqueFd(ends[0]);
  leash_ = UniqueFd(ends[1]);
}

void ProcessStarts::start(const GangId& gang, std::vector<launch::TaskPlan> plans,
                          Engine::Done done) {
  const auto start = std::make_shared<GangStart>();
  start->gang = gang;
  start->plans = std::move(plans);
  start->done = std::move(done);
  if (auto checked = check_volumes(*start); !checked) {
    fail(start, std::move(checked).error());
    return loop_.post([this, start] { settle(start); });
  }
  // All tasks of a gang have the same volumes.
  const bool waits =
      !start->plans.empty() && !trees_.are_here(gang.job_id, start->plans.front().volumes);
  if (!waits) return launch_all(start);
  unpacking_.push_back(start);
  const launch::TaskPlan& any = start->plans.front();
  trees_.unpack(gang.job_id, any.project, any.volumes, [this, start](Result<void> unpacked) {
    trees_unpacked(start, std::move(unpacked));
  });
}

VolumeFolders ProcessStarts::volume_folders(const std::string& job_id) const {
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

/// Checks the volumes of all tasks before large trees are unpacked.
Result<void> ProcessStarts::check_volumes(const GangStart& start) const {
  for (const launch::TaskPlan& plan : start.plans) {
    if (const auto found = find_volumes(plan, volume_folders(start.gang.job_id)); !found) {
      return start_error(plan.task, found.error());
    }
  }
  return {};
}

void ProcessStarts::trees_unpacked(const Start& start, Result<void> unpacked) {
  if (std::erase(unpacking_, start) == 0) return;  // stopped meanwhile
  if (unpacked) return launch_all(start);
  fail(start, start_error(start->plans.front().task, std::move(unpacked).error()));
  settle(start);
}

/// Starts the shims of all tasks. settle() is called in a later turn: start() must not call `done`
/// before it has returned.
void ProcessStarts::launch_all(const Start& start) {
  for (const launch::TaskPlan& plan : start->plans) {
    if (auto launched = launch(start, plan); !launched) {
      fail(start, start_error(plan.task, std::move(launched).error()));
      break;
    }
  }
  start->plans.clear();  // they contain secrets
  loop_.post([this, start] { settle(start); });
}

void ProcessStarts::stop_unpacking(const GangId& gang, const std::vector<std::string>& tasks) {
  for (size_t i = 0; i < unpacking_.size(); ++i) {
    const auto start = unpacking_[i];
    const bool meant =
        start->gang == gang &&
        std::any_of(start->plans.begin(), start->plans.end(), [&](const launch::TaskPlan& plan) {
          return std::find(tasks.begin(), tasks.end(), plan.task) != tasks.end();
        });
    if (!meant) continue;
    unpacking_.erase(unpacking_.begin() + static_cast<std::ptrdiff_t>(i));
    fail(start, {.code = ErrorCode::kUnavailable,
                 .what = "was stopped while its files were being unpacked"});
    return loop_.post([this, start] { settle(start); });
  }
}

bool ProcessStarts::includes(const GangId& gang, const std::string& task) const {
  if (const ProcessTask* const held = tasks_.find({gang, task})) return held->is_starting();
  return std::any_of(unpacking_.begin(), unpacking_.end(), [&](const Start& start) {
    return start->gang == gang &&
           std::any_of(start->plans.begin(), start->plans.end(),
                       [&](const launch::TaskPlan& plan) { return plan.task == task; });
  });
}

/// Empty: the task is not bound. It claims no whole CPUs, or too few are free.
std::vector<int> ProcessStarts::own_cpus_for(const launch::TaskPlan& plan) const {
  const int64_t claim = plan.resources.cpu_milli;
  if (options_.cpus.empty() || claim == 0 || claim % 1000 != 0) return {};
  return choose_cpus(options_.cpus, tasks_.taken_cpus(), static_cast<int>(claim / 1000));
}

namespace {

/// While an installation replaces muster-shim, the file is missing or cannot be run for a moment. With
/// kUnavailable, the start is tried again.
Error error_of_missing_shim(Error error) {
  if (error.code == ErrorCode::kExhausted) return error;
  error.code = ErrorCode::kUnavailable;
  error.advice = "reinstall Muster, unless an installation is running now";
  return error;
}

}  // namespace

Result<void> ProcessStarts::launch(const Start& start, const launch::TaskPlan& plan) {
  const TaskFolder folder = tasks_.folder_of(start->gang, plan.task);
  if (fs::exists(folder.path)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + plan.task + " of this attempt was started before"};
  }
  start->tasks.push_back(plan.task);
  const std::vector<int> cpus = own_cpus_for(plan);
  MUSTER_CHECK(lay_out_task(plan, folder, volume_folders(start->gang.job_id), options_, cpus));
  // The shim inherits the lock as an open descriptor, so the lock is held without a gap from before
  // the shim exists (docs/decisions/0002-shim-and-lock.md).
  MUSTER_TRY(const UniqueFd lock, base::lock_file(folder.lock()));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::system_error("cannot make a pipe", errno);
  }
  auto task = std::make_unique<ProcessTask>();
  task->key = {start->gang, plan.task};
  task->status = UniqueFd(ends[0]);
  const UniqueFd writer(ends[1]);
  base::SpawnOptions shim{.argv = {options_.shim.string(), folder.path.string()},
                          .environment = environment_for_holders(base::current_environment()),
                          .descriptors = {{lock.get(), kShimLock}, {writer.get(), kShimStatus}},
                          .new_session = true,
                          .folder = "/"};
  if (leash_) shim.descriptors.emplace_back(leash_of_shims_.get(), kShimLeash);
  const bool needs_namespaces = options_.own_networks || options_.id_space() != nullptr;
  if (needs_namespaces && plan.sandbox == job::Sandbox::kBubblewrap) {
    MUSTER_TRY(const NetworkNamespace* network, networks_.network_of_gang(start->gang));
    task->has_network = bool{network->network};
    if (network->network) shim.descriptors.emplace_back(network->network.get(), kShimNetwork);
    if (network->user) shim.descriptors.emplace_back(network->user.get(), kShimNetworkUser);
    if (network->users) shim.descriptors.emplace_back(network->users.get(), kShimNetworkUsers);
  }
  task->machine_files = machine_files();
  auto child = base::spawn(shim);
  if (!child) return error_of_missing_shim(std::move(child).error());
  task->child = child->pid;
  task->pidfd = std::move(child->pidfd);
  in_addr number{};
  const bool is_number = ::inet_pton(AF_INET, plan.address.c_str(), &number) == 1;
  task->address = is_number ? plan.address : "127.0.0.1";  // a host name is not resolved here
  task->ssh_port = plan.ssh ? plan.ssh->port : 0;
  task->takes_ranks = plan.takes_ranks;
  task->cpus = cpus;
  task->ended_in_start = [this, start] {
    --start->alive;
    settle(start);
  };
  ProcessTask& added = tasks_.add(std::move(task));
  added.status_interest =
      loop_.when_readable(added.status.get(), [this, start, &added] { read_report(start, added); });
  ++start->unreported;
  ++start->alive;
  return {};
}

/// Reads what a shim reports: kShimStarted, or the text of a refusal up to the end of the pipe.
void ProcessStarts::read_report(const Start& start, ProcessTask& task) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(task.status.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    task.report.append(buffer.data(), static_cast<size_t>(count));
    if (task.report.size() < kShimStarted.size() || !task.report.starts_with(kShimStarted)) return;
  }
  task.status_interest.reset();
  --start->unreported;
  if (!task.report.starts_with(kShimStarted)) {
    Error error = read_refusal(task.report);
    if (base::detail_of<SandboxFailed>(error) != nullptr) {
      error.advice = sandbox_advice();
      if (task.machine_files != machine_files()) {
        // This passes, and the start is tried again.
        error.code = ErrorCode::kUnavailable;
        error.what = "another program replaced a file of /etc meanwhile: " + error.what;
      }
    }
    fail(start, start_error(task.key.second, std::move(error)));
  }
  settle(start);
}

/// Records the error and stops the shims that run already. The first error counts.
void ProcessStarts::fail(const Start& start, Error error) {
  const bool lacks_advice = error.code == ErrorCode::kExhausted && error.advice.empty();
  if (lacks_advice && base::is_disk_full(options_.folder)) {
    error.advice =
        "the disk under '" + options_.folder.string() +
        "' is full: free space there (muster delete removes ended jobs with their logs), "
        "then submit it again";
  }
  if (!start->error) start->error = std::move(error);
  tasks_.stop(start->gang, start->tasks, StopMode::kNow);
}

/// Ends the start once every shim has reported. A failed start also waits until every shim has
/// ended: only then can the folders be removed, and the tasks be started again.
void ProcessStarts::settle(const Start& start) {
  if (start->done == nullptr || start->unreported > 0) return;
  if (start->error && start->alive > 0) return;
  const Engine::Done done = std::exchange(start->done, nullptr);
  if (start->error) {
    undo(*start);
    return done(*start->error);
  }
  done({});
  for (const std::string& name : start->tasks) {
    if (ProcessTask* const task = tasks_.find({start->gang, name})) task_started(*task);
  }
}

/// Called for each task when the whole gang has started.
void ProcessStarts::task_started(ProcessTask& task) {
  const ProcessTasks::Key key = task.key;
  task.ended_in_start = nullptr;
  const bool awaits_answer = task.ssh_port != 0 && task.has_network;
  // A server with 10,000 tasks would have 10,000 pipes open that nothing reads.
  if (!awaits_answer) task.status.reset();
  tasks_.watch_ranks(task);
  if (task.has_ended) {
    tasks_.shim_ended(key);
  } else if (task.ssh_port == 0) {
    tasks_.report(key, TaskAnswered{});
  } else if (awaits_answer) {
    await_answer(task);
  } else {
    task.probe = std::make_shared<SshProbe>(loop_, task.address, task.ssh_port,
                                            [this, key] { tasks_.report(key, TaskAnswered{}); });
  }
}

/// The shim reports that the task's port answers; the report may have arrived together with
/// kShimStarted.
void ProcessStarts::await_answer(ProcessTask& task) {
  task.status_interest.reset();
  if (task.report.size() >= kShimStarted.size() + kShimAnswered.size()) {
    task.status.reset();
    return tasks_.report(task.key, TaskAnswered{});
  }
  task.status_interest = loop_.when_readable(task.status.get(), [this, &task] {
    std::array<char, 64> buffer{};
    const ssize_t count = ::read(task.status.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return task.status_interest.reset();  // its end is noticed elsewhere
    task.report.append(buffer.data(), static_cast<size_t>(count));
    await_answer(task);
  });
}

/// Removes what was made. Other tasks of the gang may run, and these may be started again.
void ProcessStarts::undo(const GangStart& start) {
  for (const std::string& task : start.tasks) {
    tasks_.forget({start.gang, task});
    const auto removed = remove_tree_of_tasks(options_, tasks_.folder_of(start.gang, task).path);
    if (!removed) base::log_error(removed.error().what);
  }
  networks_.leave(start.gang);
}

}  // namespace muster::engine
