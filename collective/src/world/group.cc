#include "world/group.h"

#include <poll.h>

#include <algorithm>
#include <set>
#include <string>

#include "bootstrap/crypto.h"
#include "transport/socket.h"
#include "world/group_desk.h"
#include "world/join.h"

namespace muster::collective {
namespace {

std::string text_of(std::span<const int> ranks) {
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
    fault = "does not name rank " + std::to_string(parent.rank) + ", which asks for it";
  }
  if (fault.empty()) return {};
  return Error{ErrorCode::kBadArgument, "the group of ranks " + text_of(ranks) + " " + fault,
               "the members of a group call with the same list, and nobody else does"};
}

// Opens the rendezvous and invites the others.
Result<Descriptor> host_group(World& parent, std::span<const int> ranks,
                              const GroupDesk::Identity& group, Options& options) {
  Result<Descriptor> listener = listen_on(parent.groups->reachable().with_port(0));
  if (!listener) return listener;
  options.rendezvous = local_address(listener->get()).to_string();
  for (const int member : ranks.subspan(1)) {
    GroupDesk::invite(*parent.monitor, member, group, options.rendezvous);
  }
  return listener;
}

Error named(Error error, const World& parent, std::span<const int> ranks,
            std::chrono::milliseconds timeout) {
  if (error.code == ErrorCode::kTimeout) {
    error.message = parent.name_of(ranks.front()) + " did not come to the group of ranks " +
                    text_of(ranks) + " within " + in_seconds(timeout);
    error.rank = ranks.front();
    error.host = parent.hosts[static_cast<std::size_t>(ranks.front())];
  }
  return error;
}

// How long the word of why may be on its way to this rank, where another of the group has heard it
// and gone.
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
  const GroupDesk::Identity group = parent.groups->next(ranks);
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
  // Where the group could not form because the world around it fell apart, that is the reason.
  if (!world && fails_with_its_world(world.error(), *parent.monitor)) {
    return parent.monitor->failure();
  }
  return world;
}

}  // namespace muster::collective
