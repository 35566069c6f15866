// Why there is no room: a project at its limit, or no set of nodes with room for the job; the
// holders of the resources, and remedies.
#include <algorithm>

#include "job/amounts.h"
#include "words/parts.h"

namespace muster::words {

using job::amount_text;
using job::claim_text;
using job::count_text;
using job::listed;
using job::NoRoom;
using job::OverCapacity;
using job::Resource;

// --- a project at its limit

namespace {

/// The amount by which it would exceed the limit.
int64_t too_much(const OverCapacity& fact) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(
      std::min<Wide>(Wide{fact.allocated} + fact.requested - fact.bound, job::kUnlimited));
}

}  // namespace

std::string capacity_sentence(const OverCapacity& fact) {
  const auto amount = [&](int64_t of) { return amount_text(fact.resource, of); };
  return "'" + fact.job + "'" +
         (fact.is_quota ? " is not preemptible and requests " : " requests ") +
         amount(fact.requested) + ", but " + project_text(fact.project) + " has " +
         (fact.is_quota ? "a quota of " : "a limit of ") + amount(fact.bound) + ", with " +
         (fact.allocated == 0 ? "nothing" : amount(fact.allocated)) + " allocated" +
         (fact.is_quota ? " to jobs that are not preemptible" : "") + ": " +
         amount(too_much(fact)) + (fact.resource == Resource::kMemory ? " too much" : " too many");
}

std::vector<std::string> capacity_remedies(const OverCapacity& fact) {
  const std::string bound = fact.is_quota ? "quota" : "limit";
  const std::string project = bare_project_text(fact.project);
  const auto amount = [&](int64_t of) { return amount_text(fact.resource, of); };
  std::vector<std::string> remedies;
  if (fact.requested > fact.bound) {
    remedies.push_back("it requests more than the whole " + bound + " of " + project +
                       ", and cannot start until that is at least " + amount(fact.requested));
  } else {
    remedies.push_back("starts when jobs of " + project +
                       (fact.is_quota ? " that are not preemptible" : "") + " give back " +
                       amount(too_much(fact)) + ", or when its " + bound + " is raised to " +
                       amount(fact.bound + too_much(fact)));
  }
  if (fact.is_quota) remedies.emplace_back("as a preemptible job it may run over quota");
  return remedies;
}

// --- holders of resources

namespace {

std::string holder_name(const job::Holding& holding) {
  return holding.job ? quoted_job(*holding.job) + " of " + holding.job->project : holding.project;
}

/// "org holds 2 GPUs, lab holds 1 GPU and 2 others 3 GPUs"
std::string holders_below(const job::Holders& holders) {
  std::vector<std::string> parts;
  for (const job::Holding& holding : holders.named) {
    parts.push_back(holder_name(holding) + " holds " +
                    amount_text(holders.resource, holding.amount));
  }
  if (holders.more > 0) {
    parts.push_back(count_text(holders.more, "other") + " " +
                    amount_text(holders.resource, holders.more_amount));
  }
  if (holders.hidden) parts.emplace_back("others");
  return listed(parts);
}

/// "'a' of lab (2 GPUs), 'b' of org (1 GPU) and 3 more"
std::string holders_list(const job::Holders& holders) {
  std::vector<std::string> parts;
  for (const job::Holding& holding : holders.named) {
    parts.push_back(holder_name(holding) + " (" + amount_text(holders.resource, holding.amount) +
                    ")");
  }
  if (holders.more > 0) parts.push_back(std::to_string(holders.more) + " more");
  if (holders.hidden) parts.emplace_back("others");
  return listed(parts);
}

}  // namespace

std::string holders_sentence(const job::HeldByOthers& fact) {
  if (fact.below) {
    return "below " + (fact.below->hidden ? "a parent project" : "project " + fact.below->name) +
           ", " + holders_below(fact.holders);
  }
  const bool are_jobs = !fact.holders.named.empty() && fact.holders.named.front().job;
  return (are_jobs ? "held by job: " : "held by project: ") + holders_list(fact.holders);
}

// --- no room

