// Follows a task in its container: stores the records of its shim in the copy of its folder, and
// reconnects after the connection breaks, the host's engine is restarted, or the disk was full.
//
// On the loop's thread. The host must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/container/hosts.h"
#include "engine/folder/mirror.h"
#include "engine/shim/follow.h"

namespace muster::engine {

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
  /// Stops following; handlers are not called any more.
  void stop();
  /// The same, and disconnects at once. Not to be called from a handler.
  void hang_up();

  Mirror& mirror() { return mirror_; }
  /// The last lines of the shim's standard error: why it could not start.
  const std::string& words() const { return words_; }

 private:
  DockerStream::Handlers listening();
  void hear(std::string_view bytes, bool is_error);
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

}  // namespace muster::engine
