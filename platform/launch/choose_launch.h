// What is known of an image before a task runs in it: what it runs of itself, who its tasks are,
// and what it brings for launching.
//
// Plain values.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace muster::launch {

/// Who the tasks of an image run as, looked up in the image's own /etc/passwd and /etc/group.
struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name = "root";  ///< empty: the image has no name for the number
  std::string home = "/root";

  bool operator==(const Account&) const = default;
};

struct ImageFacts {
  std::string image;  ///< as it was asked for
  std::string id;     ///< sha256:...: what is run, whatever the name means later
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string folder;  ///< its working directory; empty: none is set
  Account account;
  std::string sshd;        ///< path of its sshd; empty: it has none
  bool has_ssh = false;    ///< the client
  bool has_shell = false;  ///< /bin/sh

  bool operator==(const ImageFacts&) const = default;
};

}  // namespace muster::launch
