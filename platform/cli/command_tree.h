// Everything the command line understands, as plain data. The parser, the help, the completion
// scripts and the suggestions for typos all read this one description: none can drift from another.
//
// Pure; built anew by each call (some microseconds), so starting the program costs nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

/// What a shell can offer in the place of a value.
enum class Offer {
  kNothing,
  kChoices,
  kFiles,
  kFolders,
  kVariables,
  kJobs,
  kProjects,
  kNodes,
  kContexts,
  kUsers,
  kTokens,
};

struct Flag {
  std::string name;         ///< --workers
  std::string letter = {};  ///< -n, or empty
  std::string value = {};   ///< what stands for the value in the help; empty: a switch
  std::string help = {};
  std::vector<std::string> choices = {};  ///< the values it takes; empty: any
  Offer offer = Offer::kNothing;
  bool repeats = false;
  bool value_optional = false;  ///< --flag alone, or --flag=VALUE in one word
  bool hidden = false;          ///< understood, but in no help and no completion

  bool is_switch() const { return value.empty(); }
};

/// The words after a command that are no flags.
struct Positionals {
  std::string name = {};  ///< NAME, as the help shows it; empty: it takes none
  size_t least = 0;
  size_t most = 0;
  std::vector<std::string> choices = {};
  Offer offer = Offer::kNothing;
};

struct Reading;
class Call;

struct Command {
  std::string name;
  std::string alias = {};
  std::string help = {};  ///< one line
  /// Reads its words (call.h). Null: the command only holds others, or a dialect finds its own way.
  Call (*read)(Reading&) = nullptr;
  Positionals positionals = {};
  bool takes_program = false;  ///< "-- CMD..." may follow
  std::vector<Flag> flags = {};
  std::vector<Command> commands = {};
  std::string example = {};

  const Flag* find_flag(std::string_view name_or_letter) const;
  const Command* find_command(std::string_view name_or_alias) const;
};

/// The names of the flags that are not hidden, and of the commands: what a typo is compared with.
std::vector<std::string> flag_names(const Command& command);
std::vector<std::string> command_names(const Command& command);

}  // namespace muster::cli
