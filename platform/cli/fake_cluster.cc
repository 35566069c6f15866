#include "cli/fake_cluster.h"

#include <vector>

#include "api/cluster_wire.h"
#include "api/routes.h"
#include "cli/fake_answers.h"

namespace muster::cli {

namespace {

/// "team-a" and "drain" of "/v1/nodes/team-a/drain".
std::pair<std::string, std::string> parts_below(const std::string& path, std::string_view root) {
  const std::string rest = path.size() > root.size() ? path.substr(root.size() + 1) : "";
  const size_t slash = rest.find('/');
  return {rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

}  // namespace

FakeCluster::FakeCluster() {
  projects_["default"].name = "default";
  nodes_["gpu-7"] = {.name = "gpu-7", .pool = "default", .state = "ready"};
  nodes_["gpu-8"] = {.name = "gpu-8", .pool = "default", .state = "ready", .jobs = {"a", "b"}};
}

job::ProjectStatus FakeCluster::status_of(const std::string& project) const {
  const auto found = projects_.find(project);
  if (found == projects_.end()) return {};
  return {.project = found->second, .deserved = found->second.quota.deserved};
}

std::optional<http::Response> FakeCluster::answer(const http::Request& request) {
  if (request.path.starts_with(api::kProjectsPath)) {
    return answer_project(request, parts_below(request.path, api::kProjectsPath).first);
  }
  if (!request.path.starts_with(api::kNodesPath)) return std::nullopt;
  const auto [name, action] = parts_below(request.path, api::kNodesPath);
  return answer_node(name, action);
}

http::Response FakeCluster::answer_project(const http::Request& request, const std::string& name) {
  const std::string& method = request.method;
  if (name.empty() && method == "GET") {
    std::vector<job::ProjectStatus> all;
    for (const auto& [known, project] : projects_) all.push_back(status_of(known));
    return {.body = api::projects_to_json(all)};
  }
  if (!name.empty() && !projects_.contains(name)) return not_found_answer("project '" + name + "'");
  if (method == "GET") return {.body = api::project_to_json(status_of(name))};
  if (method == "DELETE") {
    projects_.erase(name);
    return {.status = 204};
  }
  const auto project =
      api::read_project(request.body, name.empty() ? job::Project{} : projects_.at(name));
  if (!project) return problem_answer(project.error());
  projects_[project->name] = *project;
  return {.status = name.empty() ? 201 : 200,
          .body = api::project_to_json(status_of(project->name))};
}

http::Response FakeCluster::answer_node(const std::string& name, const std::string& action) {
  if (name.empty()) {
    std::vector<job::Node> all;
    for (const auto& [known, node] : nodes_) all.push_back(node);
    return {.body = api::nodes_to_json(all)};
  }
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return not_found_answer("node '" + name + "'");
  job::Node& node = found->second;
  if (action == api::kCordonAction) node.state = "cordoned";
  if (action == api::kUncordonAction) node.state = "ready";
  if (action == api::kDrainAction) node.state = "draining";
  return {.body = api::node_to_json(node)};
}

}  // namespace muster::cli
