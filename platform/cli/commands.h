// What each command does. Results go to standard output, everything else to standard error.
//
// Blocking; I/O. Errors come back, for cli.cc to print; an int is the exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "cli/connection.h"
#include "cli/invocation.h"
#include "job/job.h"

namespace muster::cli {

Result<int> execute(const SubmitCommand& command, const Hooks& hooks);
Result<int> execute(const RunCommand& command, const Hooks& hooks);
Result<int> execute(const ListCommand& command, const Hooks& hooks);
Result<int> execute(const GetCommand& command, const Hooks& hooks);
Result<int> execute(const LogsCommand& command, const Hooks& hooks);
Result<int> execute(const MetricsCommand& command, const Hooks& hooks);
Result<int> execute(const ExecCommand& command, const Hooks& hooks);
Result<int> execute(const CopyCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks);
Result<int> execute(const ArtifactGetCommand& command, const Hooks& hooks);
Result<int> execute(const PortForwardCommand& command, const Hooks& hooks);
Result<int> execute(const StopCommand& command, const Hooks& hooks);
Result<int> execute(const SuspendCommand& command, const Hooks& hooks);
Result<int> execute(const ResumeCommand& command, const Hooks& hooks);
Result<int> execute(const ExplainCommand& command, const Hooks& hooks);
Result<int> execute(const EventsCommand& command, const Hooks& hooks);
Result<int> execute(const DeleteCommand& command, const Hooks& hooks);
Result<int> execute(const QueueCommand& command, const Hooks& hooks);
Result<int> execute(const TopCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectChangeCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectListCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectGetCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const ProjectUseCommand& command, const Hooks& hooks);
Result<int> execute(const NodeListCommand& command, const Hooks& hooks);
Result<int> execute(const NodeGetCommand& command, const Hooks& hooks);
Result<int> execute(const NodeChangeCommand& command, const Hooks& hooks);
Result<int> execute(const ServerCommand& command, const Hooks& hooks);
Result<int> execute(const StoreCommand& command, const Hooks& hooks);
Result<int> execute(const DoctorCommand& command, const Hooks& hooks);
Result<int> execute(const SimulateCommand& command, const Hooks& hooks);
Result<int> execute(const VersionCommand& command, const Hooks& hooks);
Result<int> execute(const CompletionCommand& command, const Hooks& hooks);
Result<int> execute(const HelpCommand& command, const Hooks& hooks);
Result<int> execute(const LoginCommand& command, const Hooks& hooks);
Result<int> execute(const LogoutCommand& command, const Hooks& hooks);
Result<int> execute(const WhoAmICommand& command, const Hooks& hooks);
Result<int> execute(const ContextShowCommand& command, const Hooks& hooks);
Result<int> execute(const ContextListCommand& command, const Hooks& hooks);
Result<int> execute(const ContextUseCommand& command, const Hooks& hooks);
Result<int> execute(const ContextRemoveCommand& command, const Hooks& hooks);
Result<int> execute(const UserCreateCommand& command, const Hooks& hooks);
Result<int> execute(const UserListCommand& command, const Hooks& hooks);
Result<int> execute(const UserGetCommand& command, const Hooks& hooks);
Result<int> execute(const UserSetCommand& command, const Hooks& hooks);
Result<int> execute(const UserDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const UserInviteCommand& command, const Hooks& hooks);
Result<int> execute(const MemberListCommand& command, const Hooks& hooks);
Result<int> execute(const MemberGrantCommand& command, const Hooks& hooks);
Result<int> execute(const MemberRevokeCommand& command, const Hooks& hooks);
Result<int> execute(const TokenCreateCommand& command, const Hooks& hooks);
Result<int> execute(const TokenListCommand& command, const Hooks& hooks);
Result<int> execute(const TokenRevokeCommand& command, const Hooks& hooks);
Result<int> execute(const SecretSetCommand& command, const Hooks& hooks);
Result<int> execute(const SecretListCommand& command, const Hooks& hooks);
Result<int> execute(const SecretDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const AuditCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyAddCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyListCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRemoveCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRotateCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyTestCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyDeadCommand& command, const Hooks& hooks);
Result<int> execute(const NotifyRetryCommand& command, const Hooks& hooks);
Result<int> execute(const BashCommand& command, const Hooks& hooks);
Result<int> execute(const AttachCommand& command, const Hooks& hooks);
Result<int> execute(const ConvertCommand& command, const Hooks& hooks);

/// The server of the context that was chosen; a local one is started if need be. `project`: whose
/// jobs are meant by names that several have.
Result<Connection> connect(const Hooks& hooks, const std::string& project = {});

/// Says on standard error where a variable keeps the context in use from being used.
void note_what_goes_before();

/// Tries every name, so that one that fails spares none of the others; the first failure decides
/// the exit code.
int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act);

/// The same for what goes away, and says so. `ignore_missing`: one that is not there is no failure.
int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove);

/// The names of jobs, one a line.
std::string names_of(const std::vector<job::Job>& jobs);

/// Writes a result to standard output; on a terminal, with control characters made harmless.
Result<void> show(std::string_view text);

/// show() for a person's eyes, or `json` as it is or as YAML.
Result<void> show(Output output, std::string_view text, std::string_view json);

}  // namespace muster::cli
