// No room: the sentence for a gang that no set of nodes holds, now or ever.
#include <algorithm>

#include "schedule/reason.h"

namespace muster::schedule {

namespace {

bool all_claim(const Gang& gang, const Claim& claim) {
  return std::all_of(gang.groups.begin(), gang.groups.end(),
                     [&](const TaskGroup& group) { return group.claim == claim; });
}

/// "4 tasks with 2 GPUs each in one rack"; of a single task just "2 GPUs".
std::string need_text(const Gang& gang, const Shortage& shortage) {
  std::string claim = claim_text(shortage.claim);
  if (shortage.tasks == 1 && !claim.empty()) return claim;
  std::string text = count_text(shortage.tasks, "task");
  if (all_claim(gang, shortage.claim) && !claim.empty()) {
    text += " with " + claim + (shortage.tasks == 1 ? "" : " each");
  } else if (shortage.tasks != 1) {
    text += " at once";
  }
  if (!shortage.topology.empty()) text += " in one " + shortage.topology;
  return text;
}

/// "; room for 1 of 2", and for which kind of task there is none where they differ. Nothing where
/// there is but one task.
std::string found_text(const Gang& gang, const Shortage& shortage) {
  if (shortage.tasks == 1) return "";
  std::string text =
      "; room for " + std::to_string(shortage.placed) + " of " + std::to_string(shortage.tasks);
  if (!shortage.topology.empty()) text += " in the best " + shortage.topology;
  const std::string claim = claim_text(shortage.claim);
  if (!all_claim(gang, shortage.claim) && !claim.empty()) text += ", none for one with " + claim;
  return text;
}

struct Lack {
  int nodes = 0;
  std::string what;  ///< "GPUs"
  std::string free;  ///< what there is of it
};

/// `free`: " free", or nothing where the shortage is that of an empty cluster.
std::vector<Lack> lacks_of(const Shortage& shortage, const std::string& free) {
  const bool alone = shortage.nodes == 1;
  const auto most = [&](Resource resource, int64_t amount) {
    const std::string text = amount_text(resource, amount) + free;
    return alone ? text : "at most " + text + " on one node";
  };
  const std::string gpus_in_all =
      amount_text(Resource::kGpu, shortage.free_gpu_milli) + free + " in all, at most " +
      amount_text(Resource::kGpu, shortage.largest_free_gpu_milli) + " on one node";
  const std::string gpus =
      alone ? amount_text(Resource::kGpu, shortage.free_gpu_milli) + free : gpus_in_all;
  std::vector<Lack> lacks = {
      {shortage.lack_gpu, "GPUs", gpus},
      {shortage.lack_cpu, "CPUs", most(Resource::kCpu, shortage.largest_free_cpu_milli)},
      {shortage.lack_memory, "memory", most(Resource::kMemory, shortage.largest_free_memory_bytes)},
      {shortage.lack_task_slots, "task slots", ""}};
  std::erase_if(lacks, [](const Lack& lack) { return lack.nodes <= 0; });
  return lacks;
}

/// "3 of 4 nodes lack GPUs (1 GPU free in all, at most 1 GPU on one node) and 1 of 4 lacks CPUs";
/// "the only node lacks GPUs (1 GPU free)".
std::string lacks_text(const Shortage& shortage, bool ever) {
  const bool alone = shortage.nodes == 1;
  std::vector<std::string> parts;
  for (const Lack& lack : lacks_of(shortage, ever ? " free" : "")) {
    const std::string nodes = std::to_string(shortage.nodes) + (parts.empty() ? " nodes" : "");
    const std::string some =
        std::to_string(lack.nodes) + " of " + nodes + (lack.nodes == 1 ? " lacks " : " lack ");
    const std::string one = parts.empty() ? "the only node lacks " : "";
    parts.push_back((alone ? one : some) + lack.what +
                    (lack.free.empty() ? "" : " (" + lack.free + ")"));
  }
  if (!parts.empty()) return listed(parts);
  return shortage.topology.empty() ? "no set of nodes holds all of them at once"
                                   : "no " + shortage.topology + " holds all of them at once";
}

/// "pool fast, GPU model A100 or H100, label zone=a": what it may use.
std::string choice_text(const Gang& gang) {
  std::vector<std::string> parts = {gang.pools.empty() ? std::string("pool ") + kDefaultPool
                                                       : "pool " + listed(gang.pools, "or")};
  if (!gang.gpu_models.empty()) parts.push_back("GPU model " + listed(gang.gpu_models, "or"));
  for (const auto& [label, value] : gang.node_labels) {
    parts.emplace_back("label ").append(label).append("=").append(value);
  }
  if (!gang.excluded_nodes.empty()) parts.push_back("not " + listed(gang.excluded_nodes, "or"));
  return listed(parts);
}

std::string no_node_text(const Gang& gang, const Shortage& shortage) {
  const std::string choice = " (" + choice_text(gang) + ")";
  if (shortage.cordoned == 0) return "there is no node that it may use" + choice;
  return (shortage.cordoned == 1
              ? "the only node that it may use is cordoned"
              : "all " + count_text(shortage.cordoned, "node") + " that it may use are cordoned") +
         choice;
}

std::vector<std::string> remedies(const Shortage& shortage, bool ever) {
  std::vector<std::string> remedies;
  const std::string claim = claim_text(shortage.claim);
  const int missing = shortage.tasks - shortage.placed;
  if (ever && shortage.nodes > 0 && missing > 0) {
    remedies.push_back("starts when there is room for " + count_text(missing, "more task") +
                       (claim.empty() ? "" : " with " + claim + (missing == 1 ? "" : " each")));
  }
  const int64_t gpus_of_one = int64_t{shortage.claim.gpus} * kWholeGpu;
  if (ever && gpus_of_one > shortage.largest_free_gpu_milli &&
      shortage.free_gpu_milli >= missing * gpus_of_one) {
    remedies.push_back("enough GPUs are free in all, but in pieces: no node has more than " +
                       amount_text(Resource::kGpu, shortage.largest_free_gpu_milli) +
                       " for one task");
  }
  if (!ever && shortage.nodes > 0) {
    remedies.emplace_back("ask for less, or add nodes that are large enough");
  }
  if (shortage.cordoned == 1) {
    remedies.emplace_back("1 node is cordoned and takes nothing new; uncordon it to use its room");
  } else if (shortage.cordoned > 1) {
    remedies.push_back(count_text(shortage.cordoned, "node") +
                       " are cordoned and take nothing new; uncordon them to use their room");
  }
  return remedies;
}

}  // namespace

Reason shortage_reason(const Gang& gang, const Shortage& shortage, bool ever) {
  Reason reason;
  reason.constraint = !ever                       ? Constraint::kNever
                      : shortage.topology.empty() ? Constraint::kRoom
                                                  : Constraint::kTopology;
  reason.details = remedies(shortage, ever);
  const std::string needs = "needs " + need_text(gang, shortage);
  if (shortage.nodes == 0) {
    reason.text =
        (ever ? needs : "can never start here: " + needs) + "; " + no_node_text(gang, shortage);
    return reason;
  }
  const std::string found = found_text(gang, shortage);
  reason.text = (ever ? needs : "can never start here: " + needs) + found +
                (ever || found.empty() ? "" : " with nothing else running") +
                (found.empty() ? "; " : ": ") + lacks_text(shortage, ever);
  return reason;
}

}  // namespace muster::schedule
