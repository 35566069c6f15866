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

// The errors of join() number the ranks of the group from 0.
Error did_not_form(Error error, std::span<const int> ranks) {
  error.message = "the group of ranks " + ranks_text(ranks) + ", here numbered 0 to " +
                  std::to_string(ranks.size() - 1) + ", did not form: " + error.message;
  const auto place = static_cast<std::size_t>(error.rank);
  if (error.rank >= 0 && place < ranks.size()) error.rank = ranks[place];
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

// On the first rank.
Result<std::unique_ptr<World>> host_group(World& parent, std::span<const int> ranks,
                                          GroupInvitations::List& list, Options options,
                                          const MemoryBytes& memory_bytes) {
  GroupInvitations& groups = *parent.groups;
  Monitor& monitor = *parent.monitor;
  Result<Descriptor> listener = listen_on(groups.reachable().with_port(0));
  if (!listener) return listener.error();
  const std::uint64_t attempt = list.attempts++;
  options.key = to_hex(groups.key_of(list, attempt));
  options.rendezvous = local_address(listener->get()).to_string();
  options.listener = listener->release();
  GroupInvitations::invite(monitor, ranks.subspan(1), list, {attempt, options.rendezvous});
  Result<std::unique_ptr<World>> world = join(options, memory_bytes, monitor.failure_descriptor());
  if (world) return world;
  GroupInvitations::invite(monitor, ranks.subspan(1), list, {attempt});
  return did_not_form(world.error(), ranks);
}

// On the other ranks. The invitation may be that of an attempt that has failed, or fail before this
// rank can connect: then the rank waits for another one.
Result<std::unique_ptr<World>> follow_invitation(World& parent, std::span<const int> ranks,
                                                 GroupInvitations::List& list, Options options,
                                                 const MemoryBytes& memory_bytes) {
  GroupInvitations& groups = *parent.groups;
  Monitor& monitor = *parent.monitor;
  const auto timeout = options.timeout.value_or(kDefaultTimeout);
  const auto invitation = groups.await_invitation(list, monitor, Clock::now() + timeout);
  if (!invitation) return named(invitation.error(), parent, ranks, timeout);
  std::uint64_t attempt = 0;
  const Finder find = [&]() -> Result<std::optional<Meeting>> {
    const std::optional<GroupInvitations::Invitation> latest = groups.latest(list);
    if (!latest) return std::optional<Meeting>();
    attempt = latest->attempt;
    return std::optional<Meeting>({latest->endpoint, groups.key_of(list, attempt)});
  };
  Result<std::unique_ptr<World>> world =
      join(options, memory_bytes, monitor.failure_descriptor(), find);
  if (!world) return did_not_form(world.error(), ranks);
  groups.use(list, attempt);
  return world;
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
  const bool is_part = ranks.size() < static_cast<std::size_t>(parent.size);
  if (parent.has_default_arena && is_part) {
    options.arena_bytes = std::min(options.arena_bytes.value_or(0), kMostOfGroupArena);
  }
  if (*options.size == 1) return join(options, memory_bytes);

  GroupInvitations::List& list = parent.groups->list_of(ranks);
  const std::lock_guard turn(list.turn);
  Result<std::unique_ptr<World>> world =
      *options.rank == 0 ? host_group(parent, ranks, list, std::move(options), memory_bytes)
                         : follow_invitation(parent, ranks, list, std::move(options), memory_bytes);
  // If the group could not form because its parent world failed, that failure is the reason.
  if (!world && fails_with_its_world(world.error(), *parent.monitor)) {
    return parent.monitor->failure();
  }
  // For groups that are made from this group.
  if (world) (*world)->has_default_arena = parent.has_default_arena;
  return world;
}

GroupInvitations::GroupInvitations(Address reachable, Bytes key, Monitor& monitor)
    : reachable_(reachable), key_(std::move(key)) {
  monitor.handle(Topic::kGroup, [this](int, Bytes payload) { take(std::move(payload)); });
}

GroupInvitations::List& GroupInvitations::list_of(std::span<const int> ranks) {
  const std::string name = to_hex(hmac(key_, {view_of("group name"), std::as_bytes(ranks)}));
  const std::lock_guard lock(mutex_);
  return list_named(name);
}

// Requires the lock.
GroupInvitations::List& GroupInvitations::list_named(const std::string& name) {
  List& list = lists_[name];
  list.name = name;
  return list;
}

Bytes GroupInvitations::key_of(const List& list, std::uint64_t attempt) const {
  const Digest key =
      hmac(key_, {view_of("group"), view_of(list.name), std::as_bytes(std::span(&attempt, 1))});
  return {key.begin(), key.end()};
}

void GroupInvitations::invite(Monitor& monitor, std::span<const int> members, const List& list,
                              const Invitation& invitation) {
  const Bytes message =
      ByteWriter().text(list.name).number(invitation.attempt).text(invitation.endpoint).take();
  for (const int member : members) monitor.send(member, Topic::kGroup, message);
}

// Invitations of one rank arrive in order.
void GroupInvitations::take(Bytes payload) {
  ByteReader reader(payload);
  const std::string name = reader.text();
  const auto attempt = reader.number<std::uint64_t>();
  std::string endpoint = reader.text();
  if (!reader.ok()) return;
  const std::lock_guard lock(mutex_);
  std::optional<Invitation>& latest = list_named(name).latest;
  if (endpoint.empty()) {
    latest.reset();
  } else {
    latest = {attempt, std::move(endpoint)};
    came_.notify_all();
  }
}

Result<GroupInvitations::Invitation> GroupInvitations::await_invitation(List& list,
                                                                        Monitor& monitor,
                                                                        Deadline deadline) {
  const std::uint64_t subscription = monitor.on_failure([this] {
    const std::lock_guard lock(mutex_);
    came_.notify_all();
  });
  std::optional<Invitation> invitation;
  {
    std::unique_lock lock(mutex_);
    came_.wait_until(lock, deadline, [&] { return list.latest || monitor.failed(); });
    invitation = list.latest;
  }
  monitor.unsubscribe(subscription);
  if (invitation) return *std::move(invitation);
  if (monitor.failed()) return monitor.failure();
  return Error{ErrorCode::kTimeout, "the first rank of the group did not join"};
}

std::optional<GroupInvitations::Invitation> GroupInvitations::latest(const List& list) {
  const std::lock_guard lock(mutex_);
  return list.latest;
}

void GroupInvitations::use(List& list, std::uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  if (list.latest && list.latest->attempt == attempt) list.latest.reset();
}

}  // namespace muster::collective
