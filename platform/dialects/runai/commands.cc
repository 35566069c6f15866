// Which command is which.
#include "dialects/runai/commands.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/others.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

namespace {

struct Entry {
  std::string_view path;
  Result<int> (*command)(Asked&);
};

constexpr std::array kCommands{
    Entry{"list", list_jobs_command},
    Entry{"list jobs", list_jobs_command},
    Entry{"list nodes", list_nodes_command},
    Entry{"list projects", list_projects_command},
    Entry{"list clusters", list_clusters_command},
    Entry{"list templates", templates_command},
    Entry{"describe job", describe_job_command},
    Entry{"describe node", describe_node_command},
    Entry{"describe template", templates_command},
    Entry{"get", describe_job_command},
    Entry{"logs", logs_command},
    Entry{"delete", delete_command},
    Entry{"suspend", suspend_command},
    Entry{"resume", resume_command},
    Entry{"bash", bash_command},
    Entry{"exec", exec_command},
    Entry{"attach", attach_command},
    Entry{"port-forward", port_forward_command},
    Entry{"top node", top_nodes_command},
    Entry{"top job", top_jobs_command},
    Entry{"config project", use_project_command},
    Entry{"config cluster", use_cluster_command},
    Entry{"project set", use_project_command},
    Entry{"project list", list_projects_command},
    Entry{"cluster set", use_cluster_command},
    Entry{"cluster list", list_clusters_command},
    Entry{"login", login_command},
    Entry{"logout", logout_command},
    Entry{"whoami", whoami_command},
    Entry{"version", version_command},
    Entry{"completion", completion_command},
    Entry{"template", templates_command},
    Entry{"update", update_command},
};

/// "give one of: runai top node, runai top job"
std::string ways_on(const std::string& path) {
  std::string text;
  for (const Entry& entry : kCommands) {
    if (!entry.path.starts_with(path + " ")) continue;
    text += (text.empty() ? "" : ", ") + ("runai " + std::string(entry.path));
  }
  return "what of it? there is " + text;
}

}  // namespace

std::string Asked::project() const {
  const std::string said = reader.text("--project");
  return said.empty() ? caller.project : said;
}

Result<int> run_other(Asked& asked) {
  for (const cli::Flag& flag : common_flags()) {
    if (!flag.choices.empty() && asked.reader.has(flag.name)) {
      asked.reader.choice(flag.name, flag.choices);
    }
  }
  const std::string path = base::joined(asked.arguments.path, " ");
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const Entry& entry) { return entry.path == path; });
  if (found != kCommands.end()) return found->command(asked);
  if (asked.reader.ok()) asked.reader.fault("", ways_on(path));
  return usage_error_of(asked);
}

}  // namespace muster::dialects::runai
