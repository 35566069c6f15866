#include "api/node_wire.h"

#include "api/fields.h"
#include "job/node_table.h"

namespace muster::api {

using job::Node;

std::string node_to_json(const Node& node) {
  return record::to_json(node);
}

Result<Node> node_from_json(std::string_view text) {
  return record::from_json<Node>(text, "node");
}

std::string nodes_to_json(const std::vector<Node>& nodes) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("nodes").open('[');
  for (const Node& node : nodes) record::write(json, node);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Node>> nodes_from_json(std::string_view text) {
  std::vector<Node> nodes;
  MUSTER_CHECK(read_document(text, "list of nodes", [&](Fields& fields) {
    fields.records("nodes", nodes, Need::kRequired);
  }));
  return nodes;
}

}  // namespace muster::api
