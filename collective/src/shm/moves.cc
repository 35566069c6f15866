// The collectives of a host that only move data: each rank stages the data that other ranks need,
// and they copy it from there.

#include <array>
#include <cstring>
#include <numeric>

#include "shm/shm_backend.h"

namespace muster::collective::shm {
namespace {

constexpr std::uint64_t kChunk = 256 << 10;
constexpr std::uint64_t kCrowdedChunk = kRingBytes / 4;

std::uint64_t longest_of(PerRank lengths) {
  return lengths.empty() ? 0 : *std::ranges::max_element(lengths);
}

// The bytes of a message of `all` bytes that belong to a round.
std::uint64_t part_of(std::uint64_t all, std::uint64_t chunk, std::uint64_t round) {
  const std::uint64_t begin = round * chunk;
  return begin >= all ? 0 : std::min(chunk, all - begin);
}

}  // namespace

std::uint64_t ShmBackend::chunk_bytes() const {
  return waiter_.crowded() ? kCrowdedChunk : kChunk;
}

Status ShmBackend::broadcast(const Call& call, std::byte* data) {
  const int root = call.root;
  const bool sends = root == host_.self;
  if (call.count <= Entry::kInline) {
    enter(call, data, sends ? call.count : 0);
    if (!meet_all()) return outcome(false);
    if (!sends && call.count > 0) {
      std::memcpy(data, board(root).entries[calls_ % 2].payload.data(), call.count);
    }
    return {};
  }
  const std::uint64_t chunk = chunk_bytes();
  const Stores stores = stores_for(call.count);
  if (!sends) {
    enter(call, nullptr, 0);
    if (!meet_all()) return outcome(false);
  }
  for (std::uint64_t round = 0; round * chunk < call.count; ++round) {
    const std::uint64_t bytes = part_of(call.count, chunk, round);
    const std::uint64_t cell = rings_.reserve(bytes);
    std::byte* const place = data + round * chunk;
    if (sends) {
      if (!rings_.await_room(cell + bytes)) return outcome(false);
      collective::copy(rings_.at(root, cell), place, bytes, stores);
      waiter_.publish(mine().staged.value, cell + bytes);
      if (round == 0) enter(call, nullptr, 0);
    } else {
      Board& theirs = board(root);
      if (!waiter_.reach(theirs, theirs.staged.value, cell + bytes)) return outcome(false);
      collective::copy(place, rings_.at(root, cell), bytes);
    }
    rings_.consume(cell + bytes);
  }
  return outcome((!sends || meet_all()) && measure_again(call.count));
}

bool ShmBackend::gather_inline(const Call& call, const std::byte* part, std::byte* all,
                               PerRank bytes) {
  enter(call, part, bytes[static_cast<std::size_t>(host_.self)]);
  if (!meet_all()) return false;
  for (int rank = 0; rank < size(); ++rank) {
    const std::uint64_t length = bytes[static_cast<std::size_t>(rank)];
    const std::byte* const from = board(rank).entries[calls_ % 2].payload.data();
    if (length > 0) std::memcpy(all, from, length);
    all += length;
  }
  return true;
}

Status ShmBackend::all_gather(const Call& call, const std::byte* part, std::byte* all,
                              PerRank bytes) {
  const std::uint64_t longest = longest_of(bytes);
  if (longest <= Entry::kInline) return outcome(gather_inline(call, part, all, bytes));
  const std::uint64_t chunk = chunk_bytes();
  const Stores stores = stores_for(longest);
  const std::uint64_t own = bytes[static_cast<std::size_t>(host_.self)];
  for (std::uint64_t round = 0; round * chunk < longest; ++round) {
    const std::uint64_t reserved = part_of(longest, chunk, round);
    const std::uint64_t cell = rings_.reserve(reserved);
    if (!rings_.await_room(cell + reserved)) return outcome(false);
    if (const std::uint64_t length = part_of(own, chunk, round); length > 0) {
      collective::copy(rings_.at(host_.self, cell), part + round * chunk, length, stores);
    }
    waiter_.publish(mine().staged.value, cell + reserved);
    if (round == 0) {
      enter(call, nullptr, 0);
      if (!meet_all()) return outcome(false);
    }
    std::byte* to = all + round * chunk;
    for (int rank = 0; rank < size(); ++rank) {
      const std::uint64_t theirs = bytes[static_cast<std::size_t>(rank)];
      const std::uint64_t length = part_of(theirs, chunk, round);
      Board& other = board(rank);
      if (rank == host_.self) {
        if (length > 0 && to != part + round * chunk) std::memcpy(to, part + round * chunk, length);
      } else if (!waiter_.reach(other, other.staged.value, cell + reserved)) {
        return outcome(false);
      } else if (length > 0) {
        collective::copy(to, rings_.at(rank, cell), length);
      }
      to += theirs;
    }
    rings_.consume(cell + reserved);
  }
  return outcome(measure_again(longest));
}

// Each rank publishes how much it sends to each other rank. The longest message determines the
// number of rounds on all ranks.
Status ShmBackend::all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                              PerRank received) {
  const auto n = static_cast<std::uint64_t>(size());
  const auto self = static_cast<std::size_t>(host_.self);
  const std::uint64_t table = rings_.reserve(n * sizeof(std::uint64_t));
  const std::uint64_t table_end = table + n * sizeof(std::uint64_t);
  if (!rings_.await_room(table_end)) return outcome(false);
  std::memcpy(rings_.at(host_.self, table), sent.data(), sent.size_bytes());
  enter(call, nullptr, 0);
  if (!meet_all()) return outcome(false);
  std::uint64_t longest = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const auto* const theirs = reinterpret_cast<const std::uint64_t*>(rings_.at(rank, table));
    longest = std::max(longest, longest_of({theirs, sent.size()}));
    const std::uint64_t expected = received[static_cast<std::size_t>(rank)];
    if (theirs[self] != expected) {
      return fail({ErrorCode::kMismatch,
                   name_of(rank) + " sends " + std::to_string(theirs[self]) + " bytes to " +
                       name_of(host_.self) + ", which expects " + std::to_string(expected) +
                       ", in " + to_string(call),
                   "a rank must receive the number of bytes that its peer sends"});
    }
  }
  // Otherwise the first round releases the table with its own cell.
  if (longest == 0) rings_.consume(table_end);
  const std::uint64_t chunk = std::max<std::uint64_t>(chunk_bytes() / n / 64 * 64, 64);
  for (std::uint64_t round = 0; round * chunk < longest; ++round) {
    const std::uint64_t cell = rings_.reserve(chunk * n);
    if (!rings_.await_room(cell + chunk * n)) return outcome(false);
    const std::byte* from = in + round * chunk;
    for (std::size_t rank = 0; rank < n; from += sent[rank], ++rank) {
      const std::uint64_t length = part_of(sent[rank], chunk, round);
      if (length > 0) collective::copy(rings_.at(host_.self, cell + rank * chunk), from, length);
    }
    waiter_.publish(mine().staged.value, cell + chunk * n);
    std::byte* to = out + round * chunk;
    for (std::size_t rank = 0; rank < n; to += received[rank], ++rank) {
      Board& theirs = board(static_cast<int>(rank));
      if (rank != self && !waiter_.reach(theirs, theirs.staged.value, cell + chunk * n)) {
        return outcome(false);
      }
      const std::uint64_t length = part_of(received[rank], chunk, round);
      const std::byte* const theirs_for_me = rings_.at(static_cast<int>(rank), cell + self * chunk);
      if (length > 0) collective::copy(to, theirs_for_me, length);
    }
    rings_.consume(cell + chunk * n);
  }
  return {};
}

