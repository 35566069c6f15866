// What was asked for, typed: one struct a command, and the function that reads them from the words
// of a command line.
//
// Pure: what depends on the caller comes in as a value.
#pragma once

#include <any>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/project_wire.h"
#include "api/terminal.h"
#include "base/random.h"
#include "base/result.h"
#include "cli/account_commands.h"
#include "cli/artifact_commands.h"
#include "cli/caller.h"
#include "cli/cli.h"
#include "cli/metric_commands.h"
#include "cli/notify_commands.h"
#include "cli/send_workspace.h"
#include "cli/server_config.h"
#include "cli/session_commands.h"
#include "cli/simulate_flags.h"
#include "cli/transfer_commands.h"
#include "job/log_record.h"
#include "job/spec.h"

namespace muster::cli {

using base::Result;

/// How log lines are dressed.
struct LogLook {
  bool prefix = true;
  bool timestamps = false;
  bool fold = false;  ///< on a terminal, a line that is repeated is shown once and counted
  bool json = false;  ///< one record of the API a line, and none of the above

  bool operator==(const LogLook&) const = default;
};

struct SubmitCommand {
  std::optional<std::string> file;         ///< the spec is in this YAML file ("-": standard input)
  std::vector<std::string> settings;       ///< of --set, over what the file says
  std::string name;                        ///< of --name, in the place of the file's
  job::JobSpec spec;                       ///< valid, unless `file` is set
  std::optional<WorkspaceWish> workspace;  ///< sent before the job is
  std::string idempotency_key;
  bool follow = false;
  bool dry_run = false;  ///< only ask what would become of it
  std::string engine;    ///< what the server is to run it on; empty: whatever it does
  LogLook look;
  Output output = Output::kTable;
};

struct RunCommand {
  job::JobSpec spec;  ///< valid
  std::optional<WorkspaceWish> workspace;
  std::string idempotency_key;
  std::string engine;  ///< as of SubmitCommand
  LogLook look;
};

struct ListCommand {
  std::optional<std::string> project;  ///< only those of this one
  std::vector<std::string> labels;     ///< "NAME" or "NAME=VALUE": only those that have all of them
  Output output = Output::kTable;
};

// Of the commands on jobs that are named, `project` says whose are meant where several have one of
// that name; empty: the server is left to tell.

struct GetCommand {
  std::string name;
  std::string project = {};
  bool spec = false;  ///< what was submitted, as a job file
  Output output = Output::kTable;
};

struct LogsCommand {
  std::string name;
  std::string project = {};
  job::LogQuery query;
  LogLook look;
};

struct ExecCommand {
  std::string name;
  std::string project = {};
  api::ExecRequest request;
};

struct StopCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool now = false;
  Output output = Output::kTable;
};

struct DeleteCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool ignore_missing = false;
  bool force = false;

  /// In the place of names: those of this project that have ended, before this moment.
  struct Ended {
    std::string project;  ///< empty: the server's default
    std::optional<base::Time> before;
  };
  std::optional<Ended> ended;
  bool dry_run = false;  ///< only say which
  bool yes = false;      ///< ask nothing
};

struct SuspendCommand {
  std::vector<std::string> names;
  std::string project = {};
  Output output = Output::kTable;
};

struct ResumeCommand {
  std::vector<std::string> names;
  std::string project = {};
  Output output = Output::kTable;
};

struct ExplainCommand {
  std::string name;
  std::string project = {};
  Output output = Output::kTable;
};

struct EventsCommand {
  std::optional<std::string> name;  ///< only those of this job
  std::string project = {};         ///< or: of all of this project
  bool follow = false;
  Output output = Output::kTable;
};

struct QueueCommand {
  Output output = Output::kTable;
};

struct TopCommand {
  std::chrono::milliseconds interval{1000};
  bool once = false;
};

struct ProjectChangeCommand {
  enum class What { kCreate, kSet };
  What what = What::kCreate;
  std::string name;
  api::ProjectChange change;
  Output output = Output::kTable;
};

struct ProjectListCommand {
  std::string in_use;  ///< by this caller; empty: the server's default
  Output output = Output::kTable;
};

struct ProjectGetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct ProjectDeleteCommand {
  std::vector<std::string> names;
  bool ignore_missing = false;
};

