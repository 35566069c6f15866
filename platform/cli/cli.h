// muster's command line: from the arguments of main() to an exit code.
//
//   commands.h      what each command does, over api::Client
//   invocation.h    arguments -> typed commands (pure), on top of arguments.h (CLI11) and
//                   command_tree.h (every command and flag as data)
//   connection.h    finds the server, or starts one
//   follow.h        follows a job to its end, across restarts of the server
//   log_printer.h, table.h, job_view.h, completion.h ...   what is shown (pure)
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

/// What `muster server` was told.
struct ServeOptions {
  std::optional<std::filesystem::path> state_folder;   ///< absolute; unset: paths.h decides
  std::optional<std::chrono::milliseconds> idle_exit;  ///< unset: stay until told to leave
  std::string declared_gpus;          ///< N[:MODEL[:MEMORY]], unread; empty: those that are there
  std::string node_pool = "default";  ///< that the server's node belongs to
  std::map<std::string, std::string> topology;  ///< of the server's node: level -> domain
  std::string packing = "fragmentation";        ///< or "pack", "spread"
  /// How long a gang may run below its minimum; unset: for ever.
  std::optional<std::chrono::milliseconds> stale_grace{60'000};
  /// How long nobody is evicted for a gang that has just come.
  std::chrono::milliseconds forbearance{1000};
  /// How long a gang waits before room is kept free for it.
  std::chrono::milliseconds patience{600'000};
  double decay = 0;   ///< how much past use weighs in fair shares
  int ready_fd = -1;  ///< where to write 'r' once the socket is open; -1: nowhere
};

/// What the command line cannot do by itself, for it sees neither the server nor its engines.
struct Hooks {
  std::function<int(const ServeOptions&)> serve;  ///< runs the server until it ends; the exit code
  std::string version;
};

/// Runs one command; `args` is without the program's own name. Returns the exit code: 0 done, 1 the
/// job failed (its own code with `run` and `submit --follow`), 2 bad usage, 3 not found, 4 refused,
/// 5 server unreachable, 130 interrupted.
///
/// Call once, from main's thread, before other threads start: it may block SIGINT and SIGTERM.
int run(const std::vector<std::string>& args, const Hooks& hooks);

}  // namespace muster::cli
