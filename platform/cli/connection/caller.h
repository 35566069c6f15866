// Where and by whom a command was called, gathered once so that the rest is a function of values;
// which part of the caller's environment a job gets; and the project that the caller submits to.
// That of the local server is one line in the file "project" of the configuration folder, that of
// any other stands in its context. $MUSTER_PROJECT wins over both.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/paths.h"

namespace muster::cli {

using config::Environment;

struct Caller {
  std::string folder;       ///< the current folder
  Environment environment;  ///< all of it
  bool is_root = false;
  base::Time now;
  uid_t user = 0;
  gid_t group = 0;
  /// The project to submit to where nothing else is said: $MUSTER_PROJECT, or that of `muster
  /// project use` with this server; empty: the server's default.
  std::string project = {};
};

/// This process. I/O: reads the environment, the current folder, the clock and the configuration.
///
/// Errors: a configuration that is there but cannot be read. To go on without it would put jobs
/// into a project that was not meant. (That there is no such context is told by whoever needs one.)
/// `context`: what --context says.
base::Result<Caller> this_caller(const std::string& context);

/// Of the caller's environment, what a job gets without asking:
///
///   PATH HOME USER LANG LC_* LD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV CONDA_*
///   OMP_* CUDA_VISIBLE_DEVICES NCCL_*
///
/// What a program needs to be found and to behave as it does in this shell. Nothing else: a shell
/// holds tokens and passwords, and a job's environment is stored and shown.
Environment inherited_environment(const Environment& all);

/// Empty where none was chosen. Errors: the file is there but cannot be read.
/// `context`: what --context says; where it leads nowhere, none was chosen.
base::Result<std::string> project_in_use(const Environment& environment,
                                         const std::string& context);

/// Keeps `name` as the user's choice for the server that is in use. The folder is made 0700, the
/// file 0600.
base::Result<void> use_project(const std::string& name, const std::string& context);

}  // namespace muster::cli
