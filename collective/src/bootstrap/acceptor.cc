#include "bootstrap/acceptor.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "transport/socket.h"

namespace muster::collective {
namespace {

// A rank introduces itself in milliseconds; who takes longer than this is no rank.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

Acceptor::Acceptor(Descriptor listener, Bytes key, int expected)
    : listener_(std::move(listener)),
      key_(std::move(key)),
      most_callers_(64 + static_cast<std::size_t>(expected)) {}

void Acceptor::close() {
  listener_.close();
  callers_.clear();
}

Result<Guest> Acceptor::next(Deadline deadline) {
  while (guests_.empty()) {
    if (Clock::now() >= deadline) return Error{ErrorCode::kTimeout, "nobody came in time"};
    std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
    Deadline wake = deadline;
    for (const Caller& caller : callers_) {
      entries.push_back({caller.socket.get(), POLLIN, 0});
      wake = std::min(wake, caller.patience);
    }
    if (::poll(entries.data(), entries.size(), milliseconds_left(wake)) < 0 && errno != EINTR) {
      return system_error("cannot wait for connections", errno);
    }
    std::size_t i = 1;
    for (auto caller = callers_.begin(); caller != callers_.end(); ++i) {
      const bool stays = entries[i].revents == 0 || attend(*caller);
      caller = stays ? std::next(caller) : callers_.erase(caller);
    }
    show_out_the_slow();
    if (entries[0].revents != 0) {
      if (Status admitted = admit(); !admitted) return admitted.error();
    }
  }
  Guest guest = std::move(guests_.front());
  guests_.pop_front();
  return guest;
}

// Lets in who waits at the door, to the hall.
Status Acceptor::admit() {
  for (;;) {
    Result<Descriptor> socket = accept_from(listener_);
    if (!socket) return socket.error();
    if (!*socket) return {};
    Nonce nonce;
    if (Status filled = fill_random(nonce); !filled) return filled.error();
    if (callers_.size() == most_callers_) {
      show_out(callers_.front(), "too many were at the door");
      callers_.pop_front();
    }
    std::string from = peer_address(socket->get()).to_string();
    callers_.push_back(Caller{*std::move(socket), std::move(from), Clock::now() + kPatience,
                              Reception(key_, nonce)});
  }
}

// Reads what a caller has sent; false when it is no caller any more, but a guest or gone.
bool Acceptor::attend(Caller& caller) {
  std::array<std::byte, 2048> buffer;
  for (;;) {
    const auto room = std::span(buffer).first(std::min(buffer.size(), caller.reception.wanted()));
    const Transfer got = receive_some(caller.socket, room);
    if (got.outcome == Transfer::Outcome::kWouldBlock) return true;
    if (got.outcome == Transfer::Outcome::kEnded) {
      return show_out(caller, "it hung up before it had introduced itself");
    }
    const Reception::Verdict verdict = caller.reception.take(room.first(got.bytes));
    // A challenge always fits in the empty buffer of a new connection; who cannot take it is gone.
    static_cast<void>(send_some(caller.socket, caller.reception.reply()));
    if (verdict == Reception::Verdict::kStranger) {
      return show_out(caller, caller.reception.reason());
    }
    if (verdict == Reception::Verdict::kWelcome) {
      guests_.push_back(Guest{std::move(caller.socket), caller.reception.session(),
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
