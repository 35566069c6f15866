// Nodes over the wire, both ways. docs/api.md shows the shape by example.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/node.h"

namespace muster::api {

using base::Result;

std::string node_to_json(const job::Node& node);
Result<job::Node> node_from_json(std::string_view text);

/// {"nodes": [...]}
std::string nodes_to_json(const std::vector<job::Node>& nodes);
Result<std::vector<job::Node>> nodes_from_json(std::string_view text);

}  // namespace muster::api
