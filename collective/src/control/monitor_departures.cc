#include <poll.h>

#include <algorithm>
#include <utility>

#include "control/graph.h"
#include "control/monitor_impl.h"

namespace muster::collective {
namespace {

// The time limit for the last messages if the other side does not read or answer, from the last
// message on that it has sent; and a limit in any case, which also applies to messages that wait for
// their connection.
constexpr std::chrono::seconds kFarewell{1};
constexpr std::chrono::seconds kLongestFarewell{10};

// How long after a departure a rank connects to another neighbour. At the end of a job all ranks
// leave at nearly the same time.
constexpr std::chrono::milliseconds kBeforeRepair{1'000};

// How long after a rank could not be reached its goodbye, or the news of its death, may arrive.
constexpr std::chrono::milliseconds kGrace{3'000};

}  // namespace

// Sends the last message before the connections close: a goodbye, or the failure, which is already
// queued.
void Monitor::Impl::send_farewell() {
  send_goodbye();
  const Deadline deadline = Clock::now() + kFarewell;
  const Lock lock(mutex_);
  for (Line& line : lines_.all()) {
    while (line.connection.has_unsent() && !line.has_ended && Clock::now() < deadline) {
      pollfd entry = {line.connection.fd(), POLLOUT, 0};
      ::poll(&entry, 1, milliseconds_left(deadline));
      line.connection.flush();
    }
    line.connection.finish();
    // Closing a socket with unread bytes sends a reset, which can overtake the last message.
    static_cast<void>(line.connection.listen());
  }
}

// In a complete graph every rank gets the goodbye from this one. Otherwise the neighbours pass it
// on, and this rank stays until they have received it; a message that waits for its connection goes
// first. The goodbye is sent in any case: without it this rank would count as dead.
void Monitor::Impl::send_goodbye() {
  const Deadline limit = Clock::now() + kLongestFarewell;
  Deadline deadline = Clock::now() + kFarewell;
  for (;;) {
    {
      const Lock lock(mutex_);
      if (failure_) return;
      // No connection to these ranks is being opened.
      for (const auto& [rank, suspect] : suspects_) outbox_.erase(rank);
      const bool is_late = Clock::now() >= limit;
      const bool connects = !outbox_.empty() && !is_late;
      if (connects) deadline = Clock::now() + kFarewell;
      bool waits = connects;
      for (std::size_t i = 0; i < lines_.size() && !connects; ++i) {
        Line& line = lines_[i];
        if (!std::exchange(line.sent_goodbye, true) && !line.has_ended) {
          // Also to a rank that leaves: it sees the connection end while it waits for other ranks.
          const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
          lines_.send(i, encode(Frame{.kind = FrameKind::kGoodbye,
                                      .departures = {{options_.rank, entered}}}));
        }
        waits |= !line.is_parted && !line.has_ended && !line.received_goodbye;
      }
      if (is_complete() || !waits || is_late || Clock::now() >= deadline) return;
    }
    if (look(std::min(limit, deadline))) deadline = Clock::now() + kFarewell;
  }
}

// A rank that has left on another connection may still have messages under way on its own one: then
// its own goodbye counts.
void Monitor::Impl::note(Departure departure) {
  const bool is_new = departures_.emplace(departure.rank, departure.entered).second;
  if (is_new && !is_complete() && !stopping_) news_.push_back(departure);
  if (!lines_.has_live(departure.rank)) depart(departure.rank);
}

void Monitor::Impl::depart(int rank) {
  if (rank == options_.rank) return;
  suspects_.erase(rank);
  outbox_.erase(rank);
  called_.erase(rank);
  departed_.insert(rank);
  idle_.notify_all();
  const auto found = departures_.find(rank);
  std::optional<std::uint64_t> entered;
  if (found != departures_.end()) entered = found->second;
  if (is_complete()) {
    if (entered) detector_.note_alive(rank, *entered);
    detector_.departed(rank);
    return;
  }
  detector_.departed(rank, host_of(rank), entered);
  if (!repair_at_ && !failure_) repair_at_ = Clock::now() + kBeforeRepair;
}

void Monitor::Impl::pass_on_departures() {
  const std::vector<Departure> news = std::exchange(news_, {});
  if (news.empty()) return;
  const Bytes frame = encode(Frame{.kind = FrameKind::kGoodbye, .departures = news});
  for (std::size_t i = 0; i < lines_.size(); ++i) send_to_line(i, frame);
}

void Monitor::Impl::repair() {
  repair_at_.reset();
  const auto absent = [this](int rank) { return is_absent(rank) || departed_.contains(rank); };
  for (const int rank : successors_of(options_.rank, switchboard_->size(), absent)) {
    if (lines_.to(rank) == lines_.size()) call(rank);
  }
}

void Monitor::Impl::call(int rank) {
  if (called_.insert(rank).second) switchboard_->call(rank);
}

// Both ranks greet each other with the departures that they have recorded. Until the greeting has
// come, the other rank may have left without having seen this connection.
void Monitor::Impl::connect(Switchboard::Outcome outcome) {
  const Lock lock(mutex_);
  const int rank = outcome.link.rank;
  if (outcome.obstacle) return suspect(rank, *std::move(outcome.obstacle));
  called_.insert(rank);
  newcomers_.emplace(rank, peer_of(options_, outcome.link));
  const std::size_t index = lines_.add(std::move(outcome.link), false);
  Frame known{.kind = FrameKind::kGoodbye};
  for (const auto& [other, entered] : departures_) known.departures.push_back({other, entered});
  send_to_line(index, encode(known));
  if (failure_) send_to_line(index, encode(Frame{.kind = FrameKind::kAbort, .cause = *failure_}));
}

void Monitor::Impl::confirm(std::size_t index) {
  const int rank = lines_[index].rank;
  lines_.confirm(index);
  called_.erase(rank);
  suspects_.erase(rank);
  if (const auto newcomer = newcomers_.find(rank); newcomer != newcomers_.end()) {
    detector_.add(newcomer->second);
    newcomers_.erase(newcomer);
  }
  const auto waiting = outbox_.find(rank);
  if (waiting == outbox_.end()) return;
  const std::vector<Bytes> frames = std::move(waiting->second);
  outbox_.erase(waiting);
  for (const Bytes& frame : frames) send_to_line(lines_.to(rank), frame);
  idle_.notify_all();
}

void Monitor::Impl::suspect(int rank, Error obstacle) {
  called_.erase(rank);
  if (departed_.contains(rank) || failure_) return;
  if (lines_.to(rank) < lines_.size()) return;
  suspects_.insert_or_assign(rank, Suspect{Clock::now() + kGrace, std::move(obstacle)});
  if (!stopping_) repair_at_ = Clock::now();
}

// A rank that could not be reached, and whose departure or death no other rank has reported. If
// no message must go there, it counts as gone here.
void Monitor::Impl::resolve_suspects() {
  for (auto at = suspects_.begin(); at != suspects_.end();) {
    const auto [rank, suspect] = *at;
    if (Clock::now() < suspect.until) {
      ++at;
      continue;
    }
    at = suspects_.erase(at);
    if (!outbox_.contains(rank)) {
      depart(rank);
      continue;
    }
    fail_locked({ErrorCode::kPeerLost,
                 name_of(rank, host_of(rank)) + " and " + name_of(options_.rank, options_.host) +
                     " did not connect: " + suspect.obstacle.message,
                 "see the last output of that rank", rank, host_of(rank)});
    return;
  }
}

}  // namespace muster::collective
