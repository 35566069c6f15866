#include "control/failure_detector.h"

#include <algorithm>
#include <utility>

#include "control/graph.h"
#include "transport/socket.h"

namespace muster::collective {

FailureDetector::FailureDetector(std::string self, int size, Milliseconds timeout,
                                 std::vector<Peer> peers)
    : self_(std::move(self)), size_(size), timeout_(timeout) {
  for (Peer& peer : peers) add(std::move(peer));
}

FailureDetector::Place* FailureDetector::find(int rank) {
  const auto place = std::ranges::lower_bound(places_, rank, {}, &Place::rank);
  return place == places_.end() || place->peer.rank != rank ? nullptr : &*place;
}

void FailureDetector::add(Peer peer) {
  if (find(peer.rank) != nullptr) return;
  const auto next = std::ranges::lower_bound(places_, peer.rank, {}, &Place::rank);
  places_.insert(next, Place{.peer = std::move(peer)});
}

bool FailureDetector::has_peer(int rank) const {
  return std::ranges::binary_search(places_, rank, {}, &Place::rank);
}

void FailureDetector::note_alive(int rank) {
  Place* const place = find(rank);
  if (place == nullptr) return;
  place->asked = false;
  place->silence = Milliseconds{0};
}

void FailureDetector::note_alive(int rank, std::uint64_t entered) {
  note_alive(rank);
  Place* const place = find(rank);
  if (place == nullptr) return;
  // Frames of one sender arrive in order, but a number that was read earlier may be sent later.
  place->entered = std::max(place->entered, entered);
  place->answered = true;
}

void FailureDetector::departed(int rank) {
  Place* const place = find(rank);
  if (place == nullptr) return;
  place->departed = true;
  place->asked = false;
}

void FailureDetector::departed(int rank, const std::string& host,
                               std::optional<std::uint64_t> entered) {
  add({rank, host, {}});
  note_alive(rank, entered.value_or(0));
  find(rank)->has_unknown_calls = !entered;
  departed(rank);
}

std::size_t FailureDetector::at_once() const {
  const std::size_t count = places_.size();
  const bool is_complete = size_ <= kMostComplete;
  return is_complete ? count : std::min(count, std::clamp(count / 5, kFewestAtOnce, kMostAtOnce));
}

void FailureDetector::ask(Place& place, std::vector<int>& asked) {
  if (place.departed || place.asked) return;
  place.asked = true;
  place.silence = Milliseconds{0};
  asked.push_back(place.peer.rank);
}

std::vector<int> FailureDetector::ask_next(std::size_t count) {
  std::vector<int> asked;
  for (std::size_t i = 0; i < count; ++i) {
    turn_ = turn_ + 1 < places_.size() ? turn_ + 1 : 0;
    ask(places_[turn_], asked);
  }
  return asked;
}

std::vector<int> FailureDetector::begin() {
  return ask_next(at_once());
}

void FailureDetector::end() {
  for (Place& place : places_) {
    place.asked = false;
    place.answered = false;
    place.silence = Milliseconds{0};
  }
}

std::vector<int> FailureDetector::tick(Milliseconds passed, Milliseconds tick) {
  // A thread that wakes late runs on a busy host. The other ranks get as much more time.
  const Milliseconds counted =
      passed <= tick ? passed : std::max(Milliseconds{1}, tick * tick.count() / passed.count());
  for (Place& place : places_) {
    if (place.asked) place.silence += counted;
  }
  return ask_next(at_once());
}

void FailureDetector::ask_anew() {
  for (Place& place : places_) place.answered = false;
}

std::vector<int> FailureDetector::ask_for_answers() {
  std::vector<int> asked;
  for (Place& place : places_) {
    if (!place.answered && asked.size() < kMostAtOnce) ask(place, asked);
  }
  return asked;
}

std::optional<Error> FailureDetector::silent(const std::string& what, Milliseconds crowding) const {
  // The rank with the longest silence: the rank that stopped first may have stopped the others.
  const auto worst = std::ranges::max_element(places_, {}, [](const Place& place) {
    return place.asked ? place.silence - place.peer.patience : -place.peer.patience;
  });
  if (worst == places_.end() || !worst->asked || worst->silence < worst->peer.patience + crowding) {
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
    if (!place.departed || place.has_unknown_calls || place.entered >= entered) continue;
    return Error{ErrorCode::kPeerLost,
                 name_of(place) + " has left, but " + self_ + " still waits for it in " + what,
                 "every rank must make the same number of calls", place.peer.rank, place.peer.host};
  }
  return std::nullopt;
}

std::optional<Error> FailureDetector::late(std::uint64_t entered, Milliseconds waited,
                                           const std::string& what) const {
  if (waited < timeout_ || places_.empty()) return std::nullopt;
  if (static_cast<int>(places_.size()) + 1 < size_) return std::nullopt;
  const auto is_known = [](const Place& place) { return place.departed || place.answered; };
  if (!std::ranges::all_of(places_, is_known)) return std::nullopt;
  std::uint64_t fewest = entered;
  for (const Place& place : places_) {
    if (!place.departed) fewest = std::min(fewest, place.entered);
  }
  const auto unknown = std::ranges::find_if(places_, &Place::has_unknown_calls);
  if (fewest == entered && unknown != places_.end()) {
    return Error{ErrorCode::kTimeout,
                 what + " made no progress for " + in_seconds(timeout_) + " while " + self_ +
                     " waited in it; " + name_of(*unknown) +
                     " is gone, and how many calls it had made is unknown",
                 "see the last output of that rank", unknown->peer.rank, unknown->peer.host};
  }
  if (fewest == entered) {
    return Error{ErrorCode::kTimeout,
                 what + " made no progress for " + in_seconds(timeout_) + " while " + self_ +
                     " waited in it; all ranks answer and have begun as many calls",
                 "two ranks may wait for each other's messages; in a session, a rank may not have "
                 "submitted the operation (see the report of rank 0)"};
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
