// The address of a repository, taken apart far enough that git can be given it safely: nothing in
// it is an option, a program to run or a password.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/flag_names.h"

namespace muster::workspace {

using base::Result;

struct RepositoryUrl {
  std::string url;       ///< for git, and for people; of http without its user
  std::string username;  ///< that stood in a URL of http: it is often a token
  std::string origin;    ///< of http: "https://host:8443", where a password is good
  bool over_ssh = false;

  bool operator==(const RepositoryUrl&) const = default;
};

/// kInvalid, about where files are to come from.
base::Error invalid_source(std::string what, std::string advice);

/// Whether it is meant as an address rather than as a path: "scheme://...", "user@host:path", or
/// "transport::address" of a program of git's.
bool is_address(std::string_view text);

/// "https://host/x.git", "git+https://host/x", "ssh://host/x", "git@host:x", "file:///x".
///
/// kInvalid: git would run a program for it or read an option from it, a password stands in it (it
/// is not repeated), it is of no kind that is fetched; what to do instead.
Result<RepositoryUrl> parse_repository_url(std::string_view text, const FlagNames& flags = {});

/// A branch, a tag or a commit. kInvalid: git would not take it for one, or for something else.
Result<void> check_ref(std::string_view ref);

/// Whether it may be (the beginning of) a commit's id.
bool may_be_commit(std::string_view ref);

}  // namespace muster::workspace
