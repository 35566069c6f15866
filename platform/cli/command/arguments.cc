#include "cli/command/arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"
#include "record/input.h"

namespace muster::cli {

namespace {

/// `submit`: the command itself runs no program, but its subcommands do.
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

/// Reads words from left to right. A flag belongs to the command named before it; the name of a
/// subcommand leads to that command.
class Parser {
 public:
  Parser(const Command& root, std::vector<std::string> words, Arguments& result)
      : command_(&root), words_(std::move(words)), result_(result) {}

  /// Returns the command that the words lead to.
  const Command& parse() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word.starts_with("--")) {
        take_long_flag(word);
      } else if (word.size() > 1 && word.front() == '-') {
        take_letters(word);
      } else {
        take_name(word);
      }
    }
    end_level();
    return *command_;
  }

 private:
  void take_long_flag(const std::string& word) {
    const size_t equals = word.find('=');
    const Flag* const flag = command_->find_flag(word.substr(0, equals));
    if (flag == nullptr) return report_unknown_flag(word);
    after_unknown_flag_ = false;
    if (equals == std::string::npos) return take_flag(*flag);
    std::string value = word.substr(equals + 1);
    add_value(*flag, flag->value_optional && value.empty() ? "true" : std::move(value));
  }

  /// "-f", "-n4", or several switches in one word: "-it".
  void take_letters(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const Flag* const flag = command_->find_flag(std::string("-") + word[i]);
      if (flag == nullptr) return report_unknown_flag("-" + word.substr(i));
      after_unknown_flag_ = false;
      const bool is_last = i + 1 == word.size();
      if (flag->is_switch() || flag->value_optional || is_last) {
        take_flag(*flag);
      } else {
        return add_value(*flag, word.substr(i + 1));
      }
    }
  }

  /// A flag without a value in its own word. The next word is its value, even if it begins with '-'.
  void take_flag(const Flag& flag) {
    if (flag.is_switch() || flag.value_optional) return add_value(flag, "true");
    if (next_ < words_.size()) return add_value(flag, words_[next_++]);
    result_.faults.push_back({.field = flag.name, .what = "needs a value"});
  }

  void add_value(const Flag& flag, std::string value) {
    values_[&flag].push_back(std::move(value));
  }

  void take_name(const std::string& word) {
    if (const Command* const child = command_->find_command(word)) return enter(*child);
    // The word after an unknown flag is most likely its value.
    if (std::exchange(after_unknown_flag_, false) || gave_up_) return;
    if (!command_->commands.empty()) {
      gave_up_ = true;
      report_unknown_command(word);
    } else if (result_.names.size() < command_->positionals.most) {
      result_.names.push_back(word);
    } else {
      // The words that follow are most likely the flags of a program whose "--" is missing.
      gave_up_ = true;
      report_surplus(word);
    }
  }

  void enter(const Command& child) {
    if (gave_up_) {
      // The flags after it belong to a command that was not found.
      next_ = words_.size();
      return;
    }
    end_level();
    command_ = &child;
    result_.path.push_back(child.name);
  }

  /// Stores the values of this command's flags. They replace earlier values of flags with the same
  /// name.
  void end_level() {
    for (const Flag& flag : command_->flags) {
      const auto found = values_.find(&flag);
      if (found == values_.end()) continue;
      std::vector<std::string>& values = found->second;
      if (flag.is_switch()) {
        set_switch(flag, values);
        continue;
      }
      if (values.size() > 1 && !flag.repeats) {
        result_.faults.push_back({.field = flag.name, .what = "is given more than once"});
      }
      result_.flags[flag.name] = std::move(values);
    }
    result_.faults.insert(result_.faults.end(), word_faults_.begin(), word_faults_.end());
    word_faults_.clear();
    values_.clear();
    after_unknown_flag_ = false;
  }

  /// The last value counts: "--follow=false" also undoes the "--follow" of a command above.
  void set_switch(const Flag& flag, const std::vector<std::string>& values) {
    const auto wrong = std::find_if(values.begin(), values.end(), [](const std::string& value) {
      return !truth_of(value).has_value();
    });
    if (wrong != values.end()) {
      result_.faults.push_back(
          {.field = flag.name, .what = base::in_quotes(*wrong) + " is neither true nor false"});
    } else if (truth_of(values.back()) == true) {
      result_.flags[flag.name] = {"true"};
    } else {
      result_.flags.erase(flag.name);
    }
  }

  void report_unknown_flag(const std::string& word) {
    if (gave_up_) return;
    word_faults_.push_back({.field = "", .what = unknown_flag(word, *command_)});
    after_unknown_flag_ = true;
  }

  /// An unknown word instead of a job kind, followed by a program, is most likely a job's
  /// name.
  void report_unknown_command(const std::string& word) {
    const bool is_job = result_.has_program && has_kinds_of_programs(*command_) &&
                        base::nearest(word, command_names(*command_)).empty();
    word_faults_.push_back(
        {.field = "",
         .what = is_job ? missing_kind(word, result_) : unknown_command(word, *command_)});
  }

  void report_surplus(const std::string& word) {
    std::string what = "unexpected '" + word + "'";
    if (command_->takes_program) what += "; write '--' before a program to run: -- " + word;
    word_faults_.push_back({.field = "", .what = what});
  }

  const Command* command_;
  std::vector<std::string> words_;
  size_t next_ = 0;
  Arguments& result_;
  std::vector<base::Fault> word_faults_;                    ///< faults in the words of `command_`
  std::map<const Flag*, std::vector<std::string>> values_;  ///< the flags of `command_`
  /// The previous word was an unknown flag.
  bool after_unknown_flag_ = false;
  bool gave_up_ = false;  ///< stopped at an unknown word: from here on only flags are examined
};

