// The nodes of the cluster, as Slurm lists them.
#include <algorithm>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine {

using slurm::ListedNode;

namespace {

constexpr int64_t kMilli = 1000;

Node node_from_listing(const ListedNode& listed) {
  Node node{.name = listed.name,
            .pool = listed.partitions.empty() ? "default" : listed.partitions.front(),
            .task_slots = std::max(listed.cpus, 1),
            .gpus = listed.gpus,
            .gpu_model = listed.gpus > 0 ? listed.gpu_type : "",
            .cpu_milli = listed.cpus * kMilli,
            .memory_bytes = listed.memory_bytes,
            .address = listed.address};
  node.labels["partitions"] = base::joined(listed.partitions, ",");
  node.labels["state"] = listed.state_text;
  for (const std::string& feature : listed.features) node.labels.emplace(feature, "");
  if (!listed.takes_jobs && !listed.reason.empty()) node.labels["reason"] = listed.reason;
  return node;
}

}  // namespace

void SlurmEngine::Impl::poll_nodes() {
  nodes_timer.reset();
  client->nodes([this](const Result<std::vector<ListedNode>>& listed) {
    if (listed) {
      have_nodes(*listed);
    } else {
      controller_away(listed.error());
    }
    const bool hurries = node_list.empty();
    nodes_timer =
        loop.after(hurries ? options.quick_poll : options.nodes_poll, [this] { poll_nodes(); });
  });
}

void SlurmEngine::Impl::have_nodes(const std::vector<ListedNode>& listed) {
  std::vector<Node> now;
  for (const ListedNode& each : listed) {
    Node node = node_from_listing(each);
    if (!each.takes_jobs && slurm::answers(each.state_text)) {
      node.labels[kClosedBy] = "Slurm";
    } else if (!each.takes_jobs) {
      // Since when it is silent, it is since it was first seen so.
      const auto before = std::find_if(node_list.begin(), node_list.end(), [&](const Node& known) {
        return known.name == node.name && is_silent(known);
      });
      if (before != node_list.end()) {
        node.labels[kSilentSince] = before->labels.at(kSilentSince);
      } else {
        call_silent(node, base::SystemClock().now());
      }
    }
    now.push_back(std::move(node));
  }
  if (now == node_list) return;
  node_list = std::move(now);
  std::erase_if(node_watchers, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = node_watchers;
  for (const auto& watcher : watchers) {
    soon([watcher] {
      if (const auto changed = watcher.lock()) (*changed)();
    });
  }
}

}  // namespace muster::engine
