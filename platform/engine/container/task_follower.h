// Follows a task in its container: takes what its shim tells into the copy of its folder, and finds
// the way back to it when the connection breaks, the host's engine is restarted, or the disk is
// full for a while.
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
#include "engine/container/held_host.h"
#include "engine/folder/mirror.h"
#include "engine/shim/follow_wire.h"

namespace muster::engine {

class TaskFollower : public std::enable_shared_from_this<TaskFollower> {
 public:
  struct Handlers {
    /// It is in the copy already.
    std::function<void(const FollowRecord&)> on_record;
    /// Once, and then nothing more: its container does not run (any more); nullopt: there is none.
    std::function<void(std::optional<ContainerState>)> on_gone;
  };

  TaskFollower(base::EventLoop& loop, HeldHost& host, Mirror mirror, Handlers handlers);

  /// Its id, before anything else.
  void set_container(std::string id) { container_ = std::move(id); }

  /// What its process 1 prints, from the beginning; before it is started.
  void attach(std::function<void(base::Result<void>)> attached);
  /// Goes on, from what the copy has.
  void resume();
  /// Hears no more.
  void stop();
  /// The same, at once: not to be called by what it calls.
  void hang_up();

  Mirror& mirror() { return mirror_; }
  /// The last of what the shim said on its standard error: why it could not even begin.
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
  bool is_behind_ = false;  ///< records are here that are taken in the loop's next turn
  bool has_hung_up_ = false;
  int connection_ = 0;  ///< which one is meant: of an earlier one nothing is heard any more
  bool finished_ = false;
  std::string words_;
  std::string fault_;  ///< that was told last
  std::chrono::milliseconds pause_;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::engine
