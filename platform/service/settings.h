// What a server was told, in the words of its parts.
//
// Pure but for store_place(), which reads the file of a password.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/paths.h"
#include "cli/serve_options.h"
#include "http/server.h"
#include "schedule/scheduler.h"
#include "server/app.h"

namespace muster::service {

http::Limits http_limits(const cli::ServeOptions& options);

server::AppOptions app_options(const cli::ServeOptions& options, const cli::Paths& paths,
                               const std::string& version);

/// kInvalid: the way of packing is none.
base::Result<schedule::Options> scheduler_options(const cli::ServeOptions& options);

/// The file or the URL of the store, with the password in it. Never to be shown.
base::Result<std::string> store_place(const cli::ServeOptions& options, const cli::Paths& paths);

/// Where callers of a server that waits are sent to: `advertise`, or the host's name and the port
/// of `listening` (what http::Server::listen() said; empty: it listens nowhere), or the socket.
std::string own_address(const cli::ServeOptions& options, const std::string& host_name,
                        const std::string& listening, const cli::Paths& paths);

}  // namespace muster::service
