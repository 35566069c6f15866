// What a server was told, in the words of its parts.
//
// Pure but for store_place(), which reads the file of a password, and refuse_emptied_database().
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/paths.h"
#include "config/serve_options.h"
#include "control/controller_parts.h"
#include "control/retention.h"
#include "http/server.h"
#include "notify/address_rules.h"
#include "notify/retry_schedule.h"
#include "schedule/scheduler.h"
#include "server/app.h"

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

/// What a team's server on the process engine cannot keep apart; nothing where its projects trust
/// each other.
control::SeparationGaps separation_gaps(const config::ServeOptions& options, bool is_root);

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

}  // namespace muster::service
