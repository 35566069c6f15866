// What the commands of Run:AI share: the way to the project's jobs, and to the pods of one.
//
// Blocking; I/O, unless it is said.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "dialects/runai/commands.h"
#include "job/job.h"

namespace muster::dialects::runai {

/// The project that is meant, by its name. Pure.
std::string project_of(const Asked& asked);

/// The one word that the command takes; a fault and empty where it is missing. Pure.
std::string the_name(Asked& asked, const std::string& of);

/// What --output says. Pure.
cli::Output output_of(Asked& asked, const std::vector<std::string>& formats);

/// The server in use; jobs that are named there are those of the project.
Result<cli::Connection> connect(const Asked& asked);

/// By name; kNotFound in Run:AI's words.
Result<job::Job> find_job(cli::Connection& connection, const std::string& name,
                          const std::string& project);

/// The jobs of a project, or of all, by project and name; kNotFound in Run:AI's words.
Result<std::vector<job::Job>> list_jobs(cli::Connection& connection,
                                        const std::optional<std::string>& project);

/// The task of a pod that is named by its host name or its own; empty: the one that decides. Pure.
Result<job::Task> find_pod(const job::Job& job, const std::string& pod);

/// On standard error; control characters made harmless where that is a terminal.
void say(const std::string& line);

}  // namespace muster::dialects::runai
