#include "ring/pass.h"

#include <algorithm>
#include <cstring>

#include "ring/reduce.h"

namespace muster::collective {
namespace {

// Steps over finished pieces, and over empty ones: a buffer with fewer elements than ranks has
// some.
template <typename Pieces>
void skip_finished(const Pieces& pieces, std::size_t& index, std::uint64_t& done) {
  while (index < pieces.size() && done == pieces[index].bytes) {
    ++index;
    done = 0;
  }
}

}  // namespace

Pass::Pass(Place place, const CallHeader& header, const Plan& plan, std::span<std::byte> scratch)
    : place_(place), header_(header), plan_(plan), scratch_(scratch) {
  skip_finished(plan_.outgoing, outgoing_, outgoing_done_);
  skip_finished(plan_.incoming, incoming_, incoming_done_);
}

ByteView Pass::to_send() const {
  if (header_sent_ < header_.size()) return ByteView(header_).subspan(header_sent_);
  if (outgoing_ == plan_.outgoing.size()) return {};
  const Outgoing& piece = plan_.outgoing[outgoing_];
  const std::uint64_t allowed = plan_.lead_bytes + total_landed_ - total_sent_;
  return {piece.data + outgoing_done_, std::min(piece.bytes - outgoing_done_, allowed)};
}

void Pass::sent(std::size_t bytes) {
  if (header_sent_ < header_.size()) {
    header_sent_ += bytes;
    return;
  }
  outgoing_done_ += bytes;
  total_sent_ += bytes;
  skip_finished(plan_.outgoing, outgoing_, outgoing_done_);
}

std::span<std::byte> Pass::to_receive() {
  if (header_received_ < left_header_.size()) {
    return std::span(left_header_).subspan(header_received_);
  }
  if (incoming_ == plan_.incoming.size()) return {};
  const Incoming& piece = plan_.incoming[incoming_];
  const std::uint64_t missing = piece.bytes - incoming_done_;
  if (piece.landing == Incoming::Landing::kStore) return {piece.data + incoming_done_, missing};
  const std::uint64_t room = std::min<std::uint64_t>(missing, scratch_.size());
  return scratch_.first(room).subspan(scratch_filled_);
}

void Pass::received(std::size_t bytes) {
  if (header_received_ < left_header_.size()) {
    header_received_ += bytes;
  } else if (plan_.incoming[incoming_].landing == Incoming::Landing::kStore) {
    advance(bytes);
  } else {
    land_reduced(bytes);
  }
}

void Pass::land_reduced(std::size_t bytes) {
  const Incoming& piece = plan_.incoming[incoming_];
  const std::size_t element = size_of(plan_.type);
  scratch_filled_ += bytes;
  const std::size_t count = scratch_filled_ / element;
  const std::size_t whole = count * element;
  std::byte* const target = piece.data + incoming_done_;
  reduce_into(target, scratch_.data(), count, plan_.type, plan_.op);
  if (piece.landing == Incoming::Landing::kReduceAndAverage) {
    finish_average(target, count, plan_.type, place_.size);
  }
  // TCP cuts where it likes: the beginning of an element waits at the front for its end.
  scratch_filled_ -= whole;
  std::memmove(scratch_.data(), scratch_.data() + whole, scratch_filled_);
  advance(whole);
}

void Pass::advance(std::uint64_t bytes) {
  incoming_done_ += bytes;
  total_landed_ += bytes;
  skip_finished(plan_.incoming, incoming_, incoming_done_);
}

bool Pass::all_sent() const {
  return header_sent_ == header_.size() && outgoing_ == plan_.outgoing.size();
}

bool Pass::all_received() const {
  return header_received_ == left_header_.size() && incoming_ == plan_.incoming.size();
}

const CallHeader* Pass::left_header() const {
  return header_received_ == left_header_.size() ? &left_header_ : nullptr;
}

}  // namespace muster::collective
