#include "api/node_wire.h"

#include "api/fields.h"

namespace muster::api {

using job::Device;
using job::Node;

namespace {

void write_device(JsonWriter& json, const Device& device) {
  json.open('{');
  json.key("index").number(device.index);
  json.key("model").text(device.model);
  json.key("memory_bytes").number(device.memory_bytes);
  json.key("free").milli(device.free_milli);
  json.key("jobs").texts(device.jobs);
  json.close('}');
}

void read_device(Fields& fields, Device& device) {
  fields.read("index", device.index, Need::kRequired);
  fields.read("model", device.model);
  fields.read("memory_bytes", device.memory_bytes);
  fields.read_milli("free", device.free_milli);
  fields.read("jobs", device.jobs);
}

void write_words(JsonWriter& json, std::string_view name,
                 const std::map<std::string, std::string>& words) {
  json.key(name).open('{');
  for (const auto& [key, value] : words) json.key(key).text(value);
  json.close('}');
}

void write_node(JsonWriter& json, const Node& node) {
  json.open('{');
  json.key("name").text(node.name);
  json.key("pool").text(node.pool);
  json.key("state").text(node.state);
  json.key("cpus").milli(node.cpu_milli);
  json.key("cpus_free").milli(node.cpu_milli_free);
  json.key("memory_bytes").number(node.memory_bytes);
  json.key("memory_bytes_free").number(node.memory_bytes_free);
  json.key("devices").open('[');
  for (const Device& device : node.devices) write_device(json, device);
  json.close(']');
  json.key("jobs").texts(node.jobs);
  write_words(json, "topology", node.topology);
  write_words(json, "labels", node.labels);
  json.close('}');
}

void read_node(Fields& fields, Node& node) {
  fields.read("name", node.name, Need::kRequired);
  fields.read("pool", node.pool);
  fields.read("state", node.state, Need::kRequired);
  fields.read_milli("cpus", node.cpu_milli);
  fields.read_milli("cpus_free", node.cpu_milli_free);
  fields.read("memory_bytes", node.memory_bytes);
  fields.read("memory_bytes_free", node.memory_bytes_free);
  fields.each("devices", [&](Fields& inner) { read_device(inner, node.devices.emplace_back()); });
  fields.read("jobs", node.jobs);
  fields.read("topology", node.topology);
  fields.read("labels", node.labels);
}

}  // namespace

std::string node_to_json(const Node& node) {
  std::string text;
  JsonWriter json(text);
  write_node(json, node);
  return text;
}

Result<Node> node_from_json(std::string_view text) {
  Node node;
  MUSTER_CHECK(read_document(text, "node", [&](Fields& fields) { read_node(fields, node); }));
  return node;
}

std::string nodes_to_json(const std::vector<Node>& nodes) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("nodes").open('[');
  for (const Node& node : nodes) write_node(json, node);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Node>> nodes_from_json(std::string_view text) {
  std::vector<Node> nodes;
  MUSTER_CHECK(read_document(text, "list of nodes", [&](Fields& fields) {
    fields.each(
        "nodes", [&](Fields& inner) { read_node(inner, nodes.emplace_back()); }, Need::kRequired);
  }));
  return nodes;
}

}  // namespace muster::api
