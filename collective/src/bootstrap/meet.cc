#include "bootstrap/meet.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "bootstrap/crypto.h"
#include "bootstrap/rendezvous_file.h"
#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

enum class Kind : std::uint8_t { kContent = 1, kError = 2 };

constexpr std::size_t kHeadBytes = 4 + kDigestBytes;
constexpr std::size_t kMostMine = 4096;
// The longest messages: up to rank 0 goes at most an error, down to the ranks the data of a whole
// world.
constexpr std::size_t kMostUp = std::size_t{64} << 10;
constexpr std::size_t kMostDown = std::size_t{256} << 20;

// Each message has a number in its label, so that no message can pass for another.
std::string label(bool down, int count) {
  return (down ? "down " : "up ") + std::to_string(count);
}

Bytes content(ByteView bytes) {
  return ByteWriter().number(static_cast<std::uint8_t>(Kind::kContent)).raw(bytes).take();
}

Bytes encode_error(const Error& error) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(Kind::kError));
  write_error(writer, error);
  return writer.take();
}

}  // namespace

Star::Star(RankIdentity self, std::vector<AcceptedPeer> peers, int cancel)
    : self_(std::move(self)), cancel_(cancel) {
  for (AcceptedPeer& peer : peers) {
    spokes_.push_back({peer.introduction.rank, peer.introduction.host, std::move(peer.socket),
                       std::move(peer.handshake)});
  }
  std::ranges::sort(spokes_, {}, &Spoke::rank);
}

Star::Star(RankIdentity self, Descriptor socket, Handshake handshake, std::string host_of_rank_0,
           int cancel)
    : self_(std::move(self)), cancel_(cancel) {
  spokes_.push_back({0, std::move(host_of_rank_0), std::move(socket), std::move(handshake)});
}

Result<std::vector<Bytes>> Star::exchange(ByteView mine, Deadline deadline) {
  mine = mine.first(std::min(mine.size(), kMostMine));
  if (!is_host()) {
    if (Status sent = send(spokes_[0], content(mine), deadline); !sent) return sent.error();
  }
  if (Status come = wait_for_messages(deadline); !come) return come.error();
  std::vector<Bytes> all;
  if (is_host()) {
    ByteWriter writer;
    writer.number(static_cast<std::uint32_t>(mine.size())).raw(mine);
    all.emplace_back(mine.begin(), mine.end());
    for (Spoke& spoke : spokes_) {
      all.push_back(*std::exchange(spoke.message, std::nullopt));
      writer.number(static_cast<std::uint32_t>(all.back().size())).raw(all.back());
    }
    const Bytes answer = content(writer.take());
    for (Spoke& spoke : spokes_) {
      if (Status sent = send(spoke, answer, deadline); !sent) return sent.error();
    }
    return all;
  }
  const Bytes answer = *std::exchange(spokes_[0].message, std::nullopt);
  ByteReader reader(answer);
  for (int rank = 0; rank < self_.size; ++rank) {
    const ByteView part = reader.raw(reader.number<std::uint32_t>());
    all.emplace_back(part.begin(), part.end());
  }
  if (!reader.ok() || !reader.at_end()) {
    return Error{ErrorCode::kMismatch, "rank 0 sent an invalid message"};
  }
  return all;
}

Status Star::wait_for_messages(Deadline deadline) {
  while (!std::ranges::all_of(spokes_, [](const Spoke& spoke) { return !!spoke.message; })) {
    std::vector<pollfd> entries;
    prepare(entries);
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_left(deadline));
    if (ready < 0 && errno != EINTR) return system_error("cannot wait for other ranks", errno);
    if (ready > 0) {
      if (Status done = attend(entries); !done) return done;
    } else if (Clock::now() >= deadline) {
      return not_in_time();
    }
  }
  return {};
}

void Star::prepare(std::vector<pollfd>& entries) const {
  entries.push_back({cancel_, POLLIN, 0});
  for (const Spoke& spoke : spokes_) {
    // A rank that has sent its message of this round is not read again, only watched for its end.
    const auto events = static_cast<short>(spoke.message ? POLLRDHUP : POLLIN | POLLRDHUP);
    entries.push_back({spoke.socket.get(), events, 0});
  }
}

