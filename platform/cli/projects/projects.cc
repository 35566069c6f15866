// project: quotas of projects, and the project in use.

#include "cli/projects/projects.h"

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster_wire.h"
#include "api/usage.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "job/project.h"

namespace muster::cli::projects {

namespace {

using Amount = api::ShareChange::Amount;

constexpr std::string_view kUnlimited = "unlimited";
/// The value of --gpus that stands for all GPUs not promised to other projects.
constexpr std::string_view kRest = "rest";

using Parser = base::Result<int64_t> (*)(std::string_view);

/// The outer optional is empty if the flag is not given; the inner one is empty for "unlimited".
Amount read_amount(const std::string& flag, Parser parse, FlagReader& reader) {
  if (!reader.has(flag)) return std::nullopt;
  if (reader.text(flag) == kUnlimited) return Amount(std::in_place, std::nullopt);
  const auto amount = parse(reader.text(flag));
  if (amount) return Amount(std::in_place, *amount);
  reader.fault(flag, amount.error().what + ", nor 'unlimited'");
  return std::nullopt;
}

std::optional<double> read_weight(FlagReader& reader) {
  if (!reader.has("--weight")) return std::nullopt;
  const std::string text = reader.text("--weight");
  const auto weight = base::number_of<double>(text);
  if (weight && std::isfinite(*weight) && *weight >= 0) return weight;
  reader.fault("--weight", "'" + text + "' is not a weight such as 1, 2.5 or 0");
  return std::nullopt;
}

api::QuotaChange read_quota(FlagReader& reader) {
  api::QuotaChange quota;
  const bool has_rest = reader.text("--gpus") == kRest;
  quota.deserved = {
      .gpu_milli = has_rest ? Amount() : read_amount("--gpus", base::parse_milli, reader),
      .cpu_milli = read_amount("--cpus", base::parse_cpus, reader),
      .memory_bytes = read_amount("--memory", base::parse_bytes, reader)};
  if (reader.has("--limit") && reader.has("--limit-gpus")) {
    reader.fault("--limit", "is the same as --limit-gpus; give only one");
  }
  quota.limit = {.gpu_milli = read_amount(reader.has("--limit") ? "--limit" : "--limit-gpus",
                                          base::parse_milli, reader),
                 .cpu_milli = read_amount("--limit-cpus", base::parse_cpus, reader),
                 .memory_bytes = read_amount("--limit-memory", base::parse_bytes, reader)};
  quota.weight = read_weight(reader);
  return quota;
}

std::optional<std::chrono::milliseconds> read_duration(const std::string& flag,
                                                       FlagReader& reader) {
  if (!reader.has(flag)) return std::nullopt;
  return reader.duration(flag, {});
}

/// The values of `project create` and `project set`. With --pool, quota, limit and weight apply
/// only to these pools.
api::ProjectChange read_project_flags(FlagReader& reader) {
  api::ProjectChange change;
  if (reader.has("--parent")) change.parent = reader.text("--parent");
  if (reader.has("--priority")) change.priority = reader.number("--priority", 0);
  change.reclaim_min_runtime = read_duration("--reclaim-min-runtime", reader);
  change.preempt_min_runtime = read_duration("--preempt-min-runtime", reader);
  const api::QuotaChange quota = read_quota(reader);
  const std::vector<std::string> pools = reader.texts("--pool");
  if (reader.has("--gpus") && pools.empty()) {
    change.takes_the_rest = reader.text("--gpus") == kRest;
  } else if (reader.has("--gpus") && reader.text("--gpus") == kRest) {
    reader.fault("--gpus", "'rest' applies to all node pools; omit --pool");
  }
  if (pools.empty()) change.quota = quota;
  for (const std::string& pool : pools) change.pools[pool] = quota;
  if (!pools.empty() && quota == api::QuotaChange{} && reader.ok()) {
    reader.fault("--pool", "needs --gpus, --limit, --weight or another property to set there");
  }
  for (const std::string& pool : reader.texts("--no-pool")) {
    if (change.pools.contains(pool) && change.pools.at(pool)) {
      reader.fault("--no-pool", "'" + pool + "' also gets a quota by --pool");
    }
    change.pools[pool] = std::nullopt;
  }
  return change;
}

template <ProjectChangeCommand::What what>
Call read_project_change(Reading& in) {
  ProjectChangeCommand command{
      .what = what, .name = in.name("project"), .change = {}, .output = in.output()};
  command.change = read_project_flags(in.reader);
  if (what == ProjectChangeCommand::What::kSet && command.change == api::ProjectChange{} &&
      in.reader.ok()) {
    in.reader.fault("", "give a property to change, such as --gpus, --limit or --weight");
  }
  return command;
}

Call read_project_list(Reading& in) {
  return ProjectListCommand{.in_use = in.caller.project, .output = in.list_output()};
}

Call read_project_get(Reading& in) {
  return ProjectGetCommand{.name = in.name("project"), .output = in.output()};
}

Call read_project_usage(Reading& in) {
  ProjectUsageCommand command{.name = in.name("project"), .query = {}};
  command.query.since = in.reader.moment("--since", in.caller.now);
  command.query.until = in.reader.moment("--until", in.caller.now);
  if (command.query.since && *command.query.since > command.query.until.value_or(in.caller.now)) {
    in.reader.fault("--since", command.query.until ? "is after --until" : "is in the future");
  }
  command.output = in.output({"table", "json", "yaml", "csv"});
  if (in.reader.text("--output") == "csv") command.output = Output::kCsv;
  return command;
}

Call read_project_delete(Reading& in) {
  return ProjectDeleteCommand{.names = in.names("project"),
                              .ignore_missing = in.reader.has("--ignore-missing")};
}

Call read_project_use(Reading& in) {
  return ProjectUseCommand{.name = in.optional_name(), .in_use = in.caller.project};
}

/// The flags on quotas. --limit and --limit-gpus are the same flag: the long name matches
/// --limit-cpus, the short name is quicker to type.
Flags project_flags() {
  return {
      {.name = "--gpus",
       .value = "N",
       .help = "GPU quota, which the project can always claim: 2, 0.5, unlimited, or, for the "
               "project 'default', rest: all GPUs without a quota (default: 0)"},
      {.name = "--cpus", .value = "N", .help = "CPU quota, in cores"},
      {.name = "--memory", .value = "SIZE", .help = "memory quota, such as 64G"},
      {.name = "--limit",
       .value = "N",
       .help = "GPU limit, which the project never exceeds, or unlimited"},
      {.name = "--limit-gpus", .value = "N", .help = "the same as --limit", .hidden = true},
      {.name = "--limit-cpus", .value = "N", .help = "CPU limit, in cores"},
      {.name = "--limit-memory", .value = "SIZE", .help = "memory limit, such as 64G"},
      {.name = "--weight",
       .value = "W",
       .help = "weight of the project's share of unused resources; 0: no share (default: 1)"},
      {.name = "--pool",
       .value = "POOL",
       .help = "apply quota, limit and weight to this node pool only",
       .repeats = true},
      {.name = "--parent",
       .value = "PROJECT",
       .help = "parent project; \"\" for none",
       .offer = Offer::kProjects},
      {.name = "--priority",
       .value = "N",
       .help = "order in which projects get unused resources, largest first (default: 100)"},
      {.name = "--reclaim-min-runtime",
       .value = "TIME",
       .help = "minimum runtime of a job before other projects may reclaim its resources (default: "
               "0s)"},
      {.name = "--preempt-min-runtime",
       .value = "TIME",
       .help = "minimum runtime of a job before more important jobs of the project may preempt it "
               "(default: 0s)"},
  };
}

}  // namespace

Command project_command() {
  return {
      .name = "project",
      .help = "manage projects, their quotas and members: create, list, get, set, delete, use ...",
      .commands =
          {
              {.name = "create",
               .help = "create a project",
               .read = read_project_change<ProjectChangeCommand::What::kCreate>,
               .positionals = new_name(),
               .flags = project_flags() + output_flag(),
               .example = "muster project create team-a --gpus 2"},
              {.name = "list",
               .alias = "ls",
               .help = "list projects as a tree with quotas, fair shares, running and waiting "
                       "resources",
               .read = read_project_list,
               .flags = list_output_flag(),
               .example = "muster project list"},
              {.name = "get",
               .help = "show a project: its quota in each pool and its use",
               .read = read_project_get,
               .positionals = one_of(Offer::kProjects),
               .flags = output_flag(),
               .example = "muster project get team-a"},
              {.name = "set",
               .help = "change the given properties of a project",
               .read = read_project_change<ProjectChangeCommand::What::kSet>,
               .positionals = one_of(Offer::kProjects),
               .flags = project_flags() +
                        Flags{{.name = "--no-pool",
                               .value = "POOL",
                               .help = "remove the quota of this node pool",
                               .repeats = true}} +
                        output_flag(),
               .example = "muster project set team-a --gpus 4 --limit unlimited"},
              {.name = "usage",
               .help = "show the GPU hours of a project's users, of the jobs that the server keeps",
               .read = read_project_usage,
               .positionals = one_of(Offer::kProjects),
               .flags = Flags{{.name = "--since",
                               .value = "TIME",
                               .help = "begin of the span: 7d (ago), or 2026-01-31T12:00:00Z "
                                       "(default: 30 days before its end)"},
                              {.name = "--until",
                               .value = "TIME",
                               .help = "end of the span (default: now)"}} +
                        output_flag({"table", "json", "yaml", "csv"}),
               .example = "muster project usage team-a --since 7d --output csv"},
              {.name = "delete",
               .alias = "rm",
               .help = "delete projects without jobs",
               .read = read_project_delete,
               .positionals = some_of(Offer::kProjects),
               .flags = {{.name = "--ignore-missing",
                          .help = "do not fail if a project does not exist"}},
               .example = "muster project delete team-a"},
              {.name = "use",
               .help = "make a project the current one; without a name: show the current one",
               .read = read_project_use,
               .positionals = maybe_one_of(Offer::kProjects),
               .example = "muster project use team-a"},
          },
      .example = "muster project create team-a --gpus 2 --limit 4"};
}

namespace {

std::string in_use_or_default(const std::string& in_use) {
  return in_use.empty() ? std::string(job::kDefaultProject) : in_use;
}

}  // namespace

namespace {

/// The server names fields of a project; the user typed flags.
base::Error in_flags(base::Error error) {
  static const FieldFlags kFlags{{"quota.deserved.gpus", "--gpus"},
                                 {"quota.deserved.cpus", "--cpus"},
                                 {"quota.deserved.memory_bytes", "--memory"},
                                 {"quota.limit.gpus", "--limit"},
                                 {"quota.limit.cpus", "--limit-cpus"},
                                 {"quota.limit.memory_bytes", "--limit-memory"},
                                 {"quota.weight", "--weight"},
                                 {"priority", "--priority"}};
  for (base::Fault& fault : error.faults) fault.field = flag_of_field(fault.field, kFlags);
  return error;
}

}  // namespace

Result<int> execute(const ProjectChangeCommand& command, const Hooks& hooks) {
  const bool creates = command.what == ProjectChangeCommand::What::kCreate;
  MUSTER_TRY(Connection connection, connect(hooks));
  // Creating is not repeated after a lost reply: the second request would be answered with a
  // conflict.
  const auto changed = creates ? connection.client().create_project(command.name, command.change)
                               : connection.call([&](api::Client& client) {
                                   return client.patch_project(command.name, command.change);
                                 });
  if (!changed) return in_flags(changed.error());
  MUSTER_CHECK(show(command.output,
                    (creates ? "created " : "changed ") + changed->project.name + "\n",
                    api::project_to_json(*changed)));
  return kExitDone;
}

Result<int> execute(const ProjectListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<job::ProjectStatus> projects,
             connection.call([](api::Client& client) { return client.projects(); }));
  std::string names;
  for (const job::ProjectStatus& status : projects) names += status.project.name + "\n";
  MUSTER_CHECK(
      show(command.output,
           command.output == Output::kNames ? names : project_table(projects, command.in_use),
           api::projects_to_json(projects)));
  return kExitDone;
}

