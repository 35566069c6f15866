#include "launch/scripts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "job/checker.h"

namespace muster::launch {

using base::shell_quoted;

namespace {

// A shell ends its script at an assignment that it refuses: bash computes these variables itself,
// and OPTIND must be a number. An image may set any of them, and names such as FOO.BAR.
constexpr std::array<std::string_view, 8> kOfTheShell{
    "BASHOPTS", "BASH_VERSINFO", "EUID", "HISTCMD", "OPTIND", "PPID", "SHELLOPTS", "UID"};

bool can_be_exported(std::string_view name) {
  return job::is_variable_name(name) &&
         std::find(kOfTheShell.begin(), kOfTheShell.end(), name) == kOfTheShell.end();
}

}  // namespace

std::string export_lines(const std::map<std::string, std::string>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    if (can_be_exported(name)) text += "export " + name + "=" + shell_quoted(value) + "\n";
  }
  return text;
}

std::string session_script(const std::map<std::string, std::string>& environment,
                           const std::string& folder) {
  std::string text = "#!/bin/sh\n" + export_lines(environment);
  // engine/rank_files.h: a launcher has reached this task.
  text += "[ ! -d \"$MUSTER_GENERATED/ranks\" ] || echo 1 > \"$MUSTER_GENERATED/ranks/-1\"\n";
  text += "cd " + shell_quoted(folder) + " || exit 1\n";
  text +=
      "if [ -n \"$SSH_ORIGINAL_COMMAND\" ]; then exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"; fi\n";
  text += "exec \"${SHELL:-/bin/sh}\" -l\n";
  return text;
}

std::string rank_script() {
  return "#!/bin/sh\n"
         "export MUSTER_RANK=\"$OMPI_COMM_WORLD_RANK\" MUSTER_WORLD_SIZE=\"$OMPI_COMM_WORLD_SIZE\" "
         "MUSTER_LOCAL_RANK=\"$OMPI_COMM_WORLD_LOCAL_RANK\"\n"
         "echo \"$OMPI_COMM_WORLD_SIZE\" > \"$MUSTER_GENERATED/ranks/$OMPI_COMM_WORLD_RANK\"\n"
         "[ -r \"$MUSTER_GENERATED/devices\" ] && . \"$MUSTER_GENERATED/devices\"\n"
         "[ -n \"$MUSTER_RANK_AGENT\" ] && exec \"$MUSTER_RANK_AGENT\" --rank \"$@\"\n"
         "exec \"$@\"\n";
}

namespace {

// Not for every task: a shell in a task of a plain mpirun would otherwise print the output of its
// own ranks into the job's log. The variables let Open MPI run as root.
constexpr const char* kStart = R"sh(#!/bin/sh
# What 'muster bash' runs.
PATH="$MUSTER_GENERATED/bin:$PATH"
export PATH
unset MUSTER_RANK_AGENT
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if command -v bash > /dev/null 2>&1; then
  if [ -t 0 ]; then exec bash --rcfile "$MUSTER_GENERATED/bash/rc" -i; fi
  exec bash
fi
PS1="$MUSTER_JOB/$MUSTER_TASK\$ "
export PS1
exec sh
)sh";

// A command is recorded twice, before it runs and after it has ended, so that it is recorded even
// if the terminal is closed in between. Records begin with 036, their fields are separated by 037.
// A command that is not in the shell's history (with a leading blank) has no number and is not
// recorded.
constexpr const char* kRc =
    R"sh(# The shell of 'muster bash': one's own, with the job in its prompt.
if [ -r ~/.bashrc ]; then . ~/.bashrc; fi
case ":$PATH:" in
  *":$MUSTER_GENERATED/bin:"*) ;;
  *) PATH="$MUSTER_GENERATED/bin:$PATH" ;;
esac
PS1='\[\e[1m\]'"$MUSTER_JOB/$MUSTER_TASK"'\[\e[0m\]:\w\$ '

# What is typed here is kept for 'muster convert', in the job's own folder, until the job ends.
# 'unset MUSTER_TYPED' keeps no more of it; a command with a blank before it is never kept.
HISTFILE="$MUSTER_GENERATED/bash/history"
HISTCONTROL=ignorespace
MUSTER_TYPED="$MUSTER_GENERATED/bash/commands"

