// Scripts that teach a shell to complete muster's commands, flags, values and job names. Made from
// the same tree that the parser uses, so a new flag is completed the day it is understood.
//
// Every script follows one plan: walk the words so far to find the command ("at"), then offer what
// the flag before the cursor takes, else the flags, commands and names of that command. Behind
// "--" the shell completes the program by itself.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace muster::cli {

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

/// A command and the words that lead to it, as the scripts see the tree.
struct Place {
  std::string at;  ///< "", "submit", "submit mpi"
  const Command* command;
};

/// The root and everything below it. The tree must outlive the result.
std::vector<Place> places_in(const Command& root);

/// A step from one place to the next: at "submit", the word "mpi" leads to "submit mpi".
struct Step {
  std::string at;
  std::string word;
  std::string to;
};

/// Every step of the tree, those by an alias too.
std::vector<Step> steps_in(const Command& root);

/// The arguments of the command that lists the names of an offer; nullptr where no command does.
const char* names_command(Offer offer);

}  // namespace muster::cli
