#include "engine/container/container_tasks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_plan.h"
#include "engine/container/labels.h"
#include "engine/engine_errors.h"
#include "engine/folder/fetched_tar.h"
#include "engine/folder/task_folder.h"
#include "engine/metric_log.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// Between two requests to stop a task, until its host accepts one.
constexpr std::chrono::milliseconds kStopPause{500};
/// The pause before the artifacts of an ended task are fetched again; it doubles each time.
constexpr std::chrono::milliseconds kFirstFetchPause{50};
constexpr std::chrono::milliseconds kLongestFetchPause{5'000};
/// An engine reports the signal that ended a container as exit code 128 + signal.
constexpr int kSignalBase = 128;
/// The rest of a log is copied in pieces of the largest record.
constexpr size_t kSlice = kMaxFollowRecord;

/// The status of a task whose shim ended together with its container, so that it reported nothing.
job::ExitStatus status_of(const std::optional<ContainerState>& state, const std::string& words) {
  if (!state) return {.lost = true, .error = "its container is gone"};
  if (state->out_of_memory) {
    return {.signal = SIGKILL,
            .out_of_memory = true,
            .error = "",
            .limit = job::LimitReached{.limit = job::Limit::kMemory}};
  }
  job::ExitStatus status{.lost = true, .error = "its container was ended from outside"};
  if (state->exit_code > kSignalBase) status.signal = state->exit_code - kSignalBase;
  if (status.signal == 0) {
    status.error = "its supervisor process ended with code " + std::to_string(state->exit_code);
  }
  if (!state->error.empty()) status.error += ": " + state->error;
  if (!words.empty()) status.error += ": " + words;
  return status;
}

/// The volume outlives the container, until the job is deleted.
std::string artifact_fault(const HeldTask& task, const std::string& why) {
  return "its artifacts could not be fetched: " + why + "; they are left in the volume " +
         volume_name(task.key.first.job_id, "artifacts") + " of host " + task.host->host.name();
}

void add_artifact_fault(HeldTask& task, const std::string& why) {
  std::string& error = task.end->status.error;
  error += (error.empty() ? "" : "; ") + artifact_fault(task, why);
}

/// Whether the host has done what it was asked for, or the task does not run there any more.
bool is_accepted(const Result<void>& sent) {
  return sent || sent.error().code == ErrorCode::kConflict ||
         sent.error().code == ErrorCode::kNotFound;
}

/// Whether the host has answered with this error. Otherwise the error is that it did not answer.
bool is_answer(const Error& error) {
  return error.code != ErrorCode::kUnavailable && error.code != ErrorCode::kTimeout;
}

Error refusal(const std::string& task, const std::string& words) {
  const size_t line = words.find('\n');
  const bool has_refusal = line != std::string::npos;
  return start_error(task,
                     has_refusal ? read_refusal(words) : Error{.what = "its shim gave no reason"});
}

/// Opens a regular file only. The task may have put anything in its place: a link could lead to
/// files of this machine, and reading a pipe could wait forever.
base::UniqueFd open_left(const fs::path& path) {
  base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

Result<std::string> read_left(const fs::path& path, size_t most) {
  const base::UniqueFd file = open_left(path);
  if (!file) return Error{.code = ErrorCode::kNotFound, .what = path.string() + " does not exist"};
  return base::read_file("/proc/self/fd/" + std::to_string(file.get()), most);
}

/// Adds the rest of a task's folder to its copy. Runs on another thread while nothing else uses the
/// copy. `most_log`: the limit in bytes, because a log may be one large hole.
void take_rest(Mirror& mirror, const fs::path& folder, uint64_t most_log) {
  const TaskFolder left{folder};
  const auto take = [&](FollowKind kind, const fs::path& file, size_t most) {
    const auto text = read_left(file, most);
    if (!text || text->empty()) return;
    if (const auto taken = mirror.take({.kind = kind, .offset = 0, .bytes = *text}); !taken) {
      base::log_error(taken.error().what);
    }
  };
  take(FollowKind::kLogStart, left.log_start(), kMaxFollowRecord);
  const base::UniqueFd log = open_left(left.log());
  std::string slice(kSlice, '\0');
  const uint64_t end = mirror.log_offset() + most_log;
  while (log && mirror.log_offset() < end) {
    const uint64_t at = mirror.log_offset();
    const ssize_t count = ::pread(log.get(), slice.data(), slice.size(), static_cast<off_t>(at));
    if (count <= 0) break;
    const auto taken = mirror.take({.kind = FollowKind::kLog,
                                    .offset = at,
                                    .bytes = slice.substr(0, static_cast<size_t>(count))});
    if (!taken) break;
  }
  take(FollowKind::kMetrics, left.metrics(), 2 * kMaxMetricLog);
  // The file is blank until the task has ended.
  if (const auto text = read_left(left.exit(), kMaxFollowRecord); text && decode_exit(*text)) {
    take(FollowKind::kExit, left.exit(), kMaxFollowRecord);
  }
}

}  // namespace

// --- fetching folders

struct Fetch::Transfer {
  std::optional<FetchedTar> tar;
  fs::path folder;
  Done done;
  Result<void> outcome;
  std::shared_ptr<void> under_way;

  void take(std::string_view piece) {
    if (outcome) outcome = tar->take(piece);
  }
};

Fetch::Fetch(base::EventLoop& loop) : unpacking_(loop) {}

void Fetch::content(DockerClient& client, const std::string& container, const std::string& path,
                    const fs::path& folder, int64_t most, Done done) {
  auto transfer = std::make_shared<Transfer>();
  transfer->folder = folder;
  transfer->done = std::move(done);
  auto tar = FetchedTar::open(folder, most);
  transfers_.insert(transfer);
  if (!tar) {
    transfer->outcome = std::move(tar).error();
    return unpack(transfer);
  }
  transfer->tar = *std::move(tar);
  // "/." selects the content of the folder without the folder.
  transfer->under_way = client.get_archive(
      container, path + "/.",
      [weak = std::weak_ptr(transfer)](std::string_view piece) {
        if (const auto still = weak.lock()) still->take(piece);
      },
      [this, weak = std::weak_ptr(transfer)](Result<void> ended) {
        const auto still = weak.lock();
        if (!still) return;
        if (still->outcome && !ended) still->outcome = std::move(ended).error();
        unpack(still);
      });
}

void Fetch::unpack(const std::shared_ptr<Transfer>& transfer) {
  unpacking_.run(
      [transfer] {
        if (transfer->outcome) transfer->outcome = transfer->tar->unpack_into(transfer->folder);
      },
      [this, transfer] {
        transfers_.erase(transfer);
        transfer->under_way.reset();
        transfer->done(transfer->outcome);
      });
}

// --- records of the shim

ContainerTasks::ContainerTasks(base::EventLoop& loop, const ContainerEngineOptions& options,
                               TaskTable& tasks, Removals& removals)
    : loop_(loop),
      options_(options),
      tasks_(tasks),
      removals_(removals),
      later_(loop),
      fetch_(loop),
      background_(loop) {}

std::shared_ptr<TaskFollower> ContainerTasks::follower_for(HeldTask& task, Mirror mirror) {
  return std::make_shared<TaskFollower>(
      loop_, *task.host, std::move(mirror),
      TaskFollower::Handlers{
          .on_record = [this,
                        key = task.key](const FollowRecord& record) { on_record(key, record); },
          .on_gone = [this, key = task.key](
                         const std::optional<ContainerState>& state) { gone(key, state); }});
}

void ContainerTasks::on_record(const TaskKey& key, const FollowRecord& record) {
  const auto task = tasks_.find(key);
  if (task == nullptr) return;
  switch (record.kind) {
    case FollowKind::kRunning:
      return came_up(*task);
    case FollowKind::kRefused:
      return refused(task, record.bytes);
    case FollowKind::kAnswered:
      return answers(*task);
    case FollowKind::kRank:
      if (!task->start) tasks_.report(key, RanksChanged{});
      return;
    case FollowKind::kExit:
      return ended(task, end_left_in(tasks_.folder_of(key)));
    case FollowKind::kMpi:
    case FollowKind::kLog:
    case FollowKind::kLogStart:
    case FollowKind::kMetrics:
      return;
  }
}

/// After each break of the connection the shim reports this again.
void ContainerTasks::came_up(HeldTask& task) {
  if (std::exchange(task.up, true) || !task.start) return;
  const auto start = task.start;  // held here: the task may release it meanwhile
  start->task_came_up();
}

void ContainerTasks::answers(HeldTask& task) {
  if (std::exchange(task.answered, true) || task.start) return;
  tasks_.report(task.key, TaskAnswered{});
}

void ContainerTasks::refused(const std::shared_ptr<HeldTask>& task, const std::string& words) {
  Error error = refusal(task->key.second, words);
  if (const auto start = task->start) return start->failed(std::move(error));
  ended(task, {.status = {.lost = true, .error = std::move(error.what)},
               .time = base::SystemClock().now()});
}

void ContainerTasks::gone(const TaskKey& key, const std::optional<ContainerState>& state) {
  const auto task = tasks_.find(key);
  if (task == nullptr || task->end) return;
  if (const auto start = task->start; start && !task->up) {
    const job::ExitStatus status = status_of(state, task->follower->words());
    return start->failed(start_error(
        key.second, {.code = ErrorCode::kRefused,
                     .what = status.out_of_memory ? "it ran out of memory" : status.error}));
  }
  if (state) return salvage(task, *state);
  ended(task,
        {.status = status_of(state, task->follower->words()), .time = base::SystemClock().now()});
}

/// Copies the files that the task wrote after the connection broke: its last lines, and its end if
/// the container outlived the connection.
void ContainerTasks::salvage(const std::shared_ptr<HeldTask>& task, const ContainerState& state) {
  const fs::path folder = tasks_.folder_of(task->key).path / "left";
  const auto done = [this, task, state, folder](const Result<void>& fetched) {
    if (!fetched)
      base::log_warning("cannot fetch the rest of an ended task's folder: " + fetched.error().what);
    const auto mirror = std::make_shared<Mirror>(std::move(task->follower->mirror()));
    const uint64_t most = options_.log_quota > 0 ? 2 * options_.log_quota
                                                 : static_cast<uint64_t>(options_.artifact_bytes);
    background_.run(
        [mirror, folder, most] {
          take_rest(*mirror, folder, most);
          if (const auto removed = base::remove_tree(folder); !removed) {
            base::log_error(removed.error().what);
          }
        },
        [this, task, state] {
          TaskEnded end = end_left_in(tasks_.folder_of(task->key));
          if (end.status.lost) {
            end = {.status = status_of(state, task->follower->words()),
                   .time = state.finished.value_or(base::SystemClock().now())};
          }
          ended(task, std::move(end));
        });
  };
  if (auto made = base::make_private_folder(folder); !made) return done(made);
  fetch_.content(task->host->client(), task->container, kTaskFolder, folder,
                 options_.artifact_bytes, done);
}

// --- being stopped

void ContainerTasks::stop(const std::shared_ptr<HeldTask>& task, StopMode mode) {
  task->stop_requested = true;
  if (task->must_stop_now && mode == StopMode::kGraceful) return;
  task->must_stop_now = mode == StopMode::kNow;
  task->pending_stop = mode;
  send_stop(task);
}

/// When a task that begins to stop now is killed, if it still runs.
std::chrono::steady_clock::time_point ContainerTasks::kill_time(const HeldTask& task,
                                                                StopMode mode) const {
  const auto grace = mode == StopMode::kNow ? std::chrono::milliseconds(0) : task.grace;
  return std::chrono::steady_clock::now() + options_.patience.kill + grace;
}

/// Repeats until the host accepts. A task that is not running needs no signal: its end follows. A
/// host that can send no signal may still be able to kill the container.
void ContainerTasks::send_stop(const std::shared_ptr<HeldTask>& task) {
  if (task->end || !task->pending_stop) return;
  const StopMode mode = *task->pending_stop;
  const std::string signal = mode == StopMode::kNow ? "QUIT" : "TERM";
  task->host->client().kill(task->container, signal, [this, task, mode](const Result<void>& sent) {
    const bool is_taken = is_accepted(sent);
    if (is_taken && task->pending_stop == mode) task->pending_stop.reset();
    if (is_taken) return make_sure_it_ends(task, mode);
    // The timer belongs to the end of the task, or to the request that has replaced this one.
    if (task->end || task->pending_stop != mode) return;
    if (!std::exchange(task->is_stop_refused, true)) {
      base::log_warning("task " + task->key.second + " of job " + task->key.first.job_id +
                        " cannot be stopped yet, and this is tried again: " + sent.error().what);
    }
    if (is_answer(sent.error())) {
      const auto limit = kill_time(*task, mode);
      task->refused_until = std::min(task->refused_until.value_or(limit), limit);
      const auto now = std::chrono::steady_clock::now();
      if (now >= std::min(*task->refused_until, task->kill_at.value_or(*task->refused_until))) {
        task->kill_at = now;
        return kill_in_time(task);
      }
    }
    task->host->host.ask();
    task->timer = loop_.after(kStopPause, [this, weak = std::weak_ptr(task)] {
      if (const auto still = weak.lock()) send_stop(still);
    });
  });
}

/// Kills the container if the shim does not end. A task can block its own shim, as a debugger does.
void ContainerTasks::make_sure_it_ends(const std::shared_ptr<HeldTask>& task, StopMode mode) {
  if (task->end) return;
  const auto kill_at = kill_time(*task, mode);
  // Another stop does not postpone the end.
  task->kill_at = std::min(task->kill_at.value_or(kill_at), kill_at);
  kill_in_time(task);
}

void ContainerTasks::kill_in_time(const std::shared_ptr<HeldTask>& task) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*task->kill_at -
                                                                 std::chrono::steady_clock::now());
  const auto pause = std::max(left, std::chrono::milliseconds(0));
  task->timer = loop_.after(pause, [this, weak = std::weak_ptr(task)] {
    const auto still = weak.lock();
    if (!still || still->end) return;
    base::log_warning("task " + still->key.second + " of job " + still->key.first.job_id +
                      " does not end, and is killed with its container");
    still->host->client().kill(still->container, "KILL", [this, weak](const Result<void>& sent) {
      const auto refused = weak.lock();
      if (!refused || refused->end || is_accepted(sent)) return;
      refused->kill_at = std::chrono::steady_clock::now() + options_.patience.kill;
      kill_in_time(refused);
    });
  });
}

