#include <string>

#include "api/node_wire.h"
#include "server/answers.h"
#include "server/routes.h"

namespace muster::server {

namespace {

using base::Result;
using control::Controller;
using http::Request;
using http::Respond;

http::Response node_answer(const Result<job::Node>& node) {
  return node ? json_answer(200, api::node_to_json(*node)) : problem(node.error());
}

}  // namespace

void add_node_routes(Router& router, Controller& controller) {
  router.add("GET", "/v1/nodes", [&](const Request&, const PathValues&, const Respond& respond) {
    respond(json_answer(200, api::nodes_to_json(controller.nodes())));
  });
  router.add("GET", "/v1/nodes/{name}",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(node_answer(controller.node(path.at("name"))));
             });
  router.add("POST", "/v1/nodes/{name}/cordon",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(node_answer(controller.cordon(path.at("name"))));
             });
  router.add("POST", "/v1/nodes/{name}/uncordon",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(node_answer(controller.uncordon(path.at("name"))));
             });
  router.add("POST", "/v1/nodes/{name}/drain",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(node_answer(controller.drain(path.at("name"))));
             });
}

}  // namespace muster::server
