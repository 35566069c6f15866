#include "schedule/plan.h"

#include <algorithm>
#include <optional>

namespace muster::schedule {

namespace {

bool fits(const Resources& room, const Resources& claim) {
  return room.gpus >= claim.gpus && room.cpus >= claim.cpus &&
         room.memory_bytes >= claim.memory_bytes;
}

/// The node of each task, booked in `nodes`; or nothing booked.
std::optional<std::vector<std::string>> place(std::vector<Node>& nodes, const Waiting& gang) {
  std::vector<Node> booked = nodes;
  std::vector<std::string> placed;
  for (const Resources& claim : gang.tasks) {
    const auto node = std::find_if(booked.begin(), booked.end(),
                                   [&](Node& candidate) { return take(candidate, claim); });
    if (node == booked.end()) return std::nullopt;
    placed.push_back(node->name);
  }
  nodes = std::move(booked);
  return placed;
}

std::string amount(int64_t number, const std::string& unit) {
  return std::to_string(number) + " " + unit + (number == 1 ? "" : "s");
}

std::string mebibytes(int64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB of memory";
}

/// One scarce resource: what the gang needs in all, what is free, what there is.
struct Balance {
  int64_t needed = 0;
  int64_t free = 0;
  int64_t total = 0;
};

template <class Of>
Balance balance_of(const std::vector<Node>& nodes, const Waiting& gang, Of of) {
  Balance balance;
  for (const Resources& claim : gang.tasks) balance.needed += of(claim);
  for (const Node& node : nodes) {
    balance.free += of(node.free);
    balance.total += of(node.total);
  }
  return balance;
}

std::string sentence(const Balance& balance, const std::string& needed, const std::string& free,
                     const std::string& total) {
  if (balance.needed > balance.total) {
    return "needs " + needed + ", and there are only " + total + " in all: it can never start here";
  }
  return "waits for room: it needs " + needed + ", " + free + " of " + total + " are free";
}

std::string reason_of(const std::vector<Node>& nodes, const Waiting& gang) {
  const Balance gpus = balance_of(nodes, gang, [](const Resources& r) { return r.gpus; });
  if (gpus.needed > gpus.free) {
    return sentence(gpus, amount(gpus.needed, "GPU"), std::to_string(gpus.free),
                    amount(gpus.total, "GPU"));
  }
  const Balance cpus = balance_of(nodes, gang, [](const Resources& r) { return r.cpus; });
  if (cpus.needed > cpus.free) {
    return sentence(cpus, amount(cpus.needed, "CPU"), std::to_string(cpus.free),
                    amount(cpus.total, "CPU"));
  }
  const Balance memory = balance_of(nodes, gang, [](const Resources& r) { return r.memory_bytes; });
  if (memory.needed > memory.free) {
    return sentence(memory, mebibytes(memory.needed), std::to_string(memory.free >> 20),
                    mebibytes(memory.total));
  }
  int slots = 0;
  for (const Node& node : nodes) slots += node.free_task_slots;
  if (static_cast<int>(gang.tasks.size()) > slots) {
    return "waits for room: it has " + amount(static_cast<int64_t>(gang.tasks.size()), "task") +
           ", " + amount(slots, "more task") + " can run now";
  }
  return "waits for room: no set of nodes holds all of its tasks at once";
}

/// A gang that waits keeps what it waits for: the room is taken out of what those behind it see.
void reserve(std::vector<Node>& nodes, const Waiting& gang) {
  for (const Resources& claim : gang.tasks) {
    for (Node& node : nodes) {
      if (take(node, claim)) break;
    }
  }
}

}  // namespace

bool take(Node& node, const Resources& claim) {
  if (node.free_task_slots < 1 || !fits(node.free, claim)) return false;
  --node.free_task_slots;
  node.free.gpus -= claim.gpus;
  node.free.cpus -= claim.cpus;
  node.free.memory_bytes -= claim.memory_bytes;
  return true;
}

Plan make_plan(Snapshot snapshot) {
  Plan plan;
  for (const Waiting& gang : snapshot.queue) {
    if (auto nodes = place(snapshot.nodes, gang)) {
      plan.starts.push_back({.job_id = gang.job_id, .nodes = *std::move(nodes)});
      continue;
    }
    const bool ever = [&] {
      std::vector<Node> empty = snapshot.nodes;
      for (Node& node : empty) {
        node.free = node.total;
        node.free_task_slots = static_cast<int>(gang.tasks.size());
      }
      return place(empty, gang).has_value();
    }();
    plan.waits.push_back({.job_id = gang.job_id, .reason = reason_of(snapshot.nodes, gang)});
    if (ever) reserve(snapshot.nodes, gang);
  }
  return plan;
}

}  // namespace muster::schedule
