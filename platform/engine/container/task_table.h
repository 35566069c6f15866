// The tasks that have a container, by gang and name; the followers that copy their reports; the
// places of their files on this machine; and the listener that gets changes.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/docker_client.h"
#include "engine/container/hosts.h"
#include "engine/engine.h"
#include "engine/folder/mirror.h"
#include "engine/shim/follow.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// Follows a task in its container: stores the records of its shim in the copy of its folder, and
/// reconnects after the connection breaks, the host's engine is restarted, or the disk was full.
/// The host must outlive it.
class TaskFollower : public std::enable_shared_from_this<TaskFollower> {
 public:
  struct Handlers {
    /// Called after the record has been stored in the copy.
    std::function<void(const FollowRecord&)> on_record;
    /// Called once, last: the container is not running; nullopt: the container does not exist.
    std::function<void(std::optional<ContainerState>)> on_gone;
  };

  TaskFollower(base::EventLoop& loop, HeldHost& host, Mirror mirror, Handlers handlers);

  /// Sets the container's id. Call this first.
  void set_container(std::string id) { container_ = std::move(id); }

  /// Attaches to process 1. Call this before the container is started, to get all output.
  void attach(std::function<void(base::Result<void>)> attached);
  /// Continues after the last record in the copy.
  void resume();
  /// The host answers again after a fault: looks whether the container has ended. The connection
  /// may be dead without a sign, unless it is one to a socket of this machine; then it is replaced.
  void look_again();
  /// Stops following; handlers are not called any more.
  void stop();
  /// The same, and disconnects at once. Not to be called from a handler.
  void hang_up();

  Mirror& mirror() { return mirror_; }
  /// The last lines of the shim's standard error, which contain the reason if it could not start.
  const std::string& words() const { return words_; }

 private:
  DockerStream::Handlers listening();
  void take_output(std::string_view bytes, bool is_error);
  void take_some();
  void take_the_rest_later();
  void hung_up();
  void take(const FollowRecord& record);
  void look();
  void looked(base::Result<ContainerState> state);
  void follow_by_exec();
  void start_following(const std::string& exec);
  void look_later();
  void gone(std::optional<ContainerState> state);
  void drop_stream();

  base::EventLoop& loop_;
  HeldHost& host_;
  std::string container_;
  Mirror mirror_;
  Handlers handlers_;
  FollowReader reader_;
  std::shared_ptr<DockerStream> stream_;
  bool is_behind_ = false;  ///< received records wait for the loop's next turn
  bool has_hung_up_ = false;
  int connection_ = 0;  ///< number of the current connection; events of earlier ones are ignored
  bool finished_ = false;
  std::string words_;
  std::string fault_;  ///< the last fault that was logged
  std::chrono::milliseconds pause_;
  base::EventLoop::Interest timer_;
};

using TaskKey = std::pair<GangId, std::string>;

/// The start of a gang, as one of its tasks reports to it.
struct PendingStart {
  std::function<void()> task_came_up;             ///< called once for each task
  std::function<void(base::Error error)> failed;  ///< ends the whole start
};

/// A task with a container, or for which a container is being created.
struct HeldTask {
  TaskKey key;
  HeldHost* host = nullptr;
  std::string container;  ///< id; empty: not created yet
  std::string artifacts;  ///< path of the artifacts' folder in the container; empty: none
  std::shared_ptr<TaskFollower> follower;
  std::shared_ptr<PendingStart> start;  ///< set until the start of the whole gang has ended
  bool has_ssh = false;
  /// How long the programs may take to stop. An adopted task gets the longest possible time.
  std::chrono::milliseconds grace = std::chrono::hours(24);
  bool up = false;        ///< its shim has started the program
  bool answered = false;  ///< its remote shell answers, or it has none
  bool stop_requested = false;
  std::optional<StopMode> pending_stop;  ///< a stop that the host has not accepted yet
  bool is_stop_refused = false;          ///< and the refusal was logged
  /// When a stop that the host still refuses becomes a kill; unset: the host has refused none.
  std::optional<std::chrono::steady_clock::time_point> refused_until;
  bool must_stop_now = false;  ///< a stop with StopMode::kNow was ordered
  /// When the container is killed if the task has not ended; unset: no stop was accepted yet, and
  /// none was refused until `refused_until`.
  std::optional<std::chrono::steady_clock::time_point> kill_at;
  std::optional<TaskEnded> end;  ///< set when the task has ended, before this is reported
  std::vector<std::function<void()>> when_over;  ///< called when the task has ended
  base::EventLoop::Interest timer;
  base::EventLoop::Interest absence;  ///< ends the task if its host never answers
};

/// What a server stores about the container of a task, beside the copy of the task's folder. The
/// next server finds the container by it, even if its host does not answer.
struct ContainerRecord {
  std::string host;       ///< name
  std::string container;  ///< id
  std::string artifacts;  ///< as HeldTask::artifacts
  // For a server that cannot read the job's record; see RunningTask.
  std::vector<int> devices = {};
  int gpu_share_milli = 0;
  std::string job_name = {};
  std::string project = {};

  bool operator==(const ContainerRecord&) const = default;
};

inline std::filesystem::path container_record_in(const TaskFolder& folder) {
  return folder.path / "container";
}

std::string encode(const ContainerRecord& record);
base::Result<ContainerRecord> decode_container_record(std::string_view text);

/// Whether a container in this state may still produce records.
bool is_alive(const std::string& state);

class TaskTable {
 public:
  /// `jobs_folder`: contains JOB/ATTEMPT/TASK for each task.
  explicit TaskTable(std::filesystem::path jobs_folder) : jobs_folder_(std::move(jobs_folder)) {}

  void add(const std::shared_ptr<HeldTask>& task) { tasks_[task->key] = task; }
  /// nullptr: there is no such task.
  std::shared_ptr<HeldTask> find(const TaskKey& key) const;
  /// Removes the task from the table and returns it; nullptr: there is no such task.
  std::shared_ptr<HeldTask> take(const TaskKey& key);
  /// All tasks at this time; changing the table does not change the copy.
  std::vector<std::shared_ptr<HeldTask>> all() const;
  bool has_tasks(const GangId& gang) const;
  /// Disconnects the followers of all tasks from their hosts.
  void disconnect() const;
  void clear() { tasks_.clear(); }

  std::filesystem::path job_folder(const std::string& job_id) const {
    return jobs_folder_ / job_id;
  }
  std::filesystem::path attempt_folder(const GangId& gang) const {
    return job_folder(gang.job_id) / std::to_string(gang.attempt);
  }
  TaskFolder folder_of(const TaskKey& key) const {
    return {attempt_folder(key.first) / key.second};
  }

  void set_listener(Engine::Listener listener) { listener_ = std::move(listener); }
  bool has_listener() const { return listener_ != nullptr; }
  void report(const TaskKey& key, TaskNews what) const;

 private:
  std::filesystem::path jobs_folder_;
  std::map<TaskKey, std::shared_ptr<HeldTask>> tasks_;
  Engine::Listener listener_;
};

}  // namespace muster::engine
