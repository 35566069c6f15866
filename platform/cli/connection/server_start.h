// Starts a local server if none answers. If several commands do so at the same time, a lock lets one
// of them start it; the others wait and use it.
//
// Blocking.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/paths.h"

namespace muster::cli {

using base::Result;

/// How long a server may take from its start to the open socket.
inline constexpr std::chrono::seconds kServerStartBound{30};

/// Ensures that a server answers on paths.socket. If none does, starts this program as `muster server`
/// in its own session, with its standard error in paths.server_log().
///
/// `engine`: the engine of a server that is started here. Empty: the engine of the jobs that an
/// earlier server left running, else the configured engine.
///
/// Errors: kUnavailable, with the server's message or the last lines of its log, or because its
/// folders cannot be used; with config::StartedOtherwise if they belong to a server that was started
/// otherwise, which no command starts; kTimeout.
Result<void> ensure_server(const config::Paths& paths, const std::string& engine = {});

/// kUnavailable: the folder of the socket is no folder, or this user may not enter it. A folder that
/// does not exist yet is no error.
Result<void> check_socket_folder(const config::Paths& paths);

/// Calls `stop`, which stops the running server, and starts another one. Other commands that lose
/// their connection meanwhile wait for the new server; they do not start one with their environment.
Result<void> replace_server(const config::Paths& paths, const std::string& engine,
                            const std::function<Result<void>()>& stop);

/// What a server writes to --ready-fd when its socket is open, or if it cannot open it.
inline constexpr std::string_view kServerIsReady = "r";
std::string server_refusal(const base::Error& error);

/// Whether a server answers. Errors: those of the connection, except that no server listens. A socket
/// of another user is an error, and no reason to start a second server.
Result<bool> server_answers(const config::Paths& paths);

}  // namespace muster::cli
