#include "ring/ring.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {
namespace {

// Received data is reduced while it is still in the cache: half of a common L2.
constexpr std::size_t kScratchBytes = 256 * 1024;

// One system call moves no more than this, so that sending and receiving take turns.
constexpr std::size_t kLargestTransfer = 256 * 1024;

// How long the control connection of a peer may lag behind the end of its data connection.
constexpr std::chrono::seconds kGrace{2};

template <typename T>
std::span<T> at_most(std::span<T> bytes) {
  return bytes.first(std::min(bytes.size(), kLargestTransfer));
}

}  // namespace

Ring::Ring(Place place, std::string host, Neighbour left, Neighbour right,
           std::chrono::milliseconds timeout)
    : place_(place),
      host_(std::move(host)),
      left_(std::move(left)),
      right_(std::move(right)),
      timeout_(timeout),
      watch_(timeout),
      scratch_(kScratchBytes / sizeof(std::max_align_t)) {}

Ring::~Ring() {
  if (failure_) return;
  left_.control.send({ControlKind::kGoodbye});
  right_.control.send({ControlKind::kGoodbye});
}

Status Ring::run(Call call, const Plan& plan) {
  if (failure_) return *failure_;
  call.sequence = ++calls_;
  Pass pass(place_, encode(call), plan, std::as_writable_bytes(std::span(scratch_)));
  watch_.progress(Clock::now());
  while (!pass.done()) {
    const Result<bool> received = receive(pass, call);
    if (!received) return fail(received.error());
    const Result<bool> sent = send(pass, call);
    if (!sent) return fail(sent.error());
    if (*received || *sent) {
      watch_.progress(Clock::now());
    } else if (Status waited = wait(pass, call); !waited) {
      return fail(waited.error());
    }
  }
  return {};
}

// Both return whether bytes moved.
Result<bool> Ring::receive(Pass& pass, const Call& call) {
  const std::span<std::byte> room = pass.to_receive();
  if (room.empty()) return false;
  const bool had_header = pass.left_header() != nullptr;
  const Transfer got = receive_some(left_.data, at_most(room));
  if (got.outcome == Transfer::Outcome::kEnded) return end_of(left_, got.reason, call);
  if (got.outcome == Transfer::Outcome::kWouldBlock) return false;
  pass.received(got.bytes);
  if (!had_header && pass.left_header() != nullptr) {
    if (Status same = compare_with_left(*pass.left_header(), call); !same) return same.error();
  }
  return true;
}

Result<bool> Ring::send(Pass& pass, const Call& call) {
  const ByteView bytes = pass.to_send();
  if (bytes.empty()) return false;
  const Transfer went = send_some(right_.data, at_most(bytes));
  if (went.outcome == Transfer::Outcome::kEnded) return end_of(right_, went.reason, call);
  if (went.outcome == Transfer::Outcome::kWouldBlock) return false;
  pass.sent(went.bytes);
  return true;
}

// Where any two ranks differ, some neighbours do, and nothing that is wrong gets past them.
Status Ring::compare_with_left(const CallHeader& header, const Call& call) const {
  const std::optional<Call> theirs = decode(header);
  if (theirs == call) return {};
  const std::string mine =
      "rank " + std::to_string(place_.rank) + " on host " + host_ + " makes " + to_string(call);
  const std::string other =
      left_.name() + " makes " + (theirs ? to_string(*theirs) : "no call of this library");
  // The lower rank first: in a ring of two both find out, and say the same.
  const bool mine_first = place_.rank < left_.rank;
  return Error{ErrorCode::kMismatch,
               (mine_first ? mine : other) + ", but " + (mine_first ? other : mine),
               "every rank has to make the same calls in the same order"};
}

// Waits until bytes can move or a neighbour says something; no longer than to the next decision
// about a stall.
Status Ring::wait(Pass& pass, const Call& call) {
  const bool waits_for_left = !pass.to_receive().empty();
  const bool waits_for_right = !pass.to_send().empty();
  // An entry with a negative descriptor is passed over. One without events is not: it would report
  // an error or hang-up that nobody wants to handle yet, again and again.
  std::array<pollfd, 4> entries = {{
      {waits_for_left ? left_.data.get() : -1, POLLIN, 0},
      {waits_for_right ? right_.data.get() : -1, POLLOUT, 0},
      {left_.has_left ? -1 : left_.control.socket().get(), POLLIN, 0},
      {right_.has_left ? -1 : right_.control.socket().get(), POLLIN, 0},
  }};
  const int ready = ::poll(entries.data(), entries.size(), milliseconds_left(watch_.next()));
  if (ready < 0 && errno != EINTR) return system_error("cannot wait for the neighbours", errno);
  if (ready > 0 && entries[2].revents != 0) {
    if (Status heard = listen(left_, Side::kLeft, call); !heard) return heard;
  }
  if (ready > 0 && entries[3].revents != 0) {
    if (Status heard = listen(right_, Side::kRight, call); !heard) return heard;
  }
  // Bytes that can move are progress enough; the stall is judged when nothing can.
  if (ready > 0 && (entries[0].revents != 0 || entries[1].revents != 0)) return {};
  return judge_stall(waits_for_left, waits_for_right, call);
}

