// The commands that reach into the tasks of a running job: exec, bash, attach, port-forward; and
// convert, which turns an interactive job into an unattended one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/client.h"
#include "api/terminal.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/connection/connection.h"
#include "job/job.h"

namespace muster::cli::sessions {

/// How long a session waits for a task that does not run yet.
inline constexpr std::chrono::milliseconds kUsualWait = std::chrono::minutes(5);

/// The annotation that holds the command line that `runai` was given (dialects/runai). A job that
/// is made of another has none.
inline constexpr const char* kTypedOfRunai = "runai/commandLine";

struct ExecCommand {
  std::string name;
  std::string project = {};
  api::ExecRequest request;
};

struct BashCommand {
  std::string name;
  std::string project = {};
  std::string task = {};  ///< empty: the one that decides
  std::chrono::milliseconds wait = kUsualWait;
};

struct AttachCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::chrono::milliseconds wait = kUsualWait;
  bool no_stdin = false;
  bool from_start = false;
  std::string detach_keys = "\x10\x11";  ///< as a terminal sends them
};

struct ConvertCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::optional<int> line;             ///< number in the list
  std::optional<std::string> command;  ///< instead of a typed command
  std::string new_name = {};           ///< empty: NAME-train
  std::string idempotency_key;
  bool list = false;
  bool yes = false;
  bool keep = false;       ///< the interactive job continues
  bool end_first = false;  ///< ends the interactive job first, to free its resources
  std::chrono::milliseconds wait = kUsualWait;  ///< for the new job to run
};

struct ForwardedPort {
  int local = 0;  ///< 0: any free port
  int remote = 0;

  bool operator==(const ForwardedPort&) const = default;
};

/// "8888", "8080:8888", ":8888" and "0:8888". Errors: kInvalid.
base::Result<ForwardedPort> forwarded_port_of(std::string_view word);

struct PortForwardCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::string address = "127.0.0.1";
  std::vector<ForwardedPort> ports;
  std::string program = "muster";  ///< the name in messages
};

Result<int> execute(const ExecCommand& command, const Hooks& hooks);
Result<int> execute(const BashCommand& command, const Hooks& hooks);
Result<int> execute(const AttachCommand& command, const Hooks& hooks);
Result<int> execute(const ConvertCommand& command, const Hooks& hooks);
Result<int> execute(const PortForwardCommand& command, const Hooks& hooks);

// sessions.cc
Command exec_command();
Command bash_command();
Command attach_command();
// convert.cc
Command convert_command();
// port_forward.cc
Command port_forward_command();

/// The task of a session.
struct SessionTarget {
  job::Job job;
  job::Task task;

  bool is_leader() const { return task.name == job::deciding_task(job).name; }
};

/// Waits until the task runs; prints on standard error why it waits, each time that changes. `task`
/// empty: the task that decides the job's result. Nothing: Ctrl-C.
///
/// Errors: kNotFound: no such job or task; kConflict: it has ended; kTimeout: it does not run yet.
base::Result<std::optional<SessionTarget>> await_running(Connection& connection,
                                                         const std::string& name,
                                                         const std::string& task,
                                                         std::chrono::milliseconds patience);

/// The error for a job that has already ended.
base::Error has_ended(const job::Job& job);

// The commands typed in a job's shells (stored by launch/shell_files.h), and the candidate for an
// unattended job.
//
// The candidate is the last command that launches a program (mpirun, horovodrun, torchrun, python ...)
// and succeeded, was interrupted, or still ran when its shell ended; if there is none, the last such
// command that ran for ten seconds or more and is not an editor, pager or shell. Pure.

struct TypedCommand {
  std::string text;
  std::string folder;            ///< the working folder
  std::optional<int> exit_code;  ///< nothing: it still ran
  std::chrono::seconds took{0};  ///< if it ended

  bool operator==(const TypedCommand&) const = default;
};

/// In the order of typing. Damaged records are skipped.
std::vector<TypedCommand> parse_typed_commands(std::string_view records);

/// Whether the command launches a training program.
bool launches(const TypedCommand& command);

/// The index of the candidate.
std::optional<size_t> candidate_of(const std::vector<TypedCommand>& commands);

/// The last `most` commands as a table, numbered from 1, newest last.
std::string typed_commands_view(const std::vector<TypedCommand>& commands, size_t most);

// Connections to forwarded ports. Each is served by its own thread; if one fails, the reason is printed
// on standard error, and the others continue.
//
// Blocking; I/O. One owner, one thread.

/// Copies data in both directions until both sides have closed, one side is lost, or `stop` is
/// readable. Each side may close its direction first. Errors: the task's port cannot be reached.
base::Result<void> carry(api::Client& client, const std::string& job,
                         const api::ForwardRequest& request, const base::UniqueFd& local, int stop);

class ForwardedConnections {
 public:
  /// `program`: the name in messages.
  explicit ForwardedConnections(std::string program);
  ForwardedConnections(const ForwardedConnections&) = delete;
  ForwardedConnections& operator=(const ForwardedConnections&) = delete;
  /// Ends all connections. If the server does not answer, the process is ended, as by Ctrl-C.
  ~ForwardedConnections();

  /// Starts to serve `local`. `name` precedes its messages.
  void begin(std::unique_ptr<api::Client> client, const std::string& job,
             const api::ForwardRequest& request, base::UniqueFd local, const std::string& name);

  /// Whether the maximum number of connections is open.
  bool is_full();
  /// Readable when a connection has ended, until take_room().
  int room_fd() const { return room_.get(); }
  void take_room();

 private:
  void end(base::UniqueFd local, const std::string& name, const base::Result<void>& carried);
  void join_ended();

  std::string program_;
  base::UniqueFd stop_;
  base::UniqueFd room_;
  std::mutex mutex_;  ///< guards the members below, except threads_
  std::condition_variable ended_;
  std::set<int> locals_;
  std::set<std::thread::id> over_;  ///< threads to be joined
  std::vector<std::thread> threads_;
};

}  // namespace muster::cli::sessions
