// What is to be brought into tasks, out of them, or through to them.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::cli {

/// PATH here, or JOB:PATH and JOB/TASK:PATH there.
struct CopyPlace {
  std::string job = {};   ///< empty: here
  std::string task = {};  ///< empty: the one that decides
  std::string path;

  bool is_here() const { return job.empty(); }
  bool operator==(const CopyPlace&) const = default;
};

/// A word is a place in a task where a job's name stands before its first ':'; so a file here that
/// is named like that is given as ./a:b. JOB: alone is the working folder of the task.
CopyPlace copy_place_of(std::string_view word);
/// As it would be written.
std::string to_text(const CopyPlace& place);

struct CopyCommand {
  std::vector<CopyPlace> from;
  CopyPlace to;
  std::string project = {};
};

struct ForwardedPort {
  int local = 0;  ///< 0: any that is free
  int remote = 0;

  bool operator==(const ForwardedPort&) const = default;
};

/// "8888", "8080:8888", ":8888" and "0:8888". kInvalid: none of these.
base::Result<ForwardedPort> forwarded_port_of(std::string_view word);

struct PortForwardCommand {
  std::string name;
  std::string project = {};
  std::string task = {};
  std::string address = "127.0.0.1";
  std::vector<ForwardedPort> ports;
  std::string program = "muster";  ///< who speaks
};

}  // namespace muster::cli
