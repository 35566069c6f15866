#include "control/failure_detector.h"

#include <algorithm>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {

FailureDetector::FailureDetector(std::string self, Milliseconds timeout, std::vector<Peer> peers)
    : self_(std::move(self)), timeout_(timeout) {
  for (Peer& peer : peers) places_.push_back({.peer = std::move(peer)});
  if (!probes_in_turn()) return;
  // Each rank begins after itself, so that not all probe the same ranks.
  while (turn_ + 1 < places_.size() && places_[turn_].peer.rank == static_cast<int>(turn_)) ++turn_;
}

void FailureDetector::heard(std::size_t index) {
  Place& place = places_[index];
  place.asked = false;
  place.silence = Milliseconds{0};
}

void FailureDetector::heard(std::size_t index, std::uint64_t entered) {
  heard(index);
  // Frames of one sender arrive in order, but a number that was read earlier may be sent later.
  places_[index].entered = std::max(places_[index].entered, entered);
}

void FailureDetector::departed(std::size_t index) {
  places_[index].departed = true;
  places_[index].asked = false;
}

void FailureDetector::ask(std::size_t index, std::vector<std::size_t>& asked) {
  Place& place = places_[index];
  if (place.departed || place.asked) return;
  place.asked = true;
  place.silence = Milliseconds{0};
  asked.push_back(index);
}

void FailureDetector::ask_next(std::size_t count, std::vector<std::size_t>& asked) {
  for (std::size_t i = 0; i < count; ++i) {
    ask(turn_, asked);
    turn_ = (turn_ + 1) % places_.size();
  }
  in_turn_ += count;
}

std::vector<std::size_t> FailureDetector::begin() {
  std::vector<std::size_t> asked;
  if (probes_in_turn()) {
    ask_next(kAskedFirst, asked);
  } else {
    for (std::size_t i = 0; i < places_.size(); ++i) ask(i, asked);
  }
  return asked;
}

void FailureDetector::end() {
  for (Place& place : places_) {
    place.asked = false;
    place.silence = Milliseconds{0};
  }
  in_turn_ = 0;
}

std::vector<std::size_t> FailureDetector::tick(Milliseconds passed, Milliseconds tick) {
  const Milliseconds counted = std::min(passed, tick);
  for (Place& place : places_) {
    if (place.asked) place.silence += counted;
  }
  std::vector<std::size_t> asked;
  ask_next(std::min(places_.size(), kAskedAtOnce), asked);
  return asked;
}

std::optional<Error> FailureDetector::silent(const std::string& what) const {
  // The rank with the longest silence: the rank that stopped first may have stopped the others.
  const auto worst = std::ranges::max_element(places_, {}, [](const Place& place) {
    return place.asked ? place.silence - place.peer.patience : -place.peer.patience;
  });
  if (worst == places_.end() || !worst->asked || worst->silence < worst->peer.patience) {
    return std::nullopt;
  }
  return Error{ErrorCode::kTimeout,
               name_of(*worst) + " did not answer for " + in_seconds(worst->silence) + " while " +
                   self_ + " waited in " + what,
               "that rank is stopped, or its host cannot be reached", worst->peer.rank,
               worst->peer.host};
}

std::optional<Error> FailureDetector::missing(std::uint64_t entered,
                                              const std::string& what) const {
  for (const Place& place : places_) {
    if (!place.departed || place.entered >= entered) continue;
    return Error{ErrorCode::kPeerLost,
                 name_of(place) + " has left, but " + self_ + " still waits for it in " + what,
                 "every rank must make the same number of calls", place.peer.rank, place.peer.host};
  }
  return std::nullopt;
}

std::optional<Error> FailureDetector::late(std::uint64_t entered, Milliseconds waited,
                                           const std::string& what) const {
  if (waited < timeout_ || places_.empty()) return std::nullopt;
  if (probes_in_turn() && in_turn_ < places_.size()) return std::nullopt;
  std::uint64_t fewest = entered;
  for (const Place& place : places_) {
    if (!place.departed) fewest = std::min(fewest, place.entered);
  }
  if (fewest == entered) {
    return Error{ErrorCode::kTimeout,
                 what + " made no progress for " + in_seconds(timeout_) + " while " + self_ +
                     " waited in it; all ranks answer and have entered it",
                 "two ranks may wait for each other's messages"};
  }
  std::string names;
  const Place* first = nullptr;
  for (const Place& place : places_) {
    if (place.departed || place.entered > fewest) continue;
    if (first == nullptr) first = &place;
    names += (names.empty() ? "" : ", ") + name_of(place);
  }
  return Error{ErrorCode::kTimeout,
               names + " did not enter " + what + " within " + in_seconds(timeout_) + " while " +
                   self_ + " waited in it",
               "if a rank may work that long between two calls, raise MUSTER_COLLECTIVE_TIMEOUT",
               first->peer.rank, first->peer.host};
}

std::string FailureDetector::name_of(const Place& place) const {
  return "rank " + std::to_string(place.peer.rank) + " on host " + place.peer.host;
}

}  // namespace muster::collective
