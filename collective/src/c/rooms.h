// Where the results of all_gather and all_to_all go when the caller has no function that makes room
// for them: into memory of the library, or to a place of the caller's whose size stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/collective.h"
#include "muster/collective/result.h"

// The names of C.
// NOLINTBEGIN(readability-identifier-naming)
struct muster_result {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::vector<std::uint64_t> bytes_of_rank;
  std::unique_ptr<std::byte, Free> data;
};
// NOLINTEND(readability-identifier-naming)

namespace muster::collective::c {

/// The place of one result. Thread-safety: whoever carries the operation out calls place(), and
/// nobody else touches it until the operation is done.
struct Room {
  std::string name;                     // of the operation
  void* out = nullptr;                  // null: the library keeps the result
  std::vector<std::uint64_t> expected;  // from every rank; empty: whatever comes
  std::unique_ptr<muster_result> kept = {};
  std::optional<Error> refusal = {};

  /// Null where there is no room, or where something else comes than was expected.
  void* place(std::span<const std::uint64_t> bytes_of_rank);

  /// Why the operation has failed.
  Status explain(const Status& outcome) const;
};

/// The rooms of operations that nobody has waited for yet, by ticket. Thread-safety: all methods,
/// from any thread.
class Rooms {
 public:
  using Entry = std::map<muster_ticket, std::shared_ptr<Room>>::node_type;

  /// Everything that add() needs memory for.
  static Entry prepare(std::shared_ptr<Room> room);
  void add(muster_ticket ticket, Entry entry);

  /// Null where the ticket has none.
  std::shared_ptr<Room> take(muster_ticket ticket);
  void clear();

 private:
  std::mutex mutex_;
  std::map<muster_ticket, std::shared_ptr<Room>> rooms_;
};

}  // namespace muster::collective::c
