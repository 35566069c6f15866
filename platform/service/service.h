// The server as a program: its sockets, keys, store, engine and control loop, put together; how it
// takes and loses the lead; how it is told to read its configuration again and to end.
//
// Knows engines and stores by their interfaces alone: main.cc makes them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "config/paths.h"
#include "config/server_config.h"
#include "control/controller.h"
#include "engine/engine.h"
#include "store/store.h"

namespace muster::service {

/// A store, and, where servers can share it, who leads them (the same object, as a rule).
struct OpenedStore {
  std::unique_ptr<store::Store> store;
  store::Leadership* leadership = nullptr;
};

/// What main.cc chooses.
struct Makers {
  /// `place`: a file or a URL. May hold a password: not for errors.
  std::function<base::Result<OpenedStore>(const std::string& place, const config::Paths& paths)>
      open_store;
  std::function<base::Result<std::unique_ptr<engine::Engine>>(
      base::EventLoop& loop, const std::filesystem::path& jobs_folder,
      const config::ServeOptions& options)>
      make_engine;
  /// Called once, when the sockets are open.
  std::function<void()> ready;
  control::SiteFacts site;
  std::string version;
};

/// Serves until it is told to leave. Jobs go on.
///
/// Errors: what kept it from serving; kConflict where another server has taken the lead, for
/// whoever supervises this one to start it again: then it waits for its turn.
///
/// Call once, before threads start: it blocks signals.
base::Result<void> serve(const config::ServeOptions& options, const config::ReadAgain& read_again,
                         const Makers& makers);

}  // namespace muster::service
