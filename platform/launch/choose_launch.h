// How the ranks of a job are started, and the facts about an image that decide it: its default
// program, its account, and its programs for launching.
//
// Plain values.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace muster::launch {

/// The account of an image's tasks, from the image's own /etc/passwd and /etc/group.
struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name = "root";  ///< empty: the image has no name for the number
  std::string home = "/root";

  bool operator==(const Account&) const = default;
};

struct ImageFacts {
  std::string image;  ///< as requested
  /// sha256:...: identifies the image even if the name is moved to another image.
  std::string id;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string folder;  ///< its working folder; empty: not set
  Account account;
  std::string sshd;        ///< path of its sshd; empty: none
  bool has_ssh = false;    ///< the ssh client
  bool has_shell = false;  ///< /bin/sh

  bool operator==(const ImageFacts&) const = default;
};

}  // namespace muster::launch
