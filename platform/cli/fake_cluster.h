// The projects and nodes of a fake server: kept as they are told, nothing is made of them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "http/message.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::cli {

class FakeCluster {
 public:
  FakeCluster();

  /// Nothing where the path is neither of projects nor of nodes.
  std::optional<http::Response> answer(const http::Request& request);

  bool has_project(const std::string& name) const { return projects_.contains(name); }
  job::ProjectStatus status_of(const std::string& project) const;

 private:
  http::Response answer_project(const http::Request& request, const std::string& name);
  http::Response answer_node(const std::string& name, const std::string& action);

  std::map<std::string, job::Project> projects_;
  std::map<std::string, job::Node> nodes_;
};

}  // namespace muster::cli
