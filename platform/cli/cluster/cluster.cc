// node and top: the machines, and everything at a glance.
#include "cli/cluster/cluster.h"

#include <unistd.h>

#include "api/cluster_wire.h"
#include "base/text.h"
#include "cli/cluster/cluster_view.h"
#include "cli/command/command.h"
#include "cli/common/live_screen.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/connection/commands.h"

namespace muster::cli::cluster {

namespace {

Call read_node_list(Reading& in) {
  return NodeListCommand{in.list_output()};
}

Call read_node_get(Reading& in) {
  return NodeGetCommand{.name = in.name("node"), .output = in.output()};
}

template <NodeChangeCommand::What what>
Call read_node_change(Reading& in) {
  return NodeChangeCommand{.what = what, .names = in.names("node"), .output = in.output()};
}

Call read_top(Reading& in) {
  constexpr std::chrono::milliseconds kLeast{100};
  TopCommand command{.interval = in.reader.duration("--interval", std::chrono::seconds(1)),
                     .once = in.reader.has("--once")};
  if (command.interval < kLeast) in.reader.fault("--interval", "is below 100ms");
  return command;
}

}  // namespace

Command node_command() {
  return {.name = "node",
          .help = "the machines: list, get, cordon, uncordon, drain",
          .commands = {
              {.name = "list",
               .alias = "ls",
               .help = "all nodes: what they have, and how much of it is taken",
               .read = read_node_list,
               .flags = list_output_flag(),
               .example = "muster node list"},
              {.name = "get",
               .help = "one node: its GPUs and who holds each",
               .read = read_node_get,
               .positionals = one_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node get gpu-7"},
              {.name = "cordon",
               .help = "let nothing new start on nodes; what runs there goes on",
               .read = read_node_change<NodeChangeCommand::What::kCordon>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node cordon gpu-7"},
              {.name = "uncordon",
               .help = "let jobs start on nodes again",
               .read = read_node_change<NodeChangeCommand::What::kUncordon>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node uncordon gpu-7"},
              {.name = "drain",
               .help = "cordon nodes, and have what runs there start again elsewhere",
               .read = read_node_change<NodeChangeCommand::What::kDrain>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node drain gpu-7"},
          }};
}

Command top_command() {
  return {.name = "top",
          .help = "nodes, projects and jobs, live; q leaves",
          .read = read_top,
          .flags = {{.name = "--interval",
                     .value = "TIME",
                     .help = "how often it looks again (default: 1s)"},
                    {.name = "--once", .help = "print it once and leave"}},
          .example = "muster top --interval 5s"};
}

namespace {

using What = NodeChangeCommand::What;

Result<job::Node> change(api::Client& client, What what, const std::string& name) {
  switch (what) {
    case What::kCordon:
      return client.cordon(name);
    case What::kUncordon:
      return client.uncordon(name);
    case What::kDrain:
      return client.drain(name);
  }
  return client.node(name);
}

/// What came of it, and what becomes of the jobs there.
std::string change_text(What what, const job::Node& node) {
  if (what == What::kUncordon) return "uncordoned " + node.name + "\n";
  const size_t count = node.jobs.size();
  const std::string jobs = base::count_text(static_cast<int64_t>(count), "job");
  if (count == 0) return "cordoned " + node.name + "; nothing runs there\n";
  if (what == What::kDrain)
    return "draining " + node.name + ": " + jobs + " to start again elsewhere\n";
  return "cordoned " + node.name + "; " + jobs + (count == 1 ? " goes" : " go") + " on there\n";
}

Result<ClusterView> read_cluster(Connection& connection) {
  ClusterView view{.now = base::SystemClock().now()};
  MUSTER_TRY(view.nodes, connection.call([](api::Client& client) { return client.nodes(); }));
  MUSTER_TRY(view.projects, connection.call([](api::Client& client) { return client.projects(); }));
  MUSTER_TRY(view.jobs, connection.call([](api::Client& client) { return client.list(); }));
  MUSTER_TRY(view.queue, connection.call([](api::Client& client) { return client.queue(); }));
  return view;
}

Result<int> watch(Connection& connection, std::chrono::milliseconds interval) {
  LiveScreen screen;
  do {
    MUSTER_TRY(const ClusterView view, read_cluster(connection));
    if (!screen.show(top_picture(view, screen.size()))) return kExitBrokenPipe;
  } while (screen.wait(interval));
  return kExitDone;
}

}  // namespace

Result<int> execute(const NodeListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<job::Node> nodes,
             connection.call([](api::Client& client) { return client.nodes(); }));
  std::string names;
  for (const job::Node& node : nodes) names += node.name + "\n";
  MUSTER_CHECK(show(command.output, command.output == Output::kNames ? names : node_table(nodes),
                    api::nodes_to_json(nodes)));
  return kExitDone;
}

Result<int> execute(const NodeGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::Node node,
             connection.call([&](api::Client& client) { return client.node(command.name); }));
  MUSTER_CHECK(show(command.output, node_page(node), api::node_to_json(node)));
  return kExitDone;
}

Result<int> execute(const NodeChangeCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  std::vector<job::Node> changed;
  std::string text;
  const int code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(job::Node node, connection.call([&](api::Client& client) {
      return change(client, command.what, name);
    }));
    text += change_text(command.what, node);
    changed.push_back(std::move(node));
    return {};
  });
  MUSTER_CHECK(show(command.output, text, api::nodes_to_json(changed)));
  return code;
}

Result<int> execute(const TopCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  if (!command.once && terminal_of(STDOUT_FILENO).is_terminal) {
    return watch(connection, command.interval);
  }
  MUSTER_TRY(const ClusterView view, read_cluster(connection));
  MUSTER_CHECK(show(top_picture(view, {})));
  return kExitDone;
}

}  // namespace muster::cli::cluster
