// A commit of a git repository as a folder of files. git itself fetches it, with the keys, proxies
// and certificates that the user has configured for git.
//
// Only the requested commit is fetched, without its history, if the server allows that. Submodules
// are not fetched, because each is another repository with its own login; Fetched::note reports
// them.
//
// A password reaches git through a pipe that only git and its children inherit. It is in no
// argument, no environment variable and no file. A credential helper, which is configured with -c
// for this origin only, reads the pipe; a server that redirects git to another host therefore never
// sees the password. (An askpass program would answer any host.) The user's other credential
// helpers are disabled while a password is given, because they would store it.
//
// Blocking; I/O. git stays in this process's group, so Ctrl-C ends it too.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "workspace/sources.h"

namespace muster::workspace {

/// Receives the lines of progress that git prints for people.
using OnGitLine = std::function<void(std::string_view)>;

/// Errors: as fetch().
Result<Fetched> fetch_repository(const WorkspaceSource& source, const OnGitLine& on_line);

/// kInvalid: a ref or a login that git does not accept. Pure.
Result<void> check_repository(const WorkspaceSource& source);

// --- one run of git

struct GitLogin {
  std::string origin;  ///< "https://host:8443": the only origin that gets the password
  std::string username;
  std::string password;  ///< empty: no credential helper is configured
};

struct GitEnd {
  bool ok = false;  ///< git exited with 0
  std::string out;  ///< standard output
  std::vector<std::string>
      error_lines;  ///< last lines of standard error, with the password removed
};

class Git {
 public:
  /// `folder`: the work tree, which must exist. kNotFound: git is not installed.
  static Result<Git> in(std::filesystem::path folder, std::string url, GitLogin login);

  /// Runs git with `arguments`, such as "fetch", "origin"; the remote `origin` is the URL.
  Result<GitEnd> run(const std::vector<std::string>& arguments,
                     const OnGitLine& on_line = {}) const;

 private:
  Git() = default;

  std::string program_;
  std::filesystem::path folder_;
  std::vector<std::string> settings_;  ///< -c NAME=VALUE
  GitLogin login_;
};

/// The environment for git: `ours` without the variables that would redirect git or let it prompt.
/// Pure.
std::vector<std::string> git_environment(const std::vector<std::string>& ours);

/// `line` with `secret` masked, both in plain and in URL-encoded form. Pure.
std::string scrubbed(std::string_view line, std::string_view secret);

// --- why git failed

/// What was requested from git, for the error that git_failure() makes.
struct GitQuestion {
  std::string url;
  std::string ref;
  bool had_password = false;
  bool over_ssh = false;
  FlagNames flags;  ///< the flags that the advice names
};

/// The error for a failed git, from its last lines `error_lines`, which become the error's faults. Pure.
base::Error git_failure(const GitQuestion& question, const std::vector<std::string>& error_lines);

/// Whether `error_lines` mean that the server refuses to send a single commit without its history. Pure.
bool needs_whole_history(const std::vector<std::string>& error_lines);

}  // namespace muster::workspace
