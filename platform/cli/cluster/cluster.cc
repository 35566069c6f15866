// node and top: the machines, and an overview of the cluster.

#include "cli/cluster/cluster.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/cluster_wire.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/projects/projects.h"
#include "job/job.h"
#include "words/sentence.h"

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
          .help = "show and manage nodes: list, get, cordon, uncordon, drain",
          .commands = {
              {.name = "list",
               .alias = "ls",
               .help = "list nodes with their resources and the amounts in use",
               .read = read_node_list,
               .flags = list_output_flag(),
               .example = "muster node list"},
              {.name = "get",
               .help = "show a node: its GPUs and the job that uses each",
               .read = read_node_get,
               .positionals = one_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node get gpu-7"},
              {.name = "cordon",
               .help = "keep new tasks off nodes; running tasks continue",
               .read = read_node_change<NodeChangeCommand::What::kCordon>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node cordon gpu-7"},
              {.name = "uncordon",
               .help = "allow new tasks on nodes again",
               .read = read_node_change<NodeChangeCommand::What::kUncordon>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node uncordon gpu-7"},
              {.name = "drain",
               .help = "cordon nodes and restart their jobs on other nodes",
               .read = read_node_change<NodeChangeCommand::What::kDrain>,
               .positionals = some_of(Offer::kNodes),
               .flags = output_flag(),
               .example = "muster node drain gpu-7"},
          }};
}

Command top_command() {
  return {.name = "top",
          .help = "show nodes, projects and jobs live; q quits",
          .read = read_top,
          .flags = {{.name = "--interval",
                     .value = "TIME",
                     .help = "time between updates (default: 1s)"},
                    {.name = "--once", .help = "print once and exit"}},
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

/// The result of the change, and its effect on the jobs of the node.
std::string change_text(What what, const job::Node& node) {
  if (what == What::kUncordon) return "uncordoned " + node.name + "\n";
  const size_t count = node.jobs.size();
  const std::string jobs = base::count_text(static_cast<int64_t>(count), "job");
  if (count == 0) return "cordoned " + node.name + "; no task runs there\n";
  if (what == What::kDrain)
    return "draining " + node.name + ": " + jobs + " to restart on other nodes\n";
  return "cordoned " + node.name + "; " + jobs + (count == 1 ? " continues" : " continue") +
         " there\n";
}

Result<ClusterView> read_cluster(Connection& connection) {
  ClusterView view{.now = base::SystemClock().now()};
  MUSTER_TRY(view.nodes, connection.call([](api::Client& client) { return client.nodes(); }));
  MUSTER_TRY(view.projects, connection.call([](api::Client& client) { return client.projects(); }));
  const api::JobQuery running{.phases = {job::Phase::kStarting, job::Phase::kRunning}};
  MUSTER_TRY(view.jobs,
             connection.call([&](api::Client& client) { return client.list_all(running); }));
  MUSTER_TRY(view.queue, connection.call([](api::Client& client) { return client.queue(); }));
  return view;
}

Result<int> watch(Connection& connection, std::chrono::milliseconds interval) {
  LiveScreen screen;
  connection.set_wake(ended_by_signals(screen.signals_fd()));
  while (true) {
    const Result<ClusterView> view = read_cluster(connection);
    if (!view) {
      MUSTER_TRY(const bool is_back, connection.come_back_after(view.error(), screen.signals_fd()));
      if (!is_back || screen.user_quits()) return kExitDone;
      continue;
    }
    connection.is_well();
    if (!screen.show(top_picture(*view, screen.size()))) return kExitBrokenPipe;
    if (!screen.wait(interval)) return kExitDone;
  }
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

namespace {

constexpr int kWhole = 1000;

/// "block=b1, rack=r1"
std::string key_value_words(const std::map<std::string, std::string>& entries) {
  std::string text;
  for (const auto& [key, value] : entries) {
    text.append(text.empty() ? "" : ", ").append(key).append("=").append(value);
  }
  return text;
}

std::string models_of(const job::Node& node) {
  std::set<std::string> models;
  for (const job::Device& device : node.devices) {
    if (!device.model.empty()) models.insert(device.model);
  }
  return base::joined(std::vector<std::string>(models.begin(), models.end()));
}

std::string gpus_of(const job::Node& node) {
  if (node.devices.empty()) return "-";
  const std::string models = models_of(node);
  return base::format_milli(gpus_taken_milli(node)) + "/" + std::to_string(node.devices.size()) +
         (models.empty() ? "" : " " + models);
}

std::string cpus_of(const job::Node& node) {
  return base::format_milli(node.cpu_milli - node.cpu_milli_free) + "/" +
         base::format_milli(node.cpu_milli);
}

std::string memory_of(const job::Node& node) {
  return base::format_bytes(node.memory_bytes - node.memory_bytes_free) + "/" +
         base::format_bytes(node.memory_bytes);
}

std::string device_table(const std::vector<job::Device>& devices) {
  Table table({{"GPU", true}, {"MODEL"}, {"MEMORY", true}, {"FREE", true}, {"JOBS"}});
  for (const job::Device& device : devices) {
    table.add({std::to_string(device.index), device.model.empty() ? "-" : device.model,
               device.memory_bytes == 0 ? "-" : base::format_bytes(device.memory_bytes),
               base::format_milli(device.free_milli),
               device.jobs.empty() ? "-" : base::joined(device.jobs)});
  }
  return table.to_string("  ");
}

std::string label_value(const job::Node& node, const std::string& name) {
  const auto found = node.labels.find(name);
  return found == node.labels.end() ? "" : found->second;
}

}  // namespace

int64_t gpus_taken_milli(const job::Node& node) {
  int64_t taken = 0;
  for (const job::Device& device : node.devices) taken += kWhole - device.free_milli;
  return taken;
}

std::string node_table(const std::vector<job::Node>& nodes) {
  const bool have_engines = std::any_of(nodes.begin(), nodes.end(), [](const job::Node& node) {
    return !label_value(node, "engine").empty();
  });
  std::vector<Column> columns{{"NAME"},       {"STATE"},        {"POOL"},      {"GPUS"},
                              {"CPUS", true}, {"MEMORY", true}, {"JOBS", true}};
  if (have_engines) columns.push_back({"ENGINE"});
  const bool have_reasons = std::any_of(nodes.begin(), nodes.end(), [](const job::Node& node) {
    return !label_value(node, "reason").empty();
  });
  if (have_reasons) columns.push_back({"REASON"});
  Table table(columns);
  for (const job::Node& node : nodes) {
    std::vector<std::string> row{node.name,
                                 node.state,
                                 node.pool,
                                 gpus_of(node),
                                 cpus_of(node),
                                 memory_of(node),
                                 std::to_string(node.jobs.size())};
    if (have_engines) row.push_back(label_value(node, "engine"));
    if (have_reasons) row.push_back(label_value(node, "reason"));
    table.add(row);
  }
  return table.to_string();
}

std::string node_page(const job::Node& node) {
  std::string text = fields({
      {"NAME", node.name},
      {"STATE", node.state},
      {"POOL", node.pool},
      {"GPUS", gpus_of(node)},
      {"CPUS", cpus_of(node)},
      {"MEMORY", memory_of(node)},
      {"TOPOLOGY", key_value_words(node.topology)},
      {"LABELS", key_value_words(node.labels)},
      {"JOBS", node.jobs.empty() ? "-" : base::joined(node.jobs)},
  });
  if (!node.devices.empty()) text += "\nDEVICES\n" + device_table(node.devices);
  return text;
}

namespace {

/// A table with a title. Rows are omitted if the screen is too small.
struct Part {
  std::string title;               ///< the title line
  std::vector<std::string> lines;  ///< the rows
  size_t shown = 0;

  /// The title, the shown rows, and a line with the number of omitted rows.
  size_t height() const { return 1 + shown + (shown < lines.size() ? 1 : 0); }
};

Part part_of(const std::string& table) {
  Part part;
  part.lines = base::split(table, '\n');
  if (!part.lines.empty() && part.lines.back().empty()) part.lines.pop_back();
  part.title = part.lines.front();
  part.lines.erase(part.lines.begin());
  part.shown = part.lines.size();
  return part;
}

std::string job_rows(const ClusterView& view) {
  Table table({{"JOB"}, {"PROJECT"}, {"PHASE"}, {"NEEDS"}, {"FOR", true}, {"WHERE OR WHY NOT"}});
  const auto add = [&](const job::Job& job, const std::string& last) {
    const base::Time since =
        job.phase == job::Phase::kRunning && job.started ? *job.started : job.submitted;
    table.add({job.spec.name, job.spec.project, std::string(job::to_string(job.phase)),
               needs_words(job.spec), age(since, view.now), last});
  };
  for (const job::Job& job : view.jobs) {
    if (job::is_final(job.phase) || job.phase == job::Phase::kQueued) continue;
    std::vector<std::string> nodes;
    for (const job::Task& task : job.tasks) {
      if (!task.node.empty() && !job::has_gone(task)) nodes.push_back(task.node);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    add(job, base::joined(nodes));
  }
  for (const job::Job& job : view.queue) add(job, words::sentence(job.reason));
  return table.to_string();
}

std::string headline(const ClusterView& view) {
  int64_t taken = 0;
  size_t gpus = 0;
  for (const job::Node& node : view.nodes) {
    taken += gpus_taken_milli(node);
    gpus += node.devices.size();
  }
  const auto running = std::count_if(view.jobs.begin(), view.jobs.end(), [](const job::Job& job) {
    return !job::is_final(job.phase) && job.phase != job::Phase::kQueued;
  });
  return "muster  " + base::to_rfc3339(view.now, 0) + "   GPUs " + base::format_milli(taken) + "/" +
         std::to_string(gpus) + "   running " + std::to_string(running) + "   waiting " +
         std::to_string(view.queue.size());
}

/// The height of all parts, each with a blank line before it.
size_t rows_needed(const std::vector<Part>& parts) {
  size_t height = 0;
  for (const Part& part : parts) height += 1 + part.height();
  return height;
}

/// Removes rows from the largest part until all parts fit, or no rows are left.
void shrink(std::vector<Part>& parts, size_t rows) {
  while (rows_needed(parts) > rows) {
    Part& largest = *std::max_element(
        parts.begin(), parts.end(),
        [](const Part& left, const Part& right) { return left.shown < right.shown; });
    if (largest.shown == 0) return;
    --largest.shown;
  }
}

std::string part_text(const Part& part) {
  std::string text = "\n" + part.title + "\n";
  for (size_t i = 0; i < part.shown; ++i) text += part.lines[i] + "\n";
  const size_t missing = part.lines.size() - part.shown;
  if (missing > 0) text += "... and " + std::to_string(missing) + " more\n";
  return text;
}

std::string cut_to_screen(const std::string& text, ScreenSize size) {
  std::string result;
  size_t rows = 0;
  for (const std::string& line : base::split(text, '\n')) {
    if (size.rows > 0 && rows++ == size.rows) break;
    result.append(size.columns > 0 ? cut_to(line, size.columns) : line).append("\n");
  }
  return result;
}

}  // namespace

std::string top_picture(const ClusterView& view, ScreenSize size) {
  std::vector<Part> parts{part_of(node_table(view.nodes)),
                          part_of(projects::project_table(view.projects)), part_of(job_rows(view))};
  if (size.rows > 0) shrink(parts, size.rows - 1);
  std::string text = headline(view) + "\n";
  for (const Part& part : parts) text += part_text(part);
  text.pop_back();
  // Make the text safe first, then cut it: a control character becomes four columns.
  return cut_to_screen(safe_lines(text), size);
}

}  // namespace muster::cli::cluster
