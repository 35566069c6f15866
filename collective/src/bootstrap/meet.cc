#include "bootstrap/meet.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "bootstrap/crypto.h"
#include "bootstrap/rendezvous_file.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

// Listens at the rendezvous on the first of its addresses that is one of this host.
Result<Descriptor> open_rendezvous(const Joining& joining) {
  if (joining.options.listener >= 0) {
    ::fcntl(joining.options.listener, F_SETFL, O_NONBLOCK);
    return Descriptor(joining.options.listener);
  }
  const bool by_file = joining.options.rendezvous.empty();
  const std::string endpoint = by_file ? "127.0.0.1:0" : joining.options.rendezvous;
  Result<std::vector<Address>> addresses = resolve(endpoint);
  if (!addresses) return addresses.error();
  Error last;
  for (const Address& address : *addresses) {
    if (address.is_wildcard() || (address.port() == 0 && !by_file)) {
      return Error{ErrorCode::kConfiguration, "nobody can reach the rendezvous '" + endpoint + "'",
                   "name an address of rank 0's host that the other ranks reach, and a port"};
    }
    Result<Descriptor> listener = listen_on(address);
    if (listener) return listener;
    last = listener.error();
  }
  return last;
}

Result<Meeting> new_meeting(const Joining& joining, const Address& address) {
  if (!joining.options.rendezvous.empty()) {
    Result<Bytes> key = parse_key(joining.options.key);
    if (!key) return key.error();
    return Meeting{address.to_string(), *std::move(key)};
  }
  Bytes key(kDigestBytes);
  if (Status filled = fill_random(key); !filled) return filled.error();
  return Meeting{address.to_string(), std::move(key)};
}

// Opens the door of this rank: on an address that is known to be reachable, the one by which it
// takes part in the rendezvous, and by a random name for those on its host.
Result<std::vector<Descriptor>> open_door(const Address& reachable, Introduction& self) {
  std::vector<Descriptor> listeners;
  Result<Descriptor> listener = listen_on(reachable.with_port(0));
  if (!listener) return listener.error();
  self.endpoint = local_address(listener->get()).to_string();
  listeners.push_back(*std::move(listener));
  std::array<std::byte, 16> name = {};
  if (Status filled = fill_random(name); !filled) return filled.error();
  const Address local = unix_address("muster-" + to_hex(name));
  // Where unix sockets are not allowed (a sandbox), TCP does, though without shared memory.
  if (Result<Descriptor> door = listen_on(local)) {
    self.local_endpoint = local.to_string();
    listeners.push_back(*std::move(door));
  }
  return listeners;
}

// For all that the others may call about: control, and up to 16 connections for data.
Acceptor door_of(std::vector<Descriptor> listeners, const Bytes& key, int size) {
  return {std::move(listeners), key, static_cast<std::size_t>(size) * 17};
}

Result<Gathered> meet_as_host(Joining& joining) {
  Result<Descriptor> rendezvous = open_rendezvous(joining);
  if (!rendezvous) return rendezvous.error();
  const Address address = local_address(rendezvous->get());
  Result<Meeting> meeting = new_meeting(joining, address);
  if (!meeting) return meeting.error();
  Result<std::vector<Descriptor>> listeners = open_door(address, joining.self);
  if (!listeners) return listeners.error();
  std::optional<Publication> publication;
  if (joining.options.rendezvous.empty()) {
    Result<Publication> published = publish(joining.options.rendezvous_file, *meeting);
    if (!published) return published.error();
    publication.emplace(*std::move(published));
  }
  std::vector<Descriptor> entrance;
  entrance.push_back(*std::move(rendezvous));
  Acceptor hall(std::move(entrance), meeting->key, static_cast<std::size_t>(joining.self.size));
  std::vector<Guest> guests;
  Result<Roster> roster = gather(hall, joining.self, joining.terms, guests, joining.deadline,
                                 joining.timeout, joining.cancel);
  if (!roster) return roster.error();
  // Like the door, the file goes before anyone can come for the next world.
  publication.reset();
  if (Status sent = hand_out(*roster, guests, joining.deadline); !sent) return sent.error();
  Acceptor door = door_of(*std::move(listeners), meeting->key, joining.self.size);
  return Gathered{*std::move(roster), std::move(meeting->key), std::move(door),
                  Star(joining.self, std::move(guests)), address};
}

// Where to look for rank 0, asked anew for each attempt; nothing while it cannot be known yet.
using Finder = std::function<Result<std::optional<Meeting>>()>;

Result<Finder> finder_for(const Options& options) {
  if (options.rendezvous.empty()) {
    return Finder([path = options.rendezvous_file] { return find_meeting(path); });
  }
  Result<Bytes> key = parse_key(options.key);
  if (!key) return key.error();
  return Finder([meeting = Meeting{options.rendezvous, *std::move(key)}] {
    return Result<std::optional<Meeting>>(meeting);
  });
}

struct Caller {
  Descriptor socket;
  Meeting meeting;
};

