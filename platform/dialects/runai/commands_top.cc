// top: what is in use, at a glance.
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "dialects/runai/cluster_views.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"

namespace muster::dialects::runai {

Result<int> top_nodes_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  std::vector<job::Node> nodes;
  if (asked.arguments.names.empty()) {
    MUSTER_TRY(nodes, connection.call([](api::Client& client) { return client.nodes(); }));
  } else {
    const std::string& name = asked.arguments.names.front();
    MUSTER_TRY(job::Node node,
               connection.call([&](api::Client& client) { return client.node(name); }));
    nodes.push_back(std::move(node));
  }
  MUSTER_CHECK(cli::show(top_nodes(nodes, asked.reader.has("--details"))));
  return cli::kExitDone;
}

Result<int> top_jobs_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  const bool all = asked.reader.has("--all-projects");
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(std::vector<job::Job> jobs,
             list_jobs(connection, all ? std::nullopt : std::optional(project_of(asked))));
  MUSTER_CHECK(cli::show(top_jobs(std::move(jobs), asked.caller.now)));
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
