#include "world/group_desk.h"

#include <utility>

#include "bootstrap/crypto.h"

namespace muster::collective {

GroupDesk::GroupDesk(Address reachable, Bytes key, Monitor& monitor)
    : reachable_(reachable), key_(std::move(key)) {
  monitor.handle(Topic::kGroup, [this](int, Bytes payload) { take(std::move(payload)); });
}

GroupDesk::Identity GroupDesk::next(std::span<const int> ranks) {
  std::uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = joined_[std::vector<int>(ranks.begin(), ranks.end())]++;
  }
  const ByteView list = std::as_bytes(ranks);
  const ByteView count = std::as_bytes(std::span(&before, 1));
  const Digest key = hmac(key_, {view_of("group"), list, count});
  const Digest name = hmac(key_, {view_of("group name"), list, count});
  return {to_hex(name), Bytes(key.begin(), key.end())};
}

void GroupDesk::invite(Monitor& monitor, int member, const Identity& group,
                       const std::string& endpoint) {
  monitor.send(member, Topic::kGroup, ByteWriter().text(group.name).text(endpoint).take());
}

void GroupDesk::take(Bytes payload) {
  ByteReader reader(payload);
  std::string name = reader.text();
  std::string endpoint = reader.text();
  if (!reader.ok()) return;
  const std::lock_guard lock(mutex_);
  endpoints_[std::move(name)] = std::move(endpoint);
  came_.notify_all();
}

Result<std::string> GroupDesk::invitation(const Identity& group, Monitor& monitor,
                                          Deadline deadline) {
  const std::uint64_t subscription = monitor.on_failure([this] {
    const std::lock_guard lock(mutex_);
    came_.notify_all();
  });
  std::string endpoint;
  {
    std::unique_lock lock(mutex_);
    came_.wait_until(lock, deadline,
                     [&] { return endpoints_.contains(group.name) || monitor.failed(); });
    if (const auto found = endpoints_.find(group.name); found != endpoints_.end()) {
      endpoint = std::move(found->second);
      endpoints_.erase(found);
    }
  }
  monitor.unsubscribe(subscription);
  if (!endpoint.empty()) return endpoint;
  if (monitor.failed()) return monitor.failure();
  return Error{ErrorCode::kTimeout, "the first rank of the group did not come"};
}

}  // namespace muster::collective