// --- the end

void ContainerTasks::ended(const std::shared_ptr<HeldTask>& task, TaskEnded end) {
  if (task->end || tasks_.find(task->key) != task) return;
  task->timer.reset();
  if (end.status.stopped && !task->stop_requested) {
    // Stopping an engine or a container from outside sends a stop signal to its process 1.
    end.status.lost = true;
    end.status.error = "its container was stopped from outside";
  }
  end.status.stopped = end.status.stopped || (end.status.lost && task->stop_requested);
  task->end = std::move(end);
  for (auto& over : std::exchange(task->when_over, {})) later_(std::move(over));
  const auto start = task->start;  // held here: the task may release it meanwhile
  if (!start) return finish(task);
  // A program may end before the last task of its gang is up.
  if (!std::exchange(task->up, true)) start->task_came_up();
}

/// The tasks of a gang share the artifacts' folder on each host. The last task there fetches it. A
/// task that is still being started may never run, and then fetches nothing.
void ContainerTasks::finish(const std::shared_ptr<HeldTask>& task) {
  const auto all = tasks_.all();
  const bool others = std::any_of(all.begin(), all.end(), [&](const auto& other) {
    return other->key.first == task->key.first && other->host == task->host && !other->end &&
           !other->start;
  });
  if (task->artifacts.empty() || others) return remove_container(task);
  fetch_artifacts(task, {.end = std::chrono::steady_clock::now() + options_.patience.absence,
                         .pause = kFirstFetchPause});
}

