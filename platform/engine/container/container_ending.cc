// What is heard of a task, and its end: as its shim tells it, or, where that was killed along with
// its container, as the host's engine does. Its artifacts are fetched, its container is removed,
// and then its end is reported.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_engine_impl.h"
#include "engine/folder/task_folder.h"
#include "engine/metric_log.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::chrono::milliseconds kStopPause{500};
/// A shim ends all that it has started at once, and says so.
constexpr std::chrono::milliseconds kKillPause{20'000};
constexpr std::chrono::milliseconds kFetchPause{1'000};
constexpr int kFetchTries = 5;
constexpr int kSignalBase = 128;
constexpr size_t kSlice = kMaxFollowRecord;

/// Nobody saw the end of a task whose shim ended with its container.
job::ExitStatus status_of(const std::optional<ContainerState>& state, const std::string& words) {
  if (!state) return {.lost = true, .error = "its container is gone"};
  if (state->out_of_memory) return {.signal = SIGKILL, .out_of_memory = true, .error = ""};
  job::ExitStatus status{.lost = true, .error = "its container was ended from outside"};
  if (state->exit_code > kSignalBase) status.signal = state->exit_code - kSignalBase;
  if (status.signal == 0) {
    status.error = "its supervisor ended with code " + std::to_string(state->exit_code);
  }
  if (!state->error.empty()) status.error += ": " + state->error;
  if (!words.empty()) status.error += ": " + words;
  return status;
}

Error refusal(const std::string& task, const std::string& words) {
  const size_t line = words.find('\n');
  const bool says_why = line != std::string::npos;
  return start_error(task,
                     says_why ? read_refusal(words) : Error{.what = "its shim did not say why"});
}

/// The task may have put anything in its place: a link would lead to files of this machine, and a
/// pipe would be waited for.
base::UniqueFd open_left(const fs::path& path) {
  base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

Result<std::string> read_left(const fs::path& path, size_t most) {
  const base::UniqueFd file = open_left(path);
  if (!file) return Error{.code = ErrorCode::kNotFound, .what = path.string() + " is not there"};
  return base::read_file("/proc/self/fd/" + std::to_string(file.get()), most);
}

/// What a task's folder had that its copy has not yet. On another thread; nobody else takes
/// anything into the copy meanwhile. `most_log`: bytes, for it may be nothing but a hole.
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
  // Blank until the task has ended.
  if (const auto text = read_left(left.exit(), kMaxFollowRecord); text && decode_exit(*text)) {
    take(FollowKind::kExit, left.exit(), kMaxFollowRecord);
  }
}

}  // namespace

// --- what is heard

std::shared_ptr<TaskFollower> ContainerEngine::Impl::follower_for(HeldTask& task, Mirror mirror) {
  return std::make_shared<TaskFollower>(
      loop, *task.host, std::move(mirror),
      TaskFollower::Handlers{
          .on_record = [this, key = task.key](const FollowRecord& record) { heard(key, record); },
          .on_gone = [this, key = task.key](
                         const std::optional<ContainerState>& state) { gone(key, state); }});
}

void ContainerEngine::Impl::heard(const TaskKey& key, const FollowRecord& record) {
  const auto task = find(key);
  if (task == nullptr) return;
  switch (record.kind) {
    case FollowKind::kRunning:
      return came_up(*task);
    case FollowKind::kRefused:
      return refused(task, record.bytes);
    case FollowKind::kAnswered:
      return answers(*task);
    case FollowKind::kRank:
      if (!task->start) report(key, RanksChanged{});
      return;
    case FollowKind::kExit:
      return ended(task, end_left_in(folder_of(key.first, key.second)));
    case FollowKind::kMpi:
    case FollowKind::kLog:
    case FollowKind::kLogStart:
    case FollowKind::kMetrics:
      return;
  }
}

/// It is told anew after each break of the connection.
void ContainerEngine::Impl::came_up(HeldTask& task) {
  if (std::exchange(task.up, true) || !task.start) return;
  const auto start = task.start;  // which the task lets go of when it is settled
  --start->unheard;
  settle(start);
}

void ContainerEngine::Impl::answers(HeldTask& task) {
  if (std::exchange(task.answered, true) || task.start) return;
  report(task.key, TaskAnswered{});
}

void ContainerEngine::Impl::refused(const std::shared_ptr<HeldTask>& task,
                                    const std::string& words) {
  Error error = refusal(task->key.second, words);
  if (const auto start = task->start) return fail(start, std::move(error));
  ended(task, {.status = {.lost = true, .error = std::move(error.what)},
               .time = base::SystemClock().now()});
}

void ContainerEngine::Impl::gone(const TaskKey& key, const std::optional<ContainerState>& state) {
  const auto task = find(key);
  if (task == nullptr || task->end) return;
  if (const auto start = task->start; start && !task->up) {
    const job::ExitStatus status = status_of(state, task->follower->words());
    return fail(
        start, start_error(key.second,
                           {.code = ErrorCode::kRefused,
                            .what = status.out_of_memory ? "it ran out of memory" : status.error}));
  }
  if (state) return salvage(task, *state);
  ended(task,
        {.status = status_of(state, task->follower->words()), .time = base::SystemClock().now()});
}

/// What it told its own folder and could not tell here any more: its last lines, and, where the
/// container outlived the connection, how it ended.
void ContainerEngine::Impl::salvage(const std::shared_ptr<HeldTask>& task,
                                    const ContainerState& state) {
  const fs::path folder = folder_of(task->key.first, task->key.second).path / "left";
  const auto done = [this, task, state, folder](const Result<void>& fetched) {
    if (!fetched) base::log_warning("what an ended task left: " + fetched.error().what);
    const auto mirror = std::make_shared<Mirror>(std::move(task->follower->mirror()));
    const uint64_t most = options.log_quota > 0 ? 2 * options.log_quota
                                                : static_cast<uint64_t>(options.artifact_bytes);
    background.run(
        [mirror, folder, most] {
          take_rest(*mirror, folder, most);
          if (const auto removed = base::remove_tree(folder); !removed) {
            base::log_error(removed.error().what);
          }
        },
        [this, task, state] {
          TaskEnded end = end_left_in(folder_of(task->key.first, task->key.second));
          if (end.status.lost) {
            end = {.status = status_of(state, task->follower->words()),
                   .time = state.finished.value_or(base::SystemClock().now())};
          }
          ended(task, std::move(end));
        });
  };
  if (auto made = base::make_private_folder(folder); !made) return done(made);
  fetch.content(task->host->client(), task->container, kTaskFolder, folder, options.artifact_bytes,
                done);
}

// --- being stopped

void ContainerEngine::stop(const Gang& gang, const std::vector<std::string>& names, StopMode mode) {
  impl_->stop_starting(gang, names);
  for (const std::string& name : names) {
    const auto task = impl_->find({gang, name});
    if (task == nullptr || task->start || task->end) continue;
    task->was_told_to_stop = true;
    task->stop_wish = mode;
    impl_->send_stop(task);
  }
}

/// Until the host has taken it. What is not running (any more) needs none: its end is on its way.
void ContainerEngine::Impl::send_stop(const std::shared_ptr<HeldTask>& task) {
  if (task->end || !task->stop_wish) return;
  const StopMode mode = *task->stop_wish;
  const std::string signal = mode == StopMode::kNow ? "QUIT" : "TERM";
  task->host->client().kill(task->container, signal, [this, task, mode](const Result<void>& sent) {
    const bool is_taken = sent || sent.error().code != ErrorCode::kUnavailable;
    if (is_taken && task->stop_wish == mode) task->stop_wish.reset();
    if (is_taken) return make_sure_it_ends(task, mode);
    task->host->host.ask();
    task->timer = loop.after(kStopPause, [this, weak = std::weak_ptr(task)] {
      if (const auto still = weak.lock()) send_stop(still);
    });
  });
}

/// A task may hold up its own shim: a debugger does.
void ContainerEngine::Impl::make_sure_it_ends(const std::shared_ptr<HeldTask>& task,
                                              StopMode mode) {
  if (task->end) return;
  const auto most =
      kKillPause + (mode == StopMode::kNow ? std::chrono::milliseconds(0) : task->grace);
  task->timer = loop.after(most, [this, weak = std::weak_ptr(task)] {
    const auto still = weak.lock();
    if (!still || still->end) return;
    base::log_warning("task " + still->key.second + " of job " + still->key.first.job_id +
                      " does not end by itself, and is killed with its container");
    still->host->client().kill(still->container, "KILL", [this, weak](const Result<void>& sent) {
      const auto left = weak.lock();
      if (left && !sent && sent.error().code == ErrorCode::kUnavailable)
        make_sure_it_ends(left, StopMode::kNow);
    });
  });
}

// --- the end

void ContainerEngine::Impl::ended(const std::shared_ptr<HeldTask>& task, TaskEnded end) {
  if (task->end || find(task->key) != task) return;
  task->timer.reset();
  if (end.status.stopped && !task->was_told_to_stop) {
    // Whoever ends an engine, or a container, from outside asks its process 1 to stop.
    end.status.lost = true;
    end.status.error = "its container was stopped from outside";
  }
  end.status.stopped = end.status.stopped || (end.status.lost && task->was_told_to_stop);
  task->end = std::move(end);
  for (auto& over : std::exchange(task->when_over, {})) soon(std::move(over));
  const auto start = task->start;  // which the task lets go of when it is settled
  if (!start) return finish(task);
  // A program may be over before the last of its gang is up.
  if (!std::exchange(task->up, true)) --start->unheard;
  settle(start);
}

/// The tasks of a gang share a folder on each host: the last of them there brings it.
void ContainerEngine::Impl::finish(const std::shared_ptr<HeldTask>& task) {
  const bool others = std::any_of(tasks.begin(), tasks.end(), [&](const auto& each) {
    const HeldTask& other = *each.second;
    return other.key.first == task->key.first && other.host == task->host && !other.end;
  });
  if (task->artifacts.empty() || others) return take_away(task);
  fetch_artifacts(task, 0);
}

void ContainerEngine::Impl::fetch_artifacts(const std::shared_ptr<HeldTask>& task, int tries) {
  const fs::path folder = job_folder(task->key.first.job_id) / "artifacts";
  const auto done = [this, task, tries](const Result<void>& fetched) {
    const bool again = !fetched && fetched.error().code == ErrorCode::kUnavailable;
    if (again && tries + 1 < kFetchTries) {
      task->timer = loop.after(kFetchPause, [this, weak = std::weak_ptr(task), tries] {
        if (const auto still = weak.lock()) fetch_artifacts(still, tries + 1);
      });
      return;
    }
    if (!fetched) {
      const std::string what = "its artifacts could not be fetched: " + fetched.error().what;
      base::log_error("task " + task->key.second + " of job " + task->key.first.job_id + ": " +
                      what);
      std::string& said = task->end->status.error;
      said += (said.empty() ? "" : "; ") + what;
    }
    take_away(task);
  };
  if (auto made = base::make_private_folder(folder); !made) return done(made);
  fetch.content(task->host->client(), task->container, task->artifacts, folder,
                options.artifact_bytes, done);
}

void ContainerEngine::Impl::take_away(const std::shared_ptr<HeldTask>& task) {
  removals.add(*task->host, Removals::Kind::kContainer, task->container, [this, task] {
    if (find(task->key) != task) return;
    tasks.erase(task->key);
    report(task->key, *task->end);
  });
}

/// Its host is gone, and whoever counts on it has been told so. Should it come back, what ran there
/// is removed.
void ContainerEngine::Impl::abandon(HeldHost& host) {
  const auto held = tasks;
  for (const auto& [key, task] : held) {
    if (task->host != &host) continue;
    if (const auto start = task->start) {
      fail(start,
           start_error(key.second, {.code = ErrorCode::kUnavailable, .what = "its host is gone"}));
      continue;
    }
    if (task->follower) task->follower->stop();
    task->timer.reset();
    for (auto& over : std::exchange(task->when_over, {})) soon(std::move(over));
    tasks.erase(key);
    removals.add(host, Removals::Kind::kContainer, task->container);
  }
}

void ContainerEngine::Impl::report(const TaskKey& key, TaskNews what) {
  if (listener) listener({.gang = key.first, .task = key.second, .what = std::move(what)});
}

}  // namespace muster::engine
