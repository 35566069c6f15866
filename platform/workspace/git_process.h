// git, run for one repository: what it is told and never asks, how it is given a password, and what
// it said.
//
// The password reaches git through a pipe that only it and its own children inherit: it stands in
// no argument, no environment and no file. A credential helper, given with -c for this origin
// alone, reads it from there, so a server that sends git elsewhere is not shown it; an askpass
// program would answer whoever asks. The user's other helpers are left out then, for they would
// store the password.
//
// Blocking; I/O. git stays in this process's group, so that Ctrl-C ends it, too.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::workspace {

using base::Result;

struct GitLogin {
  std::string origin;  ///< "https://host:8443"; empty: nobody is shown anything
  std::string username;
  std::string password;  ///< with an empty one nothing is shown either
};

struct GitEnd {
  bool ok = false;
  std::string out;                ///< its standard output
  std::vector<std::string> said;  ///< its last lines on standard error, without the password
};

/// A line for people, as git tells it.
using OnGitLine = std::function<void(std::string_view)>;

class Git {
 public:
  /// `folder`: of the work tree, which is there. kNotFound: git is not installed.
  static Result<Git> in(std::filesystem::path folder, std::string url, GitLogin login);

  /// `arguments` as "fetch", "origin": `origin` is the url.
  Result<GitEnd> run(const std::vector<std::string>& arguments,
                     const OnGitLine& on_line = {}) const;

 private:
  Git() = default;

  std::string program_;
  std::filesystem::path folder_;
  std::vector<std::string> settings_;  ///< -c NAME=VALUE
  GitLogin login_;
};

/// The environment that git is run in: `ours`, without what would lead it elsewhere or have it ask
/// somebody. Pure.
std::vector<std::string> git_environment(const std::vector<std::string>& ours);

/// `line` with `secret`, plain or as a URL has it, made unreadable. Pure.
std::string scrubbed(std::string_view line, std::string_view secret);

}  // namespace muster::workspace
