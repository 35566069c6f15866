// Which server a command talks to. First of:
//
//   --context NAME
//   $MUSTER_SERVER with $MUSTER_TOKEN (and $MUSTER_FINGERPRINT): for programs, without any file
//   $MUSTER_CONTEXT
//   the one in use (`muster context use`)
//   local
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/caller.h"
#include "cli/contexts.h"

namespace muster::cli {

/// Pure but for `read`, which is called where the choice needs it.
///
/// Errors: those of `read`; kNotFound: there is none of that name; kInvalid: $MUSTER_SERVER without
/// a token, or with what is no address.
Result<Context> choose_context(const std::string& flag, const Environment& environment,
                               const std::function<Result<Contexts>()>& read);

/// choose_context() for this process. I/O.
Result<Context> chosen_context(const std::string& flag);

/// The variable that wins over the context in use, where one does: "MUSTER_SERVER"; or empty. Pure.
std::string overriding_variable(const Environment& environment);

}  // namespace muster::cli
