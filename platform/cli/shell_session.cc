#include "cli/shell_session.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "api/terminal.h"
#include "cli/raw_terminal.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/terminal_session.h"
#include "words/sentence.h"

namespace muster::cli {

using base::Result;

namespace {

// $1: the caller's TERM, which is only taken where the task knows it; the rest: NAME=VALUE. A task
// that an earlier release has started lacks the files of a shell, and one without bash has sh.
constexpr const char* kOpenShell = R"sh(
for folder in /etc/terminfo /lib/terminfo /usr/share/terminfo /usr/lib/terminfo; do
  if [ -n "$1" ] && [ -e "$folder/${1%"${1#?}"}/$1" ]; then export TERM="$1"; fi
done
shift
for variable in "$@"; do export "$variable"; done
if [ -x "$MUSTER_GENERATED/bash/start" ]; then exec "$MUSTER_GENERATED/bash/start"; fi
if command -v bash > /dev/null 2>&1; then exec bash; fi
exec sh
)sh";

constexpr std::array<const char*, 4> kLanguage{"LANG", "LANGUAGE", "LC_ALL", "COLORTERM"};

std::string terminal_type(const std::map<std::string, std::string>& caller) {
  const auto found = caller.find("TERM");
  if (found == caller.end()) return "";
  // It becomes part of a path.
  const bool is_plain = found->second.find_first_of("/ \n") == std::string::npos;
  return is_plain && found->second != "dumb" ? found->second : "";
}

std::map<std::string, std::string> environment_here() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

/// 137 alone would leave open what it was.
void tell_if_job_ended(Connection& connection, const std::string& name) {
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job || (!job::is_final(job->phase) && !job->stop_requested)) return;
  std::cerr << "muster: the shell ended with job '" << name << "'"
            << safe_lines(words::after_colon(job->reason)) << std::endl;
}

}  // namespace

std::vector<std::string> shell_command(const std::map<std::string, std::string>& caller) {
  std::vector<std::string> command{"/bin/sh", "-c", kOpenShell, "muster-bash",
                                   terminal_type(caller)};
  bool has_language = false;
  for (const auto& [name, value] : caller) {
    const bool goes_along = name.starts_with("LC_") ||
                            std::find(kLanguage.begin(), kLanguage.end(), name) != kLanguage.end();
    if (!goes_along || value.empty()) continue;
    has_language = has_language || name == "LANG" || name == "LC_ALL" || name == "LC_CTYPE";
    command.push_back(name + "=" + value);
  }
  // Today's terminals speak UTF-8, whatever they are told; a shell that does not know so cannot
  // edit a line with an umlaut in it.
  if (!has_language) command.emplace_back("LANG=C.UTF-8");
  return command;
}

Result<int> run_shell(Connection& connection, const ShellWish& wish) {
  api::ExecRequest request{.command = shell_command(environment_here()), .task = wish.task};
  // What is piped in comes from no terminal, and is to be echoed by none.
  request.terminal = ::isatty(STDIN_FILENO) == 1;
  if (const auto size = size_of_terminal(STDIN_FILENO)) {
    request.rows = size->first;
    request.columns = size->second;
  }
  MUSTER_TRY(const auto socket,
             connection.call([&](api::Client& client) { return client.exec(wish.job, request); }));
  MUSTER_TRY(const SessionEnd end, run_session(*socket, {.terminal = request.terminal}));
  if (end.how == SessionEnd::How::kServerGone) {
    return base::Error{
        .code = base::ErrorCode::kUnavailable,
        .what = "the server went away; the job goes on: " + wish.reopen + " opens a new shell"};
  }
  if (!end.exit.error.empty()) std::cerr << "muster: " << end.exit.error << std::endl;
  if (end.exit.signal == SIGKILL) tell_if_job_ended(connection, wish.job);
  return exit_code_of(end);
}

}  // namespace muster::cli
