// Sessions, the version, completion; and what Run:AI has that there is no such thing of here.
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "cli/accounts/accounts.h"
#include "cli/command/completion.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

/// The scripts call the program and name their functions after it.
std::string with_name(std::string script, const std::string& name) {
  constexpr std::string_view own = "muster";
  for (size_t at = script.find(own); at != std::string::npos; at = script.find(own, at)) {
    script.replace(at, own.size(), name);
    at += name.size();
  }
  return script;
}

}  // namespace

Result<int> login_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  return not_here("runai login knows no address to log in at",
                  "muster login https://HOST:PORT opens the session that runai uses, too; a server "
                  "of your own on this machine needs none");
}

Result<int> logout_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  return execute(cli::accounts::LogoutCommand{}, asked.hooks);
}

Result<int> whoami_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const api::WhoAmI who,
             connection.call([](api::Client& client) { return client.who_am_i(); }));
  const std::string user = who.user.empty() ? "-" : who.user;
  // Over the socket of one's own server there is no token; the user is all there is to tell.
  MUSTER_CHECK(cli::show("User: " + user +
                         "\nLogged in Id: " + (who.token.empty() ? user : who.token) + "\n"));
  return cli::kExitDone;
}

Result<int> version_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  const std::string head = asked.reader.has("--short") ? "" : "Version: ";
  MUSTER_CHECK(cli::show(head + asked.hooks.version + "\n"));
  return cli::kExitDone;
}

Result<int> completion_command(Asked& asked) {
  const cli::Command root = command_tree();
  const std::vector<std::string> shells = root.find_command("completion")->positionals.choices;
  const std::string shell = asked.arguments.names.empty() ? "" : asked.arguments.names.front();
  if (asked.reader.ok() && std::find(shells.begin(), shells.end(), shell) == shells.end()) {
    asked.reader.fault("", "name a shell: bash, zsh or fish");
  }
  if (!asked.reader.ok()) return usage_error_of(asked);
  const std::string script = shell == "zsh"    ? cli::zsh_completion(root)
                             : shell == "fish" ? cli::fish_completion(root)
                                               : cli::bash_completion(root);
  // Written raw: a script must reach the shell byte by byte.
  MUSTER_CHECK(base::write_all(STDOUT_FILENO, with_name(script, root.name)));
  return cli::kExitDone;
}

Result<int> templates_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  return not_here("there are no templates here",
                  "keep the flags in a script, or the job in a file: muster submit -f FILE");
}

Result<int> update_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  return not_here("runai does not update itself here",
                  "it is the program muster under another name, and comes with it");
}

}  // namespace muster::dialects::runai