/// Repeats while the host may come back, because a restart of its engine takes half a minute, and
/// while this machine's disk is full or it has no descriptor left.
void ContainerTasks::fetch_artifacts(const std::shared_ptr<HeldTask>& task, FetchTries tries) {
  const fs::path folder = tasks_.job_folder(task->key.first.job_id) / "artifacts";
  const auto done = [this, task, tries](const Result<void>& fetched) {
    if (tasks_.find(task->key) != task) return;  // its host is gone, and its end is reported
    const bool again = !fetched && (fetched.error().code == ErrorCode::kUnavailable ||
                                    fetched.error().code == ErrorCode::kExhausted);
    if (again && std::chrono::steady_clock::now() < tries.end) {
      if (fetched.error().code == ErrorCode::kUnavailable) task->host->host.ask();
      const FetchTries next{.end = tries.end,
                            .pause = std::min(2 * tries.pause, kLongestFetchPause)};
      task->timer = loop_.after(tries.pause, [this, weak = std::weak_ptr(task), next] {
        if (const auto still = weak.lock()) fetch_artifacts(still, next);
      });
      return;
    }
    if (!fetched) {
      base::log_error("task " + task->key.second + " of job " + task->key.first.job_id + ": " +
                      artifact_fault(*task, fetched.error().what));
      add_artifact_fault(*task, fetched.error().what);
    }
    remove_container(task);
  };
  if (auto made = base::make_private_folder(folder); !made) return done(made);
  fetch_.content(task->host->client(), task->container, task->artifacts, folder,
                 options_.artifact_bytes, done);
}

