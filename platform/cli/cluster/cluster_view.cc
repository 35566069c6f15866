#include "cli/cluster/cluster_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/amount_words.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/projects/project_view.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::cli::cluster {

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

/// A titled table; its rows are what is given up where room is scarce.
struct Part {
  std::string title;               ///< the line of titles
  std::vector<std::string> lines;  ///< its rows
  size_t shown = 0;

  /// Title, rows, and where some are left out, a line that says so.
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

/// What all parts and the blank line before each come to.
size_t rows_needed(const std::vector<Part>& parts) {
  size_t height = 0;
  for (const Part& part : parts) height += 1 + part.height();
  return height;
}

/// Takes rows from the largest part until all fit, or nothing is left to take.
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
  // Bytes first, columns afterwards: a control character becomes four.
  return cut_to_screen(safe_lines(text), size);
}

}  // namespace muster::cli::cluster
