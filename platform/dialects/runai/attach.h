// What attach() does, with what its tests choose.
//
// Blocking; I/O.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "cli/connection/connection.h"

namespace muster::dialects::runai {

struct AttachWish {
  std::string job;
  std::string pod = {};                        ///< empty: the one that decides
  std::chrono::milliseconds patience{30'000};  ///< until it runs
  bool wants_terminal = false;                 ///< it is told where there is none
  bool input = false;                          ///< what is typed goes there, where it reads
  bool from_its_start = false;                 ///< all of its output, also if it has ended since
};

/// The exit code of the job once it has ended, or kExitInterrupted: Ctrl-C leaves, and the job goes
/// on.
///
/// Errors: kNotFound: no such job or pod; kConflict: the job had ended before, without
/// `from_its_start`; kTimeout: it does not run yet.
base::Result<int> attach(cli::Connection& connection, const AttachWish& wish);

}  // namespace muster::dialects::runai
