// The commands that reach into the tasks of a running job: exec, bash, attach, port-forward; and
// convert, which makes an interactive job one that runs unattended.
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

/// How long those who come early wait for a task.
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
  std::optional<int> line;             ///< of what is listed
  std::optional<std::string> command;  ///< instead of what was typed
  std::string new_name = {};           ///< empty: NAME-train
  std::string idempotency_key;
  bool list = false;
  bool yes = false;
  bool keep = false;       ///< the interactive job goes on
  bool end_first = false;  ///< it is ended at once, so that the new job can have its resources
  std::chrono::milliseconds wait = kUsualWait;  ///< for the new job to run
};

struct ForwardedPort {
  int local = 0;  ///< 0: any that is free
  int remote = 0;

  bool operator==(const ForwardedPort&) const = default;
};

/// "8888", "8080:8888", ":8888" and "0:8888". kInvalid: none of these.
base::Result<ForwardedPort> forwarded_port_of(std::string_view word);

struct PortForwardCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::string address = "127.0.0.1";
  std::vector<ForwardedPort> ports;
  std::string program = "muster";  ///< who speaks
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

// The task that somebody wants to sit before, once it runs.
//
// Blocking; I/O.

struct SessionTarget {
  job::Job job;
  job::Task task;

  bool is_leader() const { return task.name == job::deciding_task(job).name; }
};

/// Waits until the task runs; says on standard error what it waits for, each time that changes.
/// `task` empty: the one that decides. Nothing: Ctrl-C.
///
/// Errors: kNotFound: no such job or task; kConflict: it has ended, with how; kTimeout: it does not
/// run yet.
base::Result<std::optional<SessionTarget>> await_running(Connection& connection,
                                                         const std::string& name,
                                                         const std::string& task,
                                                         std::chrono::milliseconds patience);

/// A job that has ended, as whoever came too late is told.
base::Error has_ended(const job::Job& job);

// What was typed in the shells of a job (launch/shell_files.h keeps it), and which of it a job that
// runs unattended would do.
//
// The candidate is the last command that launches something (mpirun, horovodrun, torchrun, python
// ...) and succeeded, was interrupted, or still ran when its shell ended; where there is none, the
// last such command that ran for ten seconds or more and is no editor, pager or shell.
//
// Pure.

struct TypedCommand {
  std::string text;
  std::string folder;            ///< in which it was typed
  std::optional<int> exit_code;  ///< nothing: it had not ended
  std::chrono::seconds took{0};  ///< if it has ended

  bool operator==(const TypedCommand&) const = default;
};

/// In the order in which they were typed. A record that is cut off or damaged is left out.
std::vector<TypedCommand> parse_typed_commands(std::string_view records);

/// Whether it runs a program of the kinds that training is started with.
bool launches(const TypedCommand& command);

/// The index of the candidate.
std::optional<size_t> candidate_of(const std::vector<TypedCommand>& commands);

/// The last `most` of them as a table; numbered from 1, the newest last.
std::string typed_commands_view(const std::vector<TypedCommand>& commands, size_t most);

// The connections that programs of this machine have made to forwarded ports, carried to the task
// and back, each on a thread of its own. Where one fails, a line on standard error says why; the
// others go on.
//
// Blocking; I/O. One owner, one thread.

/// Until both sides have said all, or one is gone, or `stop` can be read. Either may close its half
/// and hear on.
///
/// Errors: that the port of the task is not reached.
base::Result<void> carry(api::Client& client, const std::string& job,
                         const api::ForwardRequest& request, const base::UniqueFd& local, int stop);

class ForwardedConnections {
 public:
  /// `program`: who speaks.
  explicit ForwardedConnections(std::string program);
  ForwardedConnections(const ForwardedConnections&) = delete;
  ForwardedConnections& operator=(const ForwardedConnections&) = delete;
  /// Ends all that are left. A server that does not answer does not hold this back: then the
  /// process is ended, as by Ctrl-C.
  ~ForwardedConnections();

  /// Carries `local` to the port by `client`. `name` stands before what is said of it.
  void begin(std::unique_ptr<api::Client> client, const std::string& job,
             const api::ForwardRequest& request, base::UniqueFd local, const std::string& name);

  /// So many that the next is to wait.
  bool is_full();
  /// Readable when one has ended, until take_room().
  int room_fd() const { return room_.get(); }
  void take_room();

 private:
  void end(base::UniqueFd local, const std::string& name, const base::Result<void>& carried);
  void join_ended();

  std::string program_;
  base::UniqueFd stop_;
  base::UniqueFd room_;
  std::mutex mutex_;  ///< of what follows, but for threads_
  std::condition_variable ended_;
  std::set<int> locals_;
  std::set<std::thread::id> over_;  ///< threads that wait to be joined
  std::vector<std::thread> threads_;
};

}  // namespace muster::cli::sessions
