// What a login has to find out before any token leaves this machine: which server is meant, and
// whether it is the one.
//
// Blocking; I/O.
#pragma once

#include <optional>

#include "base/result.h"
#include "cli/accounts/accounts.h"
#include "cli/common/interrupts.h"
#include "cli/connection/contexts.h"

namespace muster::cli::accounts {

/// The context that a login makes or renews, without a token yet. Trust is what the flags say;
/// where they say nothing, that of a known context of the same server. Pure.
///
/// kConflict: a context of this name is another server's.
Result<Context> context_to_log_in(const LoginCommand& command, const Contexts& contexts);

/// Makes sure that the server can be known: leaves `context` as it is where it says how, or where
/// the system's authorities vouch for it; else shows the fingerprint of its certificate, asks on
/// the terminal of standard input, and pins it. False: Ctrl-C.
///
/// Errors: kUnavailable: nobody answers there; kRefused: it cannot be known, and there is nobody to
/// ask, or they said no.
Result<bool> settle_trust(Context& context, Interrupts& interrupts);

/// The token to log in with: from the file, from standard input, or typed without echo. Nothing:
/// Ctrl-C.
///
/// kInvalid: it is no token, or there is nobody to ask.
Result<std::optional<std::string>> token_to_log_in(const LoginCommand& command,
                                                   Interrupts& interrupts);

}  // namespace muster::cli::accounts
