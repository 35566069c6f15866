#include "c/rooms.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "call/arguments.h"

namespace muster::collective::c {
namespace {

// As wide as any vector that a caller may want to read with.
constexpr std::size_t kAlignment = 64;

std::string list_of(std::span<const std::uint64_t> lengths) {
  std::string text;
  for (const std::uint64_t length : lengths) {
    text += (text.empty() ? "" : " ") + std::to_string(length);
  }
  return text;
}

}  // namespace

void* Room::place(std::span<const std::uint64_t> bytes_of_rank) {
  if (!expected.empty() && !std::ranges::equal(bytes_of_rank, expected)) {
    refusal = Error{.code = ErrorCode::kMismatch,
                    .message = "'" + name + "': the ranks hand over " + list_of(bytes_of_rank) +
                               " bytes for this one, which expects " + list_of(expected),
                    .advice = "leave the lengths or the output away where they are not known"};
    return nullptr;
  }
  if (out != nullptr) return out;
  kept = std::make_unique<muster_result>();
  kept->bytes_of_rank.assign(bytes_of_rank.begin(), bytes_of_rank.end());
  const std::uint64_t bytes = sum_of(bytes_of_rank);
  if (bytes == 0) return nullptr;
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  kept->data.reset(static_cast<std::byte*>(memory));
  return memory;
}

Status Room::explain(const Status& outcome) const {
  if (!refusal) return outcome;
  return *refusal;
}

Rooms::Entry Rooms::prepare(std::shared_ptr<Room> room) {
  std::map<muster_ticket, std::shared_ptr<Room>> one;
  one.emplace(0, std::move(room));
  return one.extract(one.begin());
}

void Rooms::add(muster_ticket ticket, Entry entry) {
  entry.key() = ticket;
  const std::lock_guard lock(mutex_);
  rooms_.insert(std::move(entry));
}

std::shared_ptr<Room> Rooms::take(muster_ticket ticket) {
  const std::lock_guard lock(mutex_);
  const auto entry = rooms_.extract(ticket);
  return entry.empty() ? nullptr : std::move(entry.mapped());
}

void Rooms::clear() {
  const std::lock_guard lock(mutex_);
  rooms_.clear();
}

}  // namespace muster::collective::c
