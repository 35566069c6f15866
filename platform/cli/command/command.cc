#include "cli/command/command.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::cli {

namespace {

Positionals name_positionals(Offer offer, size_t least, size_t most) {
  return {.name = "NAME", .least = least, .most = most, .choices = {}, .offer = offer};
}

}  // namespace

Offer offer_of(record::Offer offer) {
  switch (offer) {
    case record::Offer::kFiles:
      return Offer::kFiles;
    case record::Offer::kFolders:
      return Offer::kFolders;
    case record::Offer::kProjects:
      return Offer::kProjects;
    case record::Offer::kNothing:
      break;
  }
  return Offer::kNothing;
}

Flags operator+(Flags left, Flags right) {
  left.insert(left.end(), std::make_move_iterator(right.begin()),
              std::make_move_iterator(right.end()));
  return left;
}

Flags output_flag(std::vector<std::string> formats) {
  std::string help = "how to print: " + formats.front();
  for (size_t i = 1; i < formats.size(); ++i) help += ", " + formats[i];
  return {{.name = "--output",
           .letter = "-o",
           .value = "FORMAT",
           .help = help,
           .choices = std::move(formats),
           .offer = Offer::kChoices}};
}

Flags list_output_flag() {
  return output_flag({"table", "json", "yaml", "names"});
}

Flags task_flag(const std::string& help) {
  return {{.name = "--task", .value = "TASK", .help = help}};
}

Flags ignore_missing_flag(const std::string& what) {
  return {{.name = "--ignore-missing", .help = what + " that is not there is no error"}};
}

Positionals new_name() {
  return name_positionals(Offer::kNothing, 1, 1);
}
Positionals one_of(Offer offer) {
  return name_positionals(offer, 1, 1);
}
Positionals some_of(Offer offer) {
  return name_positionals(offer, 1, kAnyNumber);
}
Positionals any_of(Offer offer) {
  return name_positionals(offer, 0, kAnyNumber);
}
Positionals maybe_one_of(Offer offer) {
  return name_positionals(offer, 0, 1);
}

Flags whose_job_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "whose job is meant, where several projects have one of this name",
           .offer = Offer::kProjects}};
}

const Flag* Command::find_flag(std::string_view wanted) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) {
    return flag.name == wanted || (!flag.letter.empty() && flag.letter == wanted);
  });
  return found == flags.end() ? nullptr : &*found;
}

const Command* Command::find_command(std::string_view wanted) const {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& child) {
    return child.name == wanted || (!child.alias.empty() && child.alias == wanted);
  });
  return found == commands.end() ? nullptr : &*found;
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) {
    if (!flag.hidden) names.push_back(flag.name);
  }
  return names;
}

std::vector<std::string> command_names(const Command& command) {
  std::vector<std::string> names;
  for (const Command& child : command.commands) names.push_back(child.name);
  return names;
}

}  // namespace muster::cli
