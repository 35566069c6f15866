#include "bootstrap/join.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "bootstrap/acceptor.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/rendezvous_file.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

// What all steps of one rank need to know.
struct Joining {
  const Options& options;
  Introduction self;
  Deadline deadline;
  std::chrono::milliseconds timeout;
};

// A rank with its door open and everybody's address, ready to close the ring.
struct Gathered {
  Roster roster;
  Bytes key;
  Descriptor listener;  // for the left neighbour
};

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

// Opens the port for the left neighbour on an address that is known to be reachable: the one by
// which this rank takes part in the rendezvous.
Result<Descriptor> open_door(const Address& reachable, Introduction& self) {
  Result<Descriptor> listener = listen_on(reachable.with_port(0));
  if (listener) self.endpoint = local_address(listener->get()).to_string();
  return listener;
}

Result<Gathered> gather_as_host(Joining& joining) {
  Result<Descriptor> rendezvous = open_rendezvous(joining);
  if (!rendezvous) return rendezvous.error();
  const Address address = local_address(rendezvous->get());
  Result<Meeting> meeting = new_meeting(joining, address);
  if (!meeting) return meeting.error();
  Result<Descriptor> listener = open_door(address, joining.self);
  if (!listener) return listener.error();
  std::optional<Publication> publication;
  if (joining.options.rendezvous.empty()) {
    Result<Publication> published = publish(joining.options.rendezvous_file, *meeting);
    if (!published) return published.error();
    publication.emplace(*std::move(published));
  }
  Acceptor door(*std::move(rendezvous), meeting->key, joining.self.size);
  std::vector<Guest> guests;
  Result<Roster> roster = gather(door, joining.self, guests, joining.deadline, joining.timeout);
  if (!roster) return roster.error();
  // Like the door, the file goes before anyone can come for the next world.
  publication.reset();
  if (Status sent = hand_out(*roster, guests, joining.deadline); !sent) return sent.error();
  return Gathered{*std::move(roster), std::move(meeting->key), *std::move(listener)};
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

// Keeps trying: rank 0 may start later. Nothing tells when a port on another host opens, so this
// asks again after a pause that grows from 5 to 200 ms.
Result<Caller> reach_rank_0(const Joining& joining) {
  Result<Finder> find = finder_for(joining.options);
  if (!find) return find.error();
  Error obstacle{ErrorCode::kTimeout, joining.options.rendezvous_file + " is not there"};
  for (int pause = 5;; pause = std::min(2 * pause, 200)) {
    Result<std::optional<Caller>> caller = try_to_reach(*find, joining.deadline, obstacle);
    if (!caller) return caller.error();
    if (*caller) return **std::move(caller);
    if (Clock::now() >= joining.deadline) break;
    ::poll(nullptr, 0, std::min(pause, milliseconds_left(joining.deadline)));
  }
  return Error{ErrorCode::kTimeout,
               joining.self.name() + " did not reach rank 0 within " + in_seconds(joining.timeout) +
                   ": " + obstacle.message,
               "see whether rank 0 was started, and with the same rendezvous", 0};
}

Result<Gathered> gather_as_guest(Joining& joining) {
  Result<Caller> caller = reach_rank_0(joining);
  if (!caller) return caller.error();
  Result<Descriptor> listener = open_door(local_address(caller->socket.get()), joining.self);
  if (!listener) return listener.error();
  Result<Session> session = introduce(caller->socket, caller->meeting.key, Purpose::kRendezvous,
                                      joining.self, joining.deadline);
  if (!session) {
    Error error = session.error();
    error.message = joining.self.name() + " cannot join rank 0 at " +
                    peer_address(caller->socket.get()).to_string() + ": " + error.message;
    return error;
  }
  Result<Roster> roster = receive_roster(caller->socket, *session, joining.self, joining.deadline);
  if (!roster) return roster.error();
  return Gathered{*std::move(roster), std::move(caller->meeting.key), *std::move(listener)};
}

// Puts the neighbour's name on an error that befell a connection to it.
Error about(const Error& error, const Joining& joining, int rank, const std::string& host) {
  Error named = error;
  named.message = "rank " + std::to_string(rank) + " on host " + host + " and " +
                  joining.self.name() + " did not become neighbours: " + error.message;
  named.rank = rank;
  named.host = host;
  return named;
}

Result<Descriptor> call_right(const Joining& joining, const Gathered& gathered,
                              const std::string& endpoint, Purpose purpose) {
  Result<std::vector<Address>> addresses = resolve(endpoint);
  if (!addresses) return addresses.error();
  Result<Descriptor> socket = connect_to(addresses->front(), joining.deadline);
  if (!socket) return socket;
  Result<Session> session =
      introduce(*socket, gathered.key, purpose, joining.self, joining.deadline);
  if (!session) return session.error();
  return socket;
}

Result<Neighbour> connect_right(const Joining& joining, const Gathered& gathered) {
  const int rank = (joining.self.rank + 1) % joining.self.size;
  const Member& member = gathered.roster[static_cast<std::size_t>(rank)];
  Result<Descriptor> data = call_right(joining, gathered, member.endpoint, Purpose::kData);
  if (!data) return about(data.error(), joining, rank, member.host);
  Result<Descriptor> control = call_right(joining, gathered, member.endpoint, Purpose::kControl);
  if (!control) return about(control.error(), joining, rank, member.host);
  return Neighbour{rank, member.host, *std::move(data), ControlChannel(*std::move(control))};
}

Result<Neighbour> accept_left(const Joining& joining, Gathered& gathered) {
  const int rank = (joining.self.rank + joining.self.size - 1) % joining.self.size;
  const Member& member = gathered.roster[static_cast<std::size_t>(rank)];
  Acceptor door(std::move(gathered.listener), gathered.key, 2);
  Descriptor data;
  Descriptor control;
  while (!data || !control) {
    Result<Guest> guest = door.next(joining.deadline);
    if (!guest) return about(guest.error(), joining, rank, member.host);
    if (guest->introduction.rank != rank) continue;
    if (guest->session.purpose == Purpose::kData) data = std::move(guest->socket);
    if (guest->session.purpose == Purpose::kControl) control = std::move(guest->socket);
  }
  return Neighbour{rank, member.host, std::move(data), ControlChannel(std::move(control))};
}

// Each rank has to call its right neighbour and to attend its left one, one after the other. If all
// called first, all would wait for ever; so odd ranks attend first. (In an odd ring two callers are
// neighbours, the last rank and rank 0, and the last waits for one call more.)
Result<std::unique_ptr<Ring>> close_ring(const Joining& joining, Gathered& gathered) {
  const bool attends_first = joining.self.rank % 2 == 1;
  std::optional<Result<Neighbour>> left;
  if (attends_first) left = accept_left(joining, gathered);
  if (left && !*left) return left->error();
  Result<Neighbour> right = connect_right(joining, gathered);
  if (!right) return right.error();
  if (!attends_first) left = accept_left(joining, gathered);
  if (!*left) return left->error();
  return std::make_unique<Ring>(Place{joining.self.rank, joining.self.size}, joining.self.host,
                                **std::move(left), *std::move(right), joining.timeout);
}

}  // namespace

Result<std::unique_ptr<Ring>> join_ring(const Options& options) {
  const auto timeout = options.timeout.value_or(kDefaultTimeout);
  Joining joining{
      options, {*options.rank, *options.size, options.host}, Clock::now() + timeout, timeout};
  Result<Gathered> gathered =
      *options.rank == 0 ? gather_as_host(joining) : gather_as_guest(joining);
  if (!gathered) return gathered.error();
  return close_ring(joining, *gathered);
}

}  // namespace muster::collective
