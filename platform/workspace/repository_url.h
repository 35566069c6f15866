// The address of a git repository, parsed far enough that it can be passed to git safely: no part
// of it is an option, a program to run or a password.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/sources.h"

namespace muster::workspace {

using base::Result;

struct RepositoryUrl {
  std::string url;       ///< for git and for messages; an http URL without its user name
  std::string username;  ///< the user name of an http URL; it is often a token
  std::string origin;    ///< of an http URL: "https://host:8443", the only place for a password
  bool over_ssh = false;

  bool operator==(const RepositoryUrl&) const = default;
};

/// A kInvalid error about a workspace's source.
base::Error invalid_source(std::string what, std::string advice);

/// Whether `text` is an address rather than a path: "scheme://...", "user@host:path", or
/// "transport::address" (which git hands to a program).
bool is_address(std::string_view text);

/// Accepts "https://host/x.git", "git+https://host/x", "ssh://host/x", "git@host:x" and
/// "file:///x".
///
/// kInvalid, with advice: git would run a program for it or read an option from it, it contains a
/// password (which the error does not repeat), or its scheme is not supported.
Result<RepositoryUrl> parse_repository_url(std::string_view text, const FlagNames& flags = {});

/// Checks a branch, tag or commit. kInvalid: git would reject it, or read it as something else.
Result<void> check_ref(std::string_view ref);

/// Whether `ref` has the form of a commit id or of the beginning of one.
bool may_be_commit(std::string_view ref);

}  // namespace muster::workspace
