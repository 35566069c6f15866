#include "cli/sessions/typed_commands.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/table.h"

namespace muster::cli::sessions {

namespace {

constexpr char kRecord = '\036';
constexpr char kField = '\037';
constexpr int kInterrupted = 130;
constexpr std::chrono::seconds kLong{10};
constexpr size_t kShownOfCommand = 100;

/// One note of a command: when it began, or how it ended.
struct Note {
  std::string shell;
  std::string number;
  std::optional<int> exit_code;
  int64_t time = 0;
  std::string folder;
  std::string text;
};

std::optional<Note> note_of(std::string_view record) {
  std::array<std::string, 6> fields;
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const size_t end = record.find(kField);
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = record.substr(0, end);
    record.remove_prefix(end + 1);
  }
  if (!record.ends_with('\n')) return std::nullopt;  // it is being written
  record.remove_suffix(1);
  const auto time = base::number_of<int64_t>(fields[3]);
  const auto code = base::number_of<int>(fields[2]);
  if (!time || (!code && fields[2] != "-") || record.empty()) return std::nullopt;
  return Note{.shell = fields[0],
              .number = fields[1],
              .exit_code = code,
              .time = *time,
              .folder = fields[4],
              .text = std::string(record)};
}

/// The first word that is a program: behind NAME=VALUE, and behind those that only run another.
std::string program_of(std::string_view text) {
  constexpr std::array<std::string_view, 6> kRunners{"time", "nohup", "exec",
                                                     "env",  "nice",  "command"};
  for (const std::string& word : base::split(text, ' ')) {
    const size_t equals = word.find('=');
    const bool is_assignment = equals != std::string::npos && word.find('/') > equals;
    const bool runs_another = std::find(kRunners.begin(), kRunners.end(), word) != kRunners.end();
    if (word.empty() || is_assignment || runs_another) continue;
    const size_t slash = word.rfind('/');
    return slash == std::string::npos ? word : word.substr(slash + 1);
  }
  return "";
}

/// The commands in a line: "cd x && mpirun y" has two.
std::vector<std::string> programs_in(std::string_view text) {
  std::vector<std::string> programs;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";&|\n"), text.size());
    if (std::string program = program_of(text.substr(0, end)); !program.empty()) {
      programs.push_back(std::move(program));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return programs;
}

template <size_t Count>
bool is_one_of(const std::string& word, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_training_launcher(const std::string& program) {
  constexpr std::array<std::string_view, 10> kLaunchers{
      "mpirun",  "mpiexec", "mpiexec.hydra", "horovodrun", "torchrun",
      "orterun", "prterun", "deepspeed",     "accelerate", "julia"};
  return is_one_of(program, kLaunchers) || program.starts_with("python");
}

bool is_for_people(const TypedCommand& command) {
  constexpr std::array<std::string_view, 22> kForPeople{
      "vi", "vim", "nvim", "nano", "emacs", "less",   "more", "man",   "top", "htop", "bash",
      "sh", "zsh", "ssh",  "tmux", "watch", "screen", "tail", "sleep", "pip", "exit", "logout"};
  const std::vector<std::string> programs = programs_in(command.text);
  return programs.empty() || is_one_of(programs.front(), kForPeople);
}

bool went_well(const TypedCommand& command) {
  return !command.exit_code || *command.exit_code == 0 || *command.exit_code == kInterrupted;
}

std::string end_of(const TypedCommand& command) {
  if (!command.exit_code) return "-";
  return *command.exit_code == kInterrupted ? "Ctrl-C" : std::to_string(*command.exit_code);
}

std::string took_words(const TypedCommand& command) {
  if (!command.exit_code) return "-";
  const auto took = command.took.count();
  if (took < 60) return std::to_string(took) + "s";
  if (took < 3600) return std::to_string(took / 60) + "m" + std::to_string(took % 60) + "s";
  return std::to_string(took / 3600) + "h" + std::to_string(took / 60 % 60) + "m";
}

/// The notes are the task's, who may have written any times.
std::chrono::seconds seconds_between(int64_t from, int64_t to) {
  int64_t between = 0;
  const bool is_one = from >= 0 && to >= from && !__builtin_sub_overflow(to, from, &between);
  return std::chrono::seconds(is_one ? between : 0);
}

}  // namespace

std::vector<TypedCommand> parse_typed_commands(std::string_view records) {
  std::vector<TypedCommand> commands;
  // Where each shell's command of that number is, and when it began.
  std::map<std::pair<std::string, std::string>, std::pair<size_t, int64_t>> begun;
  std::vector<std::string> pieces = base::split(records, kRecord);
  // What comes before the first mark is the end of a record that was cut off.
  for (size_t i = 1; i < pieces.size(); ++i) {
    auto note = note_of(pieces[i]);
    if (!note) continue;
    const auto key = std::pair(note->shell, note->number);
    const auto found = begun.find(key);
    if (note->exit_code && found != begun.end()) {
      TypedCommand& command = commands[found->second.first];
      command.exit_code = note->exit_code;
      command.took = seconds_between(found->second.second, note->time);
      begun.erase(found);
      continue;
    }
    if (!note->exit_code) begun[key] = {commands.size(), note->time};
    commands.push_back({.text = std::move(note->text),
                        .folder = std::move(note->folder),
                        .exit_code = note->exit_code});
  }
  return commands;
}

bool launches(const TypedCommand& command) {
  const std::vector<std::string> programs = programs_in(command.text);
  return std::any_of(programs.begin(), programs.end(), is_training_launcher);
}

std::optional<size_t> candidate_of(const std::vector<TypedCommand>& commands) {
  const auto last_that = [&](const auto& holds) -> std::optional<size_t> {
    for (size_t i = commands.size(); i > 0; --i) {
      if (went_well(commands[i - 1]) && holds(commands[i - 1])) return i - 1;
    }
    return std::nullopt;
  };
  if (const auto found = last_that(launches)) return found;
  return last_that([](const TypedCommand& command) {
    return (!command.exit_code || command.took >= kLong) && !is_for_people(command);
  });
}

std::string typed_commands_view(const std::vector<TypedCommand>& commands, size_t most) {
  Table table({{.title = "LINE", .right = true},
               {.title = "EXIT", .right = true},
               {.title = "TOOK", .right = true},
               {.title = "FOLDER"},
               {.title = "COMMAND"}});
  const size_t first = commands.size() > most ? commands.size() - most : 0;
  for (size_t i = first; i < commands.size(); ++i) {
    const TypedCommand& command = commands[i];
    const bool is_long = command.text.size() > kShownOfCommand;
    table.add({std::to_string(i + 1), end_of(command), took_words(command), command.folder,
               command.text.substr(0, kShownOfCommand) + (is_long ? "..." : "")});
  }
  return table.to_string();
}

}  // namespace muster::cli::sessions