Result<int> execute(const ProjectGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::ProjectStatus project,
             connection.call([&](api::Client& client) { return client.project(command.name); }));
  MUSTER_CHECK(show(command.output, project_page(project), api::project_to_json(project)));
  return kExitDone;
}

Result<int> execute(const ProjectUsageCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const api::ProjectUsage usage, connection.call([&](api::Client& client) {
    return client.usage(command.name, command.query);
  }));
  if (command.output == Output::kCsv) {
    MUSTER_CHECK(show(api::usage_to_csv(usage)));
    return kExitDone;
  }
  MUSTER_CHECK(show(command.output, usage_table(usage), api::usage_to_json(usage)));
  return kExitDone;
}

Result<int> execute(const ProjectDeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return connection.client().remove_project(name);
  });
}

Result<int> execute(const ProjectUseCommand& command, const Hooks& hooks) {
  if (!command.name) {
    MUSTER_CHECK(show(in_use_or_default(command.in_use) + "\n"));
    return kExitDone;
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  // An unknown name is reported now, not at the next submit.
  MUSTER_CHECK(connection.call([&](api::Client& client) { return client.project(*command.name); }));
  MUSTER_CHECK(use_project(*command.name, hooks.context));
  MUSTER_CHECK(show("jobs go to " + *command.name + " by default\n"));
  return kExitDone;
}

namespace {

using job::Project;
using job::ProjectStatus;
using job::Share;

std::string limit_words(const Share& limit) {
  if (limit == Share{}) return "-";
  if (limit.gpu_milli) return amounts_words(limit.gpu_milli, limit.cpu_milli, limit.memory_bytes);
  // Without a limit on GPUs, only the limits that are set are shown.
  const std::string text = amounts_words(0, limit.cpu_milli, limit.memory_bytes);
  return text.substr(text.find(", ") + 2);
}

std::string quota_words(const Share& share) {
  return amounts_words(share.gpu_milli, share.cpu_milli, share.memory_bytes);
}

/// "2.5", "1": as few digits as necessary.
std::string weight_words(double weight) {
  std::string text = std::to_string(weight);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// CPUs and memory are shown for projects that limit or reserve them.
struct Counted {
  bool cpu = false;
  bool memory = false;
};

Counted counted_in(const ProjectStatus& status) {
  const job::Quota& quota = status.project.quota;
  return {.cpu = quota.deserved.cpu_milli || quota.limit.cpu_milli,
          .memory = quota.deserved.memory_bytes || quota.limit.memory_bytes};
}

template <class Amounts>
std::string counted_words(const Amounts& amounts, const Counted& counted) {
  const std::optional<int64_t> cpu = amounts.cpu_milli;
  const std::optional<int64_t> memory = amounts.memory_bytes;
  return amounts_words(amounts.gpu_milli, counted.cpu ? cpu : std::nullopt,
                       counted.memory ? memory : std::nullopt);
}

/// Adds the rows of the projects below `parent`, in their given order.
class TreeWriter {
 public:
  TreeWriter(const std::vector<ProjectStatus>& projects, const std::string& in_use, Table& table)
      : projects_(projects), in_use_(in_use), table_(table) {}

  void add_below(const std::string& parent, const std::string& indent) {
    for (const ProjectStatus& status : projects_) {
      if (status.project.parent == parent) add(status, indent);
    }
  }

  /// Adds the projects whose parent is not in the list.
  void add_rest() {
    for (const ProjectStatus& status : projects_) {
      if (!shown_.contains(status.project.name)) add(status, "");
    }
  }

 private:
  void add(const ProjectStatus& status, const std::string& indent) {
    const Project& project = status.project;
    if (!shown_.insert(project.name).second) return;
    const Counted counted = counted_in(status);
    table_.add({indent + project.name + (project.name == in_use_ ? " *" : ""),
                quota_words(status.deserved), limit_words(project.quota.limit),
                weight_words(project.quota.weight), counted_words(status.fair_share, counted),
                counted_words(status.allocated, counted), std::to_string(status.running),
                std::to_string(status.waiting)});
    add_below(project.name, indent + "  ");
  }

  const std::vector<ProjectStatus>& projects_;
  const std::string& in_use_;
  Table& table_;
  std::set<std::string> shown_;
};

std::string amount_or(const std::optional<int64_t>& amount, std::string (*words)(int64_t),
                      const char* without) {
  return amount ? words(*amount) : without;
}

std::string amounts_table(const ProjectStatus& status) {
  Table table({{""},
               {"QUOTA", true},
               {"LIMIT", true},
               {"FAIR SHARE", true},
               {"USED", true},
               {"NOT PREEMPTIBLE", true},
               {"ASKED FOR", true}});
  const Share& limit = status.project.quota.limit;
  const auto row = [&](const std::string& name, auto Share::* share,
                       auto ProjectStatus::Amounts::* amount, std::string (*words)(int64_t)) {
    table.add({name, amount_or(status.deserved.*share, words, "unlimited"),
               amount_or(limit.*share, words, "-"),
               amount_or(status.fair_share.*share, words, "unlimited"),
               words(status.allocated.*amount), words(status.allocated_non_preemptible.*amount),
               words(status.requested.*amount)});
  };
  row("GPUs", &Share::gpu_milli, &ProjectStatus::Amounts::gpu_milli, base::format_milli);
  row("CPUs", &Share::cpu_milli, &ProjectStatus::Amounts::cpu_milli, base::format_milli);
  row("memory", &Share::memory_bytes, &ProjectStatus::Amounts::memory_bytes, base::format_bytes);
  return table.to_string("  ");
}

std::string pool_table(const std::map<std::string, job::Quota>& pools) {
  Table table({{"NAME"}, {"QUOTA", true}, {"LIMIT", true}, {"WEIGHT", true}});
  for (const auto& [pool, quota] : pools) {
    table.add(
        {pool, quota_words(quota.deserved), limit_words(quota.limit), weight_words(quota.weight)});
  }
  return table.to_string("  ");
}

}  // namespace

std::string project_table(const std::vector<ProjectStatus>& projects, const std::string& in_use) {
  Table table({{"NAME"},
               {"QUOTA", true},
               {"LIMIT", true},
               {"WEIGHT", true},
               {"FAIR SHARE", true},
               {"USED", true},
               {"RUNNING", true},
               {"WAITING", true}});
  TreeWriter writer(projects, in_use, table);
  writer.add_below("", "");
  writer.add_rest();
  return table.to_string();
}

std::string usage_table(const api::ProjectUsage& usage) {
  Table table({{"PROJECT"},
               {"USER"},
               {"JOBS", true},
               {"FAILED", true},
               {"JOB HOURS", true},
               {"GPU HOURS", true}});
  api::UserUsage sum{.project = "", .user = "all"};
  for (const api::UserUsage& each : usage.users) {
    table.add({each.project, each.user, std::to_string(each.jobs), std::to_string(each.failed),
               one_decimal(each.job_hours), one_decimal(each.gpu_hours)});
    sum.jobs += each.jobs;
    sum.failed += each.failed;
    sum.job_hours += each.job_hours;
    sum.gpu_hours += each.gpu_hours;
  }
  table.add({sum.project, sum.user, std::to_string(sum.jobs), std::to_string(sum.failed),
             one_decimal(sum.job_hours), one_decimal(sum.gpu_hours)});
  return "used from " + base::to_rfc3339(usage.since, 0) + " to " +
         base::to_rfc3339(usage.until, 0) + "\n" + table.to_string();
}

std::string project_page(const ProjectStatus& status) {
  const Project& project = status.project;
  const auto runtime = [](std::chrono::milliseconds least) {
    return least.count() == 0 ? "" : base::format_duration(least);
  };
  std::string text = fields({
      {"NAME", project.name},
      {"PARENT", project.parent},
      {"PRIORITY", std::to_string(project.priority)},
      {"WEIGHT", weight_words(project.quota.weight)},
      {"QUOTA", project.takes_the_rest ? "all GPUs without a quota" : ""},
      {"SAFE FROM OTHERS", runtime(project.reclaim_min_runtime)},
      {"SAFE FROM ITS OWN", runtime(project.preempt_min_runtime)},
      {"JOBS",
       std::to_string(status.running) + " running, " + std::to_string(status.waiting) + " waiting"},
  });
  text += "\nRESOURCES\n" + amounts_table(status);
  if (!project.pools.empty()) text += "\nNODE POOLS\n" + pool_table(project.pools);
  return text;
}

}  // namespace muster::cli::projects