Status Star::attend(std::span<const pollfd> entries) {
  if (entries[0].revents != 0) {
    return Error{ErrorCode::kPeerLost,
                 self_.name() + " was cancelled while the ranks joined",
                 {},
                 self_.rank,
                 self_.host};
  }
  for (std::size_t i = 0; i < spokes_.size(); ++i) {
    if (entries[i + 1].revents == 0) continue;
    if (spokes_[i].message) return gone(spokes_[i], reason_of_end(0));
    if (Status done = listen(spokes_[i]); !done) return done;
  }
  return {};
}

Status Star::listen(Spoke& spoke) {
  std::array<std::byte, 16'384> buffer;
  while (!spoke.message) {
    std::size_t expected = kHeadBytes;
    if (spoke.received.size() >= kHeadBytes) {
      ByteReader reader(spoke.received);
      const std::size_t length = reader.number<std::uint32_t>();
      if (length > (is_host() ? kMostUp : kMostDown))
        return gone(spoke, "it sent a message that is too long");
      expected += length;
      if (spoke.received.size() == expected) return take_whole(spoke);
    }
    const std::size_t room = std::min(buffer.size(), expected - spoke.received.size());
    const Transfer got = receive_some(spoke.socket, std::span(buffer).first(room));
    if (got.outcome == Transfer::Outcome::kWouldBlock) return {};
    if (got.outcome == Transfer::Outcome::kEnded) return gone(spoke, reason_of_end(got.reason));
    const auto bytes = ByteView(buffer).first(got.bytes);
    spoke.received.insert(spoke.received.end(), bytes.begin(), bytes.end());
  }
  return {};
}

Status Star::take_whole(Spoke& spoke) {
  ByteReader reader(spoke.received);
  static_cast<void>(reader.number<std::uint32_t>());
  const ByteView seal = reader.raw(kDigestBytes);
  const ByteView payload = ByteView(spoke.received).subspan(kHeadBytes);
  const Digest mac = spoke.handshake.mac(label(!is_host(), spoke.received_count++), payload);
  if (payload.empty() || !equal_in_constant_time(mac, seal)) {
    return Error{ErrorCode::kAuthentication, "a message of rank " + std::to_string(spoke.rank) +
                                                 " is not sealed with the job's key"};
  }
  ByteReader inside(payload);
  if (Kind{inside.number<std::uint8_t>()} == Kind::kError) return read_error(inside);
  spoke.message.emplace(payload.begin() + 1, payload.end());
  spoke.received.clear();
  return {};
}

Status Star::send(Spoke& spoke, const Bytes& payload, Deadline deadline) {
  const std::string name = label(is_host(), spoke.sent_count++);
  Status sent = send_all(spoke.socket, spoke.handshake.seal(name, payload), deadline);
  if (sent) return {};
  // The other side may have sent the reason of its end before it closed the connection.
  if (Status listened = spoke.message ? Status() : listen(spoke); !listened) return listened;
  return gone(spoke, sent.error().message);
}

Error Star::fail(Error error) {
  const Deadline deadline = Clock::now() + std::chrono::seconds(1);
  for (Spoke& spoke : spokes_) {
    const std::string name = label(is_host(), spoke.sent_count++);
    static_cast<void>(
        send_all(spoke.socket, spoke.handshake.seal(name, encode_error(error)), deadline));
  }
  return error;
}

Error Star::gone(const Spoke& spoke, const std::string& reason) const {
  if (is_host()) {
    return {ErrorCode::kPeerLost,
            "rank " + std::to_string(spoke.rank) + " on host " + spoke.host +
                " is gone: it ended while the ranks joined (" + reason + ")",
            "see the last output of that rank", spoke.rank, spoke.host};
  }
  return {ErrorCode::kPeerLost,
          "rank 0 on host " + spoke.host + " ended while " + self_.name() +
              " waited for the other ranks: " + reason,
          "see the last output of that rank", 0, spoke.host};
}

Error Star::not_in_time() const {
  for (const Spoke& spoke : spokes_) {
    if (spoke.message || !is_host()) continue;
    return {ErrorCode::kTimeout,
            "rank " + std::to_string(spoke.rank) + " on host " + spoke.host +
                " did not finish joining " + self_.name() + " in time",
            "raise MUSTER_COLLECTIVE_TIMEOUT if its host is slow", spoke.rank, spoke.host};
  }
  return {ErrorCode::kTimeout,
          "rank 0 still waited for other ranks at the time limit of " + self_.name(),
          "check that all ranks were started"};
}

