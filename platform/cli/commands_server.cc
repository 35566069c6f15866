// server: run it here, or tell the one that runs to leave.
#include <poll.h>

#include <chrono>

#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/server_start.h"

namespace muster::cli {

namespace {

/// Whether the process behind `pidfd` ends within some seconds.
bool ends_soon(const base::UniqueFd& pidfd) {
  constexpr std::chrono::milliseconds kBound{10'000};
  pollfd entry{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(kBound.count())) == 1;
}

Result<int> stop_server(const ServerCommand& command) {
  MUSTER_TRY(const Paths paths, paths_here(command.options.state_folder));
  MUSTER_TRY(const bool answers, server_answers(paths));
  if (!answers) {
    MUSTER_CHECK(show("no server runs\n"));
    return kExitDone;
  }
  api::Client client(paths.socket);
  MUSTER_TRY(const api::ServerInfo info, client.info());
  // Opened before it is told to leave: afterwards the number may belong to somebody else.
  const auto pidfd = base::open_pidfd(info.pid);
  MUSTER_CHECK(client.shut_down());
  const bool ended = !pidfd || ends_soon(*pidfd);
  MUSTER_CHECK(show(ended ? "the server has left; jobs go on\n"
                          : "the server leaves once it has answered what it is asked\n"));
  return kExitDone;
}

}  // namespace

Result<int> execute(const ServerCommand& command, const Hooks& hooks) {
  if (command.stop) return stop_server(command);
  return hooks.serve(command.options);
}

}  // namespace muster::cli
