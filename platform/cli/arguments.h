// The words of a command line, sorted by what they are: command, flags, names, and the program
// behind "--". CLI11 does the sorting and stays inside arguments.cc; what the values mean is
// invocation.h's question.
//
// Pure. CLI11's exceptions end here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command_tree.h"

namespace muster::cli {

struct Arguments {
  std::vector<std::string> path;  ///< the command: {"submit", "mpi"}; aliases by their full name
  std::map<std::string, std::vector<std::string>> flags;  ///< --env -> values; without: {"true"}
  std::vector<std::string> names;                         ///< what is neither command nor flag
  bool has_program = false;                               ///< whether "--" was there
  std::vector<std::string> program;                       ///< what came after it
  std::vector<base::Fault> faults;                        ///< unknown words, flags without a value

  bool has(const std::string& flag) const { return flags.contains(flag); }
};

/// Never fails as a whole: what it could not understand stands in `faults`, so that the faults of
/// the values can be told along with them.
Arguments sort_arguments(const Command& root, const std::vector<std::string>& words);

/// "unknown flag '--folow'; did you mean '--follow'?"
std::string unknown_flag(const std::string& word, const Command& command);
std::string unknown_command(const std::string& word, const Command& command);

}  // namespace muster::cli
