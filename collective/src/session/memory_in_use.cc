#include "session/memory_in_use.h"

#include <algorithm>

namespace muster::collective::session {
namespace {

// Beyond this number, the entries of an operation are sorted in together.
constexpr std::size_t kFew = 8;

}  // namespace

const Operation* MemoryInUse::conflict_with(std::span<const MemorySpan> requested) const {
  if (written_.empty() && read_.empty()) return nullptr;
  for (const MemorySpan& span : requested) {
    if (span.bytes == 0) continue;
    // The last entry that begins before the end of the span.
    const auto written = std::ranges::lower_bound(written_, span.end(), {}, &Entry::begin);
    if (written != written_.begin() && std::prev(written)->end > span.begin) {
      return std::prev(written)->operation;
    }
    if (!span.is_written) continue;
    auto read = std::ranges::lower_bound(read_, span.end(), {}, &Entry::begin);
    while (read != read_.begin()) {
      --read;
      if (read->end > span.begin) return read->operation;
      if (read->begin + longest_read_ <= span.begin) break;
    }
  }
  return nullptr;
}

void MemoryInUse::add(const Operation& operation, std::span<const MemorySpan> used) {
  add_to(written_, operation, used, true);
  add_to(read_, operation, used, false);
  for (const MemorySpan& span : used) {
    if (!span.is_written) longest_read_ = std::max(longest_read_, span.bytes);
  }
}

void MemoryInUse::remove(const Operation& operation, std::span<const MemorySpan> used) {
  remove_from(written_, operation, used, true);
  remove_from(read_, operation, used, false);
  if (read_.empty()) longest_read_ = 0;
}

void MemoryInUse::add_to(Entries& entries, const Operation& operation,
                         std::span<const MemorySpan> used, bool is_written) {
  for (const MemorySpan& span : used) {
    if (span.is_written != is_written || span.bytes == 0) continue;
    const Entry entry{span.begin, span.end(), &operation};
    if (used.size() > kFew) {
      entries.push_back(entry);
    } else {
      entries.insert(std::ranges::upper_bound(entries, entry.begin, {}, &Entry::begin), entry);
    }
  }
  if (used.size() > kFew) std::ranges::sort(entries, {}, &Entry::begin);
}

void MemoryInUse::remove_from(Entries& entries, const Operation& operation,
                              std::span<const MemorySpan> used, bool is_written) {
  if (used.size() > kFew) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.operation == &operation; });
    return;
  }
  for (const MemorySpan& span : used) {
    if (span.is_written != is_written || span.bytes == 0) continue;
    const auto same = std::ranges::equal_range(entries, span.begin, {}, &Entry::begin);
    const auto own = std::ranges::find(same, &operation, &Entry::operation);
    if (own != same.end()) entries.erase(own);
  }
}

}  // namespace muster::collective::session
