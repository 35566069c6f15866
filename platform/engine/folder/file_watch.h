// Reports changes of files, with one inotify descriptor for all of them. The kernel limits how many
// descriptors and files an account may watch: files beyond that are compared from time to time.
//
// On the EventLoop's thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster::engine {

class FileWatch {
 public:
  explicit FileWatch(base::EventLoop& loop);

  /// Calls `changed` after each change of the file `path`, or of a file in the folder `path`, as
  /// long as the returned handle lives. A handle may outlive the watch. Links are not followed.
  std::shared_ptr<void> watch(const std::filesystem::path& path, std::function<void()> changed);

 private:
  struct State;
  bool ask_kernel();
  void compare_soon();
  void compare();
  void read();

  base::EventLoop& loop_;
  std::shared_ptr<State> state_;
  base::EventLoop::Interest interest_;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::engine
