#include "world/mesh.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {
namespace {

// A unix listener with a full queue says so at once, and does not say when it has room.
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

Mesh::Mesh(const Joining& joining, Gathered& gathered) : joining_(joining), gathered_(gathered) {}

const Member& Mesh::member(int rank) const {
  return gathered_.roster.members[static_cast<std::size_t>(rank)];
}

Result<std::vector<std::vector<Descriptor>>> Mesh::connect(
    Purpose purpose, const std::function<int(int)>& per_pair) {
  const int size = joining_.self.size;
  std::vector<std::vector<Descriptor>> lines(static_cast<std::size_t>(size));
  awaited_.assign(static_cast<std::size_t>(size), 0);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == joining_.self.rank) continue;
    const int count = per_pair(rank);
    lines[static_cast<std::size_t>(rank)].resize(static_cast<std::size_t>(count));
    if (rank > joining_.self.rank) awaited_[static_cast<std::size_t>(rank)] = count;
    for (int index = 0; index < count && rank < joining_.self.rank; ++index) {
      Result<Call> call = call_to(rank, index, purpose);
      if (!call) return about(call.error(), rank);
      calls_.push_back(*std::move(call));
    }
  }
  for (Guest& guest : std::exchange(early_, {})) {
    if (guest.handshake.purpose == purpose) {
      place(lines, std::move(guest));
    } else {
      early_.push_back(std::move(guest));
    }
  }
  while (!calls_.empty() || std::reduce(awaited_.begin(), awaited_.end()) > 0) {
    if (Status done = step(purpose, lines); !done) return done.error();
  }
  return lines;
}

// Takes a guest in where one of its name is awaited; who else holds the key and calls is dropped.
void Mesh::place(std::vector<std::vector<Descriptor>>& lines, Guest guest) {
  const Introduction& who = guest.introduction;
  if (who.rank <= joining_.self.rank || who.rank >= joining_.self.size) return;
  std::vector<Descriptor>& of_rank = lines[static_cast<std::size_t>(who.rank)];
  if (who.index < 0 || who.index >= static_cast<int>(of_rank.size())) return;
  Descriptor& line = of_rank[static_cast<std::size_t>(who.index)];
  if (line) return;
  line = std::move(guest.socket);
  --awaited_[static_cast<std::size_t>(who.rank)];
}

// Waits for whatever comes first, and deals with all that has come.
Status Mesh::step(Purpose purpose, std::vector<std::vector<Descriptor>>& lines) {
  Deadline wake = joining_.deadline;
  std::vector<pollfd> entries;
  gathered_.star.prepare(entries);
  const std::size_t door = entries.size();
  gathered_.door.prepare(entries, wake);
  const std::size_t calls = entries.size();
  for (const Call& call : calls_) {
    const bool pauses = call.stage == Call::Stage::kPausing;
    if (pauses) wake = std::min(wake, call.pause_until);
    entries.push_back(
        {pauses ? -1 : call.socket.get(),
         static_cast<short>(call.stage == Call::Stage::kConnecting ? POLLOUT : POLLIN), 0});
  }
  if (Clock::now() >= joining_.deadline) return not_in_time();
  if (::poll(entries.data(), entries.size(), milliseconds_left(wake)) < 0 && errno != EINTR) {
    return system_error("cannot wait for the other ranks", errno);
  }
  const std::span<const pollfd> found(entries);
  if (Status done = gathered_.star.attend(found.first(door)); !done) return done;
  if (Status done = gathered_.door.attend(found.subspan(door, calls - door)); !done) return done;
  while (std::optional<Guest> guest = gathered_.door.take()) {
    if (guest->handshake.purpose == purpose) {
      place(lines, *std::move(guest));
    } else {
      early_.push_back(*std::move(guest));
    }
  }
  std::size_t i = calls;
  for (auto call = calls_.begin(); call != calls_.end(); ++i) {
    const bool is_due = call->stage == Call::Stage::kPausing ? Clock::now() >= call->pause_until
                                                             : found[i].revents != 0;
    if (is_due) {
      if (Status done = attend_call(*call, purpose, lines); !done) {
        return about(done.error(), call->rank);
      }
    }
    const bool is_over = call->ways.empty();
    call = is_over ? calls_.erase(call) : std::next(call);
  }
  return {};
}

