// list jobs, list nodes, describe node.
#include "api/cluster_wire.h"
#include "api/wire.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "dialects/runai/cluster_views.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"
#include "dialects/runai/views.h"

namespace muster::dialects::runai {

Result<int> list_jobs_command(Asked& asked) {
  const cli::Output output = output_of(asked, {"table", "json", "yaml", "names"});
  if (!asked.reader.ok()) return usage_error_of(asked);
  const bool all = asked.reader.has("--all-projects");
  const std::string project = project_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const std::vector<job::Job> jobs,
             list_jobs(connection, all ? std::nullopt : std::optional(project)));
  const std::string head = all ? "" : "Showing jobs for project " + project + "\n";
  const std::string text =
      output == cli::Output::kNames ? cli::names_of(jobs) : head + job_list(jobs, asked.caller.now);
  MUSTER_CHECK(cli::show(output, text, api::jobs_to_json(jobs)));
  return cli::kExitDone;
}

Result<int> list_nodes_command(Asked& asked) {
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const std::vector<job::Node> nodes,
             connection.call([](api::Client& client) { return client.nodes(); }));
  MUSTER_CHECK(cli::show(node_list(nodes)));
  return cli::kExitDone;
}

Result<int> describe_node_command(Asked& asked) {
  const std::string name = the_name(asked, "node");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_TRY(const job::Node node,
             connection.call([&](api::Client& client) { return client.node(name); }));
  MUSTER_CHECK(cli::show(node_description(node)));
  return cli::kExitDone;
}

}  // namespace muster::dialects::runai
