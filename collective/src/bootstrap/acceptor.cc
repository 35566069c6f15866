#include "bootstrap/acceptor.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "transport/socket.h"

namespace muster::collective {
namespace {

// A rank introduces itself within milliseconds, but it may connect to many ranks at once and its
// host may be busy. A caller that takes longer than this is not a rank.
constexpr std::chrono::seconds kIntroductionTimeout{30};

// How many connections are accepted before the open connections are read again. The number is
// smaller than the limit of open connections, so that a rank that connects in a flood of strangers
// is read before the flood can displace it.
constexpr int kAcceptedAtOnce = 32;

// No event reports that a process has a free descriptor again.
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

}  // namespace

Acceptor::Acceptor(std::vector<Descriptor> listeners, Bytes key, std::size_t expected)
    : listeners_(std::move(listeners)), key_(std::move(key)) {
  for (const Descriptor& listener : listeners_) listener.close_in_children();
  expect(expected);
}

void Acceptor::expect(std::size_t expected) {
  most_callers_ = 64 + expected;
}

void Acceptor::close() {
  listeners_.clear();
  callers_.clear();
}

Result<AcceptedPeer> Acceptor::next(Deadline deadline, std::span<pollfd> others) {
  for (;;) {
    if (std::optional<AcceptedPeer> peer = take()) return *std::move(peer);
    if (Clock::now() >= deadline) return Error{ErrorCode::kTimeout, "no rank connected in time"};
    std::vector<pollfd> entries(others.begin(), others.end());
    Deadline wake = deadline;
    prepare(entries, wake);
    if (::poll(entries.data(), entries.size(), milliseconds_left(wake)) < 0 && errno != EINTR) {
      return system_error("cannot wait for connections", errno);
    }
    const std::span<const pollfd> found(entries);
    std::ranges::copy(found.first(others.size()), others.begin());
    if (std::ranges::any_of(others, [](const pollfd& other) { return other.revents != 0; })) {
      return Error{ErrorCode::kPeerLost, "the wait for connections was ended"};
    }
    if (Status done = attend(found.subspan(others.size())); !done) return done.error();
  }
}

void Acceptor::prepare(std::vector<pollfd>& entries, Deadline& wake) const {
  const bool pauses = Clock::now() < pause_until_;
  if (pauses) wake = std::min(wake, pause_until_);
  for (const Descriptor& listener : listeners_) {
    entries.push_back({pauses ? -1 : listener.get(), POLLIN, 0});
  }
  for (const Caller& caller : callers_) {
    entries.push_back({caller.socket.get(), POLLIN, 0});
    wake = std::min(wake, caller.patience);
  }
}

Status Acceptor::attend(std::span<const pollfd> entries) {
  std::size_t i = listeners_.size();
  for (auto caller = callers_.begin(); caller != callers_.end(); ++i) {
    const bool stays = entries[i].revents == 0 || listen(*caller);
    caller = stays ? std::next(caller) : callers_.erase(caller);
  }
  show_out_the_slow();
  for (i = 0; i < listeners_.size(); ++i) {
    if (entries[i].revents == 0) continue;
    if (Status admitted = admit(listeners_[i]); !admitted) return admitted;
  }
  return {};
}

std::optional<AcceptedPeer> Acceptor::take() {
  if (peers_.empty()) return std::nullopt;
  AcceptedPeer peer = std::move(peers_.front());
  peers_.pop_front();
  return peer;
}

// Accepts the waiting connections. Each is a caller until it has proved that it is a rank.
Status Acceptor::admit(const Descriptor& listener) {
  for (int accepted = 0; accepted < kAcceptedAtOnce; ++accepted) {
    Result<Accepted> next = accept_from(listener);
    if (!next) return next.error();
    if (next->shortage != 0 && !waits_for_descriptors_) {
      return system_error("cannot accept a connection", next->shortage);
    }
    if (next->shortage != 0) pause_until_ = Clock::now() + kPauseWithoutDescriptors;
    if (!next->socket) return {};
    Nonce nonce;
    if (Status filled = fill_random(nonce); !filled) return filled.error();
    if (callers_.size() >= most_callers_) make_room();
    std::string from = peer_address(next->socket.get()).to_string();
    callers_.push_back(Caller{std::move(next->socket), std::move(from),
                              Clock::now() + kIntroductionTimeout, ServerHandshake(key_, nonce)});
  }
  return {};
}

// Drops the oldest silent caller, or else the oldest caller. Each caller is read first: a rank among
// them may have sent its opening or its introduction by now.
void Acceptor::make_room() {
  for (auto caller = callers_.begin(); caller != callers_.end(); ++caller) {
    if (caller->reception.has_begun()) continue;
    if (!listen(*caller)) {
      callers_.erase(caller);
      return;
    }
    if (caller->reception.has_begun()) continue;
    show_out(*caller, "too many connections were open");
    callers_.erase(caller);
    return;
  }
  Caller& oldest = callers_.front();
  if (listen(oldest)) show_out(oldest, "too many connections were open");
  callers_.pop_front();
}

// Reads what a caller has sent. Returns false if it is no longer a caller: it has become a peer, or
// its connection was dropped.
bool Acceptor::listen(Caller& caller) {
  std::array<std::byte, 2048> buffer;
  for (;;) {
    const auto room =
        std::span(buffer).first(std::min(buffer.size(), caller.reception.missing_bytes()));
    const Transfer got = receive_some(caller.socket, room);
    if (got.outcome == Transfer::Outcome::kWouldBlock) return true;
    if (got.outcome == Transfer::Outcome::kEnded) {
      return show_out(caller, "it closed the connection before it had introduced itself");
    }
    const ServerHandshake::Verdict verdict = caller.reception.take(room.first(got.bytes));
    // A challenge always fits into the empty buffer of a new connection. If it does not, the peer
    // is gone.
    static_cast<void>(send_some(caller.socket, caller.reception.reply()));
    if (verdict == ServerHandshake::Verdict::kStranger) {
      return show_out(caller, caller.reception.reason());
    }
    if (verdict == ServerHandshake::Verdict::kWelcome) {
      peers_.push_back(AcceptedPeer{std::move(caller.socket), caller.reception.handshake(),
                                    caller.reception.introduction()});
      return false;
    }
  }
}

bool Acceptor::show_out(const Caller& caller, const std::string& reason) {
  ++dropped_;
  last_dropped_ = caller.from + " (" + reason + ")";
  return false;
}

void Acceptor::show_out_the_slow() {
  const Deadline now = Clock::now();
  std::erase_if(callers_, [&](const Caller& caller) {
    return now >= caller.patience && !show_out(caller, "it did not introduce itself in time");
  });
}

std::string Acceptor::dropped() const {
  if (dropped_ == 0) return "";
  return std::to_string(dropped_) +
         (dropped_ == 1 ? " other connection was dropped, from "
                        : " other connections were dropped, the last from ") +
         last_dropped_;
}

}  // namespace muster::collective
