// The HTTP API over the controller: every request is given an id, its caller is found out and held
// to its limits, its route is found (routes.h) and what became of it is written into the server's
// log. And when an idle server may leave.
//
// On the EventLoop's thread; the parts must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "access/limits.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "http/server.h"
#include "job/machine_type.h"
#include "notify/notifications.h"
#include "server/authenticator.h"
#include "server/request_counts.h"
#include "server/router.h"
#include "workspace/tree_store.h"

namespace muster::server {

struct AppOptions {
  std::string version;
  std::string state_folder;
  std::string engine;   ///< "process", "slurm"
  std::string address;  ///< HOST:PORT where others reach the server; empty: the unix socket alone
  /// Whether the configuration file has been written since it was read; empty: there is none.
  std::function<bool()> config_changed = {};
  /// Leave when nothing runs and nobody has asked for this long; never when absent.
  std::optional<std::chrono::milliseconds> idle_exit;
  /// Requests of one token: so many a second, so many at once. The unix socket has no limit.
  double request_rate = 200;
  double request_burst = 400;
  access::FailedLogins::Options failed_logins;
  std::chrono::seconds session_lifetime = std::chrono::days(30);  ///< at most
  job::MachineTypes machine_types;                                ///< all of them
  bool log_requests = false;  ///< those over the unix socket, too; over TLS always
};

class App {
 public:
  struct Parts {
    base::EventLoop& loop;
    control::Controller& controller;
    control::Accounts& accounts;
    const base::Clock& clock;
    base::RandomSource& random;
    std::string owner;  ///< who the unix socket belongs to
    workspace::TreeStore& trees;
    notify::Notifications& notifications;
    /// Whether everybody who is to be told of something has been; empty: always.
    std::function<bool()> told = {};
  };

  /// `leave` is called, once, when the server should end.
  App(Parts parts, AppOptions options, std::function<void()> leave);

  http::Handler handler();
  /// Lets in the bodies of callers who have a valid token.
  http::Gate gate();
  /// From now on; of the options, only what can change while the server runs is taken over.
  void set_options(const AppOptions& options);
  const Router& router() const { return router_; }

 private:
  void add_routes();
  void take(http::Request request, http::Respond respond);
  std::optional<http::Response> refusal_of_body(const http::Request& head);
  http::Respond answering(const Call& call, std::string route, http::Respond respond);
  void touch();
  void look_whether_idle();

  Parts parts_;
  AppOptions options_;
  std::function<void()> leave_;
  Router router_;
  base::Background background_;  ///< for what blocks
  RequestCounts requests_;
  Authenticator authenticator_;
  bool leaving_ = false;
  base::EventLoop::Interest idle_timer_;
};

}  // namespace muster::server
