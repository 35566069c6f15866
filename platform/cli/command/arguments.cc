#include "cli/command/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"

namespace muster::cli {

namespace {

std::string spelled(const Flag& flag) {
  return flag.letter.empty() ? flag.name : flag.letter + "," + flag.name;
}

bool has_name_of(const std::vector<std::string>& words, const Command& command) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == command.name || (!command.alias.empty() && word == command.alias);
  });
}

bool may_mean(const std::string& word, const std::string& name) {
  if (name.starts_with("--")) return word.starts_with(name);
  // Letters may stand together behind one dash, and a value behind them.
  return word.starts_with('-') && word.find(name.back()) != std::string::npos;
}

bool may_be_given(const Flag& flag, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return may_mean(word, flag.name) || (!flag.letter.empty() && may_mean(word, flag.letter));
  });
}

/// CLI11's tree of `command`. Values stay text here and extras are allowed, for CLI11 throws at the
/// first fault and we want them all. Commands that no word names are known by name alone, and flags
/// that no word can mean not at all: making all of them takes longer than most commands do.
void fill(CLI::App& app, const Command& command, const std::vector<std::string>& words) {
  app.set_help_flag("");
  app.allow_extras();
  // Without this bound a job named like a command ("muster get list") would be taken for one.
  app.require_subcommand(0, 1);
  for (const Flag& flag : command.flags) {
    if (!may_be_given(flag, words)) continue;
    if (flag.is_switch() || flag.value_optional) {
      app.add_flag(spelled(flag));
    } else {
      app.add_option(spelled(flag), CLI::callback_t{})
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  for (const Command& child : command.commands) {
    CLI::App* sub = app.add_subcommand(child.name);
    if (!child.alias.empty()) sub->alias(child.alias);
    if (has_name_of(words, child)) fill(*sub, child, words);
  }
}

/// `submit`: the command itself runs no program, its kinds do.
bool has_kinds_of_programs(const Command& command) {
  const Command* const single = command.find_command("single");
  return single != nullptr && single->takes_program;
}

/// "the kind of the job is missing, as in: muster submit single train -- python3 train.py".
std::string missing_kind(const std::string& name, const Arguments& typed) {
  std::vector<std::string> words{"muster", "submit", "single", name, "--"};
  words.insert(words.end(), typed.program.begin(), typed.program.end());
  return "the kind of the job is missing (mpi, grpc, torch or single), as in: " +
         base::shell_joined(words);
}

/// Collects the faults and values of one parsed CLI11 app.
class Sorter {
 public:
  explicit Sorter(Arguments& result) : result_(result) {}

  void take_flags(const CLI::App& app, const Command& command) {
    for (const Flag& flag : command.flags) {
      const CLI::Option* option = app.get_option_no_throw(flag.name);
      if (option == nullptr || option->results().empty()) continue;
      const std::vector<std::string>& values = option->results();
      if (flag.is_switch() && values.back() == "false") continue;
      if (values.size() > 1 && !flag.is_switch() && !flag.repeats) {
        result_.faults.push_back({.field = flag.name, .what = "is given more than once"});
      }
      result_.flags[flag.name] = values;
    }
  }

  /// False at an unknown command: the words behind it cannot be read.
  bool take_rest(const std::vector<std::string>& rest, const Command& command) {
    bool after_unknown_flag = false;
    for (const std::string& word : rest) {
      if (word.size() > 1 && word.front() == '-') {
        report_flag(word, command);
        after_unknown_flag = true;
      } else if (std::exchange(after_unknown_flag, false)) {
        // Most likely the value of the flag that was misspelt.
      } else if (!command.commands.empty()) {
        report_command(word, command);
        return false;
      } else if (result_.names.size() < command.positionals.most) {
        result_.names.push_back(word);
      } else {
        // What follows are the flags of a program whose "--" was forgotten.
        report_surplus(word, command);
        return true;
      }
    }
    return true;
  }

 private:
  void report_flag(const std::string& word, const Command& command) {
    result_.faults.push_back({.field = "", .what = unknown_flag(word, command)});
  }

  /// A name in the place of a kind, with a program behind it, is most likely a job's.
  void report_command(const std::string& word, const Command& command) {
    const bool is_job = result_.has_program && has_kinds_of_programs(command) &&
                        base::nearest(word, command_names(command)).empty();
    result_.faults.push_back(
        {.field = "",
         .what = is_job ? missing_kind(word, result_) : unknown_command(word, command)});
  }

  void report_surplus(const std::string& word, const Command& command) {
    std::string what = "unexpected '" + word + "'";
    if (command.takes_program) what += "; a program to run goes behind '--', as in: -- " + word;
    result_.faults.push_back({.field = "", .what = what});
  }

  Arguments& result_;
};

/// CLI11's own words for the few faults it must throw for.
base::Fault fault_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string flag = text.substr(0, text.find(':'));
    const size_t last = flag.rfind(',');
    const bool known = flag.starts_with("-");
    return {.field = known ? flag.substr(last == std::string::npos ? 0 : last + 1) : "",
            .what = known ? "needs a value" : text};
  }
  return {.field = "", .what = text};
}

