#include "session/ring.h"

#include <algorithm>
#include <cstring>

namespace muster::collective::session {
namespace {

constexpr std::uint64_t kPrefix = 8;  // the length; messages begin at multiples of it

std::uint64_t room_for(std::uint64_t bytes) {
  return kPrefix + (bytes + kPrefix - 1) / kPrefix * kPrefix;
}

}  // namespace

std::uint64_t Ring::slowest() const {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < reader_count_; ++i) {
    least = std::min(least, readers_[i].at.load(std::memory_order_acquire));
  }
  return least;
}

bool Ring::has_room(std::uint64_t bytes) {
  const std::uint64_t end = writer_->at.load(std::memory_order_relaxed) + room_for(bytes);
  if (end - known_slowest_ <= capacity_) return true;
  known_slowest_ = slowest();
  if (end - known_slowest_ <= capacity_) return true;
  // Says that it waits, and looks once more: a reader makes room first and then looks who waits.
  for (int i = 0; i < reader_count_; ++i) readers_[i].starves.exchange(1);
  known_slowest_ = slowest();
  return end - known_slowest_ <= capacity_;
}

bool Ring::write(ByteView message) {
  if (!has_room(message.size())) return false;
  const std::uint64_t at = writer_->at.load(std::memory_order_relaxed);
  const std::uint64_t length = message.size();
  copy_in(at, std::as_bytes(std::span(&length, 1)));
  copy_in(at + kPrefix, message);
  writer_->at.store(at + room_for(length), std::memory_order_release);
  return true;
}

Ring::Read Ring::read(int reader, Bytes& message, bool& wake_writer) {
  Position& mine = readers_[reader];
  const std::uint64_t at = mine.at.load(std::memory_order_relaxed);
  const std::uint64_t written = writer_->at.load(std::memory_order_acquire);
  if (at == written) return Read::kNothing;
  std::uint64_t length = 0;
  copy_out(at, reinterpret_cast<std::byte*>(&length), sizeof length);
  if (length > capacity_ || room_for(length) > written - at) return Read::kDamaged;
  message.resize(length);
  copy_out(at + kPrefix, message.data(), length);
  mine.at.store(at + room_for(length), std::memory_order_release);
  if (mine.starves.exchange(0, std::memory_order_acq_rel) != 0) wake_writer = true;
  return Read::kMessage;
}

void Ring::copy_in(std::uint64_t at, ByteView bytes) {
  if (bytes.empty()) return;
  const std::uint64_t begin = at % capacity_;
  const std::uint64_t first = std::min<std::uint64_t>(bytes.size(), capacity_ - begin);
  std::memcpy(data_ + begin, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(data_, bytes.data() + first, bytes.size() - first);
}

void Ring::copy_out(std::uint64_t at, std::byte* out, std::uint64_t bytes) const {
  if (bytes == 0) return;
  const std::uint64_t begin = at % capacity_;
  const std::uint64_t first = std::min(bytes, capacity_ - begin);
  std::memcpy(out, data_ + begin, first);
  if (first < bytes) std::memcpy(out + first, data_, bytes - first);
}

}  // namespace muster::collective::session
