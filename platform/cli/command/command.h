// Everything the command line understands, as plain data, and the parts that commands are put
// together from. The parser, the help, the completion scripts and the suggestions for typos all
// read this one description: none can drift from another.
//
// Pure; built anew by each call (some microseconds), so starting the program costs nothing.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "record/table.h"

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

/// The same of a table of fields.
Offer offer_of(record::Offer offer);

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
  std::string group = {};       ///< under which heading the help has it; empty: "flags"

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
  std::string see_also = {};  ///< commands that come next: "muster logs, muster get"

  const Flag* find_flag(std::string_view name_or_letter) const;
  const Command* find_command(std::string_view name_or_alias) const;
};

/// The names of the flags that are not hidden, and of the commands: what a typo is compared with.
std::vector<std::string> flag_names(const Command& command);
std::vector<std::string> command_names(const Command& command);

using Flags = std::vector<Flag>;

/// Of positionals: `most`, where there may be any number.
inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

Flags operator+(Flags left, Flags right);

/// --output; the first of `formats` is what is printed without it.
Flags output_flag(std::vector<std::string> formats = {"table", "json", "yaml"});
/// The formats of what lists: with the names alone, for scripts and completion.
Flags list_output_flag();

/// --task, where a job has several.
Flags task_flag(const std::string& help);

Positionals new_name();
Positionals one_of(Offer offer);
Positionals some_of(Offer offer);
Positionals maybe_one_of(Offer offer);
Positionals any_of(Offer offer);

/// --ignore-missing; `what`: "a user".
Flags ignore_missing_flag(const std::string& what);
/// --project of a command on jobs that are named.
Flags whose_job_flag();

// The help of a command, from its description.
//
// Pure.

/// Usage, what it does, its commands and flags, an example. `path` may name an alias or stop early
/// at a word that is no command; the help is that of the last command it found.
std::string help_text(const Command& root, const std::vector<std::string>& path);

// Scripts that teach a shell to complete muster's commands, flags, values and job names. Made from
// the same tree that the parser uses, so a new flag is completed the day it is understood.
//
// Every script follows one plan: walk the words so far to find the command ("at"), then offer what
// the flag before the cursor takes, else the flags, commands and names of that command. Behind
// "--" the shell completes the program by itself.
//
// Pure.

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
