// The two small shell scripts of /generated.
//
// Pure. Values are quoted, whatever bytes they hold.
#pragma once

#include <map>
#include <string>

namespace muster::launch {

/// Lines that set these variables.
std::string export_lines(const std::map<std::string, std::string>& variables);

/// sshd runs this in the place of the command it was asked for: it gives it the job's environment
/// and folder, so that ranks need no list of -x flags. Without a command it opens a login shell.
std::string session_script(const std::map<std::string, std::string>& environment,
                           const std::string& folder);

/// mpirun starts each rank through this (orte_fork_agent): it leaves a file named after the rank in
/// ranks/, which is how Muster knows where each rank runs, and that all of them did. mpirun hands
/// the launcher's own agent to every worker, so the folder is told by the task's $MUSTER_GENERATED:
/// where nothing is sandboxed, the launcher's is another one. Where $MUSTER_RANK_AGENT is set, the
/// rank's output goes into its own task's log.
///
/// Where the task has a file "devices", its lines are run: mpirun may hand the launcher's variables
/// on to every rank (-x CUDA_VISIBLE_DEVICES), and a rank is to see its own worker's GPUs.
std::string rank_script();

}  // namespace muster::launch
