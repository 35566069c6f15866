// What the commands of Gradient share, and the list of them. For commands.cc and its neighbours
// alone; create and run are commands.h's.
//
// Blocking; I/O.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dialects/gradient/commands.h"

namespace muster::dialects::gradient {

// Each returns the exit code. Faults of flags, all at once, come back as one error.

Result<int> list_experiments(Asked& asked);  // commands_list.cc
Result<int> show_experiment(Asked& asked);
Result<int> list_jobs(Asked& asked);
Result<int> list_artifacts(Asked& asked);  // commands_artifacts.cc
Result<int> get_artifacts(Asked& asked);
Result<int> start_experiment(Asked& asked);  // commands_change.cc
Result<int> stop_experiment(Asked& asked);
Result<int> delete_experiment(Asked& asked);
Result<int> add_tags(Asked& asked);
Result<int> remove_tags(Asked& asked);
Result<int> show_logs(Asked& asked);  // commands_logs.cc
Result<int> show_job_logs(Asked& asked);
Result<int> get_metrics(Asked& asked);  // commands_metrics.cc
Result<int> list_metrics(Asked& asked);
Result<int> stream_metrics(Asked& asked);
Result<int> create_project(Asked& asked);  // commands_projects.cc
Result<int> list_projects(Asked& asked);
Result<int> show_project(Asked& asked);
Result<int> delete_project(Asked& asked);
Result<int> list_clusters(Asked& asked);  // commands_machines.cc
Result<int> list_machine_types(Asked& asked);
Result<int> set_secret(Asked& asked);  // commands_secrets.cc
Result<int> list_secrets(Asked& asked);
Result<int> delete_secret(Asked& asked);
Result<int> keep_key(Asked& asked);  // commands_key.cc
Result<int> log_out(Asked& asked);
Result<int> show_version(Asked& asked);

/// The value of a flag that a command cannot do without; where it is missing, that is a fault.
std::string required(Asked& asked, const std::string& flag, const std::string& what);

/// A whole number from `least` on.
int number_from(Asked& asked, const std::string& flag, int fallback, int least);

/// The values of a flag that repeats and of one that takes a list with commas, without blanks
/// around them, each once, sorted. `list`: empty where there is none.
std::vector<std::string> words_of(const Asked& asked, const std::string& flag,
                                  const std::string& list);

/// All faults of the flags as one error. REQUIRES: there are some.
base::Error faults_of(const Asked& asked);

/// The job of an experiment, by its ID or name.
Result<job::Job> get_job(cli::Connection& connection, const std::string& id);

/// A line of text on standard output.
Result<void> say(const std::string& line);
/// A line for the person on standard error.
void note(const std::string& line);

/// What a command was about to do, by the words with which Gradient tells that it failed.
inline constexpr const char* kFetch = "Failed to fetch data: ";
inline constexpr const char* kUpdate = "Failed to update resource: ";
inline constexpr const char* kDelete = "Failed to delete resource: ";

/// Connects, and acts; but where flags are at fault, nothing is done and they are told. An error
/// that Gradient's own program has words for (nothing of that name, a wrong key) is told in these
/// on standard error; all others come back. `entity`: "Experiment", "Project".
Result<int> with_server(Asked& asked, const std::string& doing, const std::string& entity,
                        const std::function<Result<int>(cli::Connection&)>& act);

}  // namespace muster::dialects::gradient