namespace {

/// "4 tasks with 2 GPUs each in one rack"; for a single task "2 GPUs".
std::string need_text(const NoRoom& shortage) {
  std::string claim = claim_text(shortage.claim);
  if (shortage.tasks == 1 && !claim.empty()) return claim;
  std::string text = count_text(shortage.tasks, "task");
  if (shortage.alike && !claim.empty()) {
    text += " with " + claim + (shortage.tasks == 1 ? "" : " each");
  } else if (shortage.tasks != 1) {
    text += " at once";
  }
  if (!shortage.topology.empty()) text += " in one " + shortage.topology;
  return text;
}

/// "; room for 1 of 2", and the claim of the task without room if claims differ. Empty for a single
/// task.
std::string found_text(const NoRoom& shortage) {
  if (shortage.tasks == 1) return "";
  std::string text =
      "; room for " + std::to_string(shortage.placed) + " of " + std::to_string(shortage.tasks);
  if (!shortage.topology.empty()) text += " in the best " + shortage.topology;
  const std::string claim = claim_text(shortage.claim);
  if (!shortage.alike && !claim.empty()) text += ", but not for a task with " + claim;
  return text;
}

struct Lack {
  int nodes = 0;
  std::string what;  ///< "GPUs"
  std::string free;  ///< the free amount
};

/// `free`: " free", or empty if the shortage would exist on an empty cluster.
std::vector<Lack> lacks_of(const NoRoom& shortage, const std::string& free) {
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
std::string lacks_text(const NoRoom& shortage) {
  const bool alone = shortage.nodes == 1;
  std::vector<std::string> parts;
  for (const Lack& lack : lacks_of(shortage, shortage.ever ? " free" : "")) {
    const std::string nodes = std::to_string(shortage.nodes) + (parts.empty() ? " nodes" : "");
    const std::string some =
        std::to_string(lack.nodes) + " of " + nodes + (lack.nodes == 1 ? " lacks " : " lack ");
    const std::string one = parts.empty() ? "the only node lacks " : "";
    parts.push_back((alone ? one : some) + lack.what +
                    (lack.free.empty() ? "" : " (" + lack.free + ")"));
  }
  if (!parts.empty()) return listed(parts);
  return shortage.topology.empty()
             ? "no set of nodes has room for all of them at once"
             : "no " + shortage.topology + " has room for all of them at once";
}

/// "pool fast, GPU model A100 or H100, label zone=a": the nodes that it may use.
std::string choice_text(const NoRoom& shortage) {
  std::vector<std::string> parts = {"pool " + listed(shortage.pools, "or")};
  if (!shortage.gpu_models.empty())
    parts.push_back("GPU model " + listed(shortage.gpu_models, "or"));
  for (const std::string& label : shortage.labels) parts.push_back("label " + label);
  if (!shortage.excluded_nodes.empty())
    parts.push_back("not " + listed(shortage.excluded_nodes, "or") +
                    ", excluded by its rule avoid-node");
  return listed(parts);
}

/// "node n1 does not answer: host 'n1' cannot be used: ..."
std::string fault_text(const job::NodeFault& fault) {
  return "node " + fault.node + " does not answer" +
         (fault.fault.empty() ? "" : ": " + fault.fault);
}

/// "the only node that it may use does not answer (pool default): host 'n1' cannot be used: ..."
std::string silent_text(const NoRoom& shortage, const std::string& choice) {
  const bool has_cordoned = shortage.cordoned > 0;
  std::string text;
  if (shortage.silent == 1 && !has_cordoned) {
    text = "the only node that it may use does not answer";
  } else if (!has_cordoned) {
    text = "none of the " + std::to_string(shortage.silent) + " nodes that it may use answers";
  } else {
    text = "of the nodes that it may use, " + std::to_string(shortage.silent) +
           (shortage.silent == 1 ? " does" : " do") + " not answer and " +
           std::to_string(shortage.cordoned) + (shortage.cordoned == 1 ? " is" : " are") +
           " cordoned";
  }
  const bool has_fault = !shortage.faults.empty() && !shortage.faults.front().fault.empty();
  return text + choice + (has_fault ? ": " + shortage.faults.front().fault : "");
}

std::string no_node_text(const NoRoom& shortage) {
  const std::string choice = " (" + choice_text(shortage) + ")";
  if (shortage.silent > 0) return silent_text(shortage, choice);
  if (shortage.cordoned == 0) return "there is no node that it may use" + choice;
  return (shortage.cordoned == 1
              ? "the only node that it may use is cordoned"
              : "all " + count_text(shortage.cordoned, "node") + " that it may use are cordoned") +
         choice;
}

}  // namespace

std::vector<std::string> shortage_remedies(const NoRoom& shortage) {
  std::vector<std::string> remedies;
  const std::string claim = claim_text(shortage.claim);
  const int missing = shortage.tasks - shortage.placed;
  if (shortage.ever && shortage.nodes > 0 && missing > 0) {
    remedies.push_back("starts when there is room for " + count_text(missing, "more task") +
                       (claim.empty() ? "" : " with " + claim + (missing == 1 ? "" : " each")));
  }
  const int64_t gpus_of_one = int64_t{shortage.claim.gpus} * job::kWholeGpu;
  if (shortage.ever && gpus_of_one > shortage.largest_free_gpu_milli &&
      shortage.free_gpu_milli >= missing * gpus_of_one) {
    remedies.push_back("enough GPUs are free in total, but no node has more than " +
                       amount_text(Resource::kGpu, shortage.largest_free_gpu_milli) +
                       " for one task");
  }
  if (!shortage.ever && shortage.nodes > 0) {
    remedies.emplace_back("request less, or add larger nodes");
  }
  if (shortage.nodes == 0 && !shortage.excluded_nodes.empty()) {
    remedies.emplace_back(
        "it starts when a node is added; 'muster rerun' submits it again without the exclusion");
  }
  for (const job::NodeFault& fault : shortage.faults) remedies.push_back(fault_text(fault));
  const auto more_silent = shortage.silent - static_cast<int>(shortage.faults.size());
  if (more_silent > 0) {
    remedies.push_back(count_text(more_silent, "more node") +
                       (more_silent == 1 ? " does not answer" : " do not answer"));
  }
  if (shortage.cordoned == 1) {
    remedies.emplace_back("1 node is cordoned and accepts no new tasks; uncordon it to use it");
  } else if (shortage.cordoned > 1) {
    remedies.push_back(count_text(shortage.cordoned, "node") +
                       " are cordoned and accept no new tasks; uncordon them to use them");
  }
  return remedies;
}

std::string shortage_sentence(const NoRoom& shortage) {
  const std::string needs =
      (shortage.ever ? "needs " : "can never start here: needs ") + need_text(shortage);
  if (shortage.nodes == 0) return needs + "; " + no_node_text(shortage);
  const std::string found = found_text(shortage);
  return needs + found + (shortage.ever || found.empty() ? "" : " with nothing else running") +
         (found.empty() ? "; " : ": ") + lacks_text(shortage);
}

}  // namespace muster::words
