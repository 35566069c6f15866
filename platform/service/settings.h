// What a server was told, in the words of its parts.
//
// Pure but for store_place(), which reads the file of a password, and refuse_emptied_database().
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/paths.h"
#include "config/serve_options.h"
#include "control/retention.h"
#include "http/server.h"
#include "notify/address_rules.h"
#include "notify/courier.h"
#include "schedule/scheduler.h"
#include "server/app.h"
#include "store/store.h"

namespace muster::service {

http::Limits http_limits(const config::ServeOptions& options);

server::AppOptions app_options(const config::ServeOptions& options, const config::Paths& paths,
                               const std::string& version);

struct NotifySettings {
  notify::AddressRules rules;
  notify::RetrySchedule schedule;
  std::vector<std::string> command;
};
/// kInvalid: what is allowed is no address.
base::Result<NotifySettings> notify_settings(const config::ServeOptions& options);

control::RetentionRules retention_rules(const config::ServeOptions& options);

/// kInvalid: the way of packing is none.
base::Result<schedule::Options> scheduler_options(const config::ServeOptions& options);

/// The file or the URL of the store, with the password in it. Never to be shown.
base::Result<std::string> store_place(const config::ServeOptions& options,
                                      const config::Paths& paths);

/// kConflict: the database is a file of 0 bytes although there is `trace`, a file that a server
/// makes once it has opened its database. SQLite would take the file for a new database, and every
/// job and quota would seem never to have been.
base::Result<void> refuse_emptied_database(const std::string& place,
                                           const std::filesystem::path& trace);

/// Where callers of a server that waits are sent to: `advertise`, or the host's name and the port
/// of `listening` (what http::Server::listen() said; empty: it listens nowhere), or the socket.
std::string own_address(const config::ServeOptions& options, const std::string& host_name,
                        const std::string& listening, const config::Paths& paths);

// Which engine the jobs of a folder run on, so that no server with another one takes them for lost
// and starts them a second time, while they go on.
//
// Blocking.

/// kConflict: the folder's note names another engine, and jobs of the store have been started there
/// and not ended.
base::Result<void> check_engine(const std::filesystem::path& jobs_folder, const std::string& engine,
                                store::Store& store);

/// Notes the engine, for commands that start a server there and for the next one.
base::Result<void> note_engine(const std::filesystem::path& jobs_folder, const std::string& engine);

/// Nothing runs any more: any engine will do.
void forget_engine(const std::filesystem::path& jobs_folder);

// What becomes of a project's files when the project is no more: what it kept in its storage is set
// aside for the administrator, who alone can tell whether it is wanted, and is out of reach of a
// new project of the same name.
//
// I/O.

/// Moves STORAGE/PROJECT to STORAGE/.removed/PROJECT-TIME. A project that kept nothing is no error.
base::Result<void> set_storage_aside(const std::filesystem::path& storage,
                                     const std::string& project, base::Time now);

}  // namespace muster::service
