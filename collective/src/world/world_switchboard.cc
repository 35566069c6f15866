#include "world/world_switchboard.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace muster::collective {
namespace {

// A rank that does not answer for this long cannot be reached.
constexpr std::chrono::seconds kDialLimit{30};

// A rank whose door is full closes connections that it would accept a moment later. The attempts are
// limited, since the other end may close every connection.
constexpr int kMostAttempts = 10;
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};

void signal(const Descriptor& event) {
  static_cast<void>(::eventfd_write(event.get(), 1));
}

void clear(const Descriptor& event) {
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(event.get(), &count));
}

}  // namespace

WorldSwitchboard::WorldSwitchboard(RankIdentity self, std::vector<Member> members, Bytes key,
                                   Acceptor door, int streams)
    : self_(std::move(self)),
      members_(std::move(members)),
      key_(std::move(key)),
      streams_(streams),
      request_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      arrival_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      door_(std::move(door)) {
  // A rank may open its control connection and all its data connections at once.
  door_.expect(members_.size() * (1 + static_cast<std::size_t>(streams_)));
  door_.wait_for_descriptors();
}

std::string WorldSwitchboard::host_of(int rank) const {
  return member(rank).host;
}

Link WorldSwitchboard::link_to(int rank, Descriptor socket) const {
  return {.rank = rank,
          .host = member(rank).host,
          .is_local = member(rank).host_id == self_.host_id,
          .socket = std::move(socket)};
}

void WorldSwitchboard::put(Request request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  signal(request_event_);
}

void WorldSwitchboard::call(int rank) {
  put({Purpose::kControl, rank});
}

void WorldSwitchboard::request_streams(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(incoming_[rank].is_requested, true)) return;
  }
  put({Purpose::kData, rank});
}

Result<bool> WorldSwitchboard::take_streams(int rank, Streams& streams) {
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_[rank];
  if (incoming.obstacle) return *incoming.obstacle;
  const bool is_whole = static_cast<int>(incoming.sockets.size()) == streams_ &&
                        std::ranges::all_of(incoming.sockets, &Descriptor::operator bool);
  if (is_whole) streams.sockets = std::exchange(incoming.sockets, {});
  return is_whole;
}

void WorldSwitchboard::forget_arrivals() {
  clear(arrival_);
}

void WorldSwitchboard::prepare(std::vector<pollfd>& entries, Deadline& wake) {
  entries.push_back({request_event_.get(), POLLIN, 0});
  const std::size_t before = entries.size();
  door_.prepare(entries, wake);
  door_entries_ = entries.size() - before;
  for (const Ongoing& ongoing : dials_) {
    entries.push_back(ongoing.dial.prepare(wake));
    wake = std::min(wake, ongoing.limit);
  }
}

Status WorldSwitchboard::attend(std::span<const pollfd> entries) {
  const std::span<const pollfd> of_dials = entries.subspan(1 + door_entries_);
  std::size_t i = 0;
  for (auto at = dials_.begin(); at != dials_.end(); ++i) {
    Dial& dial = at->dial;
    Status done = dial.attend(of_dials[i], at->limit);
    if (done && !dial.is_done() && Clock::now() >= at->limit) {
      done = Error{ErrorCode::kTimeout, "no answer within 30 s"};
    }
    if (done && dial.is_done()) finish(dial);
    if (!done && done.error().code == ErrorCode::kPeerLost && at->attempts < kMostAttempts) {
      done = dial_again(*at);
    }
    if (!done) give_up(dial.purpose(), dial.rank(), done.error());
    at = !done || dial.is_done() ? dials_.erase(at) : std::next(at);
  }
  if (Status done = door_.attend(entries.subspan(1, door_entries_)); !done) return done;
  while (std::optional<AcceptedPeer> peer = door_.take()) accept(*std::move(peer));
  if (entries[0].revents == 0) return {};
  clear(request_event_);
  std::vector<Request> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const Request& request : requests) start(request);
  return {};
}

std::vector<Switchboard::Outcome> WorldSwitchboard::take() {
  return std::exchange(outcomes_, {});
}

void WorldSwitchboard::start(const Request& request) {
  const bool is_data = request.purpose == Purpose::kData;
  const bool must_ask = is_data && request.rank > self_.rank;
  const Purpose purpose = must_ask ? Purpose::kInvite : request.purpose;
  const int connections = is_data && !must_ask ? streams_ : 1;
  for (int index = 0; index < connections; ++index) {
    Result<Dial> begun = new_dial(purpose, request.rank, index);
    if (!begun) return give_up(purpose, request.rank, begun.error());
    dials_.push_back({*std::move(begun), Clock::now() + kDialLimit});
  }
}

Result<Dial> WorldSwitchboard::new_dial(Purpose purpose, int rank, int index) const {
  Result<std::vector<Address>> addresses = addresses_for(purpose, member(rank), self_);
  if (!addresses) return addresses.error();
  RankIdentity who = self_;
  who.index = index;
  return Dial(purpose, rank, *std::move(addresses), key_, std::move(who));
}

// The other end has closed the connection. A rank that is gone has closed its door, too, and refuses
// the next attempt.
Status WorldSwitchboard::dial_again(Ongoing& ongoing) {
  Result<Dial> again = new_dial(ongoing.dial.purpose(), ongoing.dial.rank(), ongoing.dial.index());
  if (!again) return again.error();
  const auto pause = kFirstPause * (1 << (ongoing.attempts++ - 1));
  ongoing.dial = *std::move(again);
  ongoing.dial.pause_until(Clock::now() +
                           std::min<std::chrono::milliseconds>(pause, kLongestPause));
  return {};
}

void WorldSwitchboard::finish(Dial& dial) {
  switch (dial.purpose()) {
    case Purpose::kControl:
      outcomes_.push_back({.link = link_to(dial.rank(), dial.take())});
      break;
    case Purpose::kData:
      keep_stream(dial.rank(), dial.index(), dial.take());
      break;
    default:
      break;  // an invitation, which is complete
  }
}

void WorldSwitchboard::accept(AcceptedPeer peer) {
  const RankIdentity& who = peer.introduction;
  if (who.rank < 0 || who.rank >= self_.size || who.rank == self_.rank || who.size != self_.size) {
    return;
  }
  switch (peer.handshake.purpose) {
    case Purpose::kControl:
      outcomes_.push_back({.link = link_to(who.rank, std::move(peer.socket))});
      break;
    case Purpose::kData:
      if (who.rank > self_.rank) keep_stream(who.rank, who.index, std::move(peer.socket));
      break;
    case Purpose::kInvite:
      if (who.rank < self_.rank) request_streams(who.rank);
      break;
    default:
      break;
  }
}

void WorldSwitchboard::keep_stream(int rank, int index, Descriptor socket) {
  const std::lock_guard lock(mutex_);
  Incoming& incoming = incoming_[rank];
  if (index < 0 || index >= streams_) return;
  incoming.sockets.resize(static_cast<std::size_t>(streams_));
  Descriptor& place = incoming.sockets[static_cast<std::size_t>(index)];
  if (place) return;
  place = std::move(socket);
  place.close_in_children();
  signal(arrival_);
}

void WorldSwitchboard::give_up(Purpose purpose, int rank, Error obstacle) {
  if (purpose == Purpose::kControl) {
    outcomes_.push_back({.link = link_to(rank, {}), .obstacle = std::move(obstacle)});
    return;
  }
  const std::lock_guard lock(mutex_);
  incoming_[rank].obstacle = std::move(obstacle);
  signal(arrival_);
}

}  // namespace muster::collective
