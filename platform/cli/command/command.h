// Commands as data: words, flags and help. The parser, the help, the completion scripts and the
// suggestions for typos use the same description, so they always agree.
//
// Pure. The tree of commands is built at each start, which takes some microseconds.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "record/table.h"

namespace muster::cli {

/// What shell completion offers for a value.
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

/// The same offer, from a table of fields.
Offer offer_of(record::Offer offer);

struct Flag {
  std::string name;         ///< --workers
  std::string letter = {};  ///< -n, or empty
  std::string value = {};   ///< the placeholder of the value in the help; empty: a switch
  std::string help = {};
  std::vector<std::string> choices = {};  ///< the allowed values; empty: any
  Offer offer = Offer::kNothing;
  bool repeats = false;
  bool value_optional = false;  ///< --flag alone, or --flag=VALUE in one word
  bool hidden = false;          ///< accepted, but not in help and completion
  std::string group = {};       ///< the heading in the help; empty: "flags"

  bool is_switch() const { return value.empty(); }
};

/// The words of a command that are not flags.
struct Positionals {
  std::string name = {};  ///< the placeholder in the help, such as NAME; empty: none allowed
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
  std::vector<std::string> more_aliases = {};  ///< accepted, but not in help and completion
  std::string help = {};                       ///< one line
  /// Reads the command's words (call.h). nullptr: the command only groups others, or belongs to a
  /// dialect, which has its own dispatch.
  Call (*read)(Reading&) = nullptr;
  Positionals positionals = {};
  bool takes_program = false;  ///< "-- CMD..." is allowed
  std::vector<Flag> flags = {};
  std::vector<Command> commands = {};
  /// Commands of the other product that this dialect lacks.
  std::vector<std::string> lacking = {};
  std::string example = {};
  std::string see_also = {};  ///< related commands: "muster logs, muster get"

  const Flag* find_flag(std::string_view name_or_letter) const;
  const Command* find_command(std::string_view name_or_alias) const;
};

/// The names of visible flags and of commands, with which typos are compared.
std::vector<std::string> flag_names(const Command& command);
std::vector<std::string> command_names(const Command& command);

using Flags = std::vector<Flag>;

/// Positionals::most without a bound.
inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

Flags operator+(Flags left, Flags right);

/// --output; the first of `formats` is the default.
Flags output_flag(std::vector<std::string> formats = {"table", "json", "yaml"});
/// --output of commands that list: also with `names`, for scripts and completion.
Flags list_output_flag();

/// --task
Flags task_flag(const std::string& help);

Positionals new_name();
Positionals one_of(Offer offer);
/// JOB, or JOB/TASK (Reading::job_and_task()).
Positionals job_or_task();
Positionals some_of(Offer offer);
Positionals maybe_one_of(Offer offer);
Positionals any_of(Offer offer);

/// --ignore-missing; `what`: "a user".
Flags ignore_missing_flag(const std::string& what);
/// --project of a command that takes names of jobs.
Flags job_project_flag();

/// The help of a command: usage, description, commands, flags, example. `path` may contain aliases;
/// everything after the first unknown word is ignored.
std::string help_text(const Command& root, const std::vector<std::string>& path);

// Completion scripts for shells: commands, flags, values and names. Each script walks the typed words
// to find the command, then offers values of the flag before the cursor, or the flags, commands and
// names of that command. After "--" the shell completes the program itself.

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

/// A command with the words that lead to it.
struct CommandPlace {
  std::string at;  ///< "", "submit", "submit mpi"
  const Command* command;
};

/// The root and all commands below it. The tree must outlive the result.
std::vector<CommandPlace> places_in(const Command& root);

/// A step from one place to the next: at "submit", the word "mpi" leads to "submit mpi".
struct Step {
  std::string at;
  std::string word;
  std::string to;
};

/// All steps of the tree, including aliases.
std::vector<Step> steps_in(const Command& root);

/// The arguments of the command that lists the names of an offer; nullptr if there is none.
const char* names_command(Offer offer);

}  // namespace muster::cli
