#include "tcp/lane.h"

#include <algorithm>

namespace muster::collective::tcp {
namespace {

// The index of the part of a message that contains byte `position`. Such a part exists.
template <typename Part>
std::size_t part_at(const std::vector<Part>& parts, std::uint64_t position) {
  const auto next = std::ranges::upper_bound(parts, position, {}, &Part::begin);
  return static_cast<std::size_t>(next - parts.begin()) - 1;
}

// Adds memory of a space to the batch. Returns the number of added bytes, which is less than
// `bytes` if the batch is full.
std::uint64_t add_range(Batch& batch, const Memories& memories, Space space, std::uint64_t offset,
                        std::uint64_t bytes) {
  const Memory& memory = memories[static_cast<std::size_t>(space)];
  std::uint64_t added = 0;
  while (added < bytes && !batch.is_full()) {
    const Segment stretch = memory.at(offset + added);
    const std::uint64_t length = std::min({stretch.bytes, bytes - added, batch.room()});
    batch.add(stretch.data, length);
    added += length;
  }
  return added;
}

std::uint64_t allowed(const Outgoing& part, const Tracks& tracks) {
  if (part.after.track == kReady) return part.range.bytes;
  const std::uint64_t there = tracks[static_cast<std::size_t>(part.after.track)];
  if (there <= part.after.offset) return 0;
  return std::min(part.range.bytes, there - part.after.offset);
}

}  // namespace

bool Batch::add(std::byte* data, std::uint64_t bytes) {
  if (is_full()) return false;
  vectors_[count_++] = {data, bytes};
  bytes_ += bytes;
  return true;
}

Sender::Sender(const Dialogue& dialogue, const CallHeader& header, std::size_t streams)
    : dialogue_(dialogue),
      header_(header),
      header_left_(dialogue.sends ? header.size() : 0),
      stripes_(dialogue.out_bytes, streams) {}

Batch Sender::ready(std::size_t stream, const Memories& memories, const Tracks& tracks) {
  Batch batch;
  if (stream == 0 && header_left_ > 0) {
    batch.add(header_.data() + (header_.size() - header_left_), header_left_);
  }
  const std::uint64_t header_bytes = batch.bytes();
  add_payload(batch, stream, memories, tracks);
  // The header is sent together with its payload, so that both are one packet and wake the receiver
  // once.
  const bool is_lonely = batch.bytes() == header_bytes && dialogue_.out_bytes > 0;
  if (is_lonely && header_left_ == header_.size()) return {};
  return batch;
}

void Sender::add_payload(Batch& batch, std::size_t stream, const Memories& memories,
                         const Tracks& tracks) const {
  std::uint64_t position = stripes_.position(stream);
  std::uint64_t run = stripes_.run(stream);
  if (run == 0) return;
  for (std::size_t i = part_at(dialogue_.out, position); run > 0 && !batch.is_full(); ++i) {
    const Outgoing& part = dialogue_.out[i];
    const std::uint64_t inside = position - part.begin;
    const std::uint64_t limit = allowed(part, tracks);
    if (limit <= inside) return;
    const std::uint64_t bytes = std::min(limit - inside, run);
    const std::uint64_t added =
        add_range(batch, memories, part.range.space, part.range.offset + inside, bytes);
    position += added;
    run -= added;
    if (added < part.range.bytes - inside) return;
  }
}

void Sender::sent(std::size_t stream, std::uint64_t bytes) {
  if (stream == 0) {
    const std::size_t of_header = std::min<std::uint64_t>(header_left_, bytes);
    header_left_ -= of_header;
    bytes -= of_header;
  }
  stripes_.advance(stream, bytes);
}

Receiver::Receiver(const Dialogue& dialogue, std::span<std::byte> window, std::size_t streams)
    : dialogue_(dialogue),
      window_(window),
      header_left_(dialogue.receives ? header_.size() : 0),
      stripes_(dialogue.in_bytes, streams) {}

Batch Receiver::room(std::size_t stream, const Memories& memories) {
  Batch batch;
  if (header_left_ > 0) {
    if (stream != 0) return batch;
    batch.add(header_.data() + (header_.size() - header_left_), header_left_);
  }
  add_payload(batch, stream, memories);
  return batch;
}

void Receiver::add_payload(Batch& batch, std::size_t stream, const Memories& memories) const {
  std::uint64_t position = stripes_.position(stream);
  std::uint64_t run = stripes_.run(stream);
  if (run == 0) return;
  std::size_t i = part_at(dialogue_.in, position);
  while (run > 0 && !batch.is_full()) {
    const Incoming& part = dialogue_.in[i];
    const std::uint64_t inside = position - part.begin;
    std::uint64_t bytes = std::min(part.range.bytes - inside, run);
    if (part.staged) {
      const std::uint64_t end = consumed_ + window_.size();
      if (position >= end) return;
      const Segment stretch = staged(position);
      bytes = std::min({bytes, end - position, stretch.bytes, batch.room()});
      batch.add(stretch.data, bytes);
    } else {
      bytes = add_range(batch, memories, part.range.space, part.range.offset + inside, bytes);
    }
    position += bytes;
    run -= bytes;
    if (inside + bytes == part.range.bytes) ++i;
  }
}

void Receiver::received(std::size_t stream, std::uint64_t bytes, Tracks& tracks) {
  if (stream == 0) {
    const std::size_t of_header = std::min<std::uint64_t>(header_left_, bytes);
    header_left_ -= of_header;
    bytes -= of_header;
  }
  stripes_.advance(stream, bytes);
  count_landed(tracks);
}

void Receiver::count_landed(Tracks& tracks) {
  const std::uint64_t prefix = stripes_.prefix();
  while (landing_ < dialogue_.in.size() && dialogue_.in[landing_].begin < prefix) {
    const Incoming& part = dialogue_.in[landing_];
    const std::uint64_t landed = std::min(part.range.bytes, prefix - part.begin);
    if (!part.staged) tracks[static_cast<std::size_t>(part.track)] = landed;
    if (landed < part.range.bytes) return;
    ++landing_;
  }
}

Segment Receiver::staged(std::uint64_t position) const {
  const std::uint64_t offset = position % window_.size();
  return {window_.data() + offset, window_.size() - offset};
}

}  // namespace muster::collective::tcp