namespace {

// On Debian a host's name is 127.0.1.1 on that host itself, among other addresses.
void put_loopback_last(std::vector<Address>& addresses) {
  std::ranges::stable_partition(addresses, [](const Address& at) { return !at.is_loopback(); });
}

}  // namespace

Result<std::vector<Descriptor>> listen_on_all(std::vector<Address> addresses) {
  put_loopback_last(addresses);
  std::vector<Descriptor> listeners;
  Error last;
  for (auto address = addresses.begin(); address != addresses.end(); ++address) {
    // The files of the system may name an address twice.
    if (std::find(addresses.begin(), address, *address) != address) continue;
    Result<Descriptor> listener = listen_on(*address);
    if (listener) {
      listeners.push_back(*std::move(listener));
      continue;
    }
    last = listener.error();
    // If another port of the address works, the address is this host's, and other ranks may reach
    // the program there that uses the port.
    if (listen_on(address->with_port(0))) return last;
  }
  if (listeners.empty()) return last;
  return listeners;
}

std::string note_of_loopback(const std::string& endpoint, const std::vector<Address>& addresses) {
  if (endpoint.empty()) return "";  // a rendezvous file is for one host
  if (addresses.empty() || !std::ranges::all_of(addresses, &Address::is_loopback)) return "";
  const std::string name = endpoint.substr(0, endpoint.rfind(':'));
  const std::string text = addresses.front().to_string();
  const std::string address = text.substr(0, text.rfind(':'));
  if (name == address || name == "localhost") return "";
  return name + " is " + address + " on its own host, which other hosts cannot reach";
}

Deadline limit_of_attempt(std::size_t addresses, Deadline now, Deadline deadline) {
  constexpr std::chrono::seconds kAttempt{3};
  return addresses > 1 ? std::min(deadline, now + kAttempt) : deadline;
}

