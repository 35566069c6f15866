#include <string>
#include <vector>

#include "api/node_wire.h"
#include "server/answers.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using base::Result;
using control::Controller;
using control::NodeService;

Answer list_nodes(const Controller& controller, const Call& call) {
  const Sight sight(controller, call.who);
  std::vector<job::Node> nodes = controller.nodes().list();
  for (job::Node& node : nodes) node = sight.redacted(std::move(node));
  return json_answer(200, api::nodes_to_json(nodes));
}

Answer get_node(const Controller& controller, const Call& call) {
  MUSTER_TRY(job::Node node, controller.nodes().find(call.path.at("name")));
  const Sight sight(controller, call.who);
  return json_answer(200, api::node_to_json(sight.redacted(std::move(node))));
}

using NodeChange = Result<job::Node> (NodeService::*)(const std::string& name,
                                                      const access::Actor& by);

RouteHandler changing_node(Controller& controller, NodeChange change) {
  return at_once([&controller, change](const Call& call) -> Answer {
    MUSTER_TRY(const job::Node node,
               (controller.nodes().*change)(call.path.at("name"), call.actor()));
    return json_answer(200, api::node_to_json(node));
  });
}

}  // namespace

void add_node_routes(Router& router, Controller& controller) {
  router.add("GET", "/v1/nodes", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return list_nodes(controller, call); }));
  router.add("GET", "/v1/nodes/{name}", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return get_node(controller, call); }));
  router.add("POST", "/v1/nodes/{name}/cordon", Permission::kServerAdmin,
             changing_node(controller, &NodeService::cordon));
  router.add("POST", "/v1/nodes/{name}/uncordon", Permission::kServerAdmin,
             changing_node(controller, &NodeService::uncordon));
  router.add("POST", "/v1/nodes/{name}/drain", Permission::kServerAdmin,
             changing_node(controller, &NodeService::drain));
}

}  // namespace muster::server
