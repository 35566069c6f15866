#include "cli/job_flags.h"

#include <algorithm>

#include "base/text.h"
#include "job/spec_table.h"
#include "record/type.h"

namespace muster::cli {

namespace {

Offer offer_of(const record::Flag& flag, bool has_choices) {
  if (has_choices) return Offer::kChoices;
  switch (flag.offer) {
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

bool is_of_kind(const record::Flag& flag, std::string_view kind) {
  if (flag.kinds == nullptr) return true;
  const std::vector<std::string> kinds = base::split(flag.kinds, ' ');
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Flag flag_of_row(const record::Row& row) {
  const record::Flag& flag = row.notes.flag;
  std::vector<std::string> choices = flag.choices ? flag.choices() : row.type->words();
  const auto text = [](const char* words) { return words == nullptr ? "" : words; };
  return {.name = flag.name,
          .letter = text(flag.letter),
          .value = text(flag.value),
          .help = flag.help == nullptr ? row.notes.help : flag.help,
          .choices = choices,
          .offer = offer_of(flag, !choices.empty()),
          .repeats = row.type->element() != nullptr || row.type->is_texts()};
}

}  // namespace

Flags field_flags(std::string_view kind) {
  Flags flags;
  for (const record::Place& place : record::places_of(record::table_for<job::JobSpec>())) {
    const record::Flag& flag = place.row->notes.flag;
    if (!place.has_flag || flag.by_hand || !is_of_kind(flag, kind)) continue;
    flags.push_back(flag_of_row(*place.row));
  }
  return flags;
}

Flags worker_flags() {
  return {{.name = "--max-workers",
           .value = "N",
           .help = "--workers of an elastic job; alone: with as few as its kind can do with"}};
}

Flags importance_flags() {
  return {
      {.name = "--priority",
       .value = "N",
       .help = "0 to 1000, or what it is for: train (50), build (100) or inference (125)"},
      {.name = "--interactive",
       .help = "somebody sits before it: as --priority build; without a command it waits for "
               "'muster bash'"},
      {.name = "--preemptible", .help = "may exceed the quota, and be evicted"},
      {.name = "--no-preemptible", .help = "stays within the quota, and is never evicted"},
      {.name = "--on-exit",
       .value = "CODE=ACTION",
       .help = "for an exit code: retry, fail, or avoid-node (start again elsewhere)",
       .repeats = true},
      {.name = "--on-log",
       .value = "PATTERN=ACTION",
       .help = "for a regular expression that its last lines match",
       .repeats = true},
  };
}

Flags content_flags() {
  return {
      {.name = "--workspace",
       .value = "FROM",
       .help = "send a folder, a .zip or a git URL: the working folder of every task",
       .offer = Offer::kFolders},
      {.name = "--workspace-ref",
       .value = "REF",
       .help = "of the git URL: a branch, a tag or a commit"},
      {.name = "--ignore",
       .value = "PATTERN",
       .help = "leave these files out, beside those of .gitignore",
       .repeats = true},
      {.name = "--volume",
       .letter = "-v",
       .value = "FROM:TO[:ro]",
       .help = "a path of the node at another of the tasks; storage/NAME is the project's own "
               "folder of that name, artifacts the job's",
       .repeats = true},
      {.name = "--artifacts",
       .value = "FOLDER",
       .help = "keep what it writes there, for 'muster artifacts' (default: /artifacts)",
       .value_optional = true},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME[=VALUE]",
       .help = "to select it by",
       .repeats = true},
  };
}

}  // namespace muster::cli
