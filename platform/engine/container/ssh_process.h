// An ssh of this machine: a child whose lines are heard and whose end is told. It ends with its
// owner, and with this process however that ends.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// What it said and how it ended.
struct SshEnd {
  int exit_code = 0;   ///< 255: ssh itself has failed; -1: it was killed
  std::string output;  ///< of the whole, but for what was too much
  std::string errors;  ///< the last lines
};

class SshProcess {
 public:
  struct Handlers {
    std::function<void()> on_output = {};  ///< something was printed
    std::function<void(SshEnd)> on_end;    ///< may drop the process
  };

  /// `arguments`: behind what every ssh of ours is told (it asks nobody, and shares no connection
  /// with others).
  static base::Result<std::unique_ptr<SshProcess>> start(base::EventLoop& loop,
                                                         const std::vector<std::string>& arguments,
                                                         Handlers handlers);
  ~SshProcess();
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;

 private:
  struct Pipe {
    base::UniqueFd end;
    base::EventLoop::Interest interest;  ///< after end: must go first
    std::string text;
  };

  SshProcess(base::Child child, Handlers handlers);
  void watch(base::EventLoop& loop);
  void read_output();
  void read_errors();
  void ended();

  base::Child child_;
  Handlers handlers_;
  Pipe output_;
  Pipe errors_;
  bool reaped_ = false;
  base::EventLoop::Interest end_;
};

}  // namespace muster::engine