struct ProjectUseCommand {
  std::optional<std::string> name;  ///< nothing: only say which is in use
  std::string in_use;               ///< by this caller now; empty: the server's default
};

struct NodeListCommand {
  Output output = Output::kTable;
};

struct NodeGetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct NodeChangeCommand {
  enum class What { kCordon, kUncordon, kDrain };
  What what = What::kCordon;
  std::vector<std::string> names;
  Output output = Output::kTable;
};

struct ServerCommand {
  enum class What { kServe, kStop, kShowFingerprint };
  What what = What::kServe;
  ServeOptions options;  ///< as far as flags and environment say
  ServerSource source;   ///< from which all of them are read
};

struct StoreCommand {
  enum class What { kBackup, kRestore, kCheck, kSetAside };
  What what = What::kCheck;
  std::string file;    ///< of the backup
  std::string record;  ///< to set aside
  ServerSource source;
  Output output = Output::kTable;
};

struct DoctorCommand {
  ServerSource source;       ///< of the options of the server that would run here
  bool only_chosen = false;  ///< look at the engine alone that it would have
  Output output = Output::kTable;
};

struct SimulateCommand {
  Simulation what;
  Output output = Output::kTable;
};

struct VersionCommand {
  Output output = Output::kTable;
};

struct CompletionCommand {
  std::string shell;
};

struct HelpCommand {
  std::vector<std::string> path;  ///< of the command; empty: muster itself
  bool asked = true;              ///< false: nothing was asked at all
};

template <class... Commands>
struct CommandTypes {
  template <class Type>
  static constexpr bool kHas = (std::is_same_v<Type, Commands> || ...);
};

/// Every command that there is.
using AllCommands = CommandTypes<
    SubmitCommand, RunCommand, ListCommand, GetCommand, LogsCommand, ExecCommand, StopCommand,
    SuspendCommand, ResumeCommand, ExplainCommand, EventsCommand, DeleteCommand, QueueCommand,
    TopCommand, ProjectChangeCommand, ProjectListCommand, ProjectGetCommand, ProjectDeleteCommand,
    ProjectUseCommand, NodeListCommand, NodeGetCommand, NodeChangeCommand, ServerCommand,
    StoreCommand, DoctorCommand, SimulateCommand, VersionCommand, CompletionCommand, HelpCommand,
    LoginCommand, LogoutCommand, WhoAmICommand, ContextShowCommand, ContextListCommand,
    ContextUseCommand, ContextRemoveCommand, UserCreateCommand, UserListCommand, UserGetCommand,
    UserSetCommand, UserDeleteCommand, UserInviteCommand, MemberListCommand, MemberGrantCommand,
    MemberRevokeCommand, TokenCreateCommand, TokenListCommand, TokenRevokeCommand, SecretSetCommand,
    SecretListCommand, SecretDeleteCommand, AuditCommand, NotifyAddCommand, NotifyListCommand,
    NotifyRemoveCommand, NotifyRotateCommand, NotifyTestCommand, NotifyDeadCommand,
    NotifyRetryCommand, MetricsCommand, BashCommand, AttachCommand, ConvertCommand, CopyCommand,
    PortForwardCommand, ArtifactListCommand, ArtifactGetCommand>;

/// One command out of AllCommands. A std::variant of so many types costs each file that moves one 5
/// s of compiling.
class Invocation {
 public:
  template <class Command>
    requires(AllCommands::kHas<Command>)
  Invocation(Command command) : command_(std::move(command)) {}

  /// Null, unless the command is of this type.
  template <class Command>
  const Command* get_if() const {
    return std::any_cast<Command>(&command_);
  }

 private:
  std::any command_;
};

/// What --context says, or empty. Which project is in use hangs on it, so it is known first.
std::string context_flag(const std::vector<std::string>& words);

/// Reads a command line (without the program's name). `random` gives names and idempotency keys.
///
/// Errors: kInvalid, with every fault of flags and of the job's spec at once, each named after the
/// flag it came from.
Result<Invocation> parse_invocation(const std::vector<std::string>& words, const Caller& caller,
                                    base::RandomSource& random);

}  // namespace muster::cli
