// The lists of flags that describe a job, for the commands that submit one. The flags of single fields
// come from the table of fields; the others set several fields, or have a form of their own.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/spec/spec_flags.h"
#include "job/spec_table.h"
#include "record/type.h"

namespace muster::cli::spec {

namespace {

bool is_of_kind(const record::Flag& flag, std::string_view kind) {
  if (flag.kinds == nullptr || kind.empty()) return true;
  const std::vector<std::string> kinds = base::split(flag.kinds, ' ');
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Flag flag_of_row(const record::Row& row) {
  const record::Flag& flag = row.notes.flag;
  std::vector<std::string> choices = flag.choices ? flag.choices() : row.type->words();
  const auto text = [](const char* words) { return words == nullptr ? "" : words; };
  return {
      .name = flag.name,
      .letter = text(flag.letter),
      .value = text(flag.value),
      .help = flag.help == nullptr ? row.notes.help : flag.help,
      .choices = choices,
      .offer = choices.empty() ? offer_of(flag.offer) : Offer::kChoices,
      .repeats = row.type->element() != nullptr || row.type->is_texts() || row.type->is_pairs()};
}

struct FlagGroup {
  const char* name;
  std::vector<std::string_view> flags;
};

/// Flags without a group are listed under "flags".
const std::vector<FlagGroup>& flag_groups() {
  static const std::vector<FlagGroup> groups{
      {"resources",
       {"--gpus", "--gpu-share", "--gpu-memory", "--gpu-model", "--cpus", "--memory",
        "--shm-size"}},
      {"image",
       {"--image", "--image-pull-policy", "--registry-server", "--registry-username",
        "--registry-secret", "--user", "--launch", "--keep-entrypoint", "--sandbox",
        "--writable-root", "--allow-new-privileges", "--cap-add"}},
      {"scheduling", {"--priority",    "--interactive", "--preemptible",     "--no-preemptible",
                      "--min-workers", "--max-workers", "--resize",          "--node-pool",
                      "--packing",     "--topology",    "--prefer-topology", "--start-timeout",
                      "--time-limit",  "--grace",       "--retries",         "--on-exit",
                      "--on-log",      "--hold",        "--after",           "--after-member",
                      "--begin",       "--singleton",   "--keep-for"}},
      {"array", {"--array", "--each-line", "--each-json", "--max-running", "--max-failures"}},
      {"variables", {"--env", "--secret", "--secret-file"}},
      {"files",
       {"--folder", "--workspace", "--workspace-ref", "--ignore", "--volume", "--artifacts"}},
      {"Slurm",
       {"--slurm-partition", "--slurm-account", "--slurm-qos", "--slurm-reservation",
        "--slurm-constraint"}},
      {"Kubernetes",
       {"--kubernetes-node-selector", "--kubernetes-toleration", "--kubernetes-priority-class",
        "--kubernetes-service-account", "--kubernetes-runtime-class", "--kubernetes-pull-secret",
        "--kubernetes-claim", "--kubernetes-device", "--kubernetes-label",
        "--kubernetes-annotation"}},
      {"output", {"--follow", "--timestamps", "--no-prefix", "--no-fold", "--output"}},
  };
  return groups;
}

}  // namespace

Flags in_groups(Flags flags) {
  for (const FlagGroup& group : flag_groups()) {
    for (Flag& flag : flags) {
      const bool is_of_it =
          std::find(group.flags.begin(), group.flags.end(), flag.name) != group.flags.end();
      if (is_of_it && flag.group.empty()) flag.group = group.name;
    }
  }
  const auto place = [](const Flag& flag) {
    const auto& groups = flag_groups();
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const FlagGroup& group) {
      return flag.group == group.name;
    });
    return flag.group.empty() ? -1 : found - groups.begin();
  };
  std::stable_sort(flags.begin(), flags.end(),
                   [&](const Flag& left, const Flag& right) { return place(left) < place(right); });
  return flags;
}

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
           .help = "largest number of workers; makes the job elastic: it starts with fewer, but at "
                   "least --min-workers (default: the fewest of its kind)"}};
}

