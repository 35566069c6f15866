// Send and receive within a host: a small ring for each ordered pair of ranks. A message is its
// length, then its bytes, padded to 8.
#include <array>
#include <cstring>

#include "shm/shm_backend.h"

namespace muster::collective::shm {
namespace {

struct Channel {
  Signal written;
  Signal read;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

constexpr std::uint64_t kCapacity = kChannelBytes - sizeof(Channel);
constexpr std::uint64_t kHalf = kCapacity / 2;

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

Channel& channel_between(const Host& host, int from, int to) {
  const std::uint64_t index =
      static_cast<std::uint64_t>(from) * host.ranks.size() + static_cast<std::uint64_t>(to);
  return *reinterpret_cast<Channel*>(host.memory + host.layout.channels + index * kChannelBytes);
}

}  // namespace

// At most half of the ring at once, so that one side fills it while the other empties it.
bool ShmBackend::write_channel(int to, const std::byte* data, std::uint64_t bytes) {
  Channel& channel = channel_between(host_, host_.self, to);
  std::uint64_t& position = sent_[static_cast<std::size_t>(to)].bytes;
  while (bytes > 0) {
    const std::uint64_t run = std::min({bytes, kHalf, kCapacity - position % kCapacity});
    if (position + run > kCapacity &&
        !waiter_.reach(board(to), channel.read.value, position + run - kCapacity)) {
      return false;
    }
    std::memcpy(channel.data() + position % kCapacity, data, run);
    position += padded(run);
    waiter_.publish(channel.written.value, position);
    data += run;
    bytes -= run;
  }
  return true;
}

bool ShmBackend::read_channel(int from, std::byte* data, std::uint64_t bytes) {
  Channel& channel = channel_between(host_, from, host_.self);
  std::uint64_t& position = received_[static_cast<std::size_t>(from)].bytes;
  while (bytes > 0) {
    const std::uint64_t run = std::min({bytes, kHalf, kCapacity - position % kCapacity});
    if (!waiter_.reach(board(from), channel.written.value, position + padded(run))) return false;
    std::memcpy(data, channel.data() + position % kCapacity, run);
    position += padded(run);
    waiter_.publish(channel.read.value, position);
    data += run;
    bytes -= run;
  }
  return true;
}

// A message has no entry, so the words of the monitor are given here.
void ShmBackend::begin_message(int receiver, std::uint64_t bytes, std::uint64_t number) {
  if (in_adasum_) return;
  message_ = {.kind = CallKind::kSend,
              .root = host_.ranks[static_cast<std::size_t>(receiver)],
              .count = bytes,
              .sequence = number};
  waiter_.begin(message_);
}

Status ShmBackend::send(const std::byte* data, std::uint64_t bytes, int to) {
  begin_message(to, bytes, ++sent_[static_cast<std::size_t>(to)].messages);
  const auto length = std::bit_cast<std::array<std::byte, 8>>(bytes);
  return outcome(write_channel(to, length.data(), length.size()) && write_channel(to, data, bytes));
}

Status ShmBackend::receive(std::byte* data, std::uint64_t bytes, int from) {
  begin_message(host_.self, bytes, ++received_[static_cast<std::size_t>(from)].messages);
  std::array<std::byte, 8> header = {};
  if (!read_channel(from, header.data(), header.size())) return outcome(false);
  const auto length = std::bit_cast<std::uint64_t>(header);
  if (length != bytes) {
    return fail({ErrorCode::kMismatch,
                 name_of(from) + " sends " + std::to_string(length) + " bytes to " +
                     name_of(host_.self) + ", which receives " + std::to_string(bytes),
                 "both sides have to name the same length"});
  }
  return outcome(read_channel(from, data, bytes));
}

}  // namespace muster::collective::shm
