// The modes of the program muster-shim, one for each first argument (program.cc). Each function is the
// whole program in that mode and returns its exit code.
#pragma once

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "engine/shim/plan.h"

namespace muster::engine {

// --- holding a task: an outer half beside the sandbox, an inner half in it

/// muster-shim FOLDER: the outer half. Holds one task on behalf of a server that may come and go:
/// owns the task's log, passes on a stop, and writes down how the task ended. Runs on the
/// descriptors of plan.h. 0: the exit record is written.
///
/// SIGTERM stops the task and leaves the task its grace period, however often the signal arrives.
/// SIGQUIT kills the task at once.
int run_outer(const std::filesystem::path& task_folder);

/// muster-shim --container FOLDER: process 1 of a container. Waits until the engine has put the
/// task's files into the container (TaskFolder::complete()). Holds the task in FOLDER as an outer
/// half, writes the records of the task to standard output (follow.h), and reaps the orphans of
/// every program that runs in the container.
///
/// The process outlives the task: the container, and with it each reader of the records, would be
/// gone otherwise. SIGTERM and SIGQUIT end it once the task has ended, as soon as all records are
/// written.
int run_container(const char* task_folder);

/// muster-shim --inner: the inner half, process 1 of a sandbox (without a sandbox: the subreaper of
/// the task). Starts the program, answers ssh, reaps processes, and kills everything when the
/// program has ended or the outer half is gone. Runs on the descriptors of plan.h.
int run_inner();

/// The differences between outer halves.
struct OuterSite {
  /// Called once: programs can be started in the task from now on (nullptr), or the task could not
  /// be started.
  std::function<void(const base::Error* refusal)> report;
  /// The engine cannot reach the task's port: the outer half connects to it, and calls this when a
  /// remote shell's server greets. May be empty.
  std::function<void()> answered;
  /// The outer half is process 1 of a container: it gets orphans that are not the task's, the
  /// control group is the task's own, and it checks the task's port itself.
  bool is_process_one = false;
};

/// The outer half itself. Returns when the task has ended and its log is complete. True: the exit
/// record is written; false: the task could not be started. REQUIRES: this process is a child
/// subreaper, or process 1.
bool hold_task(const TaskFolder& folder, OuterSite site);

// --- programs beside the task's own

/// muster-shim --exec: runs one more program in a running task (exec.h).
int run_exec();

/// muster-shim --run FOLDER: does the same over this process's standard input and output
/// (run_wire.h), for an engine that is elsewhere and starts this process in the task's container.
int run_beside(const char* task_folder);

/// muster-shim --attach FOLDER: connects standard input and output to the task's own program
/// (run_wire.h).
int run_attach(const char* task_folder);

/// muster-shim --change FOLDER: replaces files of a running task by those on standard input
/// (change.h). A failure is printed to standard error (refusal_text() of plan.h).
int run_change(const char* task_folder);

/// muster-shim --follow FOLDER LOG_OFFSET METRICS_OFFSET: writes the records of a task to standard
/// output (follow.h).
int run_follow(char** arguments, int count);

/// muster-shim --rank PROGRAM ARGUMENTS...: runs as a rank, hands its output to the shim and
/// becomes the program (ranks.h). If the shim does not take the output, mpirun keeps it. Returns
/// only on failure.
int run_rank(char** program);

// --- around tasks

/// muster-shim --network own|none IDS [CABLE]: makes a network namespace, an id space with the ids, or
/// both, and sends them, or why they cannot be made, through kNetworkSocket (network.h). `ids`: "-" for
/// none. `cable`: its arguments, or none.
int run_network(const char* network, const char* ids, char** cable, int count);

/// muster-shim --with-ids IDS --remove PATH: removes a tree. In the id space, an ordinary account may
/// remove what its tasks have left (id_space.h). A failure is printed to standard error.
int run_remove(const char* path);

/// muster-shim --pasta PASTA NFT: connects a network to the Internet by pasta until no shim of the gang
/// is left (network.h). Reports on standard output that it is connected, or why it is not.
int run_pasta(char** arguments, int count);

}  // namespace muster::engine
