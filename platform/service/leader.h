// The part of a server that exists while it leads: the controller, the store and engine beneath it,
// and the API above it.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "access/secret_box.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "engine/engine.h"
#include "http/server.h"
#include "notify/command_hook.h"
#include "notify/courier.h"
#include "notify/notifications.h"
#include "schedule/scheduler.h"
#include "server/app.h"
#include "service/notifying_store.h"
#include "service/settings.h"
#include "store/store.h"
#include "workspace/tree_store.h"

namespace muster::service {

class Leader {
 public:
  /// The referenced objects must outlive the leader.
  struct Dependencies {
    base::EventLoop& loop;
    store::Store& store;
    store::Leadership* leadership = nullptr;
    std::unique_ptr<engine::Engine> engine;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
    workspace::TreeStore& trees;
    std::function<void()> lost;  ///< called when this server has lost the lead
    std::function<void()>
        leave;  ///< called when the server is to stop: on request, or after an idle time
    server::LoopbackDoor* door = nullptr;  ///< nullptr: the web page has no loopback port
  };

  Leader(Dependencies parts, const control::SiteFacts& site, const schedule::Options& scheduling,
         const server::AppOptions& options, const NotifySettings& notify);

  /// Recovers the jobs of an earlier leader. To be called once, before anything else.
  base::Result<void> take_up();
  http::Handler handler() { return app_.handler(); }
  http::Gate gate() { return app_.gate(); }
  void set_options(const server::AppOptions& options) { app_.set_options(options); }
  void set_options(const NotifySettings& settings);
  /// May be called before take_up().
  void set_retention(const control::RetentionRules& rules) { controller_.set_retention(rules); }
  /// Whether every job has ended.
  bool idle() const { return controller_.idle(); }
  /// Checks whether this server still leads, and calls Dependencies::lost if it does not.
  void look() { store_.look(); }
  /// Deletes the uploaded files of deleted projects (TreeStore::forget_project()), off this thread.
  void remove_forgotten_trees();

 private:
  void collect_trees();

  base::EventLoop& loop_;
  const base::Clock& clock_;
  workspace::TreeStore& trees_;
  base::Background background_;
  base::EventLoop::Interest collect_timer_;
  WatchedStore store_;
  notify::Courier courier_;
  notify::CommandHook hook_;
  notify::Notifications notifications_;
  NotifyingStore notifying_store_;
  std::unique_ptr<engine::Engine> engine_;
  control::Accounts accounts_;
  control::Controller controller_;
  server::App app_;
};

}  // namespace muster::service
