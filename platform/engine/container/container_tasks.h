// Follows the tasks in their containers, stops them, and reports how they end.
//
// The shim of a task reports its end. If the shim was killed together with its container, the
// host's engine reports the end instead, and the task's last output is copied from the container.
// After the end the artifacts are fetched and the container is removed, and only then is the end
// reported.
//
// On the loop's thread. The parts that the constructor takes must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/docker_client.h"
#include "engine/container/options.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "engine/folder/mirror.h"
#include "engine/shim/follow.h"

namespace muster::engine {

/// Copies folders from containers to this machine. The archive first goes into a file beside the
/// target; then another thread unpacks it. The content may be hostile (workspace/tar_unpack.h).
class Fetch {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit Fetch(base::EventLoop& loop);

  /// Merges the content of the container's folder `path` into `folder`, which must exist.
  /// kRefused: the archive has more than `most` bytes; kExhausted: this machine's disk is full, or
  /// it has no descriptor left. Calls `done` later, never after this
  /// object is destroyed.
  void content(DockerClient& client, const std::string& container, const std::string& path,
               const std::filesystem::path& folder, int64_t most, Done done);

 private:
  struct Transfer;
  void unpack(const std::shared_ptr<Transfer>& transfer);

  std::set<std::shared_ptr<Transfer>> transfers_;
  base::Background unpacking_;
};

class ContainerTasks {
 public:
  ContainerTasks(base::EventLoop& loop, const ContainerEngineOptions& options, TaskTable& tasks,
                 Removals& removals);

  /// A follower for the task, whose records come here.
  std::shared_ptr<TaskFollower> follower_for(HeldTask& task, Mirror mirror);
  /// Stops a running task. Repeats the request until the host accepts it; kills the container if
  /// the host still refuses it at the end of the grace time. A graceful stop does not replace an
  /// earlier one with StopMode::kNow.
  void stop(const std::shared_ptr<HeldTask>& task, StopMode mode);
  /// Fetches the artifacts of an ended task, removes its container and reports its end.
  /// REQUIRES: task->end.
  void finish(const std::shared_ptr<HeldTask>& task);
  /// A host answers again: looks at its tasks, because the connections of their followers may be
  /// dead.
  void look_again(const HeldHost& host) const;
  /// Drops all tasks of a host that is gone. Their containers are removed if the host comes back.
  /// Reports the tasks that had ended, and returns the keys of the tasks that were running.
  std::vector<TaskKey> abandon(HeldHost& host);

 private:
  void on_record(const TaskKey& key, const FollowRecord& record);
  void came_up(HeldTask& task);
  void answers(HeldTask& task);
  void refused(const std::shared_ptr<HeldTask>& task, const std::string& words);
  void gone(const TaskKey& key, const std::optional<ContainerState>& state);
  void salvage(const std::shared_ptr<HeldTask>& task, const ContainerState& state);
  std::chrono::steady_clock::time_point kill_time(const HeldTask& task, StopMode mode) const;
  void send_stop(const std::shared_ptr<HeldTask>& task);
  void make_sure_it_ends(const std::shared_ptr<HeldTask>& task, StopMode mode);
  void kill_in_time(const std::shared_ptr<HeldTask>& task);
  void ended(const std::shared_ptr<HeldTask>& task, TaskEnded end);
  /// How long, and after which pause, artifacts are fetched again.
  struct FetchTries {
    std::chrono::steady_clock::time_point end;
    std::chrono::milliseconds pause;
  };
  void fetch_artifacts(const std::shared_ptr<HeldTask>& task, FetchTries tries);
  void remove_container(const std::shared_ptr<HeldTask>& task);

  base::EventLoop& loop_;
  const ContainerEngineOptions& options_;
  TaskTable& tasks_;
  Removals& removals_;
  Later later_;
  Fetch fetch_;
  base::Background background_;
};

}  // namespace muster::engine