// Each round contains a piece of every part, so that every rank has something to reduce in each
// round.
Status ShmBackend::reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                  PerRank counts) {
  const Kernel& kernel = kernel_for(call);
  const std::size_t element = kernel.bytes_in();
  const auto n = static_cast<std::uint64_t>(size());
  const auto self = static_cast<std::size_t>(host_.self);
  const std::uint64_t longest = longest_of(counts);
  const std::uint64_t chunk =
      std::min(std::max<std::uint64_t>(chunk_bytes() / n / 64 * 64, 64) / element, longest);
  const std::uint64_t padded_bytes = longest * element * n;
  const Stores stores = stores_for(padded_bytes);
  enter(call, nullptr, 0);
  if (!meet_all()) return outcome(false);
  for (std::uint64_t round = 0; round * chunk < longest; ++round) {
    const std::uint64_t part_bytes = chunk * element;
    const std::uint64_t cell = rings_.reserve(part_bytes * n);
    const std::uint64_t end = cell + part_bytes * n;
    if (!rings_.await_room(end)) return outcome(false);
    const std::byte* from = in + round * part_bytes;
    const std::byte* own = from;
    for (std::size_t rank = 0; rank < n; from += counts[rank] * element, ++rank) {
      const std::uint64_t length = part_of(counts[rank], chunk, round);
      if (rank == self) {
        own = from;
      } else if (length > 0) {
        collective::copy(rings_.at(host_.self, cell + rank * part_bytes), from, length * element,
                         stores);
      }
    }
    waiter_.publish(mine().staged.value, end);
    for (std::size_t rank = 0; rank < n; ++rank) {
      Board& theirs = board(static_cast<int>(rank));
      if (rank != self && !waiter_.reach(theirs, theirs.staged.value, end)) return outcome(false);
      inputs_[rank] =
          rank == self ? own : rings_.at(static_cast<int>(rank), cell + self * part_bytes);
    }
    const std::uint64_t length = part_of(counts[self], chunk, round);
    if (length > 0) kernel(inputs_.data(), size(), out + round * part_bytes, length);
    rings_.consume(end);
  }
  return outcome(measure_again(padded_bytes));
}