__muster_bound() {
  local size
  size=$(wc -c < "$MUSTER_TYPED" 2> /dev/null) || return 0
  if ((size > 262144)); then
    (umask 077; tail -c 131072 "$MUSTER_TYPED" > "$MUSTER_TYPED.$$" &&
      mv -f "$MUSTER_TYPED.$$" "$MUSTER_TYPED")
  fi
}
__muster_note() {
  local last
  last=$(HISTTIMEFORMAT= builtin history 1)
  __muster_number=0
  [[ $last =~ ^\ *([0-9]+)[\ *]\ (.*)$ ]] || return 0
  __muster_number=${BASH_REMATCH[1]}
  if [[ -z $__muster_last || $__muster_number == "$__muster_last" ]]; then return 0; fi
  if [[ -z $MUSTER_TYPED || -z $HISTFILE || ${#BASH_REMATCH[2]} -gt 16384 ]]; then return 0; fi
  printf '\036%s\037%s\037%s\037%(%s)T\037%s\037%s\n' \
    "$$" "$__muster_number" "$1" -1 "$PWD" "${BASH_REMATCH[2]}" >> "$MUSTER_TYPED" 2> /dev/null
}
__muster_ended() {
  local status=$?
  __muster_note "$status"
  __muster_last=$__muster_number
  ((__muster_number % 100)) || __muster_bound
  if [[ -z $MUSTER_TYPED ]]; then unset HISTFILE; fi
  [[ -z $HISTFILE ]] || builtin history -a 2> /dev/null
  return "$status"
}
PROMPT_COMMAND="__muster_ended${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
PS0='$(__muster_note -)'"$PS0"
)sh";

// Installed as ssh, scp and sftp, so that they find the tasks of the job without options.
constexpr const char* kSsh = R"sh(#!/bin/sh
name=${0##*/}
IFS=:
for folder in $PATH; do
  if [ "$folder" != "$MUSTER_GENERATED/bin" ] && [ -x "$folder/$name" ]; then
    unset IFS
    exec "$folder/$name" -F "$MUSTER_GENERATED/bash/ssh_config" "$@"
  fi
done
echo "$name: not found; install the package openssh-client" >&2
exit 127
)sh";

/// The job's configuration for its tasks; the user's for all other hosts.
std::string ssh_config(const std::vector<std::string>& hosts, const std::string& folder) {
  std::string names;
  for (const std::string& host : hosts) names += " " + host;
  return "Host" + names + "\n  Include \"" + folder +
         "/ssh/config\"\nHost *\n  Include ~/.ssh/config\n  Include /etc/ssh/ssh_config\n";
}

}  // namespace

std::optional<PlannedFile> shell_hosts_file(const ShellReach& reach, const std::string& folder) {
  if (reach.ssh_hosts.empty()) return std::nullopt;
  return PlannedFile{.path = "bash/ssh_config", .content = ssh_config(reach.ssh_hosts, folder)};
}

void add_shell_files(const ShellReach& reach, const std::string& folder, TaskPlan& plan) {
  plan.folders.emplace_back("bash");
  plan.files.push_back({.path = kShellStart, .content = kStart, .mode = 0700});
  plan.files.push_back({.path = "bash/rc", .content = kRc});
  plan.files.push_back({.path = kTypedCommands, .content = ""});
  if (!reach.remote_shell.empty()) {
    plan.folders.emplace_back("bin");
    plan.files.push_back(
        {.path = "bin/rsh",
         .content = "#!/bin/sh\nexec " + base::shell_quoted(reach.remote_shell) + " \"$@\"\n",
         .mode = 0700});
  }
  const auto hosts = shell_hosts_file(reach, folder);
  if (!hosts) return;
  plan.folders.emplace_back("bin");
  plan.files.push_back(*hosts);
  for (const char* name : {"bin/ssh", "bin/scp", "bin/sftp"}) {
    plan.files.push_back({.path = name, .content = kSsh, .mode = 0700});
  }
}

}  // namespace muster::launch
