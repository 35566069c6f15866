#include "cli/projects/project_view.h"

#include <optional>
#include <set>
#include <utility>

#include "base/units.h"
#include "cli/common/amount_words.h"
#include "cli/common/table.h"

namespace muster::cli::projects {

namespace {

using job::Project;
using job::ProjectStatus;
using job::Share;

std::string limit_words(const Share& limit) {
  if (limit == Share{}) return "-";
  if (limit.gpu_milli) return amounts_words(limit.gpu_milli, limit.cpu_milli, limit.memory_bytes);
  // Without a bound on GPUs, only those that are there are worth a word.
  const std::string text = amounts_words(0, limit.cpu_milli, limit.memory_bytes);
  return text.substr(text.find(", ") + 2);
}

std::string quota_words(const Share& share) {
  return amounts_words(share.gpu_milli, share.cpu_milli, share.memory_bytes);
}

/// "2.5", "1": as few digits as tell it.
std::string weight_words(double weight) {
  std::string text = std::to_string(weight);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// CPUs and memory are shown of projects that they are counted for.
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

/// Adds the rows of the projects below `parent`, in the order they come in.
class TreeWriter {
 public:
  TreeWriter(const std::vector<ProjectStatus>& projects, const std::string& in_use, Table& table)
      : projects_(projects), in_use_(in_use), table_(table) {}

  void add_below(const std::string& parent, const std::string& indent) {
    for (const ProjectStatus& status : projects_) {
      if (status.project.parent == parent) add(status, indent);
    }
  }

  /// Whatever hangs nowhere: below a parent that is not listed.
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
      {"QUOTA", project.takes_the_rest ? "what no other project was promised" : ""},
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
