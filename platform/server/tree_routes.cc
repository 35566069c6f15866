// Files that members send for the jobs of their project.
//
// The store is used on the background's thread, because it waits for the disk; permissions are
// checked before on the loop's thread.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/file_wire.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Result;
using control::Controller;
using http::Respond;
using workspace::TreeStore;

/// A request for the background: it must not use objects of the loop's thread.
struct TreeRequest {
  std::string project;
  std::string id;  ///< of a tree, if the path has one
  std::string body;
};

using Work = RouteAnswer (*)(TreeStore& trees, const TreeRequest& request);

api::TreeInfo on_the_wire(const workspace::TreeInfo& tree) {
  return {.id = tree.id, .bytes = tree.bytes, .files = static_cast<int64_t>(tree.files)};
}

RouteAnswer get_tree(TreeStore& trees, const TreeRequest& request) {
  MUSTER_TRY(const workspace::TreeInfo tree, trees.info(request.project, request.id));
  return json_answer(200, api::tree_to_json(on_the_wire(tree)));
}

RouteAnswer missing_chunks(TreeStore& trees, const TreeRequest& request) {
  MUSTER_TRY(const std::vector<std::string> chunks, api::chunk_ids_from_json(request.body));
  MUSTER_TRY(const std::vector<std::string> missing, trees.missing(request.project, chunks));
  return json_answer(200, api::chunk_ids_to_json(missing));
}

RouteAnswer put_chunks(TreeStore& trees, const TreeRequest& request) {
  MUSTER_TRY(const std::vector<std::string_view> chunks, api::chunks_in(request.body));
  if (chunks.empty()) {
    return base::Error{.code = base::ErrorCode::kInvalid,
                       .what = "the request has no chunk",
                       .advice = "send the length before each chunk, as described in docs/api.md"};
  }
  for (const std::string_view chunk : chunks) MUSTER_CHECK(trees.put_chunk(request.project, chunk));
  return nothing_more();
}

RouteAnswer keep_tree(TreeStore& trees, const TreeRequest& request) {
  MUSTER_TRY(const std::vector<std::string> chunks, api::chunk_ids_from_json(request.body));
  MUSTER_TRY(const workspace::TreeInfo tree, trees.keep(request.project, request.id, chunks));
  return json_answer(200, api::tree_to_json(on_the_wire(tree)));
}

Result<void> may_send(const Controller& controller, const ApiCall& call) {
  return Sight(controller, call.who).project(call.path.at("name"), Role::kMember);
}

TreeRequest tree_request_of(const ApiCall& call) {
  const auto id = call.path.find("id");
  return {.project = call.path.at("name"),
          .id = id == call.path.end() ? "" : id->second,
          .body = call.request.body};
}

}  // namespace

void add_tree_routes(Router& router, Controller& controller, TreeStore& trees,
                     base::Background& background) {
  const auto add = [&](const char* method, const char* path, Work work) {
    router.add(
        method, path, Permission::kSignedIn,
        [&controller, &trees, &background, work](const ApiCall& call, const Respond& respond) {
          const auto allowed = may_send(controller, call);
          if (!allowed) return respond(problem(allowed.error()));
          const auto answer = std::make_shared<http::Response>();
          background.run([&trees, request = tree_request_of(call), work,
                          answer] { *answer = answered(work(trees, request)); },
                         [respond, answer] { respond(std::move(*answer)); });
        });
  };
  add("GET", "/v1/projects/{name}/trees/{id}", get_tree);
  add("PUT", "/v1/projects/{name}/trees/{id}", keep_tree);
  add("POST", "/v1/projects/{name}/chunks/missing", missing_chunks);
  add("PUT", "/v1/projects/{name}/chunks", put_chunks);
}

}  // namespace muster::server