void ContainerTasks::remove_container(const std::shared_ptr<HeldTask>& task) {
  removals_.add(*task->host, Removals::Kind::kContainer, task->container, [this, task] {
    if (tasks_.find(task->key) != task) return;
    tasks_.take(task->key);
    tasks_.report(task->key, *task->end);
  });
}

void ContainerTasks::look_again(const HeldHost& host) const {
  for (const auto& task : tasks_.all()) {
    if (task->host == &host && !task->start && !task->end) task->follower->look_again();
  }
}

std::vector<TaskKey> ContainerTasks::abandon(HeldHost& host) {
  std::vector<TaskKey> running;
  std::vector<std::shared_ptr<HeldTask>> ended;
  for (const auto& task : tasks_.all()) {
    if (task->host != &host) continue;
    if (const auto start = task->start) {
      start->failed(start_error(task->key.second,
                                {.code = ErrorCode::kUnavailable, .what = "its host is gone"}));
      continue;
    }
    if (task->follower) task->follower->stop();
    task->timer.reset();
    task->absence.reset();
    for (auto& over : std::exchange(task->when_over, {})) later_(std::move(over));
    tasks_.take(task->key);
    removals_.add(host, Removals::Kind::kContainer, task->container);
    task->end ? ended.push_back(task) : running.push_back(task->key);
  }
  for (const auto& task : ended) {
    if (!task->artifacts.empty()) add_artifact_fault(*task, "its host does not answer");
    tasks_.report(task->key, *task->end);
  }
  return running;
}

}  // namespace muster::engine