Flags importance_flags() {
  return {
      {.name = "--priority",
       .value = "N",
       .help = "0 to 1000, or train (50), build (100) or inference (125)"},
      {.name = "--interactive",
       .help = "a person works in the job: the priority is build; without a command the job waits "
               "for 'muster bash'"},
      {.name = "--preemptible", .help = "the job may exceed the quota, and may be evicted"},
      {.name = "--no-preemptible", .help = "the job stays within the quota, and is never evicted"},
      {.name = "--on-exit",
       .value = "CODE=ACTION",
       .help = "action after this exit code: retry (one of --retries), fail, or avoid-node (start "
               "again "
               "on another node)",
       .repeats = true},
      {.name = "--on-log",
       .value = "PATTERN=ACTION",
       .help = "action if the last log lines of the failed task match this regular expression: "
               "retry, fail or avoid-node",
       .repeats = true},
      {.name = "--after",
       .value = "JOB[:ok|any|failed]",
       .help = "wait until this job has succeeded (ok, the default), ended (any), or failed",
       .offer = Offer::kJobs,
       .repeats = true},
      {.name = "--after-member",
       .value = "ARRAY[:ok|any|failed]",
       .help = "of an array: each member waits for the member of the other array that has the same "
               "index",
       .repeats = true},
      {.name = "--begin",
       .value = "TIME",
       .help = "wait until this time: 03:00, tomorrow 03:00, +2h, 2026-11-29T03:00:00+01:00"},
  };
}

Flags variable_flags() {
  return {{.name = "--env",
           .letter = "-e",
           .value = "NAME[=VALUE]",
           .help = "set an environment variable of the job, or copy it from this shell",
           .offer = Offer::kVariables,
           .repeats = true},
          {.name = "--secret",
           .value = "NAME[=VARIABLE]",
           .help = "give the job a secret of the project as a variable",
           .repeats = true},
          {.name = "--secret-file",
           .value = "NAME[=PATH]",
           .help = "give the job a secret as a file in /generated/secrets",
           .repeats = true}};
}

Flags content_flags() {
  return {
      {.name = "--workspace",
       .value = "FROM",
       .help = "send a folder, a .zip file or a git URL as the working folder of every task",
       .offer = Offer::kFolders},
      {.name = "--workspace-ref", .value = "REF", .help = "branch, tag or commit of the git URL"},
      {.name = "--ignore",
       .value = "PATTERN",
       .help = "do not send files that match; nor are files sent that .gitignore excludes",
       .repeats = true},
      {.name = "--volume",
       .letter = "-v",
       .value = "FROM:TO[:ro]",
       .help = "mount a path of the node in the tasks; storage/NAME: a folder of the project; "
               "artifacts: the job's artifact folder",
       .repeats = true},
      {.name = "--artifacts",
       .value = "FOLDER",
       .help = "artifact folder, kept for 'muster artifacts' (default: /artifacts)",
       .value_optional = true},
      {.name = "--label",
       .letter = "-l",
       .value = "NAME[=VALUE]",
       .help = "label of the job, for 'muster list --label' and other filters",
       .repeats = true},
  };
}

Flags override_flags() {
  const Flags shape = {
      {.name = "--workers", .letter = "-n", .value = "N", .help = "number of workers"},
      {.name = "--parameter-server-command",
       .value = "TEXT",
       .help = "command of the parameter servers, run by sh -c"},
      {.name = "--evaluators", .value = "N", .help = "number of evaluators: 0 or 1"},
      {.name = "--evaluator-command",
       .value = "TEXT",
       .help = "command of the evaluator, run by sh -c; implies one evaluator"}};
  return shape + worker_flags() + field_flags("") + importance_flags() + content_flags() +
         variable_flags();
}

}  // namespace muster::cli::spec