void check_program(const Command& command, Arguments& result) {
  if (!result.has_program) return;
  if (has_kinds_of_programs(command)) {
    // Without a kind, a program only replaces the command of a job file.
    if (result.has("--file") || !result.faults.empty()) return;
    result.faults.push_back({.field = "", .what = missing_kind("NAME", result)});
  } else if (!command.takes_program) {
    result.faults.push_back(
        {.field = "", .what = "'" + command.name + "' runs no program; leave out '--'"});
  }
}

}  // namespace

std::optional<bool> truth_of(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue{"true", "t", "1", "yes", "y", "on"};
  constexpr std::array<std::string_view, 6> kFalse{"false", "f", "0", "no", "n", "off"};
  const std::string lower = base::lower_case(text);
  if (std::find(kTrue.begin(), kTrue.end(), lower) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), lower) != kFalse.end()) return false;
  return std::nullopt;
}

std::string flag_of_field(const std::string& field, const FieldFlags& flags) {
  for (const auto& [outer, flag] : flags) {
    if (record::is_within(field, outer)) return std::string(flag);
  }
  return field;
}

std::string unknown_flag(const std::string& word, const Command& command) {
  const std::string name = word.substr(0, word.find('='));
  return "unknown flag '" + name + "'" + record::did_you_mean(name, flag_names(command));
}

std::string unknown_command(const std::string& word, const Command& command) {
  if (std::find(command.lacking.begin(), command.lacking.end(), word) != command.lacking.end()) {
    return "the command '" + word + "' is not available in Muster";
  }
  const std::vector<std::string> known = command_names(command);
  std::string what = "unknown command '" + word + "'";
  const std::string suggestion = record::did_you_mean(word, known);
  if (!suggestion.empty()) return what + suggestion;
  if (known.empty()) return what;
  return what + "; the commands are: " + base::joined(known);
}

Arguments sort_arguments(const Command& root, const std::vector<std::string>& words) {
  Arguments result;
  // Everything after the first "--" belongs to the program, including another "--".
  const auto mark = std::find(words.begin(), words.end(), "--");
  result.has_program = mark != words.end();
  if (result.has_program) result.program.assign(mark + 1, words.end());
  check_program(Parser(root, {words.begin(), mark}, result).parse(), result);
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

int FlagReader::number(const std::string& flag, int fallback, int most) {
  if (!has(flag)) return fallback;
  const std::string value = text(flag);
  if (const auto number = base::number_of<int>(value)) return *number;
  if (!base::is_whole_number(value)) {
    fault(flag, "'" + value + "' is not a whole number");
  } else if (value.starts_with('-')) {
    fault(flag, base::shortened(value) + " is out of range");
  } else {
    fault(flag, base::shortened(value) + " is out of range; give at most " + std::to_string(most));
  }
  return fallback;
}

int FlagReader::number_between(const std::string& flag, int fallback, int least, int most) {
  const int value = number(flag, fallback, most);
  if (!has(flag) || is_at_fault(flag) || (value >= least && value <= most)) return value;
  const bool is_open = most == std::numeric_limits<int>::max();
  fault(flag, std::to_string(value) + " is out of range; give " + std::to_string(least) +
                  (is_open ? " or more" : " to " + std::to_string(most)));
  return fallback;
}

std::chrono::milliseconds FlagReader::duration(const std::string& flag,
                                               std::chrono::milliseconds fallback) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::days(36'500);
  if (!has(flag)) return fallback;
  const auto parsed = base::parse_duration(text(flag));
  if (parsed && *parsed <= kLongest) return *parsed;
  fault(flag,
        parsed ? base::in_quotes(text(flag)) + " is longer than 100 years" : parsed.error().what);
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
  fault(flag, "'" + text(flag) + "' is not a fraction; give 0.001 to 0.999");
  return 0;
}

std::string FlagReader::choice(const std::string& flag, const std::vector<std::string>& choices) {
  std::string value = text(flag, choices.front());
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  fault(flag, record::not_a_choice(value, choices));
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
