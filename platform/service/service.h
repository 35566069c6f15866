// The server as a program: assembles its sockets, keys, store, engine and controller, takes and
// loses the lead, reads its configuration again and stops.
//
// It uses engines and stores only by their interfaces; main.cc creates them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "config/paths.h"
#include "config/server_config.h"
#include "control/controller.h"
#include "engine/engine.h"
#include "store/store.h"

namespace muster::service {

/// A store and, if servers can share it, their leadership (usually the same object).
struct OpenedStore {
  std::unique_ptr<store::Store> store;
  store::Leadership* leadership = nullptr;
};

/// The functions by which main.cc creates stores and engines.
struct Makers {
  /// `place`: a file or a URL. It may contain a password: errors must not repeat it. `password`: of
  /// a URL, read again for each connection.
  std::function<base::Result<OpenedStore>(
      const std::string& place, const store::PasswordSource& password, const config::Paths& paths)>
      open_store;
  std::function<base::Result<std::unique_ptr<engine::Engine>>(
      base::EventLoop& loop, const std::filesystem::path& jobs_folder,
      const config::ServeOptions& options)>
      make_engine;
  /// Called once, when the sockets are open.
  std::function<void()> ready;
  /// Creates the function to call, on the loop's thread, when a server whose store others can share
  /// begins to lead (true) or to wait (false). Empty: nothing has to be called.
  std::function<base::Result<std::function<void(bool leads)>>(base::EventLoop& loop)>
      make_role_sign;
  control::SiteFacts site;
  /// Why all tasks of a server that listens run under its own account; nothing: they do not.
  std::optional<base::Error> no_accounts;
  std::string version;
};

/// Serves until the server is asked to stop. Running jobs continue.
///
/// Errors: why the server could not start; kConflict: this server has lost the lead. A
/// supervisor should start this server again, which then waits for the lead.
///
/// To be called once, before threads start, because it blocks signals.
base::Result<void> serve(const config::ServeOptions& options, const config::ReadAgain& read_again,
                         const Makers& makers);

}  // namespace muster::service
