#include "world/group.h"

#include <poll.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "bootstrap/crypto.h"
#include "transport/socket.h"
#include "world/join.h"

namespace muster::collective {
namespace {

std::string ranks_text(std::span<const int> ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

Status check_list(const World& parent, std::span<const int> ranks) {
  std::set<int> seen;
  std::string fault;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= parent.size) {
      fault = "names rank " + std::to_string(rank) + ", which is not in a world of " +
              std::to_string(parent.size);
    } else if (!seen.insert(rank).second) {
      fault = "names rank " + std::to_string(rank) + " twice";
    }
  }
  if (fault.empty() && !seen.contains(parent.rank)) {
    fault = "does not name rank " + std::to_string(parent.rank) + ", which calls it";
  }
  if (fault.empty()) return {};
  return Error{ErrorCode::kBadArgument, "the group of ranks " + ranks_text(ranks) + " " + fault,
               "only the members of a group call it, with the same list"};
}

// Opens the rendezvous and invites the other members.
Result<Descriptor> host_group(World& parent, std::span<const int> ranks,
                              const GroupInvitations::Identity& group, Options& options) {
  Result<Descriptor> listener = listen_on(parent.groups->reachable().with_port(0));
  if (!listener) return listener;
  options.rendezvous = local_address(listener->get()).to_string();
  for (const int member : ranks.subspan(1)) {
    GroupInvitations::invite(*parent.monitor, member, group, options.rendezvous);
  }
  return listener;
}

Error named(Error error, const World& parent, std::span<const int> ranks,
            std::chrono::milliseconds timeout) {
  if (error.code == ErrorCode::kTimeout) {
    error.message = parent.name_of(ranks.front()) + " did not join the group of ranks " +
                    ranks_text(ranks) + " within " + in_seconds(timeout);
    error.rank = ranks.front();
    error.host = parent.hosts[static_cast<std::size_t>(ranks.front())];
  }
  return error;
}

// How much later than a connection's end its reason may arrive, if another member of the group has
// received the reason earlier and has left.
constexpr int kWordMilliseconds = 1000;

bool fails_with_its_world(const Error& error, const Monitor& world) {
  if (error.code == ErrorCode::kPeerLost && !world.failed()) {
    pollfd word{world.failure_descriptor(), POLLIN, 0};
    ::poll(&word, 1, kWordMilliseconds);
  }
  return world.failed();
}

}  // namespace

Result<std::unique_ptr<World>> join_group(World& parent, std::span<const int> ranks,
                                          const MemoryBytes& memory_bytes) {
  if (Status checked = check_list(parent, ranks); !checked) return checked.error();
  if (parent.monitor && parent.monitor->failed()) return parent.monitor->failure();
  Options options = parent.options;
  options.rank = static_cast<int>(std::ranges::find(ranks, parent.rank) - ranks.begin());
  options.size = static_cast<int>(ranks.size());
  options.listener = -1;
  options.rendezvous_file.clear();
  if (*options.size == 1) return join(options, memory_bytes);

  const auto timeout = options.timeout.value_or(kDefaultTimeout);
  const GroupInvitations::Identity group = parent.groups->next(ranks);
  options.key = to_hex(group.key);
  if (*options.rank == 0) {
    Result<Descriptor> listener = host_group(parent, ranks, group, options);
    if (!listener) return listener.error();
    options.listener = listener->release();
  } else {
    Result<std::string> endpoint =
        parent.groups->invitation(group, *parent.monitor, Clock::now() + timeout);
    if (!endpoint) return named(endpoint.error(), parent, ranks, timeout);
    options.rendezvous = *std::move(endpoint);
  }
  Result<std::unique_ptr<World>> world =
      join(options, memory_bytes, parent.monitor->failure_descriptor());
  // If the group could not form because its parent world failed, that failure is the reason.
  if (!world && fails_with_its_world(world.error(), *parent.monitor)) {
    return parent.monitor->failure();
  }
  return world;
}

GroupInvitations::GroupInvitations(Address reachable, Bytes key, Monitor& monitor)
    : reachable_(reachable), key_(std::move(key)) {
  monitor.handle(Topic::kGroup, [this](int, Bytes payload) { take(std::move(payload)); });
}

GroupInvitations::Identity GroupInvitations::next(std::span<const int> ranks) {
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

void GroupInvitations::invite(Monitor& monitor, int member, const Identity& group,
                              const std::string& endpoint) {
  monitor.send(member, Topic::kGroup, ByteWriter().text(group.name).text(endpoint).take());
}

void GroupInvitations::take(Bytes payload) {
  ByteReader reader(payload);
  std::string name = reader.text();
  std::string endpoint = reader.text();
  if (!reader.ok()) return;
  const std::lock_guard lock(mutex_);
  endpoints_[std::move(name)] = std::move(endpoint);
  came_.notify_all();
}

Result<std::string> GroupInvitations::invitation(const Identity& group, Monitor& monitor,
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
  return Error{ErrorCode::kTimeout, "the first rank of the group did not join"};
}

}  // namespace muster::collective
