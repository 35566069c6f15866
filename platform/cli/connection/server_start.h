// Starts a server for this user where none answers. Many commands may find none at the same time:
// a lock lets one of them start it, and the others find it answering.
//
// Blocking.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "config/paths.h"

namespace muster::cli {

/// How long a server may take from its start to the open socket.
inline constexpr std::chrono::seconds kServerStartBound{30};

/// After success a server answers on paths.socket: it did already, somebody else started it
/// meanwhile, or this program was started again as `muster server`, in a session of its own, its
/// standard error in paths.server_log().
///
/// `engine`: what a server that is started is told to run jobs on. Empty: what its configuration
/// says; but what the jobs run on that an earlier server left, where that has ended without them.
///
/// Errors: kUnavailable with what the server itself said, or else the last lines of its log;
/// kTimeout; those of the folders.
Result<void> ensure_server(const config::Paths& paths, const std::string& engine = {});

/// What a server writes to --ready-fd: that its socket is open, or why it ends without one.
inline constexpr std::string_view kServerIsReady = "r";
std::string server_refusal(const base::Error& error);

/// Whether a server answers. Errors other than "nobody there" are errors: a socket that belongs to
/// somebody else is no reason to start a second server.
Result<bool> server_answers(const config::Paths& paths);

}  // namespace muster::cli
