#include "api/node_wire.h"

#include "api/schemas.h"
#include "job/node_table.h"

namespace muster::api {

using job::Node;

void add_node_schemas(record::Schemas& schemas) {
  schemas.add_list("Nodes", "nodes", record::table_for<Node>(), "By name.");
}

std::string node_to_json(const Node& node) {
  return record::to_json(node);
}
Result<Node> node_from_json(std::string_view text) {
  return record::from_json<Node>(text, "node");
}
std::string nodes_to_json(const std::vector<Node>& nodes) {
  return record::list_to_json("nodes", nodes);
}
Result<std::vector<Node>> nodes_from_json(std::string_view text) {
  return record::list_from_json<Node>(text, "nodes");
}

}  // namespace muster::api
