// The HTTP API over the controller: all its routes (routes.h), and when an idle server may leave.
//
// On the EventLoop's thread; the controller must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "control/controller.h"
#include "http/server.h"
#include "server/router.h"

namespace muster::server {

struct AppOptions {
  std::string version;
  std::string state_folder;
  /// Leave when nothing runs and nobody has asked for this long; never when absent.
  std::optional<std::chrono::milliseconds> idle_exit;
};

class App {
 public:
  /// `leave` is called, once, when the server should end.
  App(base::EventLoop& loop, control::Controller& controller, AppOptions options,
      std::function<void()> leave);

  http::Handler handler();

 private:
  void add_routes();
  void touch();
  void look_whether_idle();

  base::EventLoop& loop_;
  control::Controller& controller_;
  AppOptions options_;
  std::function<void()> leave_;
  Router router_;
  bool leaving_ = false;
  base::EventLoop::Interest idle_timer_;
};

}  // namespace muster::server