Result<Mesh::Call> Mesh::call_to(int rank, int index, Purpose purpose) const {
  Call call{rank, index};
  const Member& other = member(rank);
  // Data that goes over connections at all is meant to go over TCP, on one host too.
  if (purpose == Purpose::kControl && other.host_id == joining_.self.host_id &&
      !other.local_endpoint.empty()) {
    Result<std::vector<Address>> local = resolve(other.local_endpoint);
    if (local) call.ways = *std::move(local);
  }
  Result<std::vector<Address>> remote = resolve(other.endpoint);
  if (!remote) return remote.error();
  call.ways.push_back(remote->front());
  return call;
}

// Takes a call one step further. A call without a way left is over.
Status Mesh::attend_call(Call& call, Purpose purpose, std::vector<std::vector<Descriptor>>& lines) {
  if (call.stage == Call::Stage::kPausing) return dial(call);
  if (call.stage == Call::Stage::kConnecting) {
    Status connected = finish_to_connect(call.socket, call.ways.front());
    if (!connected) return try_next_way(call, connected.error());
    return approach(call, purpose);
  }
  Approach& approaching = call.approach.front();
  std::array<std::byte, 256> buffer;
  const Transfer got = receive_some(call.socket, std::span(buffer).first(approaching.wanted()));
  if (got.outcome == Transfer::Outcome::kWouldBlock) return {};
  if (got.outcome == Transfer::Outcome::kEnded) {
    return try_next_way(call, {ErrorCode::kPeerLost, reason_of_end(got.reason)});
  }
  switch (approaching.take(ByteView(buffer).first(got.bytes))) {
    case Approach::Verdict::kMore:
      return {};
    case Approach::Verdict::kRefused:
      return try_next_way(call, approaching.error());
    case Approach::Verdict::kIntroduced:
      break;
  }
  if (Status sent = send_all(call.socket, approaching.to_send(), joining_.deadline); !sent) {
    return try_next_way(call, sent.error());
  }
  lines[static_cast<std::size_t>(call.rank)][static_cast<std::size_t>(call.index)] =
      std::move(call.socket);
  call.ways.clear();
  return {};
}

Status Mesh::dial(Call& call) {
  Result<Connecting> connecting = begin_to_connect(call.ways.front());
  if (!connecting) return connecting.error();
  if (connecting->reason == EAGAIN) {
    call.pause_until = Clock::now() + kPause;
    return {};
  }
  if (connecting->reason != 0 && connecting->reason != EINPROGRESS) {
    return try_next_way(call, system_error("cannot connect to " + call.ways.front().to_string(),
                                           connecting->reason));
  }
  // One that is connected already is writable at once.
  call.socket = std::move(connecting->socket);
  call.stage = Call::Stage::kConnecting;
  return {};
}

Status Mesh::approach(Call& call, Purpose purpose) {
  Nonce nonce;
  if (Status filled = fill_random(nonce); !filled) return filled;
  Introduction who = joining_.self;
  who.index = call.index;
  call.approach.assign(1, Approach(gathered_.key, purpose, nonce, who));
  call.stage = Call::Stage::kApproaching;
  // The opening always fits in the empty buffer of a new connection.
  Status sent = send_all(call.socket, call.approach.front().to_send(), joining_.deadline);
  return sent ? Status() : try_next_way(call, sent.error());
}

Status Mesh::try_next_way(Call& call, Error obstacle) {
  if (call.ways.size() <= 1) return obstacle;
  call.ways.erase(call.ways.begin());
  call.socket.close();
  call.stage = Call::Stage::kPausing;
  call.pause_until = {};
  return {};
}

// Puts the other rank's name on an error that befell a connection to it.
Error Mesh::about(const Error& error, int rank) const {
  Error named = error;
  named.message = "rank " + std::to_string(rank) + " on host " + member(rank).host + " and " +
                  joining_.self.name() + " did not connect: " + error.message;
  named.rank = rank;
  named.host = member(rank).host;
  return named;
}

Error Mesh::not_in_time() const {
  const Error error{ErrorCode::kTimeout, "no answer within " + in_seconds(joining_.timeout)};
  if (!calls_.empty()) return about(error, calls_.front().rank);
  const auto first = std::ranges::find_if(awaited_, [](int count) { return count > 0; });
  return about(error, static_cast<int>(first - awaited_.begin()));
}

}  // namespace muster::collective