namespace {

// Listens at the rendezvous.
Result<std::vector<Descriptor>> open_rendezvous(const JoinContext& joining) {
  if (joining.options.listener >= 0) {
    ::fcntl(joining.options.listener, F_SETFL, O_NONBLOCK);
    std::vector<Descriptor> listeners;
    listeners.emplace_back(joining.options.listener);
    return listeners;
  }
  const bool by_file = joining.options.rendezvous.empty();
  const std::string endpoint = by_file ? "127.0.0.1:0" : joining.options.rendezvous;
  Result<std::vector<Address>> addresses = resolve(endpoint);
  if (!addresses) return addresses.error();
  for (const Address& address : *addresses) {
    if (address.is_wildcard() || (address.port() == 0 && !by_file)) {
      return Error{ErrorCode::kConfiguration,
                   "other ranks cannot reach the rendezvous '" + endpoint + "'",
                   "name an address of rank 0's host that the other ranks can reach, and a port"};
    }
  }
  return listen_on_all(*std::move(addresses));
}

Result<Meeting> new_meeting(const JoinContext& joining, const Address& address) {
  if (!joining.options.rendezvous.empty()) {
    Result<Bytes> key = parse_key(joining.options.key);
    if (!key) return key.error();
    return Meeting{address.to_string(), *std::move(key)};
  }
  Bytes key(kDigestBytes);
  if (Status filled = fill_random(key); !filled) return filled.error();
  return Meeting{address.to_string(), std::move(key)};
}

// Opens the listeners of this rank: one on `reachable`, the address from which it takes part in the
// rendezvous, and a unix socket with a random name for ranks of its host.
Result<std::vector<Descriptor>> open_door(const Address& reachable, RankIdentity& self) {
  std::vector<Descriptor> listeners;
  Result<Descriptor> listener = listen_on(reachable.with_port(0));
  if (!listener) return listener.error();
  self.endpoint = local_address(listener->get()).to_string();
  listeners.push_back(*std::move(listener));
  std::array<std::byte, 16> name = {};
  if (Status filled = fill_random(name); !filled) return filled.error();
  const Address local = unix_address("muster-" + to_hex(name));
  // If unix sockets are forbidden (a sandbox), ranks of this host use TCP, without shared memory.
  if (Result<Descriptor> door = listen_on(local)) {
    self.local_endpoint = local.to_string();
    listeners.push_back(*std::move(door));
  }
  return listeners;
}

// For all connections of the other ranks: each has one for control, and up to 16 for data.
Acceptor door_of(std::vector<Descriptor> listeners, const Bytes& key, int size) {
  return {std::move(listeners), key, static_cast<std::size_t>(size) * 17};
}

// The address at which the other ranks have reached rank 0: that of another host, if there is one.
Address reached_at(const std::vector<AcceptedPeer>& peers) {
  std::vector<Address> addresses;
  for (const AcceptedPeer& peer : peers) {
    const Address here = local_address(peer.socket.get());
    // A rank of this host connects from the address to which it connects.
    const bool is_remote = !(here.with_port(0) == peer_address(peer.socket.get()).with_port(0));
    addresses.insert(is_remote ? addresses.begin() : addresses.end(), here);
  }
  put_loopback_last(addresses);
  return addresses.front();
}

// Rank 0 has listened at several addresses. It is reachable at the one that the other ranks have used.
Status move_door(const Address& address, std::vector<Descriptor>& listeners, JoinContext& joining,
                 Roster& roster) {
  Result<Descriptor> listener = listen_on(address.with_port(0));
  if (!listener) return listener.error();
  joining.self.endpoint = local_address(listener->get()).to_string();
  roster.members[0].endpoint = joining.self.endpoint;
  listeners.front() = *std::move(listener);
  return {};
}

Result<RendezvousResult> meet_as_host(JoinContext& joining) {
  Result<std::vector<Descriptor>> rendezvous = open_rendezvous(joining);
  if (!rendezvous) return rendezvous.error();
  std::vector<Address> addresses;
  for (const Descriptor& listener : *rendezvous) addresses.push_back(local_address(listener.get()));
  Address address = addresses.front();
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
  Acceptor rendezvous_acceptor(*std::move(rendezvous), meeting->key,
                               static_cast<std::size_t>(joining.self.size));
  std::vector<AcceptedPeer> peers;
  Result<Roster> roster = gather(rendezvous_acceptor, joining.self, joining.terms, peers,
                                 joining.deadline, joining.timeout, joining.cancel,
                                 note_of_loopback(joining.options.rendezvous, addresses));
  if (!roster) return roster.error();
  if (addresses.size() > 1) {
    address = reached_at(peers);
    if (Status moved = move_door(address, *listeners, joining, *roster); !moved) {
      refuse(moved.error(), peers, Clock::now() + std::chrono::seconds(1));
      return moved.error();
    }
  }
  joining.self.host_id = roster->members[0].host_id;
  // The file is removed before a rank can arrive for the next world.
  publication.reset();
  if (Status sent = hand_out(*roster, peers, joining.deadline); !sent) return sent.error();
  Bytes key = key_of_world(meeting->key, *roster);
  Acceptor mesh_acceptor = door_of(*std::move(listeners), key, joining.self.size);
  return RendezvousResult{*std::move(roster), std::move(key), std::move(mesh_acceptor),
                          Star(joining.self, std::move(peers), joining.cancel), address};
}

Result<Finder> finder_for(const JoinContext& joining) {
  if (joining.find) return joining.find;
  const Options& options = joining.options;
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

// One attempt to reach rank 0 on all its addresses. If it fails, `obstacle` has the reason.
Result<std::optional<Caller>> try_to_reach(const Finder& find, const JoinContext& joining,
                                           Error& obstacle) {
  Result<std::optional<Meeting>> meeting = find();
  if (!meeting) return meeting.error();
  if (!*meeting) return std::optional<Caller>();
  Result<std::vector<Address>> addresses = resolve((*meeting)->endpoint);
  if (!addresses && addresses.error().code == ErrorCode::kConfiguration) return addresses.error();
  if (!addresses) {
    obstacle = addresses.error();  // a name that does not resolve yet may resolve soon
    return std::optional<Caller>();
  }
  put_loopback_last(*addresses);
  for (const Address& address : *addresses) {
    const Deadline limit = limit_of_attempt(addresses->size(), Clock::now(), joining.deadline);
    Result<Descriptor> socket = connect_to(address, limit, joining.cancel);
    if (socket) return std::optional<Caller>(Caller{*std::move(socket), **std::move(meeting)});
    obstacle = socket.error();
  }
  return std::optional<Caller>();
}

Error cancelled(const JoinContext& joining) {
  return {ErrorCode::kPeerLost, joining.self.name() + " was cancelled before it reached rank 0"};
}

// Waits before the next attempt. A cancelled wait ends the attempts: rank 0 may have given up for
// the same reason, and then its port is closed for good.
Status pause_for(int pause_ms, const JoinContext& joining) {
  pollfd cancel = {joining.cancel, POLLIN, 0};
  if (::poll(&cancel, 1, std::min(pause_ms, milliseconds_left(joining.deadline))) <= 0) return {};
  return cancelled(joining);
}

// Retries, since rank 0 may start later. No event reports that a port on another host opens, so
// this polls, with a pause that grows from 5 to 200 ms.
Result<Caller> reach_rank_0(const JoinContext& joining, const Finder& find) {
  Error obstacle{ErrorCode::kTimeout, joining.find
                                          ? "its rendezvous is not open"
                                          : joining.options.rendezvous_file + " does not exist"};
  for (int pause = 5;; pause = std::min(2 * pause, 200)) {
    Result<std::optional<Caller>> caller = try_to_reach(find, joining, obstacle);
    if (!caller) return caller.error();
    if (*caller) return **std::move(caller);
    if (Clock::now() >= joining.deadline) break;
    if (Status paused = pause_for(pause, joining); !paused) return paused.error();
  }
  return Error{ErrorCode::kTimeout,
               joining.self.name() + " did not reach rank 0 within " + in_seconds(joining.timeout) +
                   ": " + obstacle.message,
               "check that rank 0 was started with the same rendezvous", 0};
}

// A rank that has completed the handshake with rank 0.
struct Met {
  Caller caller;
  Address address;
  std::vector<Descriptor> listeners;
  Handshake handshake;
};

Result<Met> introduce_to_rank_0(Caller caller, JoinContext& joining) {
  const Address address = local_address(caller.socket.get());
  Result<std::vector<Descriptor>> listeners = open_door(address, joining.self);
  if (!listeners) return listeners.error();
  Result<Handshake> handshake = introduce(caller.socket, caller.meeting.key, Purpose::kRendezvous,
                                          joining.self, joining.deadline, joining.cancel);
  if (!handshake && handshake.error().code == ErrorCode::kTimeout && is_readable(joining.cancel)) {
    return cancelled(joining);
  }
  if (!handshake) {
    Error error = handshake.error();
    error.message = joining.self.name() + " cannot join rank 0 at " + caller.meeting.endpoint +
                    ": " + error.message;
    return error;
  }
  return Met{std::move(caller), address, *std::move(listeners), *std::move(handshake)};
}

// If rank 0 closes the connection but still listens, a flood of strangers has displaced this rank,
// which then connects again. The attempts are limited: the host may close every connection.
Result<Met> meet_rank_0(JoinContext& joining) {
  constexpr int kAttempts = 10;
  Result<Finder> find = finder_for(joining);
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
    Result<std::optional<Caller>> again = try_to_reach(*find, joining, obstacle);
    if (!again || !*again) break;
    met = introduce_to_rank_0(**std::move(again), joining);
  }
  return met;
}

// At its own time limit, rank 0 names the ranks that are missing. A rank that ended just before
// would be named as a lost one.
constexpr std::chrono::seconds kTimeForTheVerdict{1};

Result<RendezvousResult> meet_as_guest(JoinContext& joining) {
  Result<Met> met = meet_rank_0(joining);
  if (!met) return met.error();
  Caller& caller = met->caller;
  Result<Roster> roster = receive_roster(caller.socket, met->handshake, joining.self,
                                         joining.deadline + kTimeForTheVerdict, joining.cancel);
  if (!roster) return roster.error();
  joining.self.host_id = roster->members[static_cast<std::size_t>(joining.self.rank)].host_id;
  Bytes key = key_of_world(caller.meeting.key, *roster);
  Acceptor door = door_of(std::move(met->listeners), key, joining.self.size);
  Star star(joining.self, std::move(caller.socket), std::move(met->handshake),
            roster->members[0].host, joining.cancel);
  return RendezvousResult{*std::move(roster), std::move(key), std::move(door), std::move(star),
                          met->address};
}

}  // namespace

Result<RendezvousResult> meet(JoinContext& joining) {
  return joining.self.rank == 0 ? meet_as_host(joining) : meet_as_guest(joining);
}

}  // namespace muster::collective
