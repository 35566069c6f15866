// exec: a program in a task, with the caller's input and outputs.
#include <unistd.h>

#include <iostream>

#include "api/terminal.h"
#include "cli/commands.h"
#include "cli/raw_terminal.h"
#include "cli/terminal_session.h"

namespace muster::cli {

Result<int> execute(const ExecCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  api::ExecRequest request = command.request;
  if (const auto size = size_of_terminal(STDIN_FILENO); size && request.terminal) {
    request.rows = size->first;
    request.columns = size->second;
  }
  MUSTER_TRY(const auto socket, connection.call([&](api::Client& client) {
    return client.exec(command.name, request);
  }));
  MUSTER_TRY(const SessionEnd end, run_session(*socket, {.terminal = request.terminal}));
  if (end.how == SessionEnd::How::kServerGone) return end.error;
  if (!end.exit.error.empty()) std::cerr << "muster: " << end.exit.error << std::endl;
  return exit_code_of(end);
}

}  // namespace muster::cli
