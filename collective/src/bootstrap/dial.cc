#include "bootstrap/dial.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace muster::collective {
namespace {

// The pause before another attempt at a unix listener whose queue is full: the listener reports
// that at once, and never reports that the queue has room again.
constexpr std::chrono::milliseconds kPauseAtFullQueue{5};

}  // namespace

Result<std::vector<Address>> addresses_for(Purpose purpose, const Member& other,
                                           const RankIdentity& self) {
  std::vector<Address> addresses;
  if (purpose != Purpose::kData && other.host_id == self.host_id && !other.local_endpoint.empty()) {
    Result<std::vector<Address>> local = resolve(other.local_endpoint);
    if (local) addresses = *std::move(local);
  }
  Result<std::vector<Address>> remote = resolve(other.endpoint);
  if (!remote) return remote.error();
  addresses.push_back(remote->front());
  return addresses;
}

Dial::Dial(Purpose purpose, int rank, std::vector<Address> addresses, Bytes key, RankIdentity who)
    : purpose_(purpose),
      rank_(rank),
      addresses_(std::move(addresses)),
      key_(std::move(key)),
      who_(std::move(who)) {}

pollfd Dial::prepare(Deadline& wake) const {
  if (stage_ == Stage::kPausing) {
    wake = std::min(wake, pause_until_);
    return {-1, 0, 0};
  }
  return {socket_.get(), static_cast<short>(stage_ == Stage::kConnecting ? POLLOUT : POLLIN), 0};
}

Status Dial::attend(const pollfd& found, Deadline deadline) {
  if (stage_ == Stage::kPausing) return Clock::now() >= pause_until_ ? connect() : Status();
  if (found.revents == 0) return {};
  if (stage_ == Stage::kHandshake) return continue_handshake(deadline);
  Status connected = finish_to_connect(socket_, addresses_.front());
  return connected ? introduce(deadline) : try_next_address(connected.error());
}

Status Dial::connect() {
  Result<Connecting> connecting = begin_to_connect(addresses_.front());
  if (!connecting) return connecting.error();
  if (connecting->reason == EAGAIN) {
    pause_until_ = Clock::now() + kPauseAtFullQueue;
    return {};
  }
  if (connecting->reason != 0 && connecting->reason != EINPROGRESS) {
    return try_next_address(
        system_error("cannot connect to " + addresses_.front().to_string(), connecting->reason));
  }
  // A socket that is already connected is writable at once.
  socket_ = std::move(connecting->socket);
  stage_ = Stage::kConnecting;
  return {};
}

Status Dial::introduce(Deadline deadline) {
  Nonce nonce;
  if (Status filled = fill_random(nonce); !filled) return filled;
  handshake_.assign(1, ClientHandshake(key_, purpose_, nonce, who_));
  stage_ = Stage::kHandshake;
  Status sent = send_all(socket_, handshake_.front().to_send(), deadline);
  return sent ? Status() : try_next_address(sent.error());
}

Status Dial::continue_handshake(Deadline deadline) {
  ClientHandshake& approaching = handshake_.front();
  std::array<std::byte, 256> buffer;
  const Transfer got = receive_some(socket_, std::span(buffer).first(approaching.missing_bytes()));
  if (got.outcome == Transfer::Outcome::kWouldBlock) return {};
  if (got.outcome == Transfer::Outcome::kEnded) {
    return try_next_address({ErrorCode::kPeerLost, reason_of_end(got.reason)});
  }
  switch (approaching.take(ByteView(buffer).first(got.bytes))) {
    case ClientHandshake::Verdict::kMore:
      return {};
    case ClientHandshake::Verdict::kRefused:
      return try_next_address(approaching.error());
    case ClientHandshake::Verdict::kIntroduced:
      break;
  }
  if (Status sent = send_all(socket_, approaching.to_send(), deadline); !sent) {
    return try_next_address(sent.error());
  }
  stage_ = Stage::kDone;
  return {};
}

Status Dial::try_next_address(Error obstacle) {
  if (addresses_.size() <= 1) return obstacle;
  addresses_.erase(addresses_.begin());
  socket_.close();
  stage_ = Stage::kPausing;
  pause_until_ = {};
  return {};
}

}  // namespace muster::collective
