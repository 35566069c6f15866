// bash and exec: a program in a pod, beside the one that runs there.
#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/sessions/sessions.h"
#include "cli/sessions/terminal_session.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

/// While it lives, there is nothing to be read on standard input: without -i a program must not
/// eat what a script around it reads.
class NoInput {
 public:
  NoInput() : before_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(nothing.get(), STDIN_FILENO);
  }
  NoInput(const NoInput&) = delete;
  NoInput& operator=(const NoInput&) = delete;
  ~NoInput() {
    if (before_) ::dup2(before_.get(), STDIN_FILENO);
  }

 private:
  base::UniqueFd before_;
};

/// Of the job's pods, the one that is meant. kConflict: it does not run.
Result<job::Task> running_pod(const Asked& asked, const std::string& name) {
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const job::Job job, find_job(connection, name, project_of(asked)));
  MUSTER_TRY(job::Task task, find_pod(job, asked.reader.text("--pod")));
  if (task.phase != job::TaskPhase::kRunning) return pod_not_running(job, task);
  return task;
}

}  // namespace

Result<int> bash_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(const job::Task pod, running_pod(asked, name));
  MUSTER_TRY(cli::Connection connection, connect(asked));
  return cli::sessions::run_shell(connection,
                                  {.job = name, .task = pod.name, .reopen = "runai bash " + name});
}

Result<int> exec_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  if (asked.reader.ok() && asked.arguments.program.empty()) {
    asked.reader.fault("", "the command to run is missing, as in: runai exec " + name + " ls -l");
  }
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(const job::Task pod, running_pod(asked, name));
  cli::sessions::ExecCommand command{.name = name, .project = project_of(asked), .request = {}};
  command.request.command = asked.arguments.program;
  command.request.task = pod.name;
  command.request.terminal = asked.reader.has("--tty");
  std::optional<NoInput> no_input;
  if (!asked.reader.has("--stdin")) no_input.emplace();
  return execute(command, asked.hooks);
}

}  // namespace muster::dialects::runai
