#include "tcp/mesh.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

namespace muster::collective::tcp {

Mesh::Mesh(World& world, std::vector<int> members) : world_(world), members_(std::move(members)) {
  rank_ = static_cast<int>(std::ranges::find(members_, world.rank) - members_.begin());
  may_spin_ =
      world.topology.neighbours_of(world.rank).size() <= std::thread::hardware_concurrency();
}

int Mesh::crowd() const {
  std::map<int, int> members_on;
  int most = 1;
  for (const int member : members_) {
    const int host = world_.topology.host_of[static_cast<std::size_t>(member)];
    most = std::max(most, ++members_on[host]);
  }
  return most;
}

std::vector<int> everyone_in(const World& world) {
  std::vector<int> everyone(static_cast<std::size_t>(world.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return everyone;
}

CallComparison::CallComparison(World& world) : world_(world) {
  world_.monitor->handle(Topic::kCall,
                         [this](int from, const Bytes& payload) { receive(from, payload); });
}

CallComparison::~CallComparison() {
  world_.monitor->handle(Topic::kCall, {});
}

void CallComparison::enter(const Call& call) {
  std::vector<RemoteCall> remote_calls;
  {
    const std::lock_guard lock(mutex_);
    current_ = call.sequence;
    calls_[call.sequence % kRemembered] = call;
    if (early_.empty()) return;
    const auto later = [&](const RemoteCall& one) { return one.call.sequence > current_; };
    const auto due = std::ranges::partition(early_, later);
    remote_calls.assign(due.begin(), due.end());
    early_.erase(due.begin(), due.end());
  }
  for (const RemoteCall& one : remote_calls) compare(call, one);
  if (!remote_calls.empty() && !world_.monitor->is_complete()) send(call.sequence);
}

void CallComparison::ask() {
  std::uint64_t current = 0;
  {
    const std::lock_guard lock(mutex_);
    current = current_;
  }
  send(current);
}

// A rank sends its calls in their order, each at most once. It skips a call for a later one.
void CallComparison::send(std::uint64_t sequence) {
  Call call;
  {
    const std::lock_guard lock(mutex_);
    if (sequence <= asked_) return;
    asked_ = sequence;
    call = calls_[sequence % kRemembered];
  }
  const CallHeader header = encode(call);
  world_.monitor->send_to_neighbours(Topic::kCall, {header.begin(), header.end()});
}

void CallComparison::receive(int from, const Bytes& payload) {
  CallHeader header;
  if (payload.size() != header.size()) return;
  std::ranges::copy(payload, header.begin());
  const std::optional<Call> call = decode(header);
  if (!call) return;
  Call mine;
  {
    const std::lock_guard lock(mutex_);
    if (call->sequence > current_) early_.push_back({from, *call});
    mine = calls_[call->sequence % kRemembered];
  }
  if (mine.sequence != call->sequence) return;
  compare(mine, {from, *call});
  if (!world_.monitor->is_complete()) send(call->sequence);
}

void CallComparison::compare(const Call& mine, const RemoteCall& remote) {
  if (mine.sequence != remote.call.sequence || encode(mine) == encode(remote.call)) return;
  const auto host_of = [this](int rank) { return world_.hosts[static_cast<std::size_t>(rank)]; };
  world_.monitor->fail(mismatch({world_.rank, host_of(world_.rank), mine},
                                {remote.from, host_of(remote.from), remote.call}));
}

}  // namespace muster::collective::tcp
