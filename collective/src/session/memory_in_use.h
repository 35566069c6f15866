// The memory that the operations in flight use. An operation that writes memory which another
// operation reads or writes would have a result that depends on chance, so a session refuses the
// later one. Several operations may read the same memory.
//
// Thread-safety: guarded by its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::collective::session {

struct Operation;

/// A piece of memory that an operation uses.
struct MemorySpan {
  const std::byte* begin = nullptr;
  std::uint64_t bytes = 0;
  bool is_written = false;

  const std::byte* end() const { return begin + bytes; }
};

class MemoryInUse {
 public:
  /// An operation in flight that writes memory of `requested`, or reads memory that `requested`
  /// writes; null if no operation in flight does.
  const Operation* conflict_with(std::span<const MemorySpan> requested) const;

  /// Adds memory that conflicts with no other operation. The spans of one operation may overlap
  /// each other, except those that it writes.
  void add(const Operation& operation, std::span<const MemorySpan> used);

  /// Removes the memory of an operation; `used` is what was added.
  void remove(const Operation& operation, std::span<const MemorySpan> used);

 private:
  struct Entry {
    const std::byte* begin;
    const std::byte* end;
    const Operation* operation;
  };
  using Entries = std::vector<Entry>;  // by begin: an insertion moves a few kilobytes at most

  static void add_to(Entries& entries, const Operation& operation, std::span<const MemorySpan> used,
                     bool is_written);
  static void remove_from(Entries& entries, const Operation& operation,
                          std::span<const MemorySpan> used, bool is_written);

  Entries written_;  // no two of them overlap
  Entries read_;
  std::uint64_t longest_read_ = 0;  // of the entries in read_, or more
};

}  // namespace muster::collective::session
