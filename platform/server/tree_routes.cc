// Files that members send for the jobs of their project.
//
// The store is used on the background's thread, because it waits for the disk; permissions are
// checked before on the loop's thread.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/file_wire.h"
#include "base/log.h"
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
  /// Set: the project may soon have too many files that no job uses. Those that were last used
  /// before `before` are to be removed first.
  std::optional<TreeStore::Used> used;
  base::Time before;
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
  if (request.used) {
    const auto freed = trees.collect(request.project, *request.used, request.before);
    if (!freed) base::log_warning(freed.error().to_string());
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

/// Unused files of a project are counted, and old ones removed, before the project has so many that
/// it may send no more. Counting reads many files, and everything else waits for the store
/// meanwhile, even the loop: it may take only a small part of the time.
///
/// On the loop's thread.
class UnusedFiles {
 public:
  UnusedFiles(const Controller& controller, const TreeStore& trees, const base::Clock& clock)
      : controller_(controller), trees_(trees), clock_(clock) {}

  void let_count(TreeRequest& request) {
    constexpr std::chrono::hours kMinimumAge{1};  // a job for them may be submitted soon
    if (!trees_.is_nearly_full(request.project)) return;
    const base::Time now = clock_.now();
    Counting& counting = counting_[request.project];
    if (counting.is_under_way || now < counting.next) return;
    counting = {.is_under_way = true, .began = now};
    request.used = controller_.trees_in_use();
    // The files of an unreadable job are unknown.
    request.before = controller_.has_unreadable_jobs() ? base::Time() : now - kMinimumAge;
  }

  void counted(const std::string& project) {
    constexpr std::chrono::minutes kShortestPause{1};
    constexpr int kPausePerCounting = 60;
    const base::Time now = clock_.now();
    Counting& counting = counting_[project];
    const base::Time::duration took = now - counting.began;
    counting.is_under_way = false;
    counting.next = now + std::max<base::Time::duration>(kShortestPause, took * kPausePerCounting);
  }

 private:
  struct Counting {
    bool is_under_way = false;
    base::Time began = {};
    base::Time next = {};  ///< not before
  };

  const Controller& controller_;
  const TreeStore& trees_;
  const base::Clock& clock_;
  std::map<std::string, Counting> counting_;  ///< by project
};

TreeRequest tree_request_of(const ApiCall& call) {
  const auto id = call.path.find("id");
  return {.project = call.path.at("name"),
          .id = id == call.path.end() ? "" : id->second,
          .body = call.request.body,
          .used = {},
          .before = {}};
}

}  // namespace

void add_tree_routes(Router& router, Controller& controller, TreeStore& trees,
                     const base::Clock& clock, base::Background& background) {
  const auto unused = std::make_shared<UnusedFiles>(controller, trees, clock);
  const auto add = [&](const char* method, const char* path, Work work) {
    router.add(method, path, Permission::kSignedIn,
               [&controller, &trees, &background, unused, work](const ApiCall& call,
                                                                const Respond& respond) {
                 const auto allowed = may_send(controller, call);
                 if (!allowed) return respond(problem(allowed.error()));
                 TreeRequest request = tree_request_of(call);
                 if (work == put_chunks) unused->let_count(request);
                 const std::string counted = request.used ? request.project : "";
                 const auto answer = std::make_shared<http::Response>();
                 background.run([&trees, request = std::move(request), work,
                                 answer] { *answer = answered(work(trees, request)); },
                                [respond, answer, unused, counted] {
                                  if (!counted.empty()) unused->counted(counted);
                                  respond(std::move(*answer));
                                });
               });
  };
  add("GET", "/v1/projects/{name}/trees/{id}", get_tree);
  add("PUT", "/v1/projects/{name}/trees/{id}", keep_tree);
  add("POST", "/v1/projects/{name}/chunks/missing", missing_chunks);
  add("PUT", "/v1/projects/{name}/chunks", put_chunks);
}

}  // namespace muster::server
