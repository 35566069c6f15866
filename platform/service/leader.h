// The part of a server that leads: the control loop over store and engine, and the API over that.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "access/secret_box.h"
#include "base/event_loop.h"
#include "base/clock.h"
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
#include "service/watched_store.h"
#include "store/leadership.h"
#include "store/store.h"
#include "workspace/tree_store.h"

namespace muster::service {

class Leader {
 public:
  /// Everything that is referred to must outlive the leader.
  struct Parts {
    base::EventLoop& loop;
    store::Store& store;
    store::Leadership* leadership = nullptr;
    std::string address;
    std::unique_ptr<engine::Engine> engine;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
    workspace::TreeStore& trees;
    std::function<void()> lost;   ///< another has taken the lead
    std::function<void()> leave;  ///< a caller wants it, or it has been idle for long enough
  };

  Leader(Parts parts, const control::SiteFacts& site, const schedule::Options& scheduling,
         const server::AppOptions& options, const NotifySettings& notify);

  /// Takes up the jobs that an earlier leader left. To be called once, before anything else.
  base::Result<void> take_up();
  http::Handler handler() { return app_.handler(); }
  http::Gate gate() { return app_.gate(); }
  void set_options(const server::AppOptions& options) { app_.set_options(options); }
  void set_options(const NotifySettings& settings);
  /// From now on; it may be told before it takes up the jobs.
  void set_retention(const control::RetentionRules& rules) { controller_.set_retention(rules); }
  /// Whether nothing runs and nothing waits.
  bool idle() const { return controller_.idle(); }
  /// Whether it still leads: calls Parts::lost where not.
  void look() { store_.look(); }

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
  NotifyingStore told_store_;
  std::unique_ptr<engine::Engine> engine_;
  control::Accounts accounts_;
  control::Controller controller_;
  server::App app_;
};

}  // namespace muster::service