// One attempt to reach rank 0 on all its addresses. `obstacle` says what stood in the way.
Result<std::optional<Caller>> try_to_reach(const Finder& find, Deadline deadline, Error& obstacle) {
  Result<std::optional<Meeting>> meeting = find();
  if (!meeting) return meeting.error();
  if (!*meeting) return std::optional<Caller>();
  Result<std::vector<Address>> addresses = resolve((*meeting)->endpoint);
  if (!addresses && addresses.error().code == ErrorCode::kConfiguration) return addresses.error();
  if (!addresses) {
    obstacle = addresses.error();  // a name that is not known yet may be in a moment
    return std::optional<Caller>();
  }
  for (const Address& address : *addresses) {
    Result<Descriptor> socket = connect_to(address, deadline);
    if (socket) return std::optional<Caller>(Caller{*std::move(socket), **std::move(meeting)});
    obstacle = socket.error();
  }
  return std::optional<Caller>();
}

// Between two attempts. Rank 0 may have given up for the same reason that cancels this one, and its
// port is closed for good.
Status pause_for(int pause_ms, const Joining& joining) {
  pollfd cancel = {joining.cancel, POLLIN, 0};
  if (::poll(&cancel, 1, std::min(pause_ms, milliseconds_left(joining.deadline))) <= 0) return {};
  return Error{ErrorCode::kPeerLost, joining.self.name() + " gave up the way to rank 0"};
}

// Keeps trying: rank 0 may start later. Nothing tells when a port on another host opens, so this
// asks again after a pause that grows from 5 to 200 ms.
Result<Caller> reach_rank_0(const Joining& joining, const Finder& find) {
  Error obstacle{ErrorCode::kTimeout, joining.options.rendezvous_file + " is not there"};
  for (int pause = 5;; pause = std::min(2 * pause, 200)) {
    Result<std::optional<Caller>> caller = try_to_reach(find, joining.deadline, obstacle);
    if (!caller) return caller.error();
    if (*caller) return **std::move(caller);
    if (Clock::now() >= joining.deadline) break;
    if (Status paused = pause_for(pause, joining); !paused) return paused.error();
  }
  return Error{ErrorCode::kTimeout,
               joining.self.name() + " did not reach rank 0 within " + in_seconds(joining.timeout) +
                   ": " + obstacle.message,
               "see whether rank 0 was started, and with the same rendezvous", 0};
}

// A guest that rank 0 has listened to.
struct Met {
  Caller caller;
  Address address;
  std::vector<Descriptor> listeners;
  Handshake handshake;
};

Result<Met> introduce_to_rank_0(Caller caller, Joining& joining) {
  const Address address = local_address(caller.socket.get());
  Result<std::vector<Descriptor>> listeners = open_door(address, joining.self);
  if (!listeners) return listeners.error();
  Result<Handshake> handshake = introduce(caller.socket, caller.meeting.key, Purpose::kRendezvous,
                                          joining.self, joining.deadline);
  if (!handshake) {
    Error error = handshake.error();
    error.message = joining.self.name() + " cannot join rank 0 at " + caller.meeting.endpoint +
                    ": " + error.message;
    return error;
  }
  return Met{std::move(caller), address, *std::move(listeners), *std::move(handshake)};
}

// Where rank 0 hangs up, but still listens, a crowd of strangers has pushed this one out: it comes
// again. Not for ever, as this may be a host that hangs up on everybody.
Result<Met> meet_rank_0(Joining& joining) {
  constexpr int kAttempts = 10;
  Result<Finder> find = finder_for(joining.options);
  if (!find) return find.error();
  Result<Caller> caller = reach_rank_0(joining, *find);
  if (!caller) return caller.error();
  Result<Met> met = introduce_to_rank_0(*std::move(caller), joining);
  int pause = 5;
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    if (met || met.error().code != ErrorCode::kPeerLost) break;
    if (Status paused = pause_for(pause, joining); !paused) return paused.error();
    pause = std::min(2 * pause, 200);
    Error obstacle;
    Result<std::optional<Caller>> again = try_to_reach(*find, joining.deadline, obstacle);
    if (!again || !*again) break;
    met = introduce_to_rank_0(**std::move(again), joining);
  }
  return met;
}

Result<Gathered> meet_as_guest(Joining& joining) {
  Result<Met> met = meet_rank_0(joining);
  if (!met) return met.error();
  Caller& caller = met->caller;
  Result<Roster> roster =
      receive_roster(caller.socket, met->handshake, joining.self, joining.deadline);
  if (!roster) return roster.error();
  Acceptor door = door_of(std::move(met->listeners), caller.meeting.key, joining.self.size);
  Star star(joining.self, std::move(caller.socket), std::move(met->handshake),
            roster->members[0].host);
  return Gathered{*std::move(roster), std::move(caller.meeting.key), std::move(door),
                  std::move(star), met->address};
}

}  // namespace

Result<Gathered> meet(Joining& joining) {
  return joining.self.rank == 0 ? meet_as_host(joining) : meet_as_guest(joining);
}

}  // namespace muster::collective