Status Ring::listen(Neighbour& neighbour, Side side, const Call& call) {
  while (!neighbour.has_left) {
    ControlChannel::Event event = neighbour.control.next();
    if (std::holds_alternative<ControlChannel::Nothing>(event)) return {};
    if (const auto* end = std::get_if<ControlChannel::Ended>(&event)) {
      return gone(neighbour, end->reason, call);
    }
    auto& message = std::get<ControlMessage>(event);
    switch (message.kind) {
      case ControlKind::kProbe:
        neighbour.control.send({ControlKind::kAlive});
        break;
      case ControlKind::kAlive:
        watch_.answered(side);
        break;
      case ControlKind::kGoodbye:
        // No failure yet: what it sent before it left may be all that this call needs.
        neighbour.has_left = true;
        break;
      case ControlKind::kAbort:
        return std::move(message.cause);
    }
  }
  return {};
}

Status Ring::judge_stall(bool waits_for_left, bool waits_for_right, const Call& call) {
  switch (watch_.check(Clock::now(), waits_for_left, waits_for_right)) {
    case StallWatch::Verdict::kWait:
      return {};
    case StallWatch::Verdict::kProbe:
      if (waits_for_left) left_.control.send({ControlKind::kProbe});
      if (waits_for_right) right_.control.send({ControlKind::kProbe});
      return {};
    case StallWatch::Verdict::kLeftSilent:
      return silent(left_, call);
    case StallWatch::Verdict::kRightSilent:
      return silent(right_, call);
    case StallWatch::Verdict::kStuck:
      break;
  }
  return Error{ErrorCode::kTimeout, "nothing moved in " + to_string(call) + " for several times " +
                                        in_seconds(timeout_) + ", though the neighbours of rank " +
                                        std::to_string(place_.rank) + " answer"};
}

// A data connection has ended; its control connection knows why, or ends too.
Error Ring::end_of(Neighbour& neighbour, int reason, const Call& call) {
  const Deadline deadline = Clock::now() + kGrace;
  for (;;) {
    const Side side = &neighbour == &left_ ? Side::kLeft : Side::kRight;
    if (Status heard = listen(neighbour, side, call); !heard) return heard.error();
    if (neighbour.has_left) return left(neighbour, call);
    pollfd entry = {neighbour.control.socket().get(), POLLIN, 0};
    if (::poll(&entry, 1, milliseconds_left(deadline)) <= 0 && Clock::now() >= deadline) {
      return gone(neighbour, reason, call);
    }
  }
}

Error Ring::gone(const Neighbour& neighbour, int reason, const Call& call) const {
  return {ErrorCode::kPeerLost,
          neighbour.name() + " is gone: its connection to rank " + std::to_string(place_.rank) +
              " ended (" + reason_of_end(reason) + ") in " + to_string(call),
          "its own last output says why it ended", neighbour.rank, neighbour.host};
}

Error Ring::left(const Neighbour& neighbour, const Call& call) const {
  return {ErrorCode::kPeerLost,
          neighbour.name() + " has left, but rank " + std::to_string(place_.rank) +
              " still waits for it in " + to_string(call),
          "every rank has to make the same number of calls", neighbour.rank, neighbour.host};
}

Error Ring::silent(const Neighbour& neighbour, const Call& call) const {
  return {ErrorCode::kTimeout,
          neighbour.name() + " did not answer for " + in_seconds(timeout_) + " while rank " +
              std::to_string(place_.rank) + " waited for it in " + to_string(call),
          "if it may work that long between two calls, raise MUSTER_COLLECTIVE_TIMEOUT",
          neighbour.rank, neighbour.host};
}

Error Ring::fail(Error error) {
  failure_ = std::move(error);
  for (Neighbour* neighbour : {&left_, &right_}) {
    neighbour->control.send({ControlKind::kAbort, *failure_});
    neighbour->control.finish_sending();
    // Closing wakes a neighbour that waits for our bytes; the reason is on its way to it already.
    neighbour->data.close();
  }
  return *failure_;
}

}  // namespace muster::collective
