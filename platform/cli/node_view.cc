#include "cli/node_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "cli/fields.h"
#include "cli/table.h"

namespace muster::cli {

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

}  // namespace muster::cli