void sort_with_cli11(const Command& root, std::vector<std::string> words, Arguments& result) {
  CLI::App app;
  fill(app, root, words);
  Sorter sorter(result);
  try {
    // CLI11 takes words from the back.
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    result.faults.push_back(fault_of(error));
  }
  const CLI::App* at = &app;
  const Command* command = &root;
  while (true) {
    sorter.take_flags(*at, *command);
    const bool is_known = sorter.take_rest(at->remaining(), *command);
    if (!is_known || at->get_subcommands().empty()) break;
    at = at->get_subcommands().front();
    command = command->find_command(at->get_name());
    result.path.push_back(command->name);
  }
  if (!result.has_program || command->takes_program) return;
  if (!has_kinds_of_programs(*command)) {
    result.faults.push_back(
        {.field = "", .what = "'" + command->name + "' runs no program; leave out '--'"});
  } else if (result.faults.empty()) {
    result.faults.push_back({.field = "", .what = missing_kind("NAME", result)});
  }
}

}  // namespace

std::string unknown_flag(const std::string& word, const Command& command) {
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = base::nearest(name, flag_names(command));
  return "unknown flag '" + name + "'" + (meant.empty() ? "" : "; did you mean '" + meant + "'?");
}

std::string unknown_command(const std::string& word, const Command& command) {
  const std::vector<std::string> known = command_names(command);
  const std::string meant = base::nearest(word, known);
  std::string what = "unknown command '" + word + "'";
  if (!meant.empty()) return what + "; did you mean '" + meant + "'?";
  if (known.empty()) return what;
  what += "; there are";
  for (const std::string& name : known) what += " " + name;
  return what;
}

Arguments sort_arguments(const Command& root, const std::vector<std::string>& words) {
  Arguments result;
  // The program's words are cut off first: CLI11 would drop a second "--" that belongs to them.
  const auto mark = std::find(words.begin(), words.end(), "--");
  result.has_program = mark != words.end();
  if (result.has_program) result.program.assign(mark + 1, words.end());
  sort_with_cli11(root, {words.begin(), mark}, result);
  return result;
}

std::string FlagReader::text(const std::string& flag, const std::string& fallback) const {
  const auto found = arguments_.flags.find(flag);
  return found == arguments_.flags.end() ? fallback : found->second.back();
}

std::vector<std::string> FlagReader::texts(const std::string& flag) const {
  const auto found = arguments_.flags.find(flag);
  return found == arguments_.flags.end() ? std::vector<std::string>{} : found->second;
}

int FlagReader::number(const std::string& flag, int fallback) {
  if (!has(flag)) return fallback;
  const std::string value = text(flag);
  if (const auto number = base::number_of<int>(value)) return *number;
  fault(flag, "'" + value + "' is not a whole number");
  return fallback;
}

std::chrono::milliseconds FlagReader::duration(const std::string& flag,
                                               std::chrono::milliseconds fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_duration(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int64_t FlagReader::bytes(const std::string& flag, int64_t fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_bytes(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int64_t FlagReader::cpus(const std::string& flag, int64_t fallback) {
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_cpus(text(flag));
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return fallback;
}

int FlagReader::share(const std::string& flag) {
  if (!has(flag)) return 0;
  const auto parsed = base::parse_milli(text(flag));
  if (parsed && *parsed > 0 && *parsed < 1000) return static_cast<int>(*parsed);
  fault(flag, "'" + text(flag) + "' is not a part of one; give 0.001 to 0.999");
  return 0;
}

std::string FlagReader::choice(const std::string& flag, const std::vector<std::string>& choices) {
  std::string value = text(flag, choices.front());
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string what = "'" + value + "' is none of";
  for (const std::string& known : choices) what += " " + known;
  const std::string meant = base::nearest(value, choices);
  if (!meant.empty()) what += "; did you mean '" + meant + "'?";
  fault(flag, what);
  return choices.front();
}

std::optional<base::Time> FlagReader::moment(const std::string& flag, base::Time now) {
  if (!has(flag)) return std::nullopt;
  const auto parsed = parse_moment(text(flag), now);
  if (parsed) return *parsed;
  fault(flag, parsed.error().what);
  return std::nullopt;
}

void FlagReader::fault(std::string field, std::string what) {
  faults_.push_back({.field = std::move(field), .what = std::move(what)});
}

bool FlagReader::is_at_fault(const std::string& field) const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](const base::Fault& known) { return known.field == field; });
}

}  // namespace muster::cli
