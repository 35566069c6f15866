// Nodes as sinfo lists them: a line for each partition that a node is in.
#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "engine/slurm/listing_fields.h"
#include "engine/slurm/slurm_listing.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::Result;

namespace {

enum NodeField {
  kNodeName,
  kNodeAddress,
  kNodeState,
  kNodeReason,
  kNodeCpus,
  kNodeMemory,
  kNodeGres,
  kNodePartition,
  kNodeFeatures,
  kNodeFields
};
constexpr std::array<std::string_view, kNodeFields> kNodeNames{
    "NodeList", "NodeAddr", "StateComplete", "Reason",  "CPUs",
    "Memory",   "Gres",     "PartitionName", "Features"};

bool add_node(std::string_view line, std::vector<ListedNode>& nodes,
              std::map<std::string, size_t, std::less<>>& known) {
  constexpr int64_t kMostMebibytes = int64_t{1} << 40;
  std::array<std::string_view, kNodeFields> fields;
  if (!fields_of(line, fields) || fields[kNodeName].empty()) return false;
  const auto [place, is_new] = known.try_emplace(std::string(fields[kNodeName]), nodes.size());
  if (is_new) {
    ListedNode node{.name = std::string(fields[kNodeName]),
                    .address = value_of(fields[kNodeAddress])};
    node.state_text = upper_case(fields[kNodeState]);
    node.takes_jobs = takes_jobs(node.state_text);
    node.reason = reason_of(fields[kNodeReason]);
    node.cpus = number_or(fields[kNodeCpus], 0);
    const auto mebibytes = number_or<int64_t>(fields[kNodeMemory], 0);
    node.memory_bytes = std::clamp<int64_t>(mebibytes, 0, kMostMebibytes) * kMebibyte;
    const Gpus gpus = gpus_in(fields[kNodeGres]);
    node.gpus = gpus.count;
    node.gpu_type = gpus.type;
    node.features = base::split(value_of(fields[kNodeFeatures]), ',');
    nodes.push_back(std::move(node));
  }
  std::vector<std::string>& partitions = nodes[place->second].partitions;
  std::string partition = value_of(fields[kNodePartition]);
  if (!partition.empty() &&
      std::find(partitions.begin(), partitions.end(), partition) == partitions.end()) {
    partitions.push_back(std::move(partition));
  }
  return true;
}

}  // namespace

std::vector<std::string> sinfo_arguments() {
  return {"--noheader", "--all", "--Node", "--Format=" + format_of(kNodeNames)};
}

Result<std::vector<ListedNode>> read_sinfo(std::string_view text) {
  std::vector<ListedNode> nodes;
  std::map<std::string, size_t, std::less<>> known;
  MUSTER_CHECK(for_each_line(text, "sinfo",
                             [&](std::string_view line) { return add_node(line, nodes, known); }));
  return nodes;
}

}  // namespace muster::engine::slurm
