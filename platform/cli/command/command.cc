#include "cli/command/command.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/common/output.h"

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
  std::string help = "output format: " + formats.front();
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
  return {{.name = "--ignore-missing", .help = what + " that does not exist is not an error"}};
}

Positionals new_name() {
  return name_positionals(Offer::kNothing, 1, 1);
}
Positionals one_of(Offer offer) {
  return name_positionals(offer, 1, 1);
}
Positionals job_or_task() {
  return {.name = "JOB[/TASK]", .least = 1, .most = 1, .offer = Offer::kJobs};
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

Flags job_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "project of the job, if several projects have a job of this name",
           .offer = Offer::kProjects}};
}

const Flag* Command::find_flag(std::string_view name_or_letter) const {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) {
    return flag.name == name_or_letter || (!flag.letter.empty() && flag.letter == name_or_letter);
  });
  return found == flags.end() ? nullptr : &*found;
}

const Command* Command::find_command(std::string_view name_or_alias) const {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& child) {
    return child.name == name_or_alias || (!child.alias.empty() && child.alias == name_or_alias) ||
           std::find(child.more_aliases.begin(), child.more_aliases.end(), name_or_alias) !=
               child.more_aliases.end();
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

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// A title with two aligned columns below it; empty if there are no rows.
std::string section(const std::string& title, const Rows& rows) {
  if (rows.empty()) return "";
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, display_width(left));
  std::string text = "\n" + title + ":\n";
  for (const auto& [left, right] : rows) {
    const std::string padding(width - display_width(left), ' ');
    text.append("  ").append(left).append(padding).append("  ").append(right).append("\n");
  }
  return text;
}

std::string usage(const Command& command, const std::string& path) {
  std::string text = "usage: " + path;
  if (!command.commands.empty()) text += command.name == "submit" ? " [KIND]" : " COMMAND";
  if (!command.positionals.name.empty()) {
    // "NAME USER" are two different words, not repetitions of one word.
    const bool many =
        command.positionals.most > 1 && command.positionals.name.find(' ') == std::string::npos;
    const std::string name = command.positionals.name + (many ? "..." : "");
    text += command.positionals.least > 0 ? " " + name : " [" + name + "]";
  }
  text += " [FLAGS]";
  if (command.takes_program) text += " -- CMD...";
  return text + "\n";
}

Rows command_rows(const Command& command) {
  Rows rows;
  for (const Command& child : command.commands) {
    rows.emplace_back(child.name + (child.alias.empty() ? "" : ", " + child.alias), child.help);
  }
  return rows;
}

/// " N", or "=N" if the value is optional.
std::string value_of(const Flag& flag) {
  if (flag.is_switch()) return "";
  return flag.value_optional ? "[=" + flag.value + "]" : " " + flag.value;
}

/// The flags under the heading `group`.
Rows flag_rows(const Command& command, const std::string& group) {
  Rows rows;
  for (const Flag& flag : command.flags) {
    if (flag.hidden || flag.group != group) continue;
    const std::string letter = flag.letter.empty() ? "    " : flag.letter + ", ";
    rows.emplace_back(letter + flag.name + value_of(flag), flag.help);
  }
  return rows;
}

/// The headings, in the order in which the flags first use them.
std::vector<std::string> groups_of(const Command& command) {
  std::vector<std::string> groups;
  for (const Flag& flag : command.flags) {
    const bool known = std::find(groups.begin(), groups.end(), flag.group) != groups.end();
    if (!flag.hidden && !flag.group.empty() && !known) groups.push_back(flag.group);
  }
  return groups;
}

}  // namespace

std::string help_text(const Command& root, const std::vector<std::string>& path) {
  const Command* command = &root;
  std::string spelled = root.name;
  for (const std::string& word : path) {
    const Command* child = command->find_command(word);
    if (child == nullptr) break;
    command = child;
    spelled += " " + child->name;
  }
  std::string text = usage(*command, spelled) + "\n" + command->help + "\n";
  text += section("commands", command_rows(*command));
  text += section("flags", flag_rows(*command, ""));
  for (const std::string& group : groups_of(*command)) {
    text += section(group, flag_rows(*command, group));
  }
  if (!command->example.empty()) text += "\nexample:\n  " + command->example + "\n";
  if (!command->see_also.empty()) text += "\nsee also: " + command->see_also + "\n";
  return text;
}

}  // namespace muster::cli