// Send and receive within a host: a small ring for each ordered pair of ranks. A message is its
// length, then its bytes, padded to 8.
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

std::uint64_t offset_of_channel(const Host& host, int from, int to) {
  const std::uint64_t index =
      static_cast<std::uint64_t>(from) * host.ranks.size() + static_cast<std::uint64_t>(to);
  return host.layout.channels + index * kChannelBytes;
}

Channel& channel_between(const Host& host, int from, int to) {
  return *reinterpret_cast<Channel*>(host.memory + offset_of_channel(host, from, to));
}

}  // namespace

// Both ends reserve a channel before its first message: an access to memory that is not available,
// also a read, would kill the process with SIGBUS.
bool ShmBackend::reserve_channel(int from, int to, std::uint64_t number) {
  if (number > 1 || host_.file == nullptr) return true;
  const Status there = host_.file->reserve(offset_of_channel(host_, from, to), kChannelBytes);
  if (!there && host_.monitor != nullptr) host_.monitor->fail(there.error());
  return static_cast<bool>(there);
}

// At most half of the ring at a time, so that one side fills it while the other side empties it.
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

// A message has no entry in the board, so the monitor is given its description here.
void ShmBackend::begin_message(int receiver, std::uint64_t bytes, std::uint64_t number) {
  if (in_adasum_) return;
  message_ = {.kind = CallKind::kSend,
              .root = host_.ranks[static_cast<std::size_t>(receiver)],
              .count = bytes,
              .sequence = number};
  waiter_.begin(message_);
}

Status ShmBackend::send(const std::byte* data, std::uint64_t bytes, int to) {
  const std::uint64_t number = ++sent_[static_cast<std::size_t>(to)].messages;
  begin_message(to, bytes, number);
  if (!reserve_channel(host_.self, to, number)) return outcome(false);
  const auto length = std::bit_cast<std::array<std::byte, 8>>(bytes);
  return outcome(write_channel(to, length.data(), length.size()) && write_channel(to, data, bytes));
}

Status ShmBackend::receive(std::byte* data, std::uint64_t bytes, int from) {
  const std::uint64_t number = ++received_[static_cast<std::size_t>(from)].messages;
  begin_message(host_.self, bytes, number);
  if (!reserve_channel(from, host_.self, number)) return outcome(false);
  std::array<std::byte, 8> header = {};
  if (!read_channel(from, header.data(), header.size())) return outcome(false);
  const auto length = std::bit_cast<std::uint64_t>(header);
  if (length != bytes) {
    return fail({ErrorCode::kMismatch,
                 name_of(from) + " sends " + std::to_string(length) + " bytes to " +
                     name_of(host_.self) + ", which expects " + std::to_string(bytes),
                 "both sides must pass the same length"});
  }
  return outcome(read_channel(from, data, bytes));
}

}  // namespace muster::collective::shm
