// From the server's configuration to the settings of its parts, and checks of its state folder.
//
// Pure, except store_place() and store_password(), which read the file with a password, and the
// functions on files.
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
#include "control/submission.h"
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
/// kInvalid: an allowed address is invalid.
base::Result<NotifySettings> notify_settings(const config::ServeOptions& options);

/// The gaps in the isolation of projects on a shared server with the process engine; nothing if its
/// projects trust each other.
control::SeparationGaps separation_gaps(const config::ServeOptions& options, bool is_root);

control::RetentionRules retention_rules(const config::ServeOptions& options);

schedule::Options scheduler_options(const config::ServeOptions& options);

/// The file or the URL of the store. The URL contains the present password and must not be shown.
base::Result<std::string> store_place(const config::ServeOptions& options,
                                      const config::Paths& paths);

/// Reads the password of the store again each time: an administrator changes it while the server
/// runs. Without a function if the options name no file.
store::PasswordSource store_password(const config::ServeOptions& options);

/// kConflict: the database is a file of 0 bytes, although `trace` exists, a file that a server
/// creates once it has opened its database. SQLite would take it for a new database, without any
/// job or quota.
base::Result<void> refuse_emptied_database(const std::string& place,
                                           const std::filesystem::path& trace);

/// Where waiting servers send their callers: `advertise`, or the host's name with the port of
/// `listening` (the result of http::Server::listen(); empty: no TCP port), or the socket.
std::string own_address(const config::ServeOptions& options, const std::string& host_name,
                        const std::string& listening, const config::Paths& paths);

// The engine of a folder's jobs is noted in the folder: a server with another engine would take
// running jobs for lost, and start them a second time. Blocking.

/// kConflict: the note names another engine, and jobs of the store run there.
base::Result<void> check_engine(const std::filesystem::path& jobs_folder, const std::string& engine,
                                store::Store& store);

/// kConflict: these jobs run, by the store, but the folder has neither a note of their engine nor a
/// folder of one of them. So it is not the folder in which they run: their tasks would count as lost
/// while they keep running.
base::Result<void> check_jobs_folder(const std::filesystem::path& jobs_folder,
                                     const std::vector<const job::Job*>& running);

/// Notes the engine, for later servers and for commands that start one.
base::Result<void> note_engine(const std::filesystem::path& jobs_folder, const std::string& engine);

/// To be called when no job runs any more: a later server may have any engine.
void forget_engine(const std::filesystem::path& jobs_folder);

/// Sets the stored files of a deleted project aside for the administrator, out of reach of a new
/// project of the same name: moves STORAGE/PROJECT to STORAGE/.removed/PROJECT-TIME. A project
/// without stored files is not an error.
base::Result<void> set_storage_aside(const std::filesystem::path& storage,
                                     const std::string& project, base::Time now);

}  // namespace muster::service
