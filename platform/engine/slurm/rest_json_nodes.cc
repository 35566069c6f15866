// Nodes as slurmrestd lists them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/slurm/rest_json.h"
#include "engine/slurm/rest_json_parts.h"
#include "engine/slurm/rest_words.h"
#include "engine/slurm/slurm_listing.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Result;
using rest::at;
using rest::json;
using rest::number_at;
using rest::text_at;

namespace {

const std::unordered_set<std::string_view> kNodeMembers{
    "nodes", "name",        "address", "state",      "state_flags", "reason",
    "cpus",  "real_memory", "gres",    "partitions", "features",    "active_features",
    "set",   "infinite",    "number"};

ListedNode read_node(const json& node) {
  constexpr int64_t kMostMebibytes = int64_t{1} << 40;
  auto words = rest::texts_at(node, "state");
  for (std::string& flag : rest::texts_at(node, "state_flags")) words.push_back(std::move(flag));
  ListedNode result{.name = text_at(node, "name"),
                    .address = text_at(node, "address"),
                    .state_text = rest::node_state_text(words),
                    .reason = text_at(node, "reason"),
                    .cpus = static_cast<int>(
                        std::clamp<int64_t>(number_at(node, "cpus").value_or(0), 0, INT32_MAX)),
                    .memory_bytes = std::clamp<int64_t>(number_at(node, "real_memory").value_or(0),
                                                        0, kMostMebibytes) *
                                    kMebibyte,
                    .partitions = rest::texts_at(node, "partitions"),
                    .features = rest::texts_at(node, "features")};
  result.takes_jobs = takes_jobs(result.state_text);
  // v0.0.36 does not tell of drained nodes, but why they are.
  const bool tells_flags = !at(node, "state_flags").is_null() || at(node, "state").is_array();
  if (!tells_flags && !result.reason.empty()) result.takes_jobs = false;
  const Gpus gpus = gpus_in(text_at(node, "gres"));
  result.gpus = gpus.count;
  result.gpu_type = gpus.type;
  return result;
}

}  // namespace

Result<std::vector<ListedNode>> read_rest_nodes(std::string_view body) {
  auto root = rest::parse(body, "the nodes", kNodeMembers);
  if (!root) return std::move(root).error();
  const json& nodes = at(*root, "nodes");
  if (!nodes.is_array()) return rest::no_such_answer("the nodes", "it has no list of nodes");
  std::vector<ListedNode> result;
  for (const json& node : nodes) {
    ListedNode read = read_node(node);
    if (!read.name.empty()) result.push_back(std::move(read));
  }
  return result;
}

}  // namespace muster::engine::slurm
